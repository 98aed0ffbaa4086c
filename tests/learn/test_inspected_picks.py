"""An inspector of an agent's picks: an agent that picks as SJF does stands for SJF, decision by decision."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from picking_agents import PICKER, picker
from tiny_training import TINY, some_jobs, tiny, trainer

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.env.reward import base_costs
from bridge.learn.agent import play_sequences, replay, schedules_by, trained_on, window_of
from bridge.learn.checkpoint import LogAgent, Provenance, load
from bridge.learn.checkpoint_files import digest_of_agent
from bridge.learn.picks import picking_agent, picks_of
from bridge.learn.recipe import Recipe, from_dict
from bridge.study.cells import non_default_fields
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.worlds.fast.replay import replay as replay_rules

#: Protocol and backfilling. Candidates are the same ones in both queues' orders.
RULES = [("standard", "none"), ("standard", "easy"), ("schedgym", "none"), ("schedgym-code", "easy")]
STARTS = np.array([0, 100, 300])


def inspector(picks: str = "", order: str = "fcfs", **setup: str) -> Recipe:
    own = replace(TINY.setup, order=order, backfill="none", **setup)  # type: ignore[arg-type]
    return replace(
        tiny(epochs=1),
        setup=own,
        encoder=Encoder(
            "inspect", {"fits": "fits", "length": "log10(1 + t)/5"}, machine={"free": "free/n_max"}
        ),
        picks=picks,
        deploy="sample",
    )


def by_length_and_size(view: PackedObservations) -> Ints:
    """Reject what does not fit, and one in three of the others, by its key."""
    return np.asarray((view.rows[:, 0] == 0) | (view.keys % 3 == 0), np.int64)


@pytest.mark.parametrize(("protocol", "backfill"), RULES)
def test_picks_of_the_shortest_are_those_of_sjf(tmp_path: Path, protocol: str, backfill: str) -> None:
    picker(tmp_path / "picker")
    rules: dict[str, Any] = {"protocol": protocol, "backfill": backfill}
    rules |= {"candidate_order": "sjf"} if backfill == "easy" else {}
    recipe = inspector(str(tmp_path / "picker"))
    recipe, sjf = (replace(r, setup=replace(r.setup, **rules)) for r in (recipe, inspector(order="sjf")))
    encoder, jobs = recipe.encoder.compile({}), some_jobs()
    expected = schedules_by(
        encoder, by_length_and_size, sjf.setup.build_scenario(jobs, sjf.policy()), STARTS, 200
    )
    built_in = replay_rules(sjf.setup.build_scenario(jobs)).start[:200]
    assert (expected[0].start != built_in).any(), "nothing is rejected"
    fcfs = recipe.setup.build_scenario(jobs, replace(recipe, picks="").policy())
    own = schedules_by(encoder, by_length_and_size, fcfs, STARTS, 200)
    assert own[0].start.tolist() != expected[0].start.tolist(), "the order decides nothing"
    found = schedules_by(
        encoder,
        by_length_and_size,
        recipe.setup.build_scenario(jobs, recipe.policy()),
        STARTS,
        200,
        picks=picks_of(picking_agent(recipe)),
    )
    assert [s.start.tolist() for s in found] == [s.start.tolist() for s in expected]


def test_it_learns_against_the_picks_alone(tmp_path: Path) -> None:
    picker(tmp_path / "picker")
    recipe = inspector(str(tmp_path / "picker"))
    training = trainer(tmp_path / "inspector", recipe)
    sjf = inspector(order="sjf")
    expected = base_costs(sjf.setup.build_scenario(some_jobs()), STARTS, 64, recipe.reward)
    assert training.learner.source.values(STARTS).tolist() == expected.tolist()
    twin = trainer(tmp_path / "twin", sjf)
    for one in (training, twin):
        one.run()
    agent, other = load(tmp_path / "inspector"), load(tmp_path / "twin")
    for mine, its in zip(agent.actor.parameters(), other.actor.parameters(), strict=True):
        assert torch.equal(mine, its)  # one and the same training
    ready = [one.recipe.setup.build_scenario(some_jobs(), one.recipe.policy()) for one in (agent, other)]
    (found,), (same,) = (
        play_sequences(one, r, np.zeros(1, np.int64), 600)
        for one, r in zip((agent, other), ready, strict=True)
    )
    assert found.start.tolist() == same.start.tolist() == replay(agent, ready[0]).start.tolist()
    assert (window_of(agent), window_of(other)) == (PICKER.encoder.window, recipe.encoder.window)


def test_what_cannot_be_inspected_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "picker"
    picker(folder)
    with pytest.raises(BridgeError, match="picks cannot be some"):
        from_dict({"picks": "some"}, "a test", TINY)
    with pytest.raises(BridgeError, match=r"training\.teacher cannot be"):
        from_dict({"picks": str(folder), "training": {"teacher": ["w"]}}, "a test", inspector())
    with pytest.raises(BridgeError, match="is no checkpoint"):
        trainer(tmp_path / "a", inspector(str(tmp_path / "nobody")))
    trainer(tmp_path / "b", tiny(epochs=1)).run()
    with pytest.raises(BridgeError, match="decides backfill, not pick"):
        trainer(tmp_path / "c", inspector(str(tmp_path / "b")))


def test_an_agent_whose_picks_have_changed_is_refused_and_keys_know_it(tmp_path: Path) -> None:
    folder = tmp_path / "picker"
    picker(folder)
    recipe, before = inspector(str(folder)), digest_of_agent(folder)
    assert non_default_fields(recipe)["picks"] == before
    assert "picks" not in non_default_fields(inspector())
    origin = Provenance("bundled-128", "a", 600, "0", 1, picks_sha256=before)
    agent = LogAgent(tmp_path / "inspector", recipe, origin, 1, torch.nn.Identity())
    assert window_of(agent) == PICKER.encoder.window
    picker(folder, sign=-1.0)
    assert non_default_fields(recipe)["picks"] != before
    with pytest.raises(BridgeError, match="has changed since its picks were inspected"):
        window_of(agent)


def test_jobs_that_the_picks_were_learnt_on_are_no_test(tmp_path: Path) -> None:
    log, folder = read(resolve("bundled-128")), tmp_path / "picker"
    picker(folder, sha256=log.digest())
    recipe = inspector(str(folder))
    origin = Provenance("another", "another", 600, "1" * 64, 1, picks_sha256=digest_of_agent(folder))
    agent = LogAgent(tmp_path, recipe, origin, 1, torch.nn.Identity())
    learnt = trained_on(agent, "bundled-128", log, some_jobs())
    assert learnt.sum() == round(600 * PICKER.test_from)
