"""Jobs as `scontrol -d -o show job` prints them, for the protocol `slurm`."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bridge.cluster.request_texts import parse_constraints, parse_licenses
from bridge.cluster.slurm_values import duration, node_names
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.request_words import (
    gres_counts,
    mebibytes,
    nodes_named,
    parts_named,
    tasks_listed,
)
from bridge.scheduler.slurm.site import Site

_NONE = ("", "(null)", "N/A", "None")
COMPLETING = "COMPLETING"
_FIELD = re.compile(r" ?(\S+?)=(\S*)")
_RUNTIME = re.compile(r" RunTime=\S+")
_DETAIL = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=")


@dataclass(frozen=True)
class OwnJob:
    """One job of a reading; instants in whole seconds since 1970.

    Attributes:
        cores: CPUs on each of its nodes, of one that has any or had them.
        left_out: why nothing is predicted of it; empty: it is.
    """

    label: str
    number: int
    task: int
    state: str
    fields: dict[str, str]
    start: int
    end: int
    submit: int
    cores: dict[str, int]
    left_out: str

    @property
    def is_waiting(self) -> bool:
        return self.state == "PENDING"

    @property
    def runs(self) -> bool:
        return self.state in ("RUNNING", "SUSPENDED", "CONFIGURING")

    @property
    def nodes(self) -> frozenset[str]:
        """Its nodes that are not free yet: of a job that completes, Slurm lists those."""
        if self.runs:
            return frozenset(self.cores)
        return frozenset(node_names(self.text("NodeList"))) if self.state == COMPLETING else frozenset()

    def text(self, name: str) -> str:
        """Return a field; empty: Slurm has none."""
        value = self.fields.get(name, "")
        return "" if value in _NONE else value


class JobReader:
    """Reads one reading after the other; a job that is as it was is the same object as before."""

    def __init__(self) -> None:
        self._lines: dict[str, list[OwnJob]] = {}

    def read(self, text: str) -> dict[str, OwnJob]:
        """Return all jobs by their labels; an array's waiting record is one job for each task."""
        before, self._lines = self._lines, {}
        for line in text.splitlines():
            if line.startswith("JobId="):
                key = _RUNTIME.sub("", line, count=1)  # it changes each second
                self._lines[key] = before.get(key) or _jobs_of(dict(_FIELD.findall(line)), line)
        return {one.label: one for jobs in self._lines.values() for one in jobs}


def read_jobs(text: str) -> dict[str, OwnJob]:
    """Return all jobs of one reading by their labels."""
    return JobReader().read(text)


def _jobs_of(fields: dict[str, str], line: str) -> list[OwnJob]:
    number, tasks = int(fields["JobId"]), [-1]
    if text := fields.get("ArrayTaskId", ""):
        number, tasks = int(fields["ArrayJobId"]), tasks_listed(text)
    cores = {name: _count(ids) for nodes, ids in _DETAIL.findall(line) for name in node_names(nodes)}
    more = (_instant(fields, "StartTime"), _instant(fields, "EndTime"), _instant(fields, "SubmitTime"), cores)
    return [
        OwnJob(
            f"{number}_{task}" if task >= 0 else str(number),
            *(number, task, fields["JobState"], fields, *more, _left_out(fields)),
        )
        for task in tasks
    ]


def _left_out(fields: dict[str, str]) -> str:
    if "HetJobId" in fields:
        return "a component of a heterogeneous job"
    for name in ("TresPerJob", "TresPerTask", "TresPerSocket"):
        if name in fields:
            return f"asks by {name}"
    if fields.get("Dependency", "") not in _NONE:
        return "waits for another job"
    return ""


def _count(ids: str) -> int:
    """Return how many CPUs ``0-3,7`` are."""
    count = 0
    for word in ids.split(","):
        first, _, last = word.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _instant(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "")
    if text.isdecimal():
        return int(text)
    return int(datetime.fromisoformat(text).timestamp()) if text.startswith("2") else 0


def slurm_job(one: OwnJob, site: Site, key: int) -> SlurmJob:
    """Return a job for the protocol; ValueError: it asks for what the protocol does not have."""
    user = one.fields["UserId"].partition("(")[0]
    account, qos = one.text("Account") or "root", one.text("QOS") or "normal"
    if qos not in site.qos:
        raise ValueError(f"there is no QOS {qos}")
    each = int(one.text("CPUs/Task") or 1)
    low, _, high = one.text("NumNodes").partition("-")
    tasks, nodes = int(one.text("NumTasks") or 1), int(low)
    per_node = int(one.fields.get("NtasksPerN:B:S:C", "0").partition(":")[0] or 0)
    limit = one.text("TimeLimit")
    fields: dict[str, Any] = {
        "id": one.number,
        "task": one.task,
        "key": key,
        "array_most": int(one.text("ArrayTaskThrottle") or 0),
        "user": user,
        "assoc": site.user_of(user, account),
        "qos": qos,
        "name": one.text("JobName"),
        "parts": parts_named(one.text("Partition").split(","), site),
        "min_nodes": nodes,
        "max_nodes": max(int(high or low), nodes) if high and int(high) > 0 else max(tasks, nodes),
        "tasks": tasks,
        "cpus_per_task": each,
        "min_cpus": max(tasks * each, nodes),
        "memory_node": mebibytes(one.text("MinMemoryNode")),
        "memory_cpu": mebibytes(one.text("MinMemoryCPU")),
        "gres": gres_counts(one.text("TresPerNode")),
        "exclusive": one.text("OverSubscribe") == "NO",
        "limit": 0 if limit in ("", "UNLIMITED", "Partition_Limit") else duration(limit),
        "licenses": parse_licenses(one.text("Licenses").replace("@local", "")),
        "reservation": one.text("Reservation"),
        "required": nodes_named(one.text("ReqNodeList"), site),
        "excluded": nodes_named(one.text("ExcNodeList"), site),
        "contiguous": one.text("Contiguous") == "1",
        "requeue": one.text("Requeue") != "0",
        "held": one.text("Priority") == "0",
        "begin": one.start if one.text("Reason") == "BeginTime" else 0,
    }
    if per_node and tasks == nodes * per_node:
        fields |= {"max_nodes": nodes, "node_cpus": per_node * each}
    if text := one.text("Features"):
        fields |= {"features": tuple(parse_constraints(text)), "one_feature": "[" in text}
    return SlurmJob(**fields)
