"""RLScheduler as its paper has it: numbers of parameters, features, padding, protocol."""

from dataclasses import replace

import numpy as np
import pytest
from features_by_hand import first_rows

from bridge.learn.network import actor_of, critic_of, parameters
from bridge.policies.rlscheduler import PAPER, RECOMMENDED, SETTINGS


def test_the_papers_networks() -> None:
    assert PAPER.encoder.rows * len(PAPER.encoder.features) == 128 * 8
    assert parameters(actor_of(PAPER)) == 288 + 528 + 136 + 9  # 8-32-16-8-1
    # the same per row, then 128-64-32-8-1
    assert parameters(critic_of(PAPER)) == 961 + 8_256 + 2_080 + 264 + 9


def test_the_flat_rival() -> None:
    mlp = SETTINGS["mlp"]
    assert parameters(actor_of(mlp)) == 131_200 + 2 * 16_512 + 16_512  # 1024-128-128-128-128
    assert parameters(critic_of(mlp)) == parameters(critic_of(PAPER))


def test_the_papers_features_by_hand() -> None:
    # the queue at 20: job 2 (wait 10, request 60, all four nodes), job 3, job 4
    expected = [
        [10 / 43_200, 60 / 400, 0.99999, 1, 1, 1, 1, 0.00001],
        [0, 80 / 400, 0.25, 1, 1, 1, 1, 0.99999],
        [0, 200 / 400, 0.25, 1, 1, 1, 1, 0.99999],
    ]
    assert first_rows(PAPER) == pytest.approx(np.array(expected))
    assert PAPER.encoder.padding == (0, 1, 1, 1, 1, 1, 1, 0)


def test_the_papers_settings() -> None:
    expected = ("schedgym", "rlscheduler", "none")
    assert (PAPER.setup.protocol, PAPER.setup.preset, PAPER.setup.backfill) == expected
    assert SETTINGS["backfilling"].setup.backfill == "easy"
    assert (PAPER.reward.metric, PAPER.reward.form, PAPER.reward.spread) == ("bsld", "plain", "end")
    assert (PAPER.training.trajectories, PAPER.training.length) == (100, 256)


def test_ours() -> None:
    assert next(iter(SETTINGS)) == "recommended"
    assert (RECOMMENDED.setup.protocol, RECOMMENDED.setup.backfill) == ("standard", "easy")
    rows = first_rows(RECOMMENDED)
    assert rows.shape == (3, len(RECOMMENDED.encoder.features))
    assert abs(rows).max() <= 1.5


def test_the_generalist_begins_as_the_rule_of_its_key() -> None:
    generalist = SETTINGS["generalist"]
    picking = replace(generalist, encoder=replace(generalist.encoder, decision="pick"))
    rows = first_rows(picking)
    assert rows.shape == (3, len(generalist.encoder.features))
    # the queue at 20, smallest area first: 80, 200 and 240, of which the last has waited 10 of 60 s
    expected = [-np.log10(80), -np.log10(200), 0.4 * np.log10(1 + 10 / 60) - np.log10(240)]
    assert rows[:, 0] == pytest.approx(np.array(expected), rel=1e-6)
    assert (generalist.guard, generalist.decision) == ("mask", "pick+backfill")
