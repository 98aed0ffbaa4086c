"""A Slurm of four nodes as text: what `scontrol` prints, and the state of its queue."""

from typing import cast

from bridge.forecasting.state import MachineState, SlurmPresent
from bridge.forecasting.statefile import state_of
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.own_jobs import read_jobs
from bridge.worlds.slurm.own_site import OwnQueue, read_own_site

CONFIG = """SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SchedulerType           = sched/backfill
SchedulerParameters     = bf_interval=30
KillWait                = 2 sec
OverTimeLimit           = 0 min
DefMemPerCPU            = 100
AccountingStorageEnforce = {enforce}
"""
NODES = "NodeName=n{k} CoresPerSocket=8 CPUTot=8 RealMemory=16000 Sockets=1 State=IDLE ThreadsPerCore=1\n"
PARTITION = (
    "PartitionName=p Nodes=n[0-3] OverSubscribe={share} State=UP MaxTime=UNLIMITED TotalNodes=4 Default=YES\n"
)


class Slurm:
    """Prints a site."""

    def __init__(self, enforce: str = "none") -> None:
        self.config = CONFIG.format(enforce=enforce)

    def call(self, *words: str) -> str:
        if words[-1] == "config":
            return self.config
        texts = {
            "node": "".join(NODES.format(k=k) for k in range(4)),
            "partition": PARTITION.format(share="NO"),
        }
        return texts.get(words[-1], "")


def job(number: int, state: str, nodes: int, hosts: str = "", start: int = 0, end: int = 0) -> str:
    times = f"SubmitTime={1000 + number} StartTime={start or 'Unknown'} EndTime={end or 'Unknown'}"
    asked = f"NumNodes={nodes}-{nodes}" if state == "PENDING" else f"NumNodes={nodes}"
    detail = f" Nodes={hosts} CPU_IDs=0-7 Mem=800 GRES=" if state in ("RUNNING", "COMPLETING") else ""
    return (
        f"JobId={number} JobName=a UserId=root(0) Priority={5000 - number} Account=(null) QOS=(null) "
        f"JobState={state} Reason=None Dependency=(null) TimeLimit=00:10:00 {times} Partition=p "
        f"ReqNodeList=(null) ExcNodeList=(null) NodeList={hosts or '(null)'} {asked} NumCPUs={8 * nodes} "
        f"NumTasks={nodes} CPUs/Task=1 NtasksPerN:B:S:C=0:0:*:* MinMemoryCPU=100M Features=(null) "
        f"OverSubscribe=NO Contiguous=0 Licenses=(null) Requeue=1{detail}\n"
    )


NOW = 1100
#: Job 1 has three of four nodes until 1602 at the longest; 2 needs all, 3 two, and 4 one for five minutes.
LINES = [
    job(1, "RUNNING", 3, "n[0-2]", 1002, 1602),
    job(2, "PENDING", 4),
    job(3, "PENDING", 2),
    job(4, "PENDING", 1).replace("00:10:00", "00:05:00"),
]


def state_of_queue(queue: OwnQueue) -> MachineState:
    def row(label: str) -> dict[str, object]:
        one = (queue.running | queue.waiting)[label]
        nodes = int(one.fields["NumNodes"].partition("-")[0])
        limit = {"00:10:00": 600}.get(one.fields["TimeLimit"], 300)
        return {"id": label, "submit": one.submit, "request": limit, "demand": {"nodes": nodes}}

    running = [row(label) | {"start": one.start} for label, one in queue.running.items()]
    document = {"now": NOW, "capacity": {"nodes": 4}, "free": {"nodes": 1}, "running": running}
    document["waiting"] = [row(label) for label in queue.waiting]

    def submitted(nodes: int, walltime: float, user: str, name: str) -> MachineState:
        more = queue.copy()
        more.submit(name, nodes, walltime, user, "p", NOW)
        return state_of_queue(more)

    state = state_of({"format": "bridge-state", "version": 1, **document}, "test")
    object.__setattr__(state, "own", SlurmPresent(queue.controller, submitted))
    return state


def read() -> OwnQueue:
    return OwnQueue.of(read_own_site(cast("Client", Slurm())), read_jobs("".join(LINES)))
