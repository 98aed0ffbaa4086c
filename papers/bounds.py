"""How much is left on each log: `bridge bound` on windows behind what agents learn from, kept and said.

python -m papers.bounds [LOG …]    # measures anew; of all logs without names
"""

import sys
from collections.abc import Iterable
from typing import Any

from bridge.forecasting.bound import ARRIVALS, RUN_TIMES, bound
from bridge.judge.sequences import SAMPLERS, sample
from bridge.judge.stats import INTERVALS, ConfidenceInterval, window_bootstrap
from bridge.report.folding import collapsible
from bridge.report.table import Table
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers import logs, store

#: Logs of agents on their own jobs; MRSch's workloads have several resources.
LOGS = ("SDSC-SP2", "CTC-SP2", "HPC2N", "DataStar", "Atlas", "Theta", "Lublin-1", "Lublin-2")
#: Behind what agents learn from; windows, and jobs of each.
BEHIND, WINDOWS, LENGTH = 0.6, 100, 256


def measured(name: str) -> dict[str, Any]:
    """Return the bound of a log: what each row has of every window, and the windows' first jobs."""
    setup = SchedulerConfig()
    jobs = setup.select(logs.log(name))
    before = round(len(jobs) * BEHIND)
    usual = SAMPLERS["standard"]
    starts = before + sample(usual, len(jobs) - before, WINDOWS, LENGTH, usual.seed)
    bound_document = bound(jobs, setup, starts, LENGTH).as_dict()
    kept = [
        {key: row[key] for key in ("known", "policy", "oracle", "mean")}
        | {"values": [round(value, 6) for value in row["values"]]}
        for row in bound_document["rows"]
    ]
    return {"starts": starts.tolist(), "rows": kept, "rules": bound_document["rules"]}


def read_bounds() -> dict[str, Any]:
    return store.read_json("bounds")


def _apart(document: dict[str, Any], row: dict[str, Any]) -> ConfidenceInterval:
    """Return the difference to the best rule in percent of that rule's mean."""
    base = document["rows"][0]
    apart = window_bootstrap(row["values"], document["starts"], LENGTH, base=base["values"])
    return apart.percent_of(base["mean"])


def _least(document: dict[str, Any], what: str) -> float:
    """Return the difference, in percent, of the best policy that knows so much."""
    mean = min(float(row["mean"]) for row in document["rows"] if row["known"] == what)
    return 100 * (mean / float(document["rows"][0]["mean"]) - 1)


def format_bound(names: Iterable[str]) -> str:
    """Return a sentence on the logs of a page; empty if nothing is known of any."""
    parts = []
    for name in dict.fromkeys(names):
        if format_bound := read_bounds().get(name):
            times, arrivals = (_least(format_bound, what) for what in (RUN_TIMES, ARRIVALS))
            parts.append(f"{name} {times:+.0f} %, {arrivals:+.0f} %")
    if not parts:
        return ""
    return (
        "Two oracles show how much is left. The first knows true run times. The second also knows the "
        "arrivals of the next 12 h. Compared with the best rule (chosen afterwards), their mean bounded "
        f"slowdown differs by: {'; '.join(parts)} ([bounds](bounds.md))."
    )


def page() -> str:
    heads = ("log", "b", "best rule", "mean", "lookahead", "true run times", "and arrivals")
    rows = []
    for name, document in read_bounds().items():
        best = document["rows"][0]
        apart = [_apart(document, row) for row in document["rows"][1:]]
        ahead, rule, blind, seeing = map(_between, apart)
        cells = (best["policy"], f"{best['mean']:.2f}", ahead, f"{rule}; {blind}", seeing)
        rows.append((name, apart[0].b, *cells))
    says = (
        "# How much could still be gained\n\nThis page shows how much lower the mean bounded slowdown could "
        "be with better knowledge. The column *mean* has the best of ten rules with EASY. This rule was "
        "chosen afterwards, on the same windows. The columns to the right have differences to it, in "
        "percent. The column *true run times* has two values: the best rule, and a lookahead, both with true "
        "run times. The policy of the last column also knows the arrivals of the next 12 h. A policy with "
        "this knowledge could be even better ([Looking ahead](../lookahead.md)).\n\n"
    )
    how = (
        f"For each log, {WINDOWS} windows of {LENGTH} jobs were taken from the last {1 - BEHIND:.0%}. "
        f"Estimates are the requested times. {INTERVALS} A mean cannot fall by more than "
        "100 %. If a few windows have most of the slowdown, an interval may reach beyond this."
    )
    command = "Made by `python -m papers.bounds`."
    foot = "\n\n" + "\n\n".join((*collapsible("How it was measured", [how]), command)) + "\n"
    return says + Table(heads, rows).markdown().rstrip() + foot


def _between(apart: ConfidenceInterval) -> str:
    held = "" if apart.kind is None else f" [{apart.low:+.0f}, {apart.high:+.0f}]{apart.mark}"
    return f"{apart.mean:+.0f} %{held}"


def main(names: list[str]) -> None:
    for name, document in store.measure_logs("bounds", LOGS, measured, names):
        print(
            f"{name}: {[str(_apart(document, row)) for row in document['rows'][1:]]}",
            flush=True,
        )
    print(store.written("bounds", page()))


if __name__ == "__main__":
    main(sys.argv[1:])
