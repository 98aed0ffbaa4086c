"""SWF logs of 21 fields with their site: what jobs ask of a cluster."""

from pathlib import Path

import pytest
from cli_commands import fine

from bridge.base.errors import BridgeError
from bridge.cluster.clusterfile import read_cluster_toml
from bridge.workload.formats import read
from bridge.workload.swf_requests import read_with_site
from tests.workload.swf_sites import FILES, ROWS, write_site


def test_properties_become_requests(tmp_path: Path) -> None:
    workload = read_with_site(write_site(tmp_path))
    jobs = workload.jobs
    assert jobs["nodes"].tolist() == [2, 1, -1]
    assert jobs["cores_per_node"].tolist() == [8, 4, -1]
    assert jobs["memory_per_node"].tolist() == [2048, 1024, -1]
    assert jobs["gpus_per_node"].tolist() == [4, 0, -1]
    assert jobs["tasks"].tolist() == [-1, -1, 3]
    assert jobs["cores_per_task"].tolist() == [-1, -1, 1]
    assert jobs["exclusive"].tolist() == [1, 0, 0]
    assert jobs["constraints"].tolist() == ["dedicated", "normal", ""]
    assert jobs["partition_name"].tolist() == ["urgent", "usual", "usual"]
    assert jobs["user_name"].tolist() == ["eve", "bob", "bob"]
    assert jobs["account"].tolist() == ["phys", "bio", "bio"]
    assert jobs["soft_walltime"].tolist() == [90, 40, -1]
    assert jobs["req_memory"].tolist() == [-1, -1, 1048576]
    why = "does not tell its nodes: each processor is a task, and its memory is not looked at"
    assert workload.tally[why].examples == (3,)


def test_nodes_of_one_processor_are_counted_by_processors(tmp_path: Path) -> None:
    machines = FILES["machines"].replace("\t8\t1", "\t1\t1")
    rows = ((1, 0, 100, 3, 1024, 0, 0, 0, 7, 90, "all"),)
    workload = read_with_site(write_site(tmp_path, rows, machines=machines))
    row = workload.jobs.iloc[0]
    assert (row["nodes"], row["cores_per_node"], row["gpus_per_node"], row["exclusive"]) == (3, 1, 3, -1)
    assert workload.tally["GPUs do not divide by its nodes: rounded up on each"].count == 1


def test_strange_words_and_numbers_are_counted(tmp_path: Path) -> None:
    rows = (*ROWS[:1], (2, 5, 50, 5, 1024, 7, 1, 1, 0, 40, "blue:1x4:normal"))
    tally = read_with_site(write_site(tmp_path, rows)).tally
    assert tally["properties that no machine has: blue"].count == 1
    assert tally["has a user that is not in .users"].examples == (2,)
    assert tally["nodes x cores is not its processors: the property counts"].examples == (2,)


def test_a_log_of_18_fields_is_refused(tmp_path: Path) -> None:
    path = write_site(tmp_path)
    path.write_text("1 0 0 100 16 100 -1 16 600 -1 1 0 0 -1 0 -1 -1 -1\n")
    with pytest.raises(BridgeError, match="the layout has 21 fields"):
        read_with_site(path)


def test_a_site_replays_end_to_end(tmp_path: Path) -> None:
    path = write_site(tmp_path)
    log, site = tmp_path / "site.parquet", tmp_path / "site.toml"
    assert "requests are of the site" in fine("workload", "import", "swf", path, "--out", log)
    fine("cluster", "import", path, "--out", site)
    assert read_cluster_toml(site).nodes[0].count == 2
    assert read(log).digest() == read_with_site(path).digest()
    assert "0 errors, 0 unknown" in fine("cluster", "check", site)
    out = fine("replay", log, "--cluster", site, "--estimator", "soft", "--json")
    assert '"jobs.started": 3' in out
