"""Networks over pictures: the paper's parameter count, the same numbers as plain layers, gradients, masks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_pools import job_set
from torch import nn

from bridge.base.errors import BridgeError
from bridge.pool.batch import PoolBatch
from bridge.pool.network import log_probabilities, network_of, weights
from bridge.pool.observation import PictureBatch
from bridge.pool.recipe import PoolNetworkConfig, PoolRecipe, PoolTrainingConfig
from bridge.pool.settings import PoolConfig
from bridge.pool.world import Sequences

PAPER = PoolRecipe("a", "b", "c", "d")
SMALL = replace(PAPER, pool=PoolConfig(units=4, slots=2, kill_slots=2, horizon=16, last_step=200))
CNN = PoolNetworkConfig("cnn", (8,), channels=(3, 4), kernels=(4, 3), strides=(2, 1))


def some_view(learner: PoolRecipe = SMALL) -> tuple[PictureBatch, PoolBatch]:
    """Return what three pools see after some answers."""
    rng = np.random.default_rng(3)
    rows = [(int(u), int(n), int(n), [int(n)]) for u, n in rng.integers(1, 5, (12, 2))]
    drawn = Sequences(job_set(rows), rng.integers(0, 12, (3, 30)))
    pools = PoolBatch(drawn, 3, learner.pool, "learned")
    view = pools.play(drawn)
    for _ in range(9):
        view = pools.step(np.where(pools.masks[:, 0], 0, 2))
    return view, pools


def test_the_paper_s_network_has_557_952_weights() -> None:
    network = network_of(PAPER)
    assert weights(network) == 8640 * 64 + 64 * 64 + 64 * 14 == 557_952
    assert sum(p.numel() for p in network.parameters()) == 557_952 + (64 + 64 + 14) + (64 + 1)
    seeing = replace(PAPER, training=PoolTrainingConfig(critic="outlook"))
    assert weights(network_of(seeing)) == 557_952
    assert weights(network_of(replace(PAPER, pool=PoolConfig(units=12)))) == 7680 * 64 + 64 * 64 + 64 * 14


def test_a_cnn_has_the_weights_of_its_layers() -> None:
    # 120 x 72 -> 16 x 29 x 17 -> 16 x 13 x 7 = 1456 -> 64 -> 14
    shape = PoolNetworkConfig("cnn", (64,), channels=(16, 16), kernels=(8, 4), strides=(4, 2))
    assert weights(network_of(replace(PAPER, network=shape))) == 16 * 64 + 16 * 16 * 16 + 1456 * 64 + 64 * 14


def test_packed_layers_say_what_plain_layers_say_and_learn_the_same() -> None:
    torch.manual_seed(1)
    network = network_of(SMALL).double()
    view, _ = some_view()
    which = np.array([2, 0])
    plain = nn.Linear(16 * 26, 64).double()
    with torch.no_grad():
        plain.weight.copy_(network.eye.weight.t())  # type: ignore[union-attr]
        plain.bias.copy_(network.eye.bias)  # type: ignore[arg-type]
    pictures = torch.from_numpy(view.pictures(which)).double().flatten(1)
    inner = network.hidden(plain(pictures))
    scores, values = network(view, which)
    near = {"rtol": 1e-5, "atol": 1e-7}  # a picture's cells are rounded to float32
    torch.testing.assert_close(scores, network.policy(inner), **near)
    torch.testing.assert_close(values, network.value(inner)[:, 0], **near)
    (scores.sum() + values.sum()).backward()
    (network.policy(inner).sum() + network.value(inner).sum()).backward()
    torch.testing.assert_close(network.eye.weight.grad, plain.weight.grad.t(), **near)  # type: ignore[union-attr]
    torch.testing.assert_close(network.eye.bias.grad, plain.bias.grad)


def test_a_picture_s_scores_do_not_depend_on_the_others() -> None:
    view, _ = some_view()
    for shape in (PoolNetworkConfig(), CNN):
        torch.manual_seed(1)
        network = network_of(replace(SMALL, network=shape)).double()
        with torch.inference_mode():
            together, _ = network(view, np.arange(3))
            for k in range(3):
                alone, _ = network(view, np.array([k]))
                torch.testing.assert_close(alone[0], together[k], rtol=1e-13, atol=1e-13)


def test_a_critic_says_values_if_it_knows_something() -> None:
    torch.manual_seed(1)
    network = network_of(replace(SMALL, training=PoolTrainingConfig(critic="outlook")))
    view, pools = some_view()
    which = np.arange(3)
    known = pools.outlooks(which)
    scores, values = network(view, which, known)
    assert torch.equal(scores, network(view, which)[0])
    assert network.critic is not None
    assert torch.equal(values, network.critic(torch.from_numpy(known)))
    assert not torch.equal(values, network(view, which)[1])


def test_what_is_not_legal_has_no_probability() -> None:
    scores = torch.tensor([[0.0, 5.0, 0.0], [1.0, 1.0, 9.0]])
    masks = np.array([[True, False, True], [True, True, False]])
    assert log_probabilities(scores, masks).exp().tolist() == [[0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]


def test_convolutions_that_leave_nothing_are_refused() -> None:
    shape = PoolNetworkConfig("cnn", (8,), channels=(2,), kernels=(20,), strides=(1,))
    with pytest.raises(BridgeError, match="nothing is left"):
        network_of(replace(SMALL, network=shape))
