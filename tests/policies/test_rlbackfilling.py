"""RLBackfilling as its paper has it: numbers of parameters, features, protocol."""

from dataclasses import replace

import numpy as np
import pytest
from features_by_hand import first_rows

from bridge.learn.network import actor_of, critic_of, parameters
from bridge.learn.recipe import Reward
from bridge.policies.rlbackfilling import CODE, PAPER, RECOMMENDED, SETTINGS


def test_the_papers_networks() -> None:
    assert PAPER.encoder.rows * len(PAPER.encoder.features) == 768
    assert parameters(actor_of(PAPER)) == 897  # 6-32-16-8-1
    assert parameters(critic_of(PAPER)) == 25_281  # 768-32-16-8-1


def test_the_papers_features_by_hand() -> None:
    # wait, request / longest run, nodes / all, request / (gap + 1), nodes / free, constant; the gap is 80 s
    expected = [[0, 80 / 400, 0.25, 80 / 81, 1, 1], [0, 200 / 400, 0.25, 1, 1, 1]]
    assert first_rows(PAPER) == pytest.approx(np.array(expected))


def test_the_papers_training() -> None:
    training = PAPER.training
    assert (training.trajectories, training.length) == (100, 256)
    assert (training.iterations, training.critic_iterations, training.minibatch) == (80, 80, 0)
    assert (training.clip, training.gamma, training.lam, training.target_kl) == (0.2, 1.0, 0.97, 0.01)
    assert PAPER.reward == Reward("bsld", "percentage", "end")
    assert (PAPER.setup.protocol, PAPER.setup.preset, PAPER.guard) == ("schedgym", "rlbackfilling", "none")
    assert not PAPER.encoder.stop


def test_the_codes_features_by_hand() -> None:
    # as the paper's, but capped below 1, one second more in the gap, and nothing in the constant's place
    expected = [[0, 80 / 400, 0.25, 80 / 82, 0.99999, 0], [0, 200 / 400, 0.25, 0.99999, 0.99999, 0]]
    features = replace(PAPER, encoder=CODE.encoder)
    assert first_rows(features) == pytest.approx(np.array(expected))
    assert CODE.encoder.padding == (0, 1, 1, 1, 1, 0)


def test_the_codes_training() -> None:
    training, words = CODE.training, SETTINGS["words"]
    assert (training.trajectories, training.epochs, training.learning_rate) == (400, 300, 3e-4)
    assert (training.part, training.order, training.validates) == ((0.0, 1.0), "fcfs", False)
    assert (CODE.reward.base_order, CODE.reward.base_candidate_order) == ("fcfs", "sjf")
    assert (CODE.setup.protocol, CODE.setup.blocked, CODE.deploy) == ("schedgym-code", "again", "sample")
    assert (words.training.learning_rate, words.training.order, words.deploy) == (1e-3, "", "greedy")
    assert (words.setup, words.encoder) == (CODE.setup, PAPER.encoder)


def test_ours_may_stop_and_is_trained_under_the_standard_protocol() -> None:
    assert next(iter(SETTINGS)) == "recommended"
    assert RECOMMENDED.encoder.stop
    assert RECOMMENDED.setup.protocol == "standard"
    assert first_rows(RECOMMENDED).shape == (3, len(RECOMMENDED.encoder.features))
