"""The JSON of `sacct --json`, Slurm 22.05 to 25.x: numbers plain or as objects, states as words or lists."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bridge.errors import BridgeError
from bridge.workload.accounting import values
from bridge.workload.accounting.lives import STATES, Counted, Life


def read_sacct_json(value: Any, where: str, counted: Counted) -> Iterator[Life]:
    """Yield the lives of jobs of a JSON answer of `sacct`. Steps are left out.

    Args:
        value: what the JSON text says.
        where: where it stands, for messages.
        counted: takes jobs that are no record, with their place in the list, counted from 1.

    Raises:
        BridgeError: it has no list of jobs.
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
    """Return a number, plain or as ``{"set": …, "infinite": …, "number": …}``; None if it is not set.

    Raises:
        TypeError: it is neither.
    """
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
