"""Who waits under MRSch: the small and the large quarter of jobs, and the longest wait; no job may starve."""

from collections.abc import Iterator

from bridge.report.table import Table
from bridge.study.headings import HEADS
from bridge.study.report import number
from bridge.study.results import StudyResults

TITLE = "Who waits: small jobs, large jobs, and the longest wait"
METRICS = ("wait.small", "wait.large", "wait.max")
_TEST = "held-out"


def section(results: StudyResults) -> list[str]:
    """Return what the page of a table folds of it; nothing where the study does not measure it."""
    study = results.study
    if not {*METRICS} <= {*study.metrics}:
        return []
    short = ("small quarter, h", "large quarter, h", HEADS["wait.max"][0])
    table = Table(["log", "row", *short, "large ÷ small"], words=(0, 1))
    for line in _lines(results):
        table.add(*line)
    says = (
        "Mean waits of the jobs that request at most as many nodes as the lower quartile of a window's jobs, "
        "and of those that request at least as many as the upper one; the mean over windows and seeds. Where "
        "large jobs starved, their wait and the longest one would grow far beyond those of FCFS + EASY."
    )
    return [says, table.markdown().rstrip()]


def _lines(results: StudyResults) -> Iterator[tuple[str, ...]]:
    study = results.study
    for log in study.logs:
        for row in study.rows:
            if not results.of(row.name, log, _TEST):
                continue
            values = results.row(row.name, log, _TEST)["more"]
            ratio = values["wait.large"] / values["wait.small"]
            yield log, row.name, *(number(name, values[name]) for name in METRICS), f"{ratio:.1f}"
