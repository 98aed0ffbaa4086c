"""A stand-in for a Slurm with shared nodes, GPUs, licences and reservations: it starts what is released.

It has books of its own: a release that its nodes cannot hold is an error of whoever released the job.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from bridge.cluster.slurm_values import node_names
from bridge.worlds.slurm.client import Node, QueueEntry

CORES, MEMORY = 8, 1000
GPUS = {"n0": 2, "n1": 2, "n2": 2}
NAMES = ("n0", "n1", "n2", "n3", "n4")
PARTITIONS = {"gpu": "n[0-2]", "cpu": "n[2-4]", "other": "n4"}
_TEXT = """JobId={raw}{array} JobName=a
   UserId=alice(1) GroupId=alice(1) MCS_label=N/A
   Priority={priority} Nice=0 Account=(null) QOS=(null)
   Requeue={requeue} Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   SubmitTime={submit} EligibleTime=Unknown
   StartTime={start} EndTime=Unknown Deadline=N/A
   SuspendTime={suspend_time} SecsPreSuspend={before_suspension} LastSchedEval=Unknown Scheduler=Main
   Partition={partition} AllocNode:Sid=localhost:1
   NumNodes={nodes} NumCPUs={cpus} NumTasks={tasks} CPUs/Task={each} ReqB:S:C:T=0:0:*:*
   Socks/Node=* NtasksPerN:B:S:C={on_each}:0:*:* CoreSpec=*
{details}   MinCPUsNode={each} MinMemory{unit}={memory} MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe={share} Contiguous=0 Licenses={licenses} Network=(null)
   Command=(null)
   WorkDir=/home
   AdminComment={mark} Comment=none
   StdErr=/dev/null
   Power=
{tres}"""


@dataclass
class FakeJob:
    label: str
    partition: str
    nodes: str = "1-1"
    tasks: int = 1
    each: int = 1
    on_each: int = 0
    memory: str = "10M"
    unit: str = "CPU"
    gres: str = ""
    tres: str = ""
    licenses: str = ""
    reservation: str = ""
    features: str = ""
    dependency: str = ""
    excluded: str = ""
    exclusive: bool = False
    array: tuple[int, int] | None = None
    limit: float = 600.0
    submit: int = 1000
    required: str = ""
    hosts: str = ""
    start: int = -1
    qos: str = ""
    requeue: int = 1
    mark: str = "agent:held"
    state: str = "PENDING"
    suspend_time: int | str = "None"
    before_suspension: int = 0
    ran: list[str] = field(default_factory=list)

    @property
    def raw(self) -> int:
        return int(self.label.partition("_")[0].partition("+")[0])

    @property
    def cpus(self) -> int:
        return self.tasks * self.each

    @property
    def counts(self) -> tuple[int, int]:
        """Cores and GPUs of each node that it has."""
        n = max(len(self.ran), 1)
        gpus = re.findall(r":(\d+)$", self.gres) or re.findall(r"TresPerJob=gres:gpu:(\d+)", self.tres)
        return math.ceil(self.cpus / n), int(gpus[0]) if gpus else 0

    def row(self) -> QueueEntry:
        return QueueEntry(
            label=self.label, raw=self.raw, state=self.state, qos=self.qos,
            priority=9 if self.hosts else 0, submit=self.submit, start=self.start, limit=self.limit,
            nodes=int(self.nodes.partition("-")[0]), cores=self.cpus, memory=self.memory, user="alice",
            reason="", dependency=self.dependency, features=self.features, gres=self.gres,
            reservation=self.reservation, licenses=self.licenses, required=self.required,
            excluded=self.excluded, hosts=self.hosts, partition=self.partition,
        )  # fmt: skip

    def text(self) -> str:
        cores, gpus = self.counts
        details = ""
        if self.hosts:
            gres = f"gpu:{gpus}(IDX:0)" if gpus else ""
            details = f"     Nodes={self.hosts} CPU_IDs=0-{cores - 1} Mem={10 * cores} GRES={gres}\n"
        array = ""
        if self.array:
            array = f" ArrayJobId={self.array[0]} ArrayTaskId=1 ArrayTaskThrottle={self.array[1]}"
        return _TEXT.format(
            **{**vars(self), "array": array, "details": details, "licenses": self.licenses or "(null)"},
            raw=self.raw, cpus=self.cpus, priority=0, share="NO" if self.exclusive else "OK",
        )  # fmt: skip


class FakeSite:
    """Jobs by label; `clock`: seconds since 1970; `reservations`: as `scontrol -o` prints them."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.jobs: dict[str, FakeJob] = {}
        self.clock = 1000.0
        self.reservations = "No reservations in the system\n"
        self.states: dict[str, str] = {}
        self.licenses = 2
        self.config = ""
        self.of_partitions: dict[str, str] = {}
        self.qos = ""
        self.commands: list[str] = []
        self.refused = ""

    def submit(self, label: str, partition: str, **asks: Any) -> None:
        self.jobs[label] = FakeJob(label, partition, **asks)

    def start(self, label: str, hosts: str) -> None:
        """Start a job as Slurm would of itself."""
        job = self.jobs[label]
        job.hosts, job.start, job.ran, job.state = hosts, int(self.clock), list(node_names(hosts)), "RUNNING"

    def end(self, label: str) -> None:
        self.jobs[label].hosts = ""
        del self.jobs[label]

    def clear(self, label: str) -> None:
        """The nodes of a job that was requeued or cancelled are free: it waits two minutes, or is gone."""
        job = self.jobs[label]
        assert job.state == "COMPLETING"
        if f"requeuehold {label}" not in self.commands:
            self.end(label)
            return
        job.hosts, job.state, job.submit, job.start = "", "PENDING", int(self.clock), int(self.clock) + 121

    # what the agent calls

    def nodes(self, _: str) -> dict[str, Node]:
        used = {name for job in self.jobs.values() if job.hosts for name in job.ran}
        return {
            name: Node(
                name, self.states.get(name, "mixed" if name in used else "idle"), CORES, MEMORY, frozenset()
            )
            for name in NAMES
        }

    def queue(self, _: str = "") -> list[QueueEntry]:
        return [job.row() for job in self.jobs.values()]

    def call(self, *words: str) -> str:
        kind = words[-1]
        if words[0] == "sacctmgr":
            return self.qos
        if words[0] == "scancel":
            self.commands.append(" ".join(words))
            if "TERM" not in words:
                self.jobs[words[-1]].state = "COMPLETING"
            return ""
        if kind == "config":
            return f"ClusterName = fake\nSelectTypeParameters = CR_CORE_MEMORY\n{self.config}"
        if kind == "node":
            lines = [
                f"NodeName={name} CPUTot={CORES} RealMemory={MEMORY} Gres="
                f"{f'gpu:{GPUS[name]}' if name in GPUS else '(null)'} State=IDLE ThreadsPerCore=1 Weight=1"
                for name in NAMES
            ]
        elif kind == "partition":
            lines = [
                f"PartitionName={name} MaxTime=UNLIMITED Nodes={nodes} OverSubscribe=NO State=UP "
                f"{self.of_partitions.get(name, '')}"
                for name, nodes in PARTITIONS.items()
            ]
        elif kind == "lic":
            lines = [f"LicenseName=solver Total={self.licenses} Used=0 Free=2 Reserved=0 Remote=no"]
        else:
            return self.reservations if kind == "reservation" else ""
        return "\n".join(lines) + "\n"

    def control(self, command: str, patience: float = 0) -> str:  # noqa: ARG002
        verb, *words = command.split()
        if verb == "show":
            return self.jobs[words[1]].text()
        if verb == "update":
            job = self.jobs[words[0].removeprefix("JobId=")]
            name, _, value = words[1].partition("=")
            if name == "ReqNodeList":
                job.required = value
            elif name == "AdminComment":
                job.mark = value
        elif verb in ("requeuehold", "suspend", "resume"):
            if self.refused:
                return self.refused
            self.commands.append(command)
            self._stop(verb, self.jobs[words[0]])
        elif verb == "release" and self.jobs[words[0]].required:
            self._start_released(self.jobs[words[0]])
        return ""

    def _stop(self, verb: str, job: FakeJob) -> None:
        now = int(self.clock)
        if verb == "requeuehold":
            job.state = "COMPLETING"
            return
        assert job.state == ("RUNNING" if verb == "suspend" else "SUSPENDED")
        if verb == "suspend":
            since = job.suspend_time if isinstance(job.suspend_time, int) else job.start
            job.before_suspension += now - since
        job.state, job.suspend_time = "SUSPENDED" if verb == "suspend" else "RUNNING", now

    def _start_released(self, job: FakeJob) -> None:
        job.ran = list(node_names(job.required))
        low = int(job.nodes.partition("-")[0])
        assert len(job.ran) == low or "-" not in job.nodes, f"{job.label}: {len(job.ran)} nodes"
        for name in job.ran:
            others = [other for other in self.jobs.values() if other.hosts and name in other.ran]
            cores = sum(other.counts[0] for other in others if other.state != "SUSPENDED")
            gpus = sum(other.counts[1] for other in others)
            assert not any(other.exclusive for other in others), f"{job.label} beside an exclusive job"
            assert not (job.exclusive and others), f"{job.label} is not alone on {name}"
            assert cores + job.counts[0] <= CORES, f"{job.label}: no cores on {name}"
            assert gpus + job.counts[1] <= GPUS.get(name, 0), f"{job.label}: no GPUs on {name}"
            assert self.states.get(name, "idle") == "idle", f"{job.label} on {name}"
        job.hosts, job.start, job.state = job.required, int(self.clock), "RUNNING"
