"""`bridge cluster`, and `--cluster` in the other commands."""

import json
import tomllib
from pathlib import Path

import pytest
from cli_commands import LINES, TINY, run_bridge, run_ok

import bridge
from bridge.cluster.clusterfile import read_cluster_toml
from bridge.cluster.source import digest_of_cluster, read_cluster
from bridge.workload.columns import read_csv

CONF = """\
ClusterName=mini
NodeName=n[0-3] CPUs=8 RealMemory=1000
NodeName=old State=FUTURE CPUs=4
PartitionName=batch Nodes=n[0-3] Default=YES QOS=missing
"""
QOS = "Name|Priority|MaxJobsPU\nmissing|5|2\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "qos.txt").write_text(QOS)
    return tmp_path / "slurm.conf"


def test_import_of_slurm_conf(conf: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.toml"
    told = run_ok("cluster", "import", conf, "--sacctmgr", tmp_path / "qos.txt", "--out", out)
    assert f"wrote {out}: 4 nodes, 1 partition, 1 QOS, 0 accounts, 0 users" in told
    assert told.count("nodes of State=FUTURE") == 1
    assert "note: limits of accounting count here" in told
    cluster = read_cluster_toml(out)
    assert [one.max_jobs_per_user for one in cluster.qos] == [2]
    assert out.read_text().startswith("# imported from slurm.conf\n")
    again = run_bridge("cluster", "import", conf, "--out", out)
    assert again.status == 1
    assert "the file already exists" in again.err


def test_import_knows_forms_by_their_contents(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("a\n     state = free\n     np = 2\n")
    run_ok("cluster", "import", tmp_path / "nodes", "--out", tmp_path / "pbs.toml")
    assert read_cluster_toml(tmp_path / "pbs.toml").nodes[0].cores == 2
    run_ok("platform", "new", "--cluster", "teaching-site", "-o", tmp_path / "p.xml")
    run_ok("cluster", "import", tmp_path / "p.xml", "--out", tmp_path / "p.toml")
    assert sum(len(one.nodes.split(",")) for one in read_cluster_toml(tmp_path / "p.toml").nodes) > 1
    wrong = run_bridge(
        "cluster", "import", tmp_path / "nodes", "--from", "slurm", "--out", tmp_path / "x.toml"
    )
    assert wrong.status == 1
    assert "names no node and no partition" in wrong.err
    both = run_bridge(
        *("cluster", "import", tmp_path / "nodes", "--sacctmgr", tmp_path / "nodes"),
        *("--out", tmp_path / "x.toml"),
    )
    assert both.status == 2


def test_new_writes_a_site_that_is_sound(tmp_path: Path) -> None:
    told = run_ok("cluster", "new", tmp_path / "c.toml")
    assert "bridge cluster check" in told
    assert run_ok("cluster", "check", tmp_path / "c.toml") == "0 errors, 0 unknown, 0 unused\n"
    assert read_cluster_toml(tmp_path / "c.toml") == read_cluster("teaching-site")


def test_show(tmp_path: Path) -> None:
    told = run_ok("cluster", "show", "teaching-site", "--picture", tmp_path / "site.svg")
    for word in ("21 nodes", "gpu[0-3]", "batch*", "4 a100", "max_jobs_per_user 2", "solver"):
        assert word in told
    assert "gpu ×4" in (tmp_path / "site.svg").read_text()
    document = json.loads(run_ok("cluster", "show", "teaching-site", "--json"))
    assert document["sha256"] == digest_of_cluster("teaching-site")
    assert document["nodes"][0] == {
        "count": 16,
        "cores": 32,
        "memory": 131_072,
        "features": ["cpu"],
    }


def test_check_names_file_and_line(conf: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('[[nodes]]\ncount = 2\n[[partitions]]\nname = "p"\nnodes = "x[0-1]"\nqos = "y"\n')
    told = run_bridge("cluster", "check", bad, conf)
    assert told.status == 1
    assert f"{bad}:5: error: there is no node 'x0' and 1 more" in told.out
    assert f"{bad}:6: unknown: there is no QOS 'y'" in told.out
    assert f"{conf}:4: unknown: there is no QOS 'missing'" in told.out
    assert told.out.endswith("1 error, 2 unknown, 1 unused\n")
    assert "not honoured: 1 nodes of State=FUTURE" in told.err
    assert run_ok("cluster", "check", conf, "--json").startswith("[")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.swf").write_text(TINY)
    return tmp_path / "log.swf"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["replay", "LOG", "--nodes", "4"], "the cluster says how many nodes there are"),
        (["replay", "LOG", "--protocol", "cqsim"], "protocol 'cqsim': has one pool of nodes"),
        (["forecast", "x.json"], "a run has its own cluster"),
        (["whatif", "x.json", "--drain", "1"], "a run has its own cluster"),
        (["decide", "sjf+easy"], "needs the log whose jobs ask for its nodes"),
        (
            ["run", "--workload", "LOG", "--platform", "sp2-128"],
            "has no host of 21 of the cluster's 21 nodes",
        ),
        (
            ["run", "--workload", "LOG", "--platform", "cluster-512", "--power", "per-job"],
            "power states do not know the nodes of a cluster yet",
        ),
    ],
)
def test_where_a_cluster_cannot_be_used_it_is_refused(log: Path, words: list[str], says: str) -> None:
    told = run_bridge(*(str(log) if word == "LOG" else word for word in words), "--cluster", "teaching-site")
    assert told.status == 1
    assert says in told.err


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (["decide", "sjf", "--slurm"], "--slurm"),
        (["evaluate", "--scheduler", "pool", "--policy", "sjf"], "the time-stepped pool"),
        (["train", "rlschert"], "the time-stepped pool"),
    ],
)
def test_who_has_no_cluster_says_so(log: Path, words: list[str], who: str) -> None:
    told = run_bridge(*(str(log) if word == "LOG" else word for word in words), "--cluster", "teaching-site")
    assert told.status == 2
    assert f"{who} has no --cluster" in told.err


def test_a_cluster_that_contradicts_itself_is_refused_before_anything(log: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[[nodes]]\ncount = 4\n[[partitions]]\nname = "p"\nnodes = "x"\n')
    told = run_bridge("replay", log, "--cluster", tmp_path / "c.toml", "--out", tmp_path / "run")
    assert told.status == 1
    assert f"{tmp_path / 'c.toml'}:5: there is no node 'x'" in told.err
    assert not (tmp_path / "run").exists()


def test_predict_takes_requested_times_from_partitions(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(TINY.replace("-1 4 60 -1", "-1 4 -1 -1"))
    (tmp_path / "c.toml").write_text('[[nodes]]\ncount = 4\n[[partitions]]\nname = "p"\nmax_time = 77\n')
    out = tmp_path / "p.csv"
    run_ok(
        *("predict", tmp_path / "log.swf", "--model", "history", "--out", out),
        *("--cluster", tmp_path / "c.toml"),
    )
    assert read_csv(out).jobs["req_time"].tolist() == [100, 77, 80, 20, 10]
    result = bridge.predict(tmp_path / "log.swf", "history", cluster=tmp_path / "c.toml")
    assert result.workload.jobs["req_time"].tolist() == [100, 77, 80, 20, 10]


def test_a_run_without_a_cluster_says_nothing_of_one(log: Path, tmp_path: Path) -> None:
    run_ok("replay", log, "--out", tmp_path / "run")
    config = tomllib.loads((tmp_path / "run" / "run.toml").read_text())["config"]
    assert not {"cluster", "cluster_sha256"} & {*config}
    assert "--cluster" not in config["command"]


def test_what_a_cluster_decides_for_jobs_is_a_warning(log: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[[nodes]]\ncount = 4\n[[partitions]]\nname = "batch"\n')
    text = "jobs name no partition of the cluster: the default partition taken"
    words = ("--cluster", tmp_path / "c.toml")
    assert f"warning: {len(LINES)} {text}" in run_bridge("replay", log, *words).err
    judged = json.loads(
        run_ok("evaluate", log, "--policy", "fcfs+easy", *words, "--length", 1, "--sequences", 1, "--json")
    )
    assert [warning for warning in judged["warnings"] if text in warning]
    assert "warning" not in run_bridge("replay", log).err
