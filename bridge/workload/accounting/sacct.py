"""What `sacct` prints, as lives of jobs: text (-P or -p), any columns in any order, or --json.

What is no record is counted. Job names may hold line breaks and the delimiter: such a row is put together
again, see `rows`. If free text comes last, a name cannot shift anything.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean
from bridge.cluster import slurm_values as values
from bridge.workload.accounting.forms import refuse_others
from bridge.workload.accounting.lives import NEEDED, READ, STATES, WORDS, JobLife, RecordCounter, life
from bridge.workload.accounting.rows import Layout, rows

#: What `sacct` is asked for: free text last, so that no name can shift a column.
COLUMNS = (
    *("JobID", "JobIDRaw", "User", "Account", "Partition", "State", "ExitCode", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "ReqCPUS", "AllocCPUS"),
    *("ReqMem", "ReqTRES", "AllocTRES", "QOS", "Reason", "Reservation", "NodeList", "Constraints", "JobName"),
)
#: Delimiters, in the order in which a header is tried for them.
DELIMITERS = ("\x1f", "|", "\t", ";", ",")
_NEEDED = (
    "Needed are JobID, State, Submit and Start; of a listing without a line of names --columns tells them "
    "(xdmod: those of XDMoD). "
    "`bridge workload import command` prints the line to run."
)


def command(begin: str, end: str, *, submit_line: bool = False) -> str:
    """Return the line to run on the cluster, for the jobs between two dates (``2026-01-01``).

    `submit_line`: have SubmitLine printed, too, which older versions of Slurm do not know.
    """
    columns = (*COLUMNS[:-1], "SubmitLine", COLUMNS[-1]) if submit_line else COLUMNS
    return (
        f"TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -X -P --noconvert --delimiter=$'\\x1f' -S {begin} -E {end} "
        f"--format={','.join(columns)} > sacct.txt"
    )


def read_sacct(
    text: str, where: str, counted: RecordCounter, zone: tzinfo = UTC, columns: Sequence[str] = ()
) -> Iterator[JobLife]:
    """Yield the lives of jobs of a listing, steps left out.

    Its first line names the columns, unless `columns` do. Lines that begin with ``#`` before it are comments;
    `counted` takes rows that are no record, with their line. BridgeError: it is a listing of another form,
    there is no line of column names, or it lacks one of `NEEDED`.
    """
    refuse_others(text, where)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begin = next((n for n, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    first = lines[begin] if begin < len(lines) else ""
    delimiter = next((d for d in DELIMITERS if d in first), "|")
    names = [name.strip().lower() for name in columns or first.removesuffix(delimiter).split(delimiter)]
    _check_names(names, first.lower().split(delimiter) if columns else (), first, f"{where}:{begin + 1}")
    ends = first.endswith(delimiter) and first.count(delimiter) == len(names)
    layout = Layout(tuple(names), delimiter, ends, head="" if columns else first)
    unread = [name for name in names if name not in READ and name not in WORDS]
    for number, cells in rows(lines, begin if columns else begin + 1, layout):
        if cells is not None and "." in cells["jobid"]:
            continue
        try:
            if cells is None:
                raise ValueError("it has not as many cells as there are columns, or they cannot be placed")
            one = life(cells, zone)
        except (ValueError, OverflowError) as error:
            counted.refuse(error, "lines", number)
            continue
        if unread and any(cells[name].strip() for name in unread):
            counted.ignore(f"columns that are not read: {', '.join(unread)}", one.number)
        yield one


def _check_names(names: Sequence[str], first_cells: Sequence[str], first: str, where: str) -> None:
    """Refuse names of columns: one is missing or twice, or the first line (`first_cells`) has them, too."""
    if {*NEEDED} <= {*first_cells}:
        raise BridgeError("the first line names the columns", where=where, remedy="Leave --columns out.")
    if missing := [name for name in NEEDED if name not in names]:
        if first_cells:
            hint = did_you_mean(names[0], ["xdmod"]) if len(names) == 1 else _meant(names, missing)
            what = f"--columns names no {', '.join(missing)}: {','.join(names)[:60]!r}"
            raise BridgeError(what, where=where, remedy=f"{hint}{_NEEDED}")
        what = f"no column {', '.join(missing)} in the first line: {first[:60]!r}"
        raise BridgeError(what, where=where, remedy=_NEEDED)
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BridgeError(f"two columns are named {twice}", where=where, remedy="Leave one of them out.")


def _meant(names: Sequence[str], missing: Sequence[str]) -> str:
    """Return "Did you mean …? " for the first name that is no column of sacct, but nearly a missing one."""
    unknown = (name for name in names if name not in READ and name not in WORDS)
    return next((hint for name in unknown if (hint := did_you_mean(name, missing))), "")


def read_sacct_json(value: Any, where: str, counted: RecordCounter) -> Iterator[JobLife]:
    """Yield the lives of jobs of a JSON answer of `sacct`, Slurm 22.05 to 25.x, steps left out.

    `counted` takes jobs that are no record, with their place in the list, counted from 1.
    """
    jobs = value.get("jobs") if isinstance(value, Mapping) else None
    if not isinstance(jobs, list):
        remedy = "Give what `sacct --json` or GET /slurmdb/…/jobs answers."
        raise BridgeError("has no list of jobs", where=where, remedy=remedy)
    if jobs and all(isinstance(job, Mapping) and "job_state" in job and "state" not in job for job in jobs):
        what = "is what squeue or `scontrol show job` answers: jobs of now, and no accounting"
        raise BridgeError(what, where=where, remedy="Give what `sacct --json` answers.")
    for place, job in enumerate(jobs, start=1):
        try:
            yield _life(job)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
            counted.refuse(error, "places in the list", place)


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


def _life(job: Mapping[str, Any]) -> JobLife:
    time, ident = job["time"], job["job_id"]
    if not isinstance(ident, int) or not 0 <= ident < 10**18:
        raise ValueError(f"{str(ident)[:40]!r} is no id of a job")
    states = job["state"]["current"]
    state = STATES.fullmatch(states[0] if isinstance(states, list) else states)
    submit = _instant(time["submission"])
    if not state:
        raise ValueError(f"{str(states)[:40]!r} is no state of a job")
    if submit is None:
        raise ValueError("it was never submitted")
    limit = number(time.get("limit"))
    requested = _resources(job, "requested")
    link = job.get("association") or {}
    words = {word: job.get(word) or link.get(word) for word in ("user", "account")}
    words |= {word: job.get(word) for word in ("partition", "qos", "name", "cluster")}
    words |= {"exit_code": _exit_code(job.get("exit_code")), "reason": job["state"].get("reason")}
    words |= {"directory": job.get("working_directory"), "licenses": job.get("licenses")}
    words |= {"node_list": job.get("nodes"), "command": job.get("submit_line")}
    words |= {
        "constraints": job.get("constraints"),
        "reservation": (job.get("reservation") or {}).get("name"),
    }
    return JobLife(
        label=_label(job, ident),
        number=ident,
        state=state[1],
        submit=submit,
        eligible=_instant(time.get("eligible")),
        start=_instant(time.get("start")),
        end=_instant(time.get("end")),
        elapsed=_duration(time.get("elapsed")),
        suspended=_duration(time.get("suspended")),
        # Up to 23.02 an unlimited job's limit is null.
        limit=math.inf if time.get("limit", 0) is None else _duration(limit, 60),
        requested=_required(job, requested) | requested,
        allocated=_resources(job, "allocated"),
        words={word: text for word, text in words.items() if isinstance(text, str) and text},
    )


def _instant(value: Any) -> float | None:
    seconds = number(value) or None  # 0 stands for no time
    return None if seconds is None else values.in_calendar(seconds)


def _duration(value: Any, unit: int = 1) -> float | None:
    count = number(value)
    return count if count is None or math.isinf(count) else values.bounded(count * unit)


def _required(job: Mapping[str, Any], amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the memory that was asked for where it is not told among the trackable resources."""
    required = job.get("required") or {}
    per_core, per_node = (number(required.get(f"memory_per_{of}")) for of in ("cpu", "node"))
    if per_core:
        return {"main_memory": values.amount(f"{per_core:.0f}Mc", 1, amounts.get("cores", 1))}
    return {"main_memory": values.amount(f"{per_node:.0f}Mn", amounts.get("nodes", 1), 1)} if per_node else {}


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
    demands = values.demands(counts)
    if kind == "allocated" and (nodes := number(job.get("allocation_nodes"))):
        demands.setdefault("nodes", int(nodes))
    return demands
