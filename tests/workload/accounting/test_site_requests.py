"""What sacct's lines say jobs ask of a cluster."""

from pathlib import Path

import pandas as pd
import pytest
from cli_commands import run_bridge, run_ok
from hypothesis import given
from hypothesis import strategies as st

from bridge.cluster import Cluster, NodeGroup
from bridge.cluster.node_table import build_node_table
from bridge.cluster.source import read_cluster
from bridge.workload.accounting.lives import JobLife
from bridge.workload.accounting.site_requests import nodes_of, shared_nodes
from bridge.workload.columns import read_csv
from bridge.workload.requests import NEVER, read_requests
from bridge.workload.table import Workload

HEADS = [
    "JobID",
    "JobIDRaw",
    "User",
    "Account",
    "Partition",
    "State",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "TimelimitRaw",
    "NNodes",
    "ReqCPUS",
    "ReqTRES",
    "AllocTRES",
    "QOS",
    "NodeList",
    "Constraints",
    "Reservation",
    "SubmitLine",
    "JobName",
]
USUAL = {
    "User": "alice",
    "Account": "physics",
    "Partition": "batch",
    "State": "COMPLETED",
    "QOS": "normal",
    "Submit": "1000",
    "Eligible": "1000",
    "Start": "1100",
    "End": "1200",
    "TimelimitRaw": "10",
    "NNodes": "1",
    "ReqCPUS": "4",
    "ReqTRES": "cpu=4,mem=8G,node=1",
    "AllocTRES": "cpu=4,mem=8G,node=1",
    "NodeList": "n0",
    "JobName": "x",
}
#: The command that imports a listing of a site.
IMPORT = ("workload", "import", "sacct", "--cluster", "teaching-site")


def imported(tmp_path: Path, *rows: dict[str, str], cluster: str = "teaching-site") -> Workload:
    """Return the log of rows that differ from `USUAL` as they say; job ids count from 1."""
    lines = ["|".join(HEADS)]
    for n, row in enumerate(rows, start=1):
        whole = USUAL | {"JobID": str(n), "JobIDRaw": str(n)} | row
        lines.append("|".join(whole.get(head, "") for head in HEADS))
    (tmp_path / "sacct.txt").write_text("".join(f"{line}\n" for line in lines))
    out = tmp_path / "log.csv"
    run_ok(
        *("workload", "import", "sacct", tmp_path / "sacct.txt", "--cluster", cluster),
        *("--out", out, "--force"),
    )
    return read_csv(out)


def column(log: Workload, name: str) -> list[object]:
    return list(log.jobs[name].tolist())


def test_amounts_of_a_node(tmp_path: Path) -> None:
    log = imported(
        tmp_path,
        {"NNodes": "2", "ReqTRES": "cpu=6,mem=10G,node=2,gres/gpu=4", "AllocTRES": "cpu=128,mem=1T,node=2"},
        {"ReqTRES": "", "ReqCPUS": "", "AllocTRES": "cpu=4,node=1"},
        {"ReqTRES": "cpu=4,node=1,gres/gpu:a100=1", "SubmitLine": "sbatch -N 1 --exclusive x"},
        {"SubmitLine": "sbatch -N 2-4 x", "ReqTRES": "cpu=9,node=2", "AllocTRES": "cpu=9,node=3"},
    )
    requests = read_requests(log)
    assert requests.nodes.tolist() == [2, 1, 1, 3]
    assert requests.cores.tolist() == [3, 4, 4, 3]
    assert requests.memory.tolist() == [5120, -1, 8192, -1]
    assert requests.gpus.tolist() == [2000, 0, 1000, 0]
    assert [requests.gpu_type.of(n) for n in range(4)] == ["", "", "a100", ""]
    assert requests.exclusive.tolist() == [-1, -1, 1, -1]
    assert log.capacity == {"nodes": 21}


def test_tasks_where_the_line_states_no_nodes(tmp_path: Path) -> None:
    log = imported(
        tmp_path,
        {"SubmitLine": "sbatch -n 8 -c 2 x", "ReqTRES": "cpu=16,mem=16G,node=1"},
        {"SubmitLine": "sbatch -n 8 x", "ReqTRES": "cpu=16,node=1", "AllocTRES": "cpu=16,node=2"},
        {"SubmitLine": "sbatch -n 8 -N 2 x", "ReqTRES": "cpu=8,node=2"},
        {"SubmitLine": "sbatch -n 8 --ntasks-per-node=4 x", "NNodes": "2", "ReqTRES": "cpu=8,node=2"},
        {"SubmitLine": "sbatch -n 2 --gpus=2 x", "ReqTRES": "cpu=2,node=1,gres/gpu=2"},
    )
    requests = read_requests(log)
    assert requests.tasks.tolist() == [8, 8, 0, 0, 0]
    assert requests.nodes.tolist() == [0, 0, 2, 1, 1]
    assert requests.cores.tolist() == [2, 2, 4, 8, 2]
    assert requests.memory.tolist()[0] == 2048


def test_texts(tmp_path: Path) -> None:
    log = imported(
        tmp_path,
        {"Constraints": "cpu", "Reservation": "r1", "SubmitLine": "sbatch -L solver:2 -w n[0-1] -x fat0 x"},
        {"SubmitLine": "sbatch -C bigmem x"},
    )
    requests = read_requests(log)
    assert [requests.constraints.of(n) for n in range(2)] == ["cpu", "bigmem"]
    assert requests.reservation.of(0) == "r1"
    assert requests.licenses.of(0) == "solver:2"
    assert (requests.nodelist.of(0), requests.exclude.of(0)) == ("n[0-1]", "fat0")
    assert (requests.partition.of(0), requests.qos.of(0)) == ("batch", "normal")
    assert (requests.account.of(0), requests.user.of(0)) == ("physics", "alice")


def test_jobs_are_submitted_when_they_were(tmp_path: Path) -> None:
    log = imported(tmp_path, {}, {"Submit": "1010", "Eligible": "1050"})
    assert column(log, "submit") == [0, 10]
    assert column(log, "wait") == [100, 90]
    assert column(log, "held") == [0, 40]
    assert log.header["UnixStartTime"] == "1000"


def test_eligibility_is_a_hold_where_nothing_explains_it(tmp_path: Path) -> None:
    late = {"Eligible": "1050"}
    log = imported(
        tmp_path,
        {},
        late,
        late | {"SubmitLine": "sbatch --begin=now+50 x"},
        late | {"SubmitLine": "sbatch -d afterany:1 x"},
        late | {"SubmitLine": "sbatch -d afterany:99 x"},
        late | {"SubmitLine": "sbatch -H x"},
        late | {"SubmitLine": "sbatch -d singleton x"},
        late | {"SubmitLine": "sbatch --begin=teatime x"},
        {"SubmitLine": "sbatch -H x", "State": "CANCELLED", "Start": "Unknown", "NodeList": "None assigned"},
        {"Eligible": "1500", "SubmitLine": "sbatch --begin=now+50 x", "Start": "1600", "End": "1700"},
    )
    requests = read_requests(log)
    held = [-1, 50, -1, -1, 50, 50, -1, 50, NEVER // 1_000_000, 500]
    assert [value if value == -1 else value // 1_000_000 for value in requests.hold_until.tolist()] == held
    assert requests.begin.tolist() == [-1, -1, 50_000_000, *[-1] * 6, 50_000_000]
    assert [requests.dependency.of(n) for n in (3, 4, 6)] == ["afterany:1", "", "singleton"]


def test_arrays(tmp_path: Path) -> None:
    task = {"SubmitLine": "sbatch -a 1-3%2 x"}
    log = imported(
        tmp_path,
        task | {"JobID": "30_1", "JobIDRaw": "31"},
        task | {"JobID": "30_2", "JobIDRaw": "32"},
        task | {"JobID": "30_3", "JobIDRaw": "30"},
        {"JobID": "40", "JobIDRaw": "40", "SubmitLine": "sbatch -d afterok:30,after:30_2+5 x"},
    )
    assert dict(zip(column(log, "slurm_id"), column(log, "job_id"), strict=True)) == {
        "30_1": 30,
        "30_2": 31,
        "30_3": 32,
        "40": 40,
    }
    requests = read_requests(log)
    assert requests.array_id.tolist() == [30, 30, 30, -1]
    assert requests.array_limit.tolist() == [2, 2, 2, 0]
    assert requests.dependency.of(3) == "afterok:30_*,after:31+5"


def test_unknown_nodes_and_partitions_are_counted_and_said(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    log = imported(tmp_path, {}, {"Partition": "old", "NodeList": "z[1-2]", "NNodes": "2"})
    assert "the cluster does not have 1 partitions of the list: old" in log.header["Note"]
    assert "the cluster does not have 2 nodes of the list: z1, z2" in log.header["Note"]


def test_shared_nodes_are_told_by_their_names(tmp_path: Path) -> None:
    text = ["|".join(HEADS)]
    rows = [{"NodeList": "n0"}, {"NodeList": "n[0-1]", "NNodes": "2"}, {"NodeList": "n2"}]
    for n, row in enumerate(rows, start=1):
        whole = USUAL | {"JobID": str(n), "JobIDRaw": str(n)} | row
        text.append("|".join(whole.get(head, "") for head in HEADS))
    (tmp_path / "s").write_text("\n".join(text))
    told = run_ok(*IMPORT, tmp_path / "s", "--out", tmp_path / "l.csv")
    words = " ".join(told.replace("│", " ").split())
    assert "noted 2 shared a node with another job 1, 2 (NodeList)" in words
    assert "shared a node in a partition" in words


LIVES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(0, 4), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)


@given(LIVES)
def test_shared_nodes_are_those_of_a_pairwise_search(rows: list[tuple[int, int, int, int]]) -> None:
    lives = [
        JobLife(
            label=str(n),
            number=n,
            state="COMPLETED",
            submit=0,
            eligible=0,
            start=1e9 + begin,
            end=1e9 + begin + length,
            elapsed=length,
            suspended=0,
            limit=10,
            requested={},
            allocated={},
            words={"node_list": f"n[{first}-{first + more}]"},
        )
        for n, (begin, length, first, more) in enumerate(rows)
    ]
    table = build_node_table(Cluster(nodes=(NodeGroup(count=4),)))  # some nodes are not the cluster's

    def meet(a: JobLife, b: JobLife) -> bool:
        assert a.start is not None and a.end is not None and b.start is not None and b.end is not None
        together = min(a.end, b.end) > max(a.start, b.start)
        return together and bool(set(nodes_of(a)) & set(nodes_of(b)))

    expected = [any(meet(a, b) for b in lives if b is not a) for a in lives]
    assert shared_nodes(lives, table).tolist() == expected


def test_what_does_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("x")
    both = run_bridge(*(*IMPORT, tmp_path / "s", "--machine", tmp_path / "s", "--out", tmp_path / "l.csv"))
    assert both.status == 2
    assert "leave --machine out" in both.err
    swf = run_bridge(*IMPORT, tmp_path / "s", "--out", tmp_path / "l.swf")
    assert swf.status == 1
    assert "SWF has no room for what jobs ask of a cluster" in swf.err


def test_without_a_cluster_nothing_is_added(tmp_path: Path) -> None:
    text = [
        "|".join(HEADS),
        "|".join((USUAL | {"JobID": "1", "JobIDRaw": "1", "Eligible": "1050"}).get(h, "") for h in HEADS),
    ]
    (tmp_path / "s").write_text("\n".join(text))
    run_ok("workload", "import", "sacct", tmp_path / "s", "--out", tmp_path / "l.csv")
    jobs: pd.DataFrame = read_csv(tmp_path / "l.csv").jobs
    assert jobs["submit"].tolist() == [0]
    assert jobs["wait"].tolist() == [50]
    assert not {"nodes", "tasks", "begin", "hold_until", "array_id", "exclusive"} & {*jobs.columns}


@pytest.mark.parametrize("name", ["teaching-site", "cirrus-like"])
def test_partitions_give_default_times(tmp_path: Path, name: str) -> None:
    partition = read_cluster(name).partitions[0]
    log = imported(
        tmp_path,
        {"TimelimitRaw": "", "Partition": partition.name},
        {"TimelimitRaw": "UNLIMITED", "Partition": partition.name},
        cluster=name,
    )
    assert column(log, "req_time") == [partition.default_time, partition.max_time]
