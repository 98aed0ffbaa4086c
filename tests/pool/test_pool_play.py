"""Trained agents at work: the same answers wherever they are asked, judged like heuristics."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_pool import POOL, TINY, jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.learn.checkpoint import load
from bridge.pool.evaluate import as_document
from bridge.pool.network import PoolCheckpoint
from bridge.pool.recipe import PoolRecipe
from bridge.pool.rollout import evaluate_agent, options_of
from bridge.pool.settings import EvaluationOptions

SOME = EvaluationOptions(seed=7, sequences=3)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> PoolCheckpoint:
    """An agent that has learnt a little, to kill too."""
    folder = tmp_path_factory.mktemp("agents") / "killer"
    taught = tiny(epochs=12, lessons=12, teacher="saf", iterations=10, learning_rate=3e-3)
    recipe = replace(taught, kill="learned")
    trainer(folder, recipe).run()
    return load(folder, PoolRecipe)


@pytest.mark.parametrize("mode", ["greedy", "sample"])
def test_an_agent_answers_alike_alone_and_among_others(agent: PoolCheckpoint, mode: str) -> None:
    agent = replace(agent, mode=mode)  # type: ignore[arg-type]
    options = options_of(agent, SOME)
    done: list[int] = []
    found = evaluate_agent(agent, jobs(), options, progress=done.append)
    assert done == [3]
    again = evaluate_agent(agent, jobs(), options)
    many = evaluate_agent(agent, jobs(), replace(options, sequences=20))
    for k, schedule in enumerate(found.schedules):
        assert again.schedules[k].end.tolist() == schedule.end.tolist()
        assert many.schedules[k].end.tolist() == schedule.end.tolist()
        assert many.schedules[k].start.tolist() == schedule.start.tolist()
    assert len(many.schedules) == 20


def test_modes_differ_and_seeds_of_agents_too(agent: PoolCheckpoint) -> None:
    options = options_of(agent, SOME)
    found = [
        evaluate_agent(replace(agent, mode=mode, origin=replace(agent.origin, seed=seed)), jobs(), options)  # type: ignore[arg-type]
        for mode, seed in (("greedy", 1), ("greedy", 2), ("sample", 1), ("sample", 2))
    ]
    ends = [np.concatenate([s.end for s in f.schedules]).tolist() for f in found]
    assert ends[0] == ends[1]
    assert ends[0] != ends[2] != ends[3]


def test_an_agent_is_judged_on_its_own_pool(agent: PoolCheckpoint) -> None:
    options = options_of(agent)
    assert (options.rate, options.steps, options.settings, options.seed) == (0.7, 20, POOL, 314159)
    found = evaluate_agent(agent, jobs(), options_of(agent, SOME))
    assert (found.policy, found.kill, found.oracle) == ("killer", "learned", False)
    assert as_document([found])["policies"][0]["kills"] == sum(s.kills.sum() for s in found.schedules)
    clamped = replace(options, settings=replace(POOL, oracle_clamp=True))
    assert evaluate_agent(agent, jobs(), clamped).oracle
    for change in ({"units": 5}, {"slots": 3}, {"kill_slots": 1}, {"horizon": 20}):
        other = replace(options, settings=replace(POOL, **change))  # type: ignore[arg-type]
        with pytest.raises(BridgeError, match=rf"killer: has learnt on a pool of \d+ {next(iter(change))}"):
            evaluate_agent(agent, jobs(), other)


def test_an_agent_that_waits_for_ever_is_not_judged_unless_it_must_not_idle(tmp_path: Path) -> None:
    one = trainer(tmp_path, tiny(epochs=1))
    one.deployed.policy.bias.data[POOL.slots] = 50.0
    lazy = PoolCheckpoint(tmp_path, replace(TINY, idle=True), one.origin, 0, one.deployed)
    with pytest.raises(BridgeError, match="did not end by step 300"):
        evaluate_agent(lazy, jobs(), options_of(lazy, SOME))
    found = evaluate_agent(replace(lazy, recipe=TINY), jobs(), options_of(lazy, SOME))
    for schedule in found.schedules:  # one after the other
        order = np.argsort(schedule.start)
        assert (schedule.start[order][1:] >= schedule.end[order][:-1]).all()
