"""The central test for agents: with delay profiles an agent decides alike in both worlds, start for start."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from detailed import delay_jobs, needs_simgrid, run_on_model
from fake_batsim import FakeBatsim
from test_same_schedule import setup_for

from bridge.batsim.dispatcher import Setup
from bridge.batsim.process import DecisionProcess
from bridge.fast.episode import Prepared
from bridge.fast.replay import replay as replay_rules
from bridge.fast.setup import Setup as Replay
from bridge.learn.checkpoint import Checkpoint, Origin
from bridge.learn.network import actor_of
from bridge.learn.play import Decider, replay
from bridge.learn.recipe import Recipe
from bridge.learn.registry import recipe_of
from bridge.learn.train import constants_of
from bridge.scheduler.protocol import Policy, compile_policy
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.select import Jobs
from bridge.workload.table import Workload


@pytest.fixture(scope="session")
def bundled() -> Workload:
    return read(resolve("bundled-128"))


def untrained(recipe: Recipe, jobs: Jobs, seed: int) -> Checkpoint:
    """Return an agent with random weights: its decisions are as hard to repeat as any."""
    torch.manual_seed(seed)
    origin = Origin("bundled-128", jobs.name, len(jobs), "", seed, constants_of(jobs))
    mode = "sample" if recipe.deploy == "sample" else "greedy"
    return Checkpoint(Path("untrained"), recipe, origin, 0, actor_of(recipe), mode)


def both(
    workload: Workload, name: str, setting: str, first: int, **changes: object
) -> tuple[Prepared, Checkpoint]:
    """Return an agent of a policy on the standard protocol, and the first jobs prepared for it."""
    recipe = recipe_of(name, setting)
    setup = Replay(recipe.setup.order, recipe.setup.backfill, first=first)
    recipe = replace(recipe, setup=setup, **changes)  # type: ignore[arg-type]
    jobs = setup.select(workload)
    agent = untrained(recipe, jobs, seed=3)
    return setup.prepare(jobs, recipe.policy()), agent


def deciding(fast: Prepared, agent: Checkpoint) -> Setup:
    return replace(
        setup_for(fast),
        policy=fast.compiled.policy,
        decider=Decider(agent),
        window=agent.recipe.encoder.window,
    )


AGENTS = [
    ("rlbackfilling", "recommended", {}),
    ("rlbackfilling", "recommended", {"deploy": "sample"}),
    ("rlbackfilling", "paper", {}),
    ("rlbackfilling", "recommended", {"guard": "mask"}),
    ("schedinspector", "paper", {}),
    ("schedinspector", "recommended", {}),
    ("rlscheduler", "recommended", {}),
]


def starts_of(fast: Prepared, agent: Checkpoint) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    schedule = replay(agent, fast)
    policy = fast.compiled.policy
    rules = compile_policy(Policy(policy.order, policy.backfill), fast.compiled.protocol)
    built_in = replay_rules(replace(fast, compiled=rules))
    assert (schedule.start != built_in.start).any(), "the agent decides nothing"
    return schedule.start


@pytest.mark.parametrize(("name", "setting", "changes"), AGENTS)
def test_a_scripted_peer(bundled: Workload, name: str, setting: str, changes: dict[str, object]) -> None:
    fast, agent = both(bundled, name, setting, 400, **changes)
    process = DecisionProcess(deciding(fast, agent), strict=True)
    fake = FakeBatsim(delay_jobs(fast.jobs), int(fast.jobs.capacity[0])).run(process.answer)
    assert not process.result().missing
    width = len(str(fast.jobs.id.max()))
    got = [fake.starts[f"{i:0{width}d}"] for i in fast.jobs.id]
    assert got == starts_of(fast, agent).tolist()


@needs_simgrid
@pytest.mark.parametrize(("name", "setting", "changes"), [AGENTS[0], AGENTS[4]])
def test_the_platform_model(
    bundled: Workload, tmp_path: Path, name: str, setting: str, changes: dict[str, object]
) -> None:
    fast, agent = both(bundled, name, setting, 300, **changes)
    process = DecisionProcess(deciding(fast, agent), strict=True)
    result = run_on_model(tmp_path, delay_jobs(fast.jobs), int(fast.jobs.capacity[0]), process)
    assert not result.missing and result.error is None
    got = {job_id.partition("!")[2]: start for job_id, start in result.starts.items()}
    width = len(str(fast.jobs.id.max()))
    assert [got[f"{i:0{width}d}"] for i in fast.jobs.id] == starts_of(fast, agent).tolist()
