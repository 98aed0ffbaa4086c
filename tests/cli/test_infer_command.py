"""`bridge cluster infer`: what a log says of its site, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_commands import run_bridge, run_ok

from bridge.cluster.check import check_cluster
from bridge.cluster.clusterfile import read_cluster_toml
from tests.judge.planted_sites import draw


def rows_of(half: int, pairs: bool) -> pd.DataFrame:
    """Return jobs of 4 nodes in partitions a and b: half of them one after another, then alone or in pairs.

    All of the first half are submitted at once. In the second one nobody waits.
    """
    rows = []
    for code in (1, 2):
        rows += [(k, 100 * k - k, 100, code) for k in range(half)]
        for k in range(half):
            submit = 100 * half + 200 * (k // 2 if pairs else k)
            rows.append((submit, 0, 100, code))
    table = pd.DataFrame(rows, columns=["submit", "wait", "run", "partition"])
    table = table.sort_values("submit", kind="stable").reset_index(drop=True)
    return table.assign(job_id=np.arange(1, len(table) + 1), procs=4, req_time=100, user=1, status=1)


def write(table: pd.DataFrame, folder: Path) -> Path:
    log = folder / "log.csv"
    log.write_text("# capacity: nodes=16\n" + table.to_csv(index=False))
    return log


@pytest.mark.parametrize("pairs", [False, True])
def test_a_step_that_makes_the_other_half_worse_is_refused(tmp_path: Path, pairs: bool) -> None:
    """The first half says 4 nodes of each partition; in the second one, with pairs, 8 of one are in use."""
    log, out = write(rows_of(40, pairs), tmp_path), tmp_path / "c.toml"
    how = ("--window", 20, "--windows", 2, "--json")
    document = json.loads(run_ok("cluster", "infer", log, "--out", out, *how))
    sizes = {one["what"]: one["value"] for one in document["estimates"]}
    assert (sizes["size of partition 1"], sizes["size of partition 2"]) == (4, 4)
    (step,) = document["steps"]
    assert (step["name"], step["kept"]) == ("pools", not pairs)
    assert (step["after"] > step["before"]) == pairs
    cluster = read_cluster_toml(out)
    assert [one.name for one in cluster.partitions] == ["1", "2"]
    assert (cluster.partitions[0].nodes == ("ALL",)) == pairs
    assert ("REFUSED, it makes held-back windows worse" in out.read_text()) == pairs


def test_a_planted_site(tmp_path: Path) -> None:
    """The file has the limit and the sizes that were planted, its evidence above it, and is consistent."""
    planted = draw(5, 1000)
    run = planted.run
    table = pd.DataFrame(
        {
            "job_id": np.arange(1, len(run.submit) + 1),
            "submit": run.submit,
            "wait": run.start - run.submit,
            "run": run.end - run.start,
            "procs": run.nodes.astype(np.int64),
            "req_time": run.request,
            "user": run.user,
            "partition_name": [f"p{code}" for code in run.partition.tolist()],
        }
    )
    table.to_csv(tmp_path / "log.csv", index=False)
    out = tmp_path / "c.toml"
    told = run_ok("cluster", "infer", tmp_path / "log.csv", "--out", out, "--windows", 0)
    cluster = read_cluster_toml(out)
    assert [one.max_jobs_per_user for one in cluster.qos] == [planted.site.limit]
    by_name = {group.name: group.count for group in cluster.nodes}
    for one in cluster.partitions:
        if one.nodes != ("ALL",):
            assert sum(by_name[name] or 0 for name in one.nodes) == planted.site.sizes[int(one.name[1:])]
    assert f"seconds between two passes: {planted.site.cycle} (all " in told
    assert "# seconds between two passes" in out.read_text()
    assert not [one for one in check_cluster(cluster) if one.severity == "error"]
    again = run_bridge("cluster", "infer", tmp_path / "log.csv", "--out", out)
    assert again.status == 1
    assert "the file already exists" in again.err


def test_a_log_without_waits_says_nothing(tmp_path: Path) -> None:
    log = write(rows_of(4, pairs=False).assign(wait=-1), tmp_path)
    refused = run_bridge("cluster", "infer", log, "--out", tmp_path / "c.toml")
    assert refused.status == 1
    assert "does not say when its jobs started" in refused.err
    assert not (tmp_path / "c.toml").exists()


def test_nodes_of_partitions_are_those_of_the_lists(tmp_path: Path) -> None:
    """The overlap is exact, the evidence stands in the file, and the file plays the log."""
    table = rows_of(40, pairs=False)
    lists = {1: "n[1-4]", 2: "n[3-6]"}
    log = write(table.assign(ran_on=[lists[code] for code in table["partition"]]), tmp_path)
    out = tmp_path / "c.toml"
    document = json.loads(run_ok("cluster", "infer", log, "--out", out, "--windows", 0, "--json"))
    sizes = {one["what"]: one["value"] for one in document["estimates"]}
    assert (sizes["nodes of partition 1"], sizes["nodes of partition 2"]) == (4, 4)
    assert sizes["nodes that 1 and 2 share"] == 2
    evidence = "nodes of partition 1: 4 (NodeLists of 80 jobs; the last new node is of number 1)"
    assert evidence in out.read_text()
    assert "jobs shared 2 of 6 nodes at one time (NodeList)" in document["notes"]
    cluster = read_cluster_toml(out)
    assert sorted(group.nodes for group in cluster.nodes) == ["n[1-2]", "n[3-4]", "n[5-6]"]
    assert [len(one.nodes) for one in cluster.partitions] == [2, 2]
    played = json.loads(run_ok("replay", log, "--cluster", out, "--policy", "fcfs+easy", "--json"))
    assert played["jobs.started"] == 160


@pytest.mark.parametrize("cores", [8, 4])
def test_shared_nodes_have_cores_and_windows_are_played_with_those_of_the_first_half(
    tmp_path: Path, cores: int
) -> None:
    """In the second half 16 cores of the node are in use. If the first one has said so, both pairs fit."""
    table = rows_of(40, pairs=True).assign(procs=1, cores=4, ran_on="n1", gpus_per_node=1)
    table.loc[: len(table) // 2 - 1, "cores"] = cores
    log, out = write(table, tmp_path), tmp_path / "c.toml"
    how = ("--window", 20, "--windows", 2, "--json")
    document = json.loads(run_ok("cluster", "infer", log, "--out", out, *how))
    (step,) = document["steps"]
    assert (step["name"], step["kept"], step["after"] == 0.0) == ("pools", cores == 8, cores == 8)
    assert any("without what the estimates do not cover: gpus_per_node" in one for one in document["notes"])
    cluster = read_cluster_toml(out)
    if cores == 8:
        assert [(group.nodes, group.cores) for group in cluster.nodes] == [("n1", 16)]
        assert [one.exclusive for one in cluster.partitions] == [False, False]
    else:
        assert [(group.count, group.cores) for group in cluster.nodes] == [(16, 1)]


def test_nodes_that_only_the_second_half_names_are_written_but_not_judged_by(tmp_path: Path) -> None:
    table = rows_of(40, pairs=False)
    lists = {1: "n[1-4]", 2: "n[5-8]"}
    table["ran_on"] = [lists[code] for code in table["partition"]]
    last = table.index[-1]
    table.loc[last, ["procs", "ran_on"]] = [6, "n[3-8]"]
    log, out = write(table, tmp_path), tmp_path / "c.toml"
    how = ("--window", 20, "--windows", 4, "--json")
    document = json.loads(run_ok("cluster", "infer", log, "--out", out, *how))
    assert document["steps"][0]["kept"]
    note = "1 job asks for more than the first half has seen, and gets all of that in windows"
    assert note in document["notes"]
    sizes = {one["what"]: one["value"] for one in document["estimates"]}
    assert sizes[f"nodes of partition {table.loc[last, 'partition']}"] == 6
    assert len(read_cluster_toml(out).nodes) == 3
