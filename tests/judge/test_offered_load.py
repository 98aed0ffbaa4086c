"""`bridge workload info --cluster`: the load of cores and GPUs by partition, and what is then looked at."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import run_bridge, run_ok

CLUSTER = """
[[nodes]]
name = "a"
count = 4
cores = 8

[[nodes]]
name = "g"
count = 1
cores = 16
gpus = { x = 2 }

[[partitions]]
name = "whole"
nodes = ["a"]
default = true

[[partitions]]
name = "shared"
nodes = ["g"]
exclusive = false
"""
#: The last job comes 1,000 s after the first; job 3 names no partition, job 2 two tasks of 3 cores.
LOG = """# capacity: nodes=5
job_id,submit,run,req_procs,req_time,partition_name,nodes,tasks,cores_per_task,gpus_per_task,partition
1,0,100,2,200,whole,2,-1,-1,-1,1
2,10,500,2,900,shared,1,2,3,1,2
3,1000,50,1,60,,1,-1,-1,-1,-1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(CLUSTER)
    (tmp_path / "log.csv").write_text(LOG)


def info(*words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run_ok("workload", "info", "log.csv", "--json", *words))
    return document


def test_the_load_of_each_partition() -> None:
    document = info("--cluster", "site.toml")
    whole, shared = 8 * (2 * 100 + 1 * 50), 6 * 500  # core-seconds: whole nodes; two tasks of 3 cores
    common = {"jobs": 3, "nodes": 5, "cores": 48, "gpus": 2}
    everywhere = {"load": (whole + shared) / 48_000, "gpu_load": 2 * 500 / 2000}
    assert document["cluster"]["loads"] == [
        {"partition": "", **common, **everywhere},
        {"partition": "whole", "jobs": 2, "nodes": 4, "cores": 32, "gpus": 0}
        | {"load": whole / 32_000, "gpu_load": None},
        {"partition": "shared", "jobs": 1, "nodes": 1, "cores": 16, "gpus": 2}
        | {"load": shared / 16_000, "gpu_load": 0.5},
    ]
    assert document["cluster"]["notes"] == {
        "name no partition of the cluster: the default partition taken": 1
    }
    assert (document["capacity"], document["load"]) == (
        {"nodes": 5, "cores": 48, "gpus": 2},
        everywhere["load"],
    )
    assert (document["loads"], document["selection"]["ignored"]) == ({"gpus": 0.5}, [])


def test_what_only_a_cluster_looks_at() -> None:
    plain = run_ok("workload", "info", "log.csv")
    assert "what schedulers use only with --cluster FILE" in plain
    assert "jobs of 2 partitions" in plain
    assert "what no scheduler uses" not in plain
    on_site = run_ok("workload", "info", "log.csv", "--cluster", "site.toml")
    assert "look at" not in on_site
    assert "jobs that name no partition of the cluster: the default partition taken: 1" in on_site
    assert "what no scheduler uses" in run_ok("workload", "info", "bundled-128")  # numbers of queues


def test_what_contradicts_a_cluster() -> None:
    run = run_bridge("workload", "info", "log.csv", "--cluster", "site.toml", "--nodes", "3")
    assert run.status == 2
    assert "the cluster has its own nodes" in run.err
    Path("log.csv").write_text(LOG.replace("whole,2,", "whole,5,"))
    run = run_bridge("workload", "info", "log.csv", "--cluster", "site.toml")
    assert run.status == 1
    assert "records" in run.out
    assert "job 1: can never run: it asks for 5 nodes" in run.err
