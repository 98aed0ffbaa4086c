"""The central test for agents: with delay profiles an agent decides alike in both worlds, start for start."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detailed import delay_jobs, needs_simgrid, starts_on_fake, starts_on_model
from fake_batsim import DelayJob, FakeBatsim
from picking_agents import picker
from test_same_schedule import setup_for
from untrained_agents import untrained

from bridge.base.errors import BridgeError
from bridge.learn.agent import AgentDecider, replay, window_of
from bridge.learn.checkpoint import LogAgent
from bridge.learn.registry import recipe_of
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import Policy
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay as replay_rules
from bridge.worlds.fast.scheduler_config import SchedulerConfig as Replay


def both(
    workload: Workload, name: str, setting: str, first: int, **changes: object
) -> tuple[Scenario, LogAgent]:
    """Return an agent of a policy on the standard protocol, and the first jobs prepared for it."""
    recipe = recipe_of(name, setting)
    setup = Replay(recipe.setup.order, recipe.setup.backfill, first=first)
    recipe = replace(recipe, setup=setup, **changes)  # type: ignore[arg-type]
    jobs = setup.select(workload)
    agent = untrained(recipe, jobs, seed=3)
    return setup.build_scenario(jobs, recipe.policy()), agent


def deciding(fast: Scenario, agent: LogAgent, **more: Any) -> DecisionProcess:
    policy, window = fast.compiled.policy, window_of(agent)
    setup = replace(setup_for(fast), policy=policy, decider=AgentDecider(agent), window=window, **more)
    return DecisionProcess(setup, strict=True)


AGENTS = [
    ("rlbackfilling", "recommended", {}),
    ("rlbackfilling", "recommended", {"deploy": "sample"}),
    ("rlbackfilling", "paper", {}),
    ("rlbackfilling", "recommended", {"guard": "mask"}),
    ("schedinspector", "paper", {}),
    ("schedinspector", "recommended", {}),
    ("rlscheduler", "recommended", {}),
]


def starts_of(fast: Scenario, agent: LogAgent) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    schedule = replay(agent, fast)
    policy = fast.compiled.policy
    rules = compile_policy(Policy(policy.order, policy.backfill), fast.compiled.protocol)
    built_in = replay_rules(replace(fast, compiled=rules))
    assert (schedule.start != built_in.start).any(), "the agent decides nothing"
    return schedule.start


@pytest.mark.parametrize(("name", "setting", "changes"), AGENTS)
def test_a_scripted_peer(bundled: Workload, name: str, setting: str, changes: dict[str, object]) -> None:
    fast, agent = both(bundled, name, setting, 400, **changes)
    assert starts_on_fake(deciding(fast, agent), fast.jobs) == starts_of(fast, agent).tolist()


def test_a_scripted_peer_whose_picks_are_inspected(bundled: Workload, tmp_path: Path) -> None:
    picker(tmp_path, sign=-1.0)  # not what the order would pick
    picks = {"picks": str(tmp_path), "deploy": "sample"}
    fast, agent = both(bundled, "schedinspector", "paper", 400, **picks)
    expected = replay(agent, fast).start
    recipe = replace(agent.recipe, picks="")
    alone = replay(replace(agent, recipe=recipe), recipe.setup.build_scenario(fast.jobs, recipe.policy()))
    assert alone.start.tolist() != expected.tolist()
    assert starts_on_fake(deciding(fast, agent), fast.jobs) == expected.tolist()


#: Agents that see three resources, running jobs and the machine.
OF_THREE = [("mrsch", "default"), ("mrsch", "head"), ("mrsch", "scalar-power"), ("sem", "resources")]
FURTHER = {"burst_buffer": 10**13, "power": 20_000}


def with_resources(jobs: Jobs) -> Jobs:
    """Return the jobs with demands that make each of three resources scarce."""
    rng = np.random.default_rng(11)
    nodes, n = jobs.demand[:, 0], len(jobs)
    bytes_of = np.where(rng.random(n) < 0.5, rng.integers(10**11, 6 * 10**12, n), 0)
    watts = np.minimum(nodes * rng.integers(60, 216, n), FURTHER["power"])
    return replace(
        jobs,
        demand=np.column_stack((nodes, bytes_of, watts)),
        resources=("nodes", *FURTHER),
        capacity=np.array([jobs.capacity[0], *FURTHER.values()]),
    )


def both_of_three(workload: Workload, name: str, setting: str, first: int) -> tuple[Scenario, LogAgent]:
    """As `both`, over three resources."""
    recipe = recipe_of(name, setting).for_resources(3)
    recipe = replace(recipe, setup=replace(recipe.setup, first=first))
    jobs = with_resources(recipe.setup.select(workload))
    return recipe.setup.build_scenario(jobs, recipe.policy()), untrained(recipe, jobs, seed=4)


def further_fields(jobs: Jobs) -> list[DelayJob]:
    """Return the jobs as delay jobs whose further demands are fields of their names."""
    made = delay_jobs(jobs)
    for job, demand in zip(made, jobs.demand.tolist(), strict=True):
        job.more |= dict(zip(FURTHER, demand[1:], strict=True))
    return made


@pytest.mark.parametrize(("name", "setting"), OF_THREE)
def test_a_scripted_peer_with_three_resources(bundled: Workload, name: str, setting: str) -> None:
    fast, agent = both_of_three(bundled, name, setting, 400)
    process, expected = deciding(fast, agent, resources=FURTHER), starts_of(fast, agent)
    assert starts_on_fake(process, fast.jobs, further_fields(fast.jobs)) == expected.tolist()
    only_nodes = replace(fast, jobs=replace(fast.jobs, demand=fast.jobs.demand * [1, 0, 0]))
    assert (replay(agent, only_nodes).start != expected).any(), "nodes alone are scarce"


@needs_simgrid
@pytest.mark.parametrize(("name", "setting"), [OF_THREE[0], OF_THREE[3]])
def test_the_platform_model_with_three_resources(
    bundled: Workload, tmp_path: Path, name: str, setting: str
) -> None:
    fast, agent = both_of_three(bundled, name, setting, 300)
    got = starts_on_model(
        tmp_path, deciding(fast, agent, resources=FURTHER), fast.jobs, further_fields(fast.jobs)
    )
    assert got == starts_of(fast, agent).tolist()


def test_a_machine_that_lacks_a_resource_of_the_agent_is_refused(bundled: Workload) -> None:
    fast, agent = both_of_three(bundled, "mrsch", "default", 100)
    two = {"burst_buffer": FURTHER["burst_buffer"]}
    process = deciding(fast, agent, resources=two)
    fake = FakeBatsim(further_fields(fast.jobs), int(fast.jobs.capacity[0]))
    with pytest.raises(BridgeError, match="the agent sees 3 resources, the machine has 2"):
        fake.run(process.reply_to_frame)


@needs_simgrid
@pytest.mark.parametrize(("name", "setting", "changes"), [AGENTS[0], AGENTS[4]])
def test_the_platform_model(
    bundled: Workload, tmp_path: Path, name: str, setting: str, changes: dict[str, object]
) -> None:
    fast, agent = both(bundled, name, setting, 300, **changes)
    got = starts_on_model(tmp_path, deciding(fast, agent), fast.jobs)
    assert got == starts_of(fast, agent).tolist()
