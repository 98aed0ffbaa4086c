"""What `sacct` prints, as lives of jobs: text (-P or -p), any columns in any order, or --json.

What is no record is counted. Job names may hold line breaks and the delimiter. Such a row of text can be put
together again where one column of free text is listed; if that is the last one, a name cannot shift anything.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any

from bridge.errors import BridgeError
from bridge.workload.accounting import values
from bridge.workload.accounting.lives import FREE, NEEDED, STATES, Counted, Life, life

#: What `sacct` is asked for: free text last, so that no name can shift a column.
COLUMNS = (
    *("JobID", "JobIDRaw", "User", "Account", "Partition", "State", "ExitCode", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "ReqCPUS", "AllocCPUS"),
    *("ReqMem", "ReqTRES", "AllocTRES", "QOS", "Reason", "Flags", "NodeList", "JobName"),
)
#: Delimiters, in the order in which a header is tried for them.
DELIMITERS = ("\x1f", "|", "\t", ";", ",")
_BEGIN = re.compile(r"\d+(?:_(?:\d+|\[[^\]]*\])|\+\d+)?(?:\.\w+)?")
_NEEDED = (
    "Needed are JobID, State, Submit and Start; `bridge workload import command` prints the line to run."
)


def command(begin: str, end: str) -> str:
    """Return the line to run on the cluster, for the jobs between two dates (``2026-01-01``)."""
    return (
        f"TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -X -P --noconvert --delimiter=$'\\x1f' -S {begin} -E {end} "
        f"--format={','.join(COLUMNS)} > sacct.txt"
    )


def read_sacct(text: str, where: str, counted: Counted, zone: tzinfo = UTC) -> Iterator[Life]:
    """Yield the lives of jobs of a listing with a line of column names, steps left out.

    Lines that begin with ``#`` before the names are comments; `counted` takes rows that are no record, with
    their line. BridgeError: there is no line of column names, or it lacks one of `NEEDED`.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begin = next((n for n, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    head = lines[begin] if begin < len(lines) else ""
    delimiter = next((d for d in DELIMITERS if d in head), "|")
    names = [name.strip().lower() for name in head.removesuffix(delimiter).split(delimiter)]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        what = f"no column {', '.join(missing)} in the first line: {head[:60]!r}"
        raise BridgeError(what, where=f"{where}:{begin + 1}", remedy=_NEEDED)
    for number, cells in _rows(lines, begin + 1, names, delimiter, head):
        label = cells["jobid"] if cells is not None else ""
        if "." in label:
            continue
        try:
            if cells is None:
                raise ValueError("it has not as many cells as the first line has names")
            yield life(cells, zone)
        except (ValueError, OverflowError) as error:
            counted.drop(f"no record ({_kind(str(error))}; examples are lines)", number)


def _kind(error: str) -> str:
    """Return a message without what differs from row to row, so that rows are counted together."""
    return re.sub(r"^['\"].*['\"] (is|names)", r"a cell \1", error, flags=re.DOTALL)


def _rows(
    lines: list[str], begin: int, names: list[str], delimiter: str, head: str
) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield line numbers and cells by column; None for what is no row."""
    first, last = names.index("jobid") == 0, names[-1] in FREE
    number = begin
    while number < len(lines):
        row, at = lines[number], number + 1
        number += 1
        if not row or row == head:
            continue
        # A name's line break: what follows is no beginning of a row, and this one is short or ends in a name.
        while number < len(lines) and (
            row.count(delimiter) < len(names) - 1 or (last and lines[number] and lines[number] != head)
        ):
            follows = lines[number].split(delimiter, 1)
            if first and _BEGIN.fullmatch(follows[0]) and len(follows) == 2:
                break
            if not first and lines[number].count(delimiter) >= len(names) - 1:
                break
            row += f"\n{lines[number]}"
            number += 1
        yield at, _split(row, names, delimiter)


def _split(row: str, names: list[str], delimiter: str) -> dict[str, str] | None:
    """Return the cells of a row by column; of a row with too many, one column of free text takes the rest."""
    found = row.split(delimiter)
    if len(found) == len(names) + 1 and not found[-1]:
        found.pop()  # of `sacct -p`, which ends each row in a delimiter
    more = len(found) - len(names)
    if more < 0:
        return None
    if more:
        free = [place for place, name in enumerate(names) if name in FREE]
        if len(free) != 1:
            return None
        place = free[0]
        found[place : place + more + 1] = [delimiter.join(found[place : place + more + 1])]
    cells = zip(names, found, strict=True)
    return {name: cell if name in FREE else cell.strip() for name, cell in cells}


def read_sacct_json(value: Any, where: str, counted: Counted) -> Iterator[Life]:
    """Yield the lives of jobs of a JSON answer of `sacct`, Slurm 22.05 to 25.x, steps left out.

    `counted` takes jobs that are no record, with their place in the list, counted from 1.
    """
    jobs = value.get("jobs") if isinstance(value, Mapping) else None
    if not isinstance(jobs, list):
        remedy = "Give what `sacct --json` or GET /slurmdb/…/jobs answers."
        raise BridgeError("has no list of jobs", where=where, remedy=remedy)
    for place, job in enumerate(jobs, start=1):
        try:
            yield _life(job)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError):
            counted.drop("no record (not as Slurm writes a job; examples are places in the list)", place)


def number(value: Any) -> float | None:
    """Return a number, plain or as ``{"set", "infinite", "number"}`` (else TypeError); None if not set."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return math.inf
        return number(value["number"]) if value.get("set") else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("no number")
    return float(value)


def _life(job: Mapping[str, Any]) -> Life:
    time, ident = job["time"], int(job["job_id"])
    states = job["state"]["current"]
    state = STATES.fullmatch(states[0] if isinstance(states, list) else states)
    submit = _instant(time["submission"])
    if not state or submit is None:
        raise ValueError("no state or no submission")
    limit = number(time.get("limit"))
    link = job.get("association") or {}
    words = {word: job.get(word) or link.get(word) for word in ("user", "account")}
    words |= {word: job.get(word) for word in ("partition", "qos", "name", "cluster")}
    words |= {"exit_code": _exit_code(job.get("exit_code")), "reason": job["state"].get("reason")}
    words["directory"] = job.get("working_directory")
    return Life(
        label=_label(job, ident),
        number=ident,
        state=state[1],
        submit=submit,
        eligible=_instant(time.get("eligible")),
        start=_instant(time.get("start")),
        end=_instant(time.get("end")),
        elapsed=number(time.get("elapsed")),
        suspended=number(time.get("suspended")),
        # Up to 23.02 an unlimited job's limit is null.
        limit=math.inf if time.get("limit", 0) is None else None if limit is None else limit * 60,
        requested=_resources(job, "requested"),
        allocated=_resources(job, "allocated"),
        words={word: text for word, text in words.items() if isinstance(text, str) and text},
    )


def _instant(value: Any) -> float | None:
    return number(value) or None  # 0 stands for no time


def _label(job: Mapping[str, Any], ident: int) -> str:
    array, het = job.get("array") or {}, job.get("het") or {}
    task, offset = number(array.get("task_id")), number(het.get("job_offset"))
    if array.get("job_id") and task is not None:
        return f"{array['job_id']}_{task:.0f}"
    if het.get("job_id") and offset is not None:
        return f"{het['job_id']}+{offset:.0f}"
    return str(ident)


def _exit_code(value: Any) -> str:
    code = number(value.get("return_code")) if isinstance(value, Mapping) else None
    signal = (value.get("signal") or {}) if isinstance(value, Mapping) else {}
    killed = number(signal.get("id", signal.get("signal_id"))) if isinstance(signal, Mapping) else None
    return "" if code is None and killed is None else f"{code or 0:.0f}:{killed or 0:.0f}"


def _resources(job: Mapping[str, Any], kind: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in (job.get("tres") or {}).get(kind) or ():
        count = number(entry.get("count"))
        if count is not None and count >= 0:
            name = "/".join(filter(None, (entry["type"], entry.get("name"))))
            counts[name] = int(count)
    found = values.demands(counts)
    if kind == "allocated" and (nodes := number(job.get("allocation_nodes"))):
        found.setdefault("nodes", int(nodes))
    return found
