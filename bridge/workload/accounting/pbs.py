"""The accounting of PBS: OpenPBS, PBS Pro and TORQUE, ``DATE;TYPE;JOB;KEY=VALUE KEY=VALUE …`` a line.

A job's life ends with a record of type E, R (run again), A (aborted) or D (deleted, if it had not started).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from bridge.base.errors import BridgeError
from bridge.cluster import slurm_values as values
from bridge.cluster.pbs_values import count, size
from bridge.workload.accounting.lives import JobLife, RecordCounter

_RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.DOTALL)
_PAIR = re.compile(r"(\S+?)=(\"[^\"]*\"|'[^']*'|\S*)")
_JOB = re.compile(r"(\d{1,18})(?:\[(\d{0,9})\]|-(\d{1,9}))?(?:\..*)?", re.ASCII)
_HOST = re.compile(r"([^/+*()]+)(?:/([\d,-]+))?(?:\*(\d{1,9}))?")
#: Types of records that tell of a job's life; the others are counted.
_TYPES = frozenset("QSEDAR")
#: Exit status of a job that was killed at its walltime.
_AT_WALLTIME = "-29"
_LIST = "Resource_List."
#: Requests that are read; `place`, `select` and `nodes` say the same in another way, or how to choose nodes.
_READ = frozenset(
    {"nodect", "nodes", "ncpus", "mpiprocs", "mem", "ngpus", "walltime", "select", "place", "procs"}
)
#: Keys that are read, or tell nothing of when and where a job runs.
_HEEDED = frozenset(
    {
        *("user", "group", "owner", "account", "project", "jobname", "queue", "ctime", "qtime", "etime"),
        *(
            "start",
            "end",
            "session",
            "Exit_status",
            "exec_host",
            "exec_vnode",
            "requestor",
            "run_count",
            "alt_id",
        ),
        *("unique_node_count", "total_execution_slots", "eligible_time", "accounting_id", "qos", "resvname"),
        *("login_node",),
    }
)
_REMEDY = "Give files of server_priv/accounting, in order of their dates: cat 202601* > accounting.txt"


@dataclass
class _Job:
    """What records have told of a job so far; `queued`: s since 1970."""

    queued: float
    line: int
    keys: dict[str, str] = field(default_factory=dict)
    start: float | None = None
    deleted: bool = False


def read_pbs(text: str, where: str, counted: RecordCounter, zone: tzinfo = UTC) -> Iterator[JobLife]:
    """Yield the lives of jobs; `zone`: of the records' dates. BridgeError: no line is a record.

    `counted` takes lines that are no record, by their number, and what is said and not read.
    """
    jobs: dict[str, _Job] = {}
    is_record = False
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        match = _RECORD.fullmatch(line.rstrip("\r"))
        if match is None:
            counted.drop("no record of PBS (examples are lines)", number)
            continue
        is_record = True
        kind, name = match[2], match[3]
        if kind not in _TYPES or not _JOB.fullmatch(name):
            counted.ignore(f"records of type {kind}: no life of a job (examples are lines)", number)
            continue
        try:
            at = _date(match[1], zone)
            yield from _of_record(jobs, kind, name, at, _pairs(match[4]), counted, number)
        except (ValueError, OverflowError) as error:
            counted.refuse(error, "lines", number)
    if not is_record:
        raise BridgeError("no line is a record of PBS's accounting", where=where, remedy=_REMEDY)
    for name, job in jobs.items():
        state = "PENDING" if job.start is None else "RUNNING"
        yield _life(name, job, state, job.start, None, counted)


def _of_record(
    jobs: dict[str, _Job],
    kind: str,
    name: str,
    at: float,
    pairs: dict[str, str],
    counted: RecordCounter,
    number: int,
) -> Iterator[JobLife]:
    match = _JOB.fullmatch(name)
    if match is not None and match[2] == "":
        if kind == "E":
            counted.ignore("arrays as a whole: their tasks are jobs (examples are lines)", number)
        return
    job = jobs.setdefault(name, _Job(_instant(pairs, "qtime") or _instant(pairs, "ctime") or at, number))
    job.keys |= pairs
    if kind == "S":
        job.start = _instant(pairs, "start") or at
    elif kind == "D":
        job.deleted = True
        if job.start is None:
            yield _life(name, jobs.pop(name), "CANCELLED", None, at, counted)
    elif kind == "A":
        state = "CANCELLED" if job.start is None else "FAILED"
        yield _life(name, jobs.pop(name), state, job.start, at, counted)
    elif kind == "R":
        if job.start is not None:
            yield _life(name, job, "REQUEUED", job.start, at, counted)
            jobs[name] = _Job(at, number)
    elif kind == "E":
        start = _instant(pairs, "start") or job.start
        state = _state(job)
        yield _life(name, jobs.pop(name), state, start, _instant(pairs, "end") or at, counted)


def _state(job: _Job) -> str:
    code = job.keys.get("Exit_status", "")
    if code == "0":
        return "COMPLETED"
    if code == _AT_WALLTIME:
        return "TIMEOUT"
    return "CANCELLED" if job.deleted else "FAILED"


def _pairs(message: str) -> dict[str, str]:
    return {key: value.strip("\"'") for key, value in _PAIR.findall(message)}


def _date(text: str, zone: tzinfo) -> float:
    date = datetime.strptime(text, "%m/%d/%Y %H:%M:%S").replace(tzinfo=zone)
    return values.in_calendar(date.timestamp())


def _instant(pairs: Mapping[str, str], key: str) -> float | None:
    text = pairs.get(key, "")
    if not text or text == "0":
        return None
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise ValueError(f"{key} {text[:40]!r} is no time")
    return values.in_calendar(float(text))


def _life(
    name: str, job: _Job, state: str, start: float | None, end: float | None, counted: RecordCounter
) -> JobLife:
    match = _JOB.fullmatch(name)
    if match is None:
        raise ValueError(f"{name[:40]!r} is no id of a job")
    keys, number, task = job.keys, int(match[1]), match[2] or match[3]
    requests = {key.removeprefix(_LIST): of for key, of in keys.items() if key.startswith(_LIST)}
    if unread := sorted(requests.keys() - _READ):
        counted.ignore(f"requests that are not read: {', '.join(unread)}", number)
    if unread := sorted(key for key in keys if "." not in key and key not in _HEEDED):
        counted.ignore(f"fields that are not read: {', '.join(unread)}", number)
    hosts = _hosts(keys.get("exec_host", ""))
    granted = {"nodes": len(hosts), "cores": sum(hosts.values())} if hosts else {}
    requested, features = _requested(requests)
    words = {"user": keys.get("user", ""), "partition": keys.get("queue", ""), "qos": keys.get("qos", "")}
    words |= {"account": keys.get("account") or keys.get("project", ""), "name": keys.get("jobname", "")}
    words |= {"exit_code": keys.get("Exit_status", ""), "reservation": keys.get("resvname", "")}
    words |= {"node_list": ",".join(hosts), "constraints": "&".join(features)}
    used = keys.get("resources_used.walltime", "") if state not in ("REQUEUED", "PENDING", "RUNNING") else ""
    life = JobLife(
        label=f"{number}_{task}" if task else str(number),
        number=number,
        state=state,
        submit=job.queued,
        eligible=_instant(keys, "etime"),
        start=start,
        end=end,
        elapsed=None,
        suspended=None,
        limit=_limit(requests.get("walltime", "")),
        requested=requested,
        allocated=granted,
        words={word: of for word, of in words.items() if of and of != "_pbs_project_default"},
        is_numbered=not task,
    )
    if used and start is not None and end is not None:
        elapsed = float(values.duration(used))
        if elapsed < end - start - 60:
            life = replace(life, suspended=end - start - elapsed)
    return life


def _limit(text: str) -> float | None:
    return float(values.duration(text)) if text else math.inf


def _hosts(text: str) -> dict[str, int]:
    """Return cores by host of ``n1/0*4+n2/0-3`` or ``n1/0+n1/1``."""
    hosts: Counter[str] = Counter()
    for part in filter(None, text.split("+")):
        match = _HOST.fullmatch(part)
        if not match:
            raise ValueError(f"exec_host {text[:40]!r} is no list of hosts")
        if match[3]:
            hosts[match[1]] += int(match[3])
        else:
            for span in (match[2] or "0").split(","):
                low, _, high = span.partition("-")
                hosts[match[1]] += int(high or low) - int(low) + 1
    return dict(hosts)


def _requested(requests: Mapping[str, str]) -> tuple[dict[str, int], list[str]]:
    """Return demands by resource, and the features of nodes that TORQUE's `nodes` names."""
    amounts: dict[str, int] = {}
    features: list[str] = []
    nodes, cores, gpus = 0, 0, 0
    for chunk in filter(None, requests.get("nodes", "").split("+")):
        first, *words = chunk.split(":")
        many = int(first) if first.isdecimal() and len(first) < 10 else 1  # else it names a host
        options: dict[str, Any] = dict(word.partition("=")[::2] for word in words)
        nodes += many
        cores += many * count(options.get("ppn") or "1")
        gpus += many * count(options.get("gpus") or "0")
        features += [word for word in words if "=" not in word and word not in ("shared", "exclusive")]
    plain = {
        "nodes": count(requests.get("nodect", "0")) or nodes,
        "cores": count(requests.get("ncpus", "0")),
    }
    plain["cores"] = max(plain["cores"], cores if nodes else count(requests.get("procs", "0")))
    plain["gpus"] = count(requests.get("ngpus", "0")) or gpus
    amounts |= {name: amount for name, amount in plain.items() if amount}
    if memory := requests.get("mem", ""):
        amounts["main_memory"] = size(memory)
    return amounts, list(dict.fromkeys(features))
