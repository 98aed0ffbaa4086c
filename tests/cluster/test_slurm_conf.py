"""slurm.conf's lines as Slurm reads them: comments, continuations, includes."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.accounting.machine import read_machine


def conf(folder: Path, **texts: str) -> Path:
    """Write files (``name_conf`` becomes ``name.conf``), and return slurm.conf."""
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder / "slurm.conf"


def test_comments_end_before_a_line_is_continued(tmp_path: Path) -> None:
    text = "# NodeName=no \\\nNodeName=n[0-1] CPUs=4 \\  \n  # goes on\nPartitionName=a Nodes=n0,\\\nn1\n"
    machine = read_machine(conf(tmp_path, slurm_conf=text))
    assert machine.capacity("a") == machine.capacity() == {"nodes": 2, "cores": 8, "main_memory": 0}


def test_includes(tmp_path: Path) -> None:
    text = "ClusterName=Big\nInclude %c.conf\ninclude /etc/no/such/place/partitions.conf\n"
    path = conf(
        tmp_path,
        slurm_conf=text,
        big_conf="NodeName=n[0-3] CPUs=2\n",
        partitions_conf="PartitionName=p Nodes=ALL\n",
    )
    assert read_machine(path).capacity("p") == {"nodes": 4, "cores": 8, "main_memory": 0}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "NodeName=n0\nInclude /etc/no/such/p.conf\n",
            r"slurm.conf:2: .*no such file\n  Put a copy .*p.conf\.",
        ),
        ("Include %c.conf\nClusterName=x\n", "slurm.conf:1: .*no ClusterName stands above"),
        ("NodeName=n0\nInclude /dev/zero\n", "no such file"),
    ],
)
def test_includes_that_cannot_be_followed(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        read_machine(conf(tmp_path, slurm_conf=text))


def test_includes_that_branch_without_end(tmp_path: Path) -> None:
    for depth in range(30):
        (tmp_path / f"c{depth}.conf").write_text(f"Include c{depth + 1}.conf\n" * 10)
    (tmp_path / "c30.conf").write_text("NodeName=n0\n")
    with pytest.raises(BridgeError, match="includes files without end"):
        read_machine(conf(tmp_path, slurm_conf="Include c0.conf\n"))


def test_sets_of_nodes_have_named_ones_and_those_with_a_feature(tmp_path: Path) -> None:
    text = "NodeName=a[1-2] Features=big\nNodeName=b[1-3]\nNodeSet=s Nodes=b1 Feature=big\n"
    text += "PartitionName=p Nodes=s,b2\n"
    assert read_machine(conf(tmp_path, slurm_conf=text)).capacity("p")["nodes"] == 4


def test_a_capacity_beyond_64_bits(tmp_path: Path) -> None:
    machine = read_machine(conf(tmp_path, slurm_conf="NodeName=n[1-100000] RealMemory=999999999\n"))
    with pytest.raises(BridgeError, match="main_memory does not fit 64 bits"):
        machine.capacity()


def test_what_no_scheduler_looks_at_is_counted(tmp_path: Path) -> None:
    text = (
        "ClusterName=x\nPriorityType=priority/multifactor\nPreemptType=preempt/none\n"
        "Licenses=matlab:5,comsol:2\n"
        "NodeName=n[1-4] CPUs=4 RealMemory=1000 Feature=knl\n"
        "NodeName=g1 CPUs=4 Gres=gpu:2 State=DRAIN Weight=9\n"
        "DownNodes=n[3-4] State=DOWN\nPartitionName=a Nodes=n[1-4] QOS=fast\n"
        "PartitionName=b Nodes=g1 AllowQos=ALL\n"
    )
    assert read_machine(conf(tmp_path, slurm_conf=text)).ignored == {
        "nodes down, drained or failing: taken as in service": 3,
        "nodes with gpus, main_memory of their own: taken as one pool": 5,
        "nodes with features": 4,
        "nodes with different weights": 5,
        "partitions: taken as one pool of nodes": 2,
        "partitions with QOS": 1,
        "settings of the scheduler: PriorityType": 1,
        "licences": 2,
    }


def test_states_of_sinfo_and_scontrol(tmp_path: Path) -> None:
    down = "nodes down, drained or failing: taken as in service"
    rows = "n1 4 idle\nn2 4 down*\nn3 4 drng\nn4 4 idle~\n"
    assert read_machine(conf(tmp_path, slurm_conf=f"NODELIST CPUS STATE\n{rows}")).ignored == {down: 2}
    text = "NodeName=n1 CPUTot=4 State=IDLE+POWERED_DOWN\n\nNodeName=n2 CPUTot=4\n   State=IDLE+DRAIN\n"
    assert read_machine(conf(tmp_path, slurm_conf=text)).ignored == {down: 1}
