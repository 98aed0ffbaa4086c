"""The shadow of Slurm's own schedulers: readings as text, and what it says of the starts between them."""

from typing import cast

import pytest

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.own_shadow import OwnShadow, read_own_site

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


def watched(*readings: tuple[int, list[str]]) -> OwnShadow:
    shadow = OwnShadow(cast("Client", Slurm()))
    for now, lines in readings:
        shadow.read("".join(lines), now)
    return shadow


RUNS = job(1, "RUNNING", 3, "n[0-2]", 1002, 1602)
ENDS = job(1, "COMPLETED", 3, "n[0-2]", 1002, 1100)


def test_a_start_after_an_end_is_predicted_with_its_nodes() -> None:
    waits = [job(2, "PENDING", 2), job(3, "PENDING", 3)]
    shadow = watched(
        (1050, [RUNS, *waits]),
        (1101, [ENDS, job(2, "RUNNING", 2, "n[0-1]", 1101, 1701), waits[1]]),
    )
    (hit,) = shadow.report.hits
    assert (hit.job, hit.by, hit.is_right) == ("2", "main", True)
    assert hit.nodes == {"n0", "n1"}
    assert shadow.report.document()["hit rate"] == 1.0


def test_a_start_on_other_nodes_or_out_of_turn_is_a_miss() -> None:
    waits = [job(2, "PENDING", 2), job(3, "PENDING", 3)]
    elsewhere = watched(
        (1050, [RUNS, *waits]),
        (1101, [ENDS, job(2, "RUNNING", 2, "n[2-3]", 1101, 1701), waits[1]]),
    )
    assert [(one.predicted, one.is_right) for one in elsewhere.report.hits] == [({"n0", "n1"}, False)]
    # the third job has to wait: both do not fit
    out_of_turn = watched(
        (1050, [RUNS, *waits]),
        (1101, [ENDS, waits[0], job(3, "RUNNING", 3, "n[0-2]", 1101, 1701)]),
    )
    assert [(one.predicted, one.why) for one in out_of_turn.report.hits] == [(None, "not predicted")]
    assert out_of_turn.report.document()["hit rate"] == 0.0


def test_backfill_s_starts_are_predicted_too() -> None:
    waits = [job(2, "PENDING", 4), job(3, "PENDING", 1).replace("00:10:00", "00:05:00")]
    shadow = watched(
        (1050, [RUNS, *waits]),
        (1061, [RUNS, waits[0], job(3, "RUNNING", 1, "n3", 1061, 1361)]),
    )
    (hit,) = shadow.report.hits
    assert (hit.by, hit.is_right) == ("backfill", True)


def test_nodes_that_complete_are_not_given_away() -> None:
    slow = job(1, "COMPLETING", 3, "n[0-2]", 1002, 1100)
    waits = job(2, "PENDING", 1)
    shadow = watched(
        (1050, [RUNS, waits.replace("PENDING", "HELD")]),
        (1100, [slow, waits]),
        (1101, [slow, job(2, "RUNNING", 1, "n3", 1101, 1701)]),
    )
    assert [one.is_right for one in shadow.report.hits] == [True]


def test_limits_that_nobody_reads_are_refused() -> None:
    with pytest.raises(BridgeError, match="limits are enforced"):
        read_own_site(cast("Client", Slurm("associations,limits")))
