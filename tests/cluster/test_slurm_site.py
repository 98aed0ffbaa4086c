"""Clusters from slurm.conf and scontrol, and what of them is not honoured."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster import Cluster, License, NodeGroup, Partition, PriorityConfig, SchedulerParameters
from bridge.cluster.clusterfile import cluster_digest
from bridge.cluster.imported import ImportedCluster
from bridge.cluster.slurm_site import import_slurm
from bridge.cluster.source import digest_of_cluster, read_cluster

CONF = """\
ClusterName=mini # a comment
SlurmctldHost=ctl
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_LLN
SchedulerParameters=bf_window=1440,bf_continue
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightTRES=CPU=1000,Mem=2000,GRES/gpu=3000
PriorityMaxAge=7-0
PriorityDecayHalfLife=14-0
PriorityFlags=SMALL_RELATIVE_TO_TIME,MAX_TRES
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PreemptExemptTime=00:10:00
Licenses=matlab:10,ansys
FooBar=3
OverTimeLimit=5
NodeName=DEFAULT RealMemory=1000 \\
  CPUs=8
nodename=n[0-3] State=UNKNOWN
NodeName=gpu[01-02] CPUs=32 RealMemory=500000 Gres=gpu:a100:4(S:0-1),fake:2 Feature=big,ib Weight=10
NodeName=later[0-9] State=FUTURE
NodeName=fat CPUs=128 ThreadsPerCore=2 CoreSpecCount=1 MemSpecLimit=1000 RealMemory=1000000
DownNodes=n1 State=DOWN
NodeSet=bigs Feature=big
PartitionName=DEFAULT MaxTime=2-00:00:00
PartitionName=agent Nodes=n[0-2],gpu01 Default=YES DefaultTime=60 AllowQos=normal,high DefMemPerCPU=100
PartitionName=gpu Nodes=bigs MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE PriorityTier=10 QOS=gpuq \\
  AllowGroups=staff
PartitionName=all Nodes=ALL,old[1-2] MaxNodes=4 State=DOWN PreemptMode=REQUEUE
PartitionName=none Nodes=old[1-2]
"""


def imported(tmp_path: Path, text: str) -> ImportedCluster:
    (tmp_path / "slurm.conf").write_text(text)
    return import_slurm(tmp_path / "slurm.conf")


def test_slurm_conf(tmp_path: Path) -> None:
    assert imported(tmp_path, CONF).cluster == Cluster(
        name="mini",
        nodes=(
            NodeGroup(name="n", nodes="n0", cores=8, memory=1000),
            NodeGroup(name="n-2", nodes="n1", cores=8, memory=1000, state="down"),
            NodeGroup(name="n-3", nodes="n[2-3]", cores=8, memory=1000),
            NodeGroup(
                name="gpu",
                nodes="gpu[01-02]",
                cores=32,
                memory=500_000,
                gpus={"a100": 4},
                features=("big", "ib"),
                weight=10,
            ),
            NodeGroup(name="fat", nodes="fat", cores=126, threads=2, memory=999_000),
        ),
        partitions=(
            Partition(
                name="agent",
                nodes=("n[0-2],gpu01",),
                default=True,
                exclusive=False,
                max_time=172_800,
                default_time=3600,
                allow_qos=("normal", "high"),
                default_memory_per_core=100,
            ),
            Partition(name="gpu", nodes=("gpu[01-02]",), exclusive=True, tier=10, qos="gpuq"),
            Partition(
                name="all",
                exclusive=False,
                max_time=172_800,
                max_nodes=4,
                state="down",
                preempt_mode="requeue",
            ),
        ),
        licenses=(License(name="matlab", count=10), License(name="ansys", count=1)),
        priority=PriorityConfig(
            age=1000,
            tres={"cores": 1000.0, "memory": 2000.0, "gpus": 3000.0},
            half_life=1_209_600,
            relative_to_time=True,
        ),
        scheduler=SchedulerParameters(
            select="least_loaded",
            preempt="partition",
            preempt_mode="suspend",
            preempt_exempt_time=600,
            parameters={"bf_window": "1440", "bf_continue": "yes"},
            settings={
                "PriorityType": "priority/multifactor",
                "PriorityFlags": "SMALL_RELATIVE_TO_TIME,MAX_TRES",
                "OverTimeLimit": "5",
            },
        ),
    )


def test_what_is_not_honoured_is_listed_once(tmp_path: Path) -> None:
    result = imported(tmp_path, CONF)
    assert result.unhonoured == {
        "nodes with the generic resource fake": 2,
        "nodes of State=FUTURE": 10,
        "nodes with ThreadsPerCore=2: a core here is one of their CPUs": 1,
        "partitions with AllowGroups": 1,
        "partition all: nodes that no line describes": 2,
        "partition none: nodes that no line describes": 2,
        "partitions without nodes": 1,
        "PriorityFlags=MAX_TRES": 1,
        "SchedulerParameters (bf_window, bf_continue)": 2,
        f"foobar, a setting that is not known here ({tmp_path / 'slurm.conf'}:16)": 1,
        "OverTimeLimit": 1,
    }
    assert result.notes == ()
    assert result.place("partitions[1].qos") == f"{tmp_path / 'slurm.conf'}:28"
    assert result.place("nodes[4]") == f"{tmp_path / 'slurm.conf'}:23"
    assert result.place("qos[0]") == str(tmp_path / "slurm.conf")


def test_scontrol(tmp_path: Path) -> None:
    text = (
        "NodeName=n0 CPUTot=8 RealMemory=1000 Gres=(null) State=IDLE Partitions=a,b\n"
        "NodeName=n1 Arch=x86\n   CPUTot=8 RealMemory=1000 Gres=gpu:2 State=IDLE+DRAIN\n   Partitions=a\n\n"
        "PartitionName=a\n   AllowAccounts=ALL AllowQos=ALL Default=NO QoS=N/A\n   MaxNodes=UNLIMITED "
        "MaxTime=1-00:00:00 Nodes=n[0-1]\n   OverSubscribe=NO PreemptMode=OFF State=UP PriorityTier=1\n"
    )
    result = imported(tmp_path, text)
    assert result.cluster == Cluster(
        nodes=(
            NodeGroup(name="n", nodes="n0", cores=8, memory=1000),
            NodeGroup(name="n-2", nodes="n1", cores=8, memory=1000, gpus={"gpu": 2}, state="drain"),
        ),
        partitions=(
            Partition(name="a", exclusive=False, max_time=86_400, preempt_mode="off"),
            Partition(name="b", nodes=("n0",), exclusive=False),
        ),
    )
    assert result.unhonoured == {}
    assert result.notes == ("no partition is the default: jobs that name none go to a",)


@pytest.mark.parametrize(
    ("select", "exclusive", "memory"),
    [
        ("", False, 1000),
        ("SelectType=select/linear", True, 1000),
        ("SelectTypeParameters=CR_Core", False, None),
        ("SelectTypeParameters=CR_CPU_Memory", False, 1000),
    ],
)
def test_what_jobs_use_up(tmp_path: Path, select: str, exclusive: bool, memory: int | None) -> None:
    text = f"{select}\nNodeName=n0 CPUs=4 RealMemory=1000\nPartitionName=p Nodes=n0 Default=YES\n"
    cluster = imported(tmp_path, text).cluster
    assert [one.exclusive for one in cluster.partitions] == [exclusive]
    assert [one.memory for one in cluster.nodes] == [memory]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("NodeName=n1 CPUs=x", "cpus=x is no whole number"),
        ("NodeName=n1 CPUs=2 CoreSpecCount=2", "leaves no core to jobs"),
        ("PartitionName=p Nodes=n0 MaxTime=soon", "'soon' is no duration"),
        ("PartitionName=p Nodes=n0 MaxNodes=x", "'x' is no whole number"),
        ("PartitionName=p Nodes=n0 State=MAYBE", "State=MAYBE is no state of a partition"),
        ("PriorityWeightAge=x", "priorityweightage=x is no whole number"),
        ("Licenses=a|b", "'a|b' is no licence"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, what: str) -> None:
    with pytest.raises(BridgeError) as error:
        imported(tmp_path, f"NodeName=n0 CPUs=4\n{line}\n")
    assert what in error.value.what
    assert error.value.where.startswith(str(tmp_path / "slurm.conf"))


def test_a_file_without_nodes_is_none(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="names no node"):
        imported(tmp_path, "ClusterName=x\nPartitionName=p Nodes=ALL\n")
    with pytest.raises(BridgeError, match="names no node and no partition"):
        imported(tmp_path, "hello\n")


def test_slurm_conf_is_a_cluster_by_itself(tmp_path: Path) -> None:
    result = imported(tmp_path, CONF)
    assert read_cluster(str(tmp_path / "slurm.conf")) == result.cluster
    assert digest_of_cluster(str(tmp_path / "slurm.conf")) == cluster_digest(result.cluster)


def test_a_cluster_is_read_anew_when_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[[nodes]]\ncount = 4\n")
    before = digest_of_cluster(str(path))
    path.write_text("[[nodes]]\ncount = 40\n")
    assert digest_of_cluster(str(path)) != before


def test_a_name_of_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="cirrus-like, teaching-site, thetagpu-2023, thetagpu-like"):
        read_cluster(str(tmp_path / "none"))
