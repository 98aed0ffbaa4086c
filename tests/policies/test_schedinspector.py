"""SchedInspector as its paper has it: numbers of parameters, features, cap and pause, all its variants."""

from dataclasses import replace

import numpy as np
import pytest
from features_by_hand import first_rows

from bridge.learn.network import actor_of, parameters
from bridge.policies.schedinspector import PAPER, SETTINGS


def test_the_papers_networks() -> None:
    assert parameters(actor_of(SETTINGS["code"])) == 938  # 7-32-16-8-2
    assert parameters(actor_of(PAPER)) == 970  # 8-32-16-8-2
    assert PAPER.encoder.actions == 2


def test_the_papers_features_by_hand() -> None:
    # job 1 at 0 on the idle machine: request 100 of 400, three nodes of four, runnable, never rejected; it
    # alone waits, 600/100 of slowdown in 600 s; nobody to backfill
    expected = [0, 100 / 400, 0.75, 0.99999, 0.99999, 0, 6 / (60 * 128), 0]
    assert first_rows(PAPER) == pytest.approx(np.array([expected]))
    assert first_rows(SETTINGS["code"]) == pytest.approx(np.array([expected[:7]]))
    assert first_rows(SETTINGS["native"]) == pytest.approx(np.array([expected[:4]]))
    assert first_rows(SETTINGS["compacted"]) == pytest.approx(np.array([expected[:5]]))


def test_the_cap_and_the_pause() -> None:
    assert {(recipe.max_rejects, recipe.retry_after) for recipe in SETTINGS.values()} == {(72, 600.0)}


def test_the_priced_one_is_the_recommended_one_with_a_price() -> None:
    priced, ours = SETTINGS["priced"], SETTINGS["recommended"]
    assert (ours.reward.idle, priced.reward.idle) == (0.0, 100.0)
    assert (ours.training.initial_reject_rate, priced.training.initial_reject_rate) == (0.7, 0.1)
    same = {name: getattr(ours, name) for name in ("setting", "summary", "reward")}
    training = replace(priced.training, initial_reject_rate=ours.training.initial_reject_rate)
    assert replace(priced, **same, training=training) == ours


def test_the_papers_variants() -> None:
    rewards = {name: SETTINGS[name].reward for name in SETTINGS}
    assert (rewards["paper"].form, rewards["code"].form) == ("percentage", "relative")
    assert (rewards["winloss"].form, rewards["nativereward"].form) == ("winloss", "native")
    assert (rewards["wait"].metric, rewards["maxbsld"].metric) == ("wait", "bsld.max")
    assert SETTINGS["backfilling"].setup.backfill == "easy"
    assert (SETTINGS["slurm"].setup.order, SETTINGS["slurm"].setup.backfill) == ("slurm", "easy")
    papers = [r.setup for name, r in SETTINGS.items() if name not in ("recommended", "priced")]
    assert {(setup.protocol, setup.preset) for setup in papers} == {("schedgym", "schedinspector")}


def test_the_papers_training() -> None:
    training = PAPER.training
    assert (training.trajectories, training.length, training.learning_rate) == (100, 128, 1e-3)
    assert training.part[1] <= 0.2 <= PAPER.test_from
