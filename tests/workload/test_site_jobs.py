"""Jobs for a site: each fits its partition, and the same arguments give the same jobs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.cluster.source import read_cluster
from bridge.workload.requests import REQUEST_COLUMNS
from bridge.workload.site_jobs import generate_site

SITE = read_cluster("teaching-site")


@settings(max_examples=12)
@given(st.integers(0, 50), st.sampled_from(["teaching-site", "cirrus-like", "thetagpu-like"]))
def test_jobs_fit_their_partitions(seed: int, name: str) -> None:
    site = read_cluster(name)
    jobs = generate_site(site, 80, seed).jobs
    partitions = {one.name: one for one in site.partitions}
    assert set(jobs["partition_name"]) <= set(partitions)
    for job in jobs.itertuples():
        own = partitions[job.partition_name]
        assert 1 <= job.nodes <= (own.max_nodes or 10**9)
        assert 0 <= job.run <= job.req_time <= (own.max_time or 10**9)
        assert (job.cores_per_node == -1) == own.exclusive
        if not own.exclusive:
            assert job.cores_per_node * (job.cores_per_node - 1) >= 0 and job.memory_per_node != 0
    assert {"nodes", "cores_per_node", "partition_name"} <= set(REQUEST_COLUMNS) & set(jobs.columns)


def test_an_exact_draw() -> None:
    jobs = generate_site(SITE, 4, 3).jobs
    shown = jobs[["submit", "run", "nodes", "cores_per_node", "gpus_per_node", "partition_name", "account"]]
    assert shown.to_numpy().tolist() == [
        [0, 27, 2, -1, -1, "batch", "biology"],
        [462, 12070, 1, -1, -1, "batch", "physics"],
        [572, 24, 2, -1, -1, "batch", "physics"],
        [586, 9, 2, -1, -1, "batch", "physics"],
    ]
    assert jobs.equals(generate_site(SITE, 4, 3).jobs)
    assert not jobs.equals(generate_site(SITE, 4, 4).jobs)


def test_the_load_is_that_of_all_cores() -> None:
    site = Cluster(nodes=(NodeGroup(count=8, cores=4),))
    jobs = generate_site(site, 2000, 1, load=0.5).jobs
    work = float((jobs["nodes"] * jobs["run"]).sum())
    assert work / (8 * float(np.ptp(jobs["submit"]))) == pytest.approx(0.5, rel=1e-3)


def test_jobs_need_a_partition_that_takes_them() -> None:
    site = Cluster(nodes=(NodeGroup(count=2),), partitions=(Partition(name="p", state="drain"),))
    with pytest.raises(BridgeError, match="no partition takes jobs"):
        generate_site(site, 10, 0)
    with pytest.raises(BridgeError, match="positive load"):
        generate_site(SITE, 10, 0, load=0.0)
    with pytest.raises(BridgeError, match="jobs"):
        generate_site(SITE, 0, 0)
