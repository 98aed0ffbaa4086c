"""The setup's cluster: what is selected with it, what records say of it, and where it is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.source import digest_of_cluster
from bridge.experiment.spec import parse, read_document
from bridge.study.cells import non_default_fields
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.scheduler_config import SchedulerConfig


@pytest.fixture
def site(tmp_path: Path) -> str:
    (tmp_path / "site.toml").write_text('[[nodes]]\ncount = 128\n[[partitions]]\nname = "p"\n')
    return str(tmp_path / "site.toml")


def test_jobs_have_the_cluster_and_their_requests(site: str) -> None:
    jobs = SchedulerConfig(cluster=site, first=50).select(read_log("bundled-128"))
    plain = SchedulerConfig(first=50).select(read_log("bundled-128"))
    assert jobs.id.tolist() == plain.id.tolist()
    assert jobs.requests is not None
    assert jobs.requests.nodes.tolist() == plain.demand[:, 0].tolist()
    assert jobs.cluster is not None
    assert jobs.cluster.partitions[0].name == "p"
    assert (plain.requests, plain.cluster) == (None, None)


def test_records_hold_the_digest(site: str) -> None:
    setup = SchedulerConfig(cluster=site)
    assert setup.as_dict()["cluster"] == site
    assert setup.as_dict()["cluster_sha256"] == digest_of_cluster(site)
    assert not {"cluster", "cluster_sha256"} & {*SchedulerConfig().as_dict()}
    assert non_default_fields(setup) == {"cluster": digest_of_cluster(site)}
    assert non_default_fields(SchedulerConfig(order="sjf")) == {"order": "sjf"}
    assert setup.selection != SchedulerConfig().selection


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"protocol": "cqsim"}, "has one pool of nodes"),
        ({"protocol": "schedgym"}, "has one pool of nodes"),
        ({"nodes": 4}, "the cluster says how many nodes there are"),
        ({"cluster": "nowhere"}, "is neither a file nor the name of a cluster"),
    ],
)
def test_what_does_not_go_together(site: str, changes: dict[str, object], what: str) -> None:
    setup = replace(SchedulerConfig(cluster=site), **changes)  # type: ignore[arg-type]
    with pytest.raises(BridgeError, match=what):
        setup.select(read_log("bundled-128"))


def test_an_experiment_finds_its_cluster_beside_its_file(site: str, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text('workload = "bundled-128"\n[setup]\ncluster = "site.toml"\n')
    experiment = parse(read_document(tmp_path / "e.toml"), "e.toml")
    assert experiment.setup.cluster == site
    assert f"--cluster {site}" in experiment.command()


def test_a_checkpoint_holds_the_digest(site: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from bridge.learn.checkpoint import read_agent, write_agent
    from bridge.learn.checkpoint_files import Provenance
    from bridge.learn.registry import find_recipe
    from bridge.learn.training import cluster_digest_of

    plain = find_recipe("rlbackfilling", "")
    recipe = replace(plain, setup=replace(plain.setup, protocol="standard", preset="", cluster=site))
    digest = cluster_digest_of(recipe)
    assert digest == digest_of_cluster(site)
    assert cluster_digest_of(plain) == ""
    origin = Provenance("bundled-128", "bundled-128", 1, "", 1)
    for folder, one, own in ((tmp_path / "with", recipe, digest), (tmp_path / "without", plain, "")):
        folder.mkdir()
        write_agent(folder, one, replace(origin, cluster_sha256=own))
        again, where = read_agent(folder)
        assert (again, where.cluster_sha256) == (one, own)
        document = json.loads((folder / "agent.json").read_text())
        assert ("cluster_sha256" in document) == bool(own)
        assert ("cluster" in document["recipe"]["setup"]) == bool(own)
