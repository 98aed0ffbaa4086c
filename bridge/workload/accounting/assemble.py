"""From the lives of jobs to a workload: what counts as a job, from when it waits, what it demands."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster as Site
from bridge.cluster.node_table import build_node_table, partitions_of
from bridge.workload.accounting.choices import ImportConfig
from bridge.workload.accounting.lives import AT_WORK, WAITING, JobLife, RecordCounter
from bridge.workload.accounting.machine import AccountingMachine
from bridge.workload.accounting.site_requests import SiteRequests, array_of
from bridge.workload.peaks import most_at_once
from bridge.workload.ran_on import RAN_ON
from bridge.workload.table import STATUS_CANCELLED, STATUS_COMPLETED, SWF_COLUMNS, Workload, note_order

#: The time limit of a partition, s (infinite: none), or the one of jobs that name none.
LimitOf = Callable[[str, bool], float]
#: By which clocks are set back.
_HOUR = 3600
#: Columns of text that a workload gets -> the word of a life; the first ones tell of people.
PERSONAL: Mapping[str, str] = {"user_name": "user", "account": "account", "job_name": "name"}
_TEXTS: Mapping[str, str] = {
    "partition_name": "partition",
    "qos_name": "qos",
    "exit_code": "exit_code",
    "constraints": "constraints",
    "reservation": "reservation",
    "licenses": "licenses",
}
#: Texts in the place of a list of nodes of a job that had none.
_NO_NODES = ("None assigned", "None")
#: Whose accounting -> what tells how many processors a job had, by unit.
_TELLS: Mapping[str, Mapping[str, str]] = {
    "Slurm": {"nodes": "NNodes", "cores": "AllocCPUS"},
    "PBS": {"nodes": "exec_host or Resource_List.nodect", "cores": "exec_host or Resource_List.ncpus"},
}
#: Columns of whole numbers that are codes, counted from 1 in order of appearance -> the word of a life.
_CODES: Mapping[str, str] = {"user": "user", "group": "account", "queue": "qos", "partition": "partition"}


def assemble(
    lives: Iterable[JobLife],
    name: str,
    source: str,
    counted: RecordCounter,
    machine: AccountingMachine | None,
    choices: ImportConfig,
    site: Site | None = None,
    zone: tzinfo = UTC,
    kind: str = "Slurm",
) -> Workload:
    """Return a workload of ended jobs, in order of submission.

    A job waits from when it is eligible: time that it is held or waits for another job is no wait (column
    ``held``). Each life of a requeued job is a job of its own (column ``life``, from 0), submitted when it
    was queued again. Jobs that were cancelled before they started are kept with SWF's status 5. With a `site`
    jobs are submitted when they were, and the columns of `bridge.workload.requests` say what holds them and
    what they ask for; `zone`: of times in lines of submission; `kind`: whose accounting it is. `counted` has
    what was left out so far, and takes what is left out here; the machine's capacities become the workload's,
    for what jobs demand. Raises BridgeError: nothing is left, no job tells its nodes or cores, or clusters
    are mixed.
    """
    kept = _ended(lives, counted, choices.partition, source)
    if not kept:
        reasons = "; ".join(f"{reason.count} {why}" for why, reason in counted.tally().items())
        raise BridgeError(f"no job has ended in it ({reasons or 'it is empty'})", where=source)
    default_limit = _limits_of_site(site) if site else _limits_of_machine(machine)
    requests = _requests(kept, counted, default_limit, choices.unlimited)
    waits_from = _submitted if site else _eligible
    eligible = np.array([waits_from(life, counted) for life in kept])
    origin = math.floor(min(eligible))
    unit = choices.unit
    times = _times(kept, eligible, origin, requests)
    jobs: dict[str, Any] = times | _demands(kept, unit) | _words(kept, choices.anonymous)
    remarks: list[str] = []
    if site is not None:
        ids = _ids_by_task(kept, times)
        site_requests = SiteRequests(kept, ids.tolist(), site, counted, zone)
        jobs |= site_requests.columns(origin, eligible.tolist())
        jobs |= {"job_id": ids, "held": np.array([_held(life) for life in kept], np.int64)}
        remarks = [f"requests are of the cluster {site.name}", *site_requests.remarks()]
    table = pd.DataFrame({name: jobs.get(name, np.int64(-1)) for name in SWF_COLUMNS} | jobs)
    table = table.iloc[np.lexsort((table["job_id"], table["submit"]))].reset_index(drop=True)
    capacity = _capacity(table, machine, choices) if site is None else _nodes_of_site(site)
    header = {"UnixStartTime": str(origin), "TimeZoneString": "UTC", "MaxJobs": str(len(table))}
    peak = _peak(table)
    if not (table["procs"] > 0).any():
        remedy = f"Have {_TELLS[kind][unit]} printed too."
        raise BridgeError(f"no job tells its {unit}", where=source, remedy=remedy)
    most = f"at most {peak} {unit} were allocated at one time"
    if not peak:
        most = f"how many {unit} were allocated at one time is not known: no job ran without being suspended"
    header["Note"] = "; ".join((f"accounting of {kind}; procs are {unit}; {most}", *remarks))
    if site is None and 0 < capacity.get("nodes", 0) < peak:
        more = "jobs share nodes: import with --unit cores" if unit == "nodes" else "check the machine"
        what = f"{peak} {unit} were allocated at one time, and the machine has {capacity['nodes']}"
        raise BridgeError(what, where=source, remedy=f"Either the machine is another one, or {more}.")
    return Workload(name, table, capacity, header, source, counted.tally() | dict(note_order(table)))


def _ended(
    lives: Iterable[JobLife], counted: RecordCounter, partition: str | None, source: str
) -> list[JobLife]:
    lives_by_key: dict[tuple[int | str, float, float | None], JobLife] = {}
    clusters: set[str] = set()
    for life in lives:
        key = (life.identity, life.submit, life.start)
        clusters.add(life.words.get("cluster", ""))
        if partition is not None and life.words.get("partition") != partition:
            counted.drop("of another partition", life.number)
        elif life.state in WAITING:
            counted.drop("still waiting when the list was made", life.number)
        elif life.state in AT_WORK:
            counted.drop("still running when the list was made", life.number)
        elif life.state == "REVOKED":
            counted.drop("revoked: it ran on another cluster of the federation", life.number)
        elif key in lives_by_key:
            counted.drop("listed twice", life.number)
        elif life.start is not None and not life.ran:
            counted.drop("started, and no end is known", life.number)
        elif (sound := _sound(life, counted)) is None:
            counted.drop("ended before it started", life.number)
        else:
            lives_by_key[key] = sound
            if not life.is_numbered:
                counted.note("task without a number of its own (JobIDRaw): it gets a new one", life.number)
            if "+" in life.label:
                counted.note("component of a heterogeneous job: a job of its own here", life.number)
    if len(clusters - {""}) > 1:
        what = f"lists the jobs of several clusters: {', '.join(sorted(clusters))}"
        raise BridgeError(what, where=source, remedy="List each cluster for itself: sacct -M NAME.")
    return list(lives_by_key.values())


def _sound(life: JobLife, counted: RecordCounter) -> JobLife | None:
    """Return a life whose times agree, by its time at work where they do not; None if that cannot be."""
    if life.start is None or life.end is None:
        return life
    span = life.end - life.start
    if life.elapsed is not None:
        if abs(life.elapsed - span - _HOUR) <= 1:
            why = "its end is an hour before its time at work, as where the clock is set back"
            counted.count_repaired(f"{why}: Start + ElapsedRaw taken", life.number)
            return replace(life, end=life.start + life.elapsed)
        if 0 <= span < life.elapsed - 1:
            why = "at work (ElapsedRaw) for longer than from Start to End"
            counted.note(f"{why}: ElapsedRaw taken", life.number)
        elif life.suspended is not None and span > life.elapsed + life.suspended + 1:
            why = "at work (ElapsedRaw) for less than from Start to End, and not suspended as long"
            counted.note(f"{why}: ElapsedRaw taken", life.number)
    return life if span >= 0 else None


def _eligible(life: JobLife, counted: RecordCounter) -> float:
    """Return from when a job waits."""
    if life.start is None:
        return life.submit if life.eligible is None else max(life.submit, life.eligible)
    if life.start < life.submit:
        counted.count_repaired("started before its submission: submitted at its start", life.number)
        return life.start
    if life.eligible is None or not life.submit <= life.eligible <= life.start:
        if life.eligible is not None:
            counted.count_repaired("eligible outside of its wait: it waits from its submission", life.number)
        return life.submit
    if life.eligible > life.submit:
        counted.note("held, or waited for another job: it waits from when it was eligible", life.number)
    return life.eligible


def _submitted(life: JobLife, counted: RecordCounter) -> float:
    if life.start is not None and life.start < life.submit:
        counted.count_repaired("started before its submission: submitted at its start", life.number)
        return life.start
    return life.submit


def _held(life: JobLife) -> int:
    """Return for how long a job was not eligible, as recorded, s."""
    latest = life.eligible if life.start is None else life.start
    if life.eligible is None or latest is None:
        return 0
    return round(max(min(life.eligible, latest) - life.submit, 0))


def _run(life: JobLife) -> float:
    if life.start is None:
        return -1
    if life.elapsed is not None:
        return life.elapsed
    assert life.end is not None  # `_ended` saw to that
    return max(life.end - life.start - (life.suspended or 0), 0)


def _limits_of_machine(machine: AccountingMachine | None) -> LimitOf:
    def limit(name: str, default: bool) -> float:
        partition = machine.partitions.get(name) if machine else None
        return partition.limit_of(default=default) if partition else math.inf

    return limit


def _limits_of_site(site: Site) -> LimitOf:
    partitions = {one.name: one for one in partitions_of(site)}

    def limit(name: str, default: bool) -> float:
        one = partitions.get(name.split(",")[0])
        seconds = None if one is None else (one.default_time if default else None) or one.max_time
        return math.inf if seconds is None else seconds

    return limit


def _nodes_of_site(site: Site) -> dict[str, int]:
    return {"nodes": len(build_node_table(site))}


def _requests(
    kept: list[JobLife], counted: RecordCounter, limit_of: LimitOf, unlimited: int | None
) -> list[int]:
    """Return requested times in seconds; who has no limit gets the partition's, or the longest of the log."""
    finite = [life.limit for life in kept if life.limit is not None and math.isfinite(life.limit)]
    longest = unlimited or round(max([*finite, *map(_run, kept), 1]))
    requests = []
    for life in kept:
        limit = life.limit
        if limit is None or math.isinf(limit):
            why = "no time limit (UNLIMITED)" if limit is not None else "the partition's time limit"
            default = limit_of(life.words.get("partition", ""), limit is None)
            limit = default if math.isfinite(default) and unlimited is None else longest
            counted.count_repaired(f"{why}: {limit:.0f} s taken", life.number)
        requests.append(round(limit))
    return requests


def _times(
    kept: list[JobLife], eligible: npt.NDArray[np.float64], origin: int, requests: list[int]
) -> dict[str, npt.NDArray[np.int64]]:
    """Return ids, times and states by column; a first life keeps Slurm's number, others get new ones."""
    ids = [life.number for life in kept]
    lives, seen_count, following = [0] * len(kept), Counter[int | str](), max(ids)
    begins = [(life.number, _task(life), life.submit, life.start or math.inf) for life in kept]
    for n in sorted(range(len(kept)), key=begins.__getitem__):
        lives[n] = seen_count[kept[n].identity]
        seen_count[kept[n].identity] += 1
        if lives[n] or not kept[n].is_numbered:
            following += 1
            ids[n] = following
    # Any other end is a failure, 0.
    status = {"COMPLETED": STATUS_COMPLETED, "CANCELLED": STATUS_CANCELLED}
    start = np.array([math.nan if life.start is None else life.start for life in kept])
    columns = {
        "job_id": ids,
        "submit": eligible - origin,
        "wait": np.where(np.isnan(start), -1, np.maximum(start - eligible, 0)),
        "run": [_run(life) for life in kept],
        "req_time": requests,
        "status": [status.get(life.state, 0) for life in kept],
        "life": lives,
        "held": np.maximum(eligible - [life.submit for life in kept], 0),
        "suspended": [life.suspended or _paused(life) for life in kept],
    }
    return {name: np.rint(np.asarray(of, np.float64)).astype(np.int64) for name, of in columns.items()}


def _ids_by_task(kept: list[JobLife], jobs: Mapping[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return ids that ascend within an array as its tasks do, which start in this order."""
    ids = jobs["job_id"].copy()
    tasks: dict[int, list[tuple[int, int]]] = {}
    for n, life in enumerate(kept):
        if jobs["life"][n] == 0 and life.is_numbered and (array := array_of(life)) >= 0:
            tasks.setdefault(array, []).append((int(life.label.rpartition("_")[2]), n))
    for of_array in tasks.values():
        places = [n for _, n in sorted(of_array)]
        ids[places] = np.sort(ids[places])
    return ids


def _task(life: JobLife) -> int:
    digits = re.search(r"[_+](\d{1,18})$", life.label, re.ASCII)
    return int(digits[1]) if digits and not life.is_numbered else -1


def _paused(life: JobLife) -> float:
    if life.start is None or life.end is None or life.elapsed is None:
        return 0
    return max(life.end - life.start - life.elapsed, 0)


def _demands(kept: list[JobLife], unit: str) -> dict[str, npt.NDArray[np.int64]]:
    """Return demands by column: as granted or, where that is not told of a resource, as asked."""
    granted = [{**life.requested, **life.allocated} for life in kept]
    demands = [{**life.allocated, **life.requested} for life in kept]

    def column(demands: Iterable[Mapping[str, int]], name: str, unknown: int) -> npt.NDArray[np.int64]:
        return np.array([demand.get(name, unknown) for demand in demands], np.int64)

    others = sorted({name for demand in granted for name in demand} - {"nodes"})
    columns = {name: column(granted, name, 0) for name in others}
    if unit == "cores":
        columns = {"allocated_nodes": column(granted, "nodes", -1), **columns}
    return {"procs": column(granted, unit, -1), "req_procs": column(demands, unit, -1), **columns}


def _words(kept: list[JobLife], anonymous: bool) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, word in _CODES.items():
        codes, _ = pd.factorize(np.array([life.words.get(word) for life in kept], object))
        values[name] = np.where(codes >= 0, codes + 1, -1).astype(np.int64)
    values["slurm_id"] = [life.label for life in kept]
    values["state"] = [life.state for life in kept]
    for name, word in {**_TEXTS, **({} if anonymous else PERSONAL)}.items():
        if any(texts := [life.words.get(word, "") for life in kept]):
            values[name] = texts
    nodes = ["" if life.start is None else life.words.get("node_list", "") for life in kept]
    if any(nodes := ["" if text in _NO_NODES else text for text in nodes]):
        values[RAN_ON] = nodes
    return values


def _capacity(
    table: pd.DataFrame, machine: AccountingMachine | None, choices: ImportConfig
) -> dict[str, int]:
    """Return the machine's capacity of what jobs demand, ``nodes`` first: nodes, or cores by that name."""
    if machine is None:
        return {}
    there, unit = machine.capacity(choices.partition), choices.unit
    others = {name: n for name, n in there.items() if n and name in table and name not in (unit, "nodes")}
    return {"nodes": there.get(unit, 0)} | others


def _peak(table: pd.DataFrame) -> int:
    """Return how many processors were allocated at one time, at most; ends come before starts."""
    ran = table[(table["wait"] >= 0) & (table["run"] > 0) & (table["suspended"] == 0)]
    start = (ran["submit"] + ran["wait"]).to_numpy()
    return most_at_once(start, start + ran["run"].to_numpy(), ran["procs"].to_numpy())
