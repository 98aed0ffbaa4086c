"""Listings of jobs that are no `sacct -P`: each is refused by its name, with what to do instead."""

import re

from bridge.base.errors import BridgeError

_AGAIN = "Print it again with `sacct -P`: `bridge workload import command` prints the line to run."
#: How a text begins -> what it is, and what to do.
_FORMS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"[^\n|]*\n-{2,}(?: +-{2,})+ *\r?(?:\n|$)"),
        "is a listing in columns of fixed width, which cut off what is longer (OUT_OF_ME+)",
        _AGAIN,
    ),
    (
        re.compile(r"\[\s*(?:\{|\])"),
        "is a JSON list, and not what `sacct --json` answers",
        "If it holds the jobs of such an answer, wrap it: jq '{jobs: .}' FILE > sacct.json",
    ),
    (
        re.compile(r"(?:---\s*\n)?(?:jobs|meta):\s*\n"),
        "is YAML",
        "Have it written as JSON: `sacct --json`.",
    ),
    (
        re.compile(r"JobId=\d+ (?:ArrayJobId|JobName|HetJobId)="),
        "is what `scontrol show job` prints: jobs of now, and no accounting",
        _AGAIN,
    ),
    (
        re.compile(r"JobId=\d+ UserId="),
        "is a file of JobCompType=jobcomp/filetxt",
        "Import it with `bridge workload import jobcomp`.",
    ),
    (
        re.compile(r" *JOBID +PARTITION +NAME +USER"),
        "is what squeue prints: jobs of now, and no accounting",
        _AGAIN,
    ),
)
_JSON_LINES = re.compile(r"\{[^\n]*\}[ \t\r]*\n+\s*\{")


def refuse_others(text: str, where: str) -> None:
    begin = text[:20_000].lstrip("\ufeff\r\n")
    for pattern, what, remedy in _FORMS:
        if pattern.match(begin):
            raise BridgeError(what, where=where, remedy=remedy)


def refuse_json_lines(text: str, where: str) -> None:
    if _JSON_LINES.match(text[: 1 << 20].lstrip()):
        remedy = (
            "If they are the jobs of `sacct --json`, put them together: jq -s '{jobs: .}' FILE > sacct.json"
        )
        raise BridgeError("has a JSON object in each line (JSON lines)", where=where, remedy=remedy)
