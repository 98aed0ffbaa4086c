"""Agents of all kinds on one partition of whole nodes decide as on the pool; they learn on a site, too."""

from pathlib import Path

import numpy as np
import pytest

from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.env.episode_starts import constants_of
from bridge.learn.agent import action_function_of, replay, schedules_by
from bridge.learn.checkpoint import LogAgent, Provenance
from bridge.learn.network import actor_of
from bridge.learn.registry import recipe_of
from bridge.workload.catalogue import read_log
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import select

torch = pytest.importorskip("torch")

ONE_PARTITION = Cluster(
    nodes=(NodeGroup(name="n", count=128, cores=1),), partitions=(Partition(name="all", nodes=("ALL",)),)
)
AGENTS = [
    *(("rlbackfilling", "recommended"), ("rlscheduler", "recommended"), ("rlscheduler", "generalist")),
    *(("schedinspector", "recommended"), ("dras", "datastar"), ("sem", "resources")),
    *(("mrsch", "default"), ("mrsch", "head")),
]


@pytest.mark.parametrize(("name", "setting"), AGENTS)
def test_one_partition_is_the_pool(name: str, setting: str) -> None:
    recipe = recipe_of(name, setting).for_resources(1)
    rule = LOAD_RULES[DEFAULT_RULE["standard"]]
    workload = read_log("bundled-128")
    pool = select(workload, rule, first=90)
    site = select(workload, rule, first=90, cluster=ONE_PARTITION)
    torch.manual_seed(5)
    origin = Provenance("bundled-128", pool.name, len(pool), "", 5, constants_of(pool))
    agent = LogAgent(Path("untrained"), recipe, origin, 0, actor_of(recipe), "greedy")
    on_pool, on_site = (recipe.setup.build_scenario(jobs, recipe.policy()) for jobs in (pool, site))
    expected, schedule = replay(agent, on_pool), replay(agent, on_site)
    for column in ("start", "end", "how", "past", "serial"):
        assert np.array_equal(getattr(schedule, column), getattr(expected, column)), column
    assert schedule.allocation is not None
    starts = np.array([0, 30])
    sequences = [
        schedules_by(agent.encoder(), action_function_of(agent), scenario, starts, 40)
        for scenario in (on_pool, on_site)
    ]
    for one, other in zip(*sequences, strict=True):
        assert np.array_equal(one.start, other.start)
