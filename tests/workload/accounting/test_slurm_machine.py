"""The machine from slurm.conf, scontrol and sinfo."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.workload.accounting.machine import AccountingMachine, generic, read_machine

CONF = """\
ClusterName=mini # a comment
NodeName=DEFAULT RealMemory=1000 \\
  CPUs=8
nodename=n[0-3] State=UNKNOWN
NodeName=gpu[01-02] CPUs=32 Gres=gpu:a100:4(S:0-1),fake:2 Feature=big
NodeName=later[0-9] State=FUTURE
Include more.conf
NodeSet=bigs Feature=big
PartitionName=DEFAULT MaxTime=2-00:00:00
PartitionName=agent Nodes=n[0-2],gpu01 Default=YES DefaultTime=60
PartitionName=gpu Nodes=bigs MaxTime=UNLIMITED
PartitionName=all Nodes=ALL
"""


@pytest.fixture
def machine(tmp_path: Path) -> AccountingMachine:
    """Return the machine of `CONF`, which includes another file."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "more.conf").write_text("NodeName=extra\n")
    return read_machine(tmp_path / "slurm.conf")


def test_slurm_conf(machine: AccountingMachine) -> None:
    assert machine.capacity() == {
        "nodes": 7,
        "cores": 5 * 8 + 2 * 32,
        "main_memory": 7000 << 20,
        "gpus_a100": 8,
        "gpus": 8,
        "gres_fake": 4,
    }
    assert {name: len(p.nodes) for name, p in machine.partitions.items()} == {"agent": 4, "gpu": 2, "all": 7}
    assert machine.capacity("gpu")["cores"] == 64
    assert [p.limit for p in machine.partitions.values()] == [172800, math.inf, 172800]
    assert [machine.partitions["agent"].limit_of(default=d) for d in (True, False)] == [3600, 172800]


def test_cores_follow_sockets_where_they_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n0 Boards=1 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2\n")
    assert read_machine(tmp_path / "slurm.conf").capacity() == {"nodes": 1, "cores": 32, "main_memory": 0}


def test_scontrol_in_either_form(tmp_path: Path) -> None:
    one = "NodeName=n0 CPUTot=8 Gres=(null) RealMemory=1000 State=IDLE Partitions=agent,other \n"
    many = (
        "NodeName=n1 Arch=x86\n   CPUTot=8 Gres=gpu:2\n   RealMemory=1000 State=IDLE\n   Partitions=agent\n\n"
    )
    (tmp_path / "nodes.txt").write_text(one + many)
    machine = read_machine(tmp_path / "nodes.txt")
    assert machine.capacity() == {"nodes": 2, "cores": 16, "main_memory": 2000 << 20, "gpus": 2}
    expected = {"agent": ["n0", "n1"], "other": ["n0"]}
    assert {name: sorted(p.nodes) for name, p in machine.partitions.items()} == expected


@pytest.mark.parametrize("between", [" ", "\n   "])
def test_a_kernels_number_is_no_comment(tmp_path: Path, between: str) -> None:
    words = ("CPUTot=32", "OS=Linux 5.14.0 #1 SMP May 3", "RealMemory=1000", "State=IDLE", "Gres=gpu:a100:4")
    one = between.join(("NodeName=a1", *words, "Partitions=batch"))
    two = between.join(("NodeName=a2", *words[:3], "State=FUTURE", "Partitions=batch"))
    (tmp_path / "nodes.txt").write_text(f"{one}\n\n{two}\n")
    machine = read_machine(tmp_path / "nodes.txt")
    whole = {"nodes": 1, "cores": 32, "main_memory": 1000 << 20, "gpus_a100": 4, "gpus": 4}
    assert machine.capacity("batch") == machine.capacity() == whole


def test_sinfo(tmp_path: Path) -> None:
    path = tmp_path / "sinfo.txt"
    path.write_text(
        "NODELIST|CPUS|MEMORY|GRES|PARTITION|TIMELIMIT\n"
        "n0|8|1000|(null)|agent*|1-00:00:00\nn0|8|1000|(null)|other|infinite\nn1|16|1000+|gpu:v100:2|agent*|1-00:00:00\n"
    )
    machine = read_machine(path)
    expected = {"nodes": 2, "cores": 24, "main_memory": 2000 << 20, "gpus_v100": 2, "gpus": 2}
    assert machine.capacity() == expected
    assert machine.partitions["agent"].limit == 86400
    path.write_text(
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nagent*       up   infinite      4   idle n[0-3]\n"
    )
    assert read_machine(path).capacity("agent") == {"nodes": 4}


def test_generic_resources() -> None:
    assert generic("gpu:2") == {"gpus": 2}
    assert generic("gpu:a100:4(S:0-1),gpu:v100:2") == {"gpus_a100": 4, "gpus": 6, "gpus_v100": 2}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hello\n", "tells of no node"),
        ("NodeName=n[3-1] CPUs=8\n", "no range of nodes"),
        ("NodeName=n0 CPUs=eight\n", "slurm.conf:1: cpus=eight is no whole number\n  Mend the line"),
        ("NodeName=n0 CPUs=-4\n", "cpus=-4 is no whole number"),
        ("NodeName=n0 Sockets=2 CoresPerSocket=1_0\n", "corespersocket=1_0 is no whole number"),
        ("NodeName=n0 RealMemory=nan\n", "realmemory=nan is no whole number"),
        ("NodeName=n0\nInclude gone.conf\n", "no such file"),
        ("NodeName=n0\nInclude slurm.conf\n", "includes files without end"),
        ("NODELIST CPUS\nn0\n", "no line of sinfo"),
    ],
)
def test_what_is_no_machine(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    with pytest.raises(BridgeError, match=what):
        read_machine(path)


@given(text=st.text(st.sampled_from("NodeName=[]0-9,:()PartitionGresCPU# \n\\\x00"), max_size=120))
def test_any_text_is_a_machine_or_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "slurm.conf"
    path.write_text("NodeName=n0\n" + text, encoding="utf-8")
    try:
        assert read_machine(path).capacity()["nodes"] >= 0
    except BridgeError as error:
        assert str(path) in str(error)
