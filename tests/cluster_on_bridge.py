"""A case of the brute-force scheduler as bridge's cluster and workload, and what bridge makes of it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bridge.cluster import (
    Account,
    AdvanceReservation,
    CalendarEvent,
    Cluster,
    License,
    NodeGroup,
    Partition,
    Qos,
    SchedulerParameters,
    User,
)
from bridge.env.batch import Batch
from bridge.env.encoder import DecisionKind, Encoder
from bridge.learn.rollout import ActionFunction, play
from bridge.scheduler.actions import PERMITS
from bridge.scheduler.order import OF_CLUSTER, VIEW
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.episode import Scenario, prepare
from bridge.worlds.fast.replay import Schedule, replay

Case = Mapping[str, Any]
#: (eligible, start, end, nodes) in seconds; None: never.
Outcome = tuple[int | None, int | None, int | None, list[int]]

_TRES = {"cpu": "cores", "node": "nodes", "mem": "memory", "gpu": "gpus"}
_RENAMED = {
    "max_jobs": "max_jobs_per_user",
    "max_tres": "max_tres_per_user",
    "max_submit": "max_submit_jobs_per_user",
    "max_submit_per_account": "max_submit_jobs_per_account",
    "grp_submit": "grp_submit_jobs",
    "preempts": "preempt",
}
_RENAMED_IN_ACCOUNTS = {"max_submit": "max_submit_jobs", "grp_submit": "grp_submit_jobs"}
#: What jobs say of their costs under a rule of action.
OF_ACTIONS = ("suspended_memory", "restart_cost", "host_cost", "resume_cost")
#: Arrays have numbers beyond those of jobs.
_FIRST_ARRAY = 1_000_000


def _limits(limits: Case, renamed: Mapping[str, str]) -> dict[str, Any]:
    return {
        renamed.get(kind, kind): {_TRES[name]: n for name, n in value.items()}
        if isinstance(value, dict)
        else tuple(value)
        if isinstance(value, list)
        else value
        for kind, value in limits.items()
        if kind not in ("parent", "users")
    }


def _names(nodes: list[int]) -> tuple[str, ...]:
    return tuple(f"n{i}" for i in nodes)


def build_cluster(case: Case) -> Cluster:
    partitions = [
        Partition(
            **{
                key: tuple(value) if isinstance(value, list) else value
                for key, value in partition.items()
                if key not in ("nodes", "exclusive", "preempt", "grace", "exempt")
            },
            preempt_mode=partition.get("preempt"),
            grace_time=partition.get("grace", 0),
            name=name,
            nodes=_names(partition["nodes"]),
            exclusive=partition.get("exclusive", False),
        )
        for name, partition in case["partitions"].items()
    ]
    accounts = case.get("accounts", {})
    return Cluster(
        nodes=tuple(
            NodeGroup(
                **{**node, "name": f"g{i}", "nodes": f"n{i}", "features": tuple(node.get("features", ()))}
            )
            for i, node in enumerate(case["nodes"])
        ),
        partitions=tuple(partitions),
        qos=tuple(
            Qos(name=name, **_limits(limits, _RENAMED)) for name, limits in case.get("qos", {}).items()
        ),
        accounts=tuple(
            Account(name=name, parent=limits.get("parent", "root"), **_limits(limits, _RENAMED_IN_ACCOUNTS))
            for name, limits in accounts.items()
        ),
        users=tuple(
            User(name=user, account=name, **_limits(own, _RENAMED_IN_ACCOUNTS))
            for name, limits in accounts.items()
            for user, own in limits.get("users", {}).items()
        ),
        licenses=tuple(License(name=name, count=n) for name, n in case.get("licences", {}).items()),
        reservations=tuple(_reservations(case)),
        calendar=tuple(_events(case)),
        scheduler=SchedulerParameters(
            preempt=_preempts(case),
            requeue_delay=case.get("requeue_delay", 0),
            select=case.get("select", "weight"),
            kill_invalid_dependency=case.get("kill_invalid_dependency", False),
        ),
    )


def _preempts(case: Case) -> Any:
    if not any("preempt" in partition for partition in case["partitions"].values()):
        return "none"
    return "partition+qos"


def _reservations(case: Case) -> Iterator[AdvanceReservation]:
    for entry in case.get("calendar", ()):
        if "reservation" in entry:
            yield AdvanceReservation(
                name=entry["reservation"],
                start=entry["begin"],
                end=entry["end"],
                nodes=_names(entry["nodes"]),
                announced=entry.get("announced", 0),
                users=tuple(entry.get("users", ())),
                accounts=tuple(entry.get("accounts", ())),
            )


def _events(case: Case) -> Iterator[CalendarEvent]:
    for entry in case.get("calendar", ()):
        if "set" in entry:
            for name, settings in entry["set"]["partitions"].items():
                yield CalendarEvent(
                    time=entry["time"], event="partition_state", partition=name, state=settings["state"]
                )
        elif "state" in entry:
            yield CalendarEvent(time=entry["time"], event=entry["state"], nodes=_names(entry["nodes"]))
        for kind in ("cancel", "hold", "release"):
            if kind in entry:
                yield CalendarEvent(time=entry["time"], event=kind, job=str(entry[kind] + 1))


def _arrays(case: Case) -> dict[str, int]:
    names = dict.fromkeys(job["array"] for job in case["jobs"] if "array" in job)
    return {name: _FIRST_ARRAY + i for i, name in enumerate(names)}


def _dependency(text: str, arrays: Mapping[str, int]) -> str:
    """Return a dependency whose jobs have numbers from 1, as ids do."""
    mark = "?" if "?" in text else ","
    parts = []
    for part in text.split(mark):
        kind, *parents = part.split(":")
        ids = []
        for parent in parents:
            name, plus, minutes = parent.partition("+")
            ids.append(f"{arrays.get(name, int(name) + 1 if name.isdigit() else name)}{plus}{minutes}")
        parts.append(":".join([kind, *ids]))
    return mark.join(parts)


def build_workload(case: Case) -> Workload:
    arrays = _arrays(case)
    rows = []
    for number, job in enumerate(case["jobs"]):
        vector = job.get("vector", {})
        gpu_type, gpus = next(iter(vector.get("gpus", {}).items()), ("any", -1))
        unit = "task" if "tasks" in job else "node"
        rows.append(
            dict.fromkeys(SWF_COLUMNS, -1)
            | {
                "job_id": number + 1,
                "submit": job["submit"],
                "run": job["run"],
                "req_time": job.get("request", -1),
                "status": 0 if job.get("fails") else 1,
                "nodes": job.get("nodes", -1),
                "tasks": job.get("tasks", -1),
                f"cores_per_{unit}": vector.get("cores", -1),
                f"memory_per_{unit}": vector.get("memory", -1),
                f"gpus_per_{unit}": gpus,
                "gpu_type": "" if gpu_type == "any" else gpu_type,
                "partition_name": ",".join(job.get("partitions", [])),
                "qos_name": job.get("qos", ""),
                "account": job.get("account", ""),
                "user_name": job.get("user", ""),
                "job_name": job.get("name", ""),
                "constraints": job.get("features", ""),
                "exclusive": 1 if job.get("exclusive") else -1,
                "licenses": ",".join(f"{name}:{n}" for name, n in job.get("licences", {}).items()),
                "begin": job.get("begin", -1),
                "dependency": _dependency(job["depends"], arrays) if "depends" in job else "",
                "array_id": arrays.get(job.get("array"), -1),
                "array_limit": job.get("array_limit", -1),
                "hold_until": np.inf if job.get("hold") else job.get("hold_until", -1),
                "reservation": job.get("reservation", ""),
                "requeue": 1 if job.get("requeue", True) else 0,
                "nodelist": ",".join(_names(job.get("nodelist", []))),
                "exclude": ",".join(_names(job.get("exclude", []))),
                **dict.fromkeys(PERMITS, int(job.get("permits", True))),
                **{name: job.get(name, -1.0) for name in OF_ACTIONS},
            }
        )
    table = pd.DataFrame(rows)
    for name in table.columns:
        if table[name].dtype.kind == "f":
            table[name] = table[name].fillna(-1)
    return Workload("case", table, {"nodes": len(case["nodes"])})


def build_scenario(case: Case, **decides: Any) -> Scenario:
    """Return the case, ready to be replayed; `decides`: more of the policy."""
    rule = LOAD_RULES[DEFAULT_RULE["standard"]]
    jobs = select(build_workload(case), rule, rebase=False, cluster=build_cluster(case))
    policy = Policy(
        case.get("order", "fcfs"), case.get("backfill", "easy"), case.get("candidate_order", ""), **decides
    )
    scenario = prepare(jobs, protocol("standard"), policy, "requested", rule)
    stated = [case["jobs"][int(number) - 1].get("estimate") for number in jobs.id]
    estimates = jobs.request.copy()
    for j, seconds in enumerate(stated):
        if seconds is not None:
            estimates[j] = seconds * SECOND
    believed = replace(scenario.estimate, order=estimates, waiting=estimates.copy(), running=estimates.copy())
    scenario = replace(scenario, estimate=believed)
    if scenario.cluster is not None and scenario.cluster.calendar is not None:
        exempt = [partition.get("exempt", 0) * SECOND for partition in case["partitions"].values()]
        scenario.cluster.calendar.jobs.exempt = np.array(exempt)[scenario.cluster.demands.partition]
    return scenario


def replay_case(case: Case) -> list[Outcome]:
    """Return what bridge's fast world makes of each job, in the case's order."""
    scenario = build_scenario(case)
    return outcomes_of(case, scenario, replay(scenario))


#: What an agent sees in these tests: all that there is on a cluster, and what is of the pass.
FEATURES = {
    **{name: name for name in (*VIEW, *OF_CLUSTER)},
    **{f"{name} {k}": f"{name}[{k}]" for name in ("per_node", "free_node") for k in range(3)},
    "in partition": "in_partition[0]",
    "share": "share[0]",
    "used": "used[0]",
    "goal": "goal[0]",
}
CONTEXT: dict[str, Any] = {
    "running": {"left": "left", "nodes": "n"},
    "running_rows": (3,),
    "queued": {"wait": "w", "safe": "safe"},
    "queued_rows": 2,
    "machine": {"gap": "gap", "limited": "waiting_limit", "load": "load"},
}


def replay_case_by_agent(
    case: Case,
    decision: DecisionKind,
    answer: ActionFunction | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    features: Mapping[str, str] = FEATURES,
    window: int = 128,
) -> list[Outcome]:
    """Return what becomes of each job where an agent decides; by default it takes the first row."""
    scenario = build_scenario(case, agent=frozenset(decision.split("+")), **(policy or {}))
    stop = decision == "backfill"
    encoder = Encoder(decision, features, window=window, stop=stop, **CONTEXT).compile({})
    batch = Batch(scenario, encoder, 1, len(scenario.jobs), whole=True)
    play(batch, answer or (lambda view: np.zeros(len(view.offsets) - 1, np.int64)), np.zeros(1, np.int64))
    return outcomes_of(case, scenario, batch.schedule(0, 0))


def outcomes_of(case: Case, scenario: Scenario, schedule: Schedule) -> list[Outcome]:
    """Return what a schedule says of each job, in the case's order."""
    assert schedule.eligible is not None
    assert schedule.allocation is not None
    assert scenario.cluster is not None
    nodes = schedule.allocation.node_indices(
        scenario.cluster.classes, schedule.start, schedule.end, schedule.serial
    )
    outcomes: list[Outcome] = [(None, None, None, [])] * len(case["jobs"])
    for j, number in enumerate(scenario.jobs.id):
        started = schedule.start[j] >= 0
        outcomes[int(number) - 1] = (
            seconds(schedule.eligible[j]),
            seconds(schedule.start[j]),
            seconds(schedule.end[j]) if started else None,
            nodes[j].tolist(),
        )
    return outcomes


def seconds(time: int) -> int | float | None:
    if time < 0:
        return None
    return int(time) // SECOND if time % SECOND == 0 else int(time) / SECOND
