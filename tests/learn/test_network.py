"""Networks over packed rows: the same as over padded ones, whatever the neighbours."""

import numpy as np
import pytest
import torch

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.learn.network import (
    NETWORKS,
    SHARPNESS,
    Future,
    action_scores,
    build,
    cached_forward,
    log_softmax,
    owners,
    parameters,
    places,
)
from bridge.learn.recipe import FuturePredictionConfig, NetworkConfig

#: Context: three running jobs of three features, two measurements and two goals.
ENCODER = Encoder(
    "pick",
    {"t": "t", "n": "n", "w": "w"},
    window=5,
    padding=(0.0, 1.0, 0.5),
    running={"n": "n", "left": "left", "t": "t"},
    running_rows=(3,),
    machine={"used": "used[r]", "goal": "goal[r]"},
    resources=2,
)
WEIGHTS = FuturePredictionConfig(offsets=(1, 2, 4), weights=(0.0, 0.5, 1.0))
SHAPE = {
    "kernel": NetworkConfig("kernel", (6, 4)),
    "prior": NetworkConfig("prior", (6, 4)),
    "flat": NetworkConfig("flat", (6,)),
    "places": NetworkConfig("places", (6,)),
    "scalars": NetworkConfig("scalars", (6, 4), (7,)),
    "pooled": NetworkConfig("pooled", (6, 4), (5,)),
    "pairs": NetworkConfig("pairs", (6,)),
    "future": NetworkConfig("future", (6, 4), (5,), (3, 2)),
    "future-cnn": NetworkConfig("future-cnn", (6, 4), (), (3, 2)),
}
OFFSETS = torch.tensor([0, 2, 7, 8])
ROWS = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))
CONTEXT = torch.randn(3, 13, generator=torch.Generator().manual_seed(2))


def make_network(kind: str, outputs: int = 1) -> torch.nn.Module:
    network = build(SHAPE[kind], ENCODER, outputs)
    return network.prepare(WEIGHTS) if isinstance(network, Future) else network


def test_owners_and_places() -> None:
    assert owners(OFFSETS).tolist() == [0, 0, 1, 1, 1, 1, 1, 2]
    assert [t.tolist() for t in places(OFFSETS)] == [owners(OFFSETS).tolist(), [0, 1, 0, 1, 2, 3, 4, 0]]


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_decision_scores_the_same_alone_as_in_company(kind: str) -> None:
    network = make_network(kind)
    together = network(ROWS, OFFSETS, CONTEXT)
    per_row = kind not in ("flat", "scalars", "pooled")
    assert together.shape == ((8 if per_row else 3), 1)
    for d in range(3):
        part = slice(int(OFFSETS[d]), int(OFFSETS[d + 1]))
        alone = network(ROWS[part], torch.tensor([0, part.stop - part.start]), CONTEXT[d : d + 1])
        expected = together[part] if per_row else together[d : d + 1]
        assert torch.allclose(alone, expected, atol=1e-6)


def padded() -> torch.Tensor:
    """Return the rows as [3, 5, 3] with the padding row where there is none."""
    dense = torch.tensor(ENCODER.padding).expand(3, 5, 3).clone()
    dense[0, :2], dense[1], dense[2, :1] = ROWS[:2], ROWS[2:7], ROWS[7:]
    return dense


def beside() -> torch.Tensor:
    """Return the padded rows and the context side by side, [3, 28]."""
    return torch.cat((padded().flatten(1), CONTEXT), 1)


def test_flat_sees_all_rows_side_by_side() -> None:
    network = build(SHAPE["flat"], ENCODER, 2)
    assert torch.allclose(network(ROWS, OFFSETS, CONTEXT), network.layers(beside()), atol=1e-6)


def test_places_gives_each_row_the_score_of_its_place() -> None:
    network = build(SHAPE["places"], ENCODER, 1)
    dense = network.layers(beside())
    expected = torch.cat((dense[0, :2], dense[1], dense[2, :1]))
    assert torch.allclose(network(ROWS, OFFSETS, CONTEXT)[:, 0], expected, atol=1e-6)


def test_scalars_applies_its_kernel_to_padding_too() -> None:
    network = build(SHAPE["scalars"], ENCODER, 1)
    expected = network.head(network.rows(padded())[..., 0])
    assert torch.allclose(network(ROWS, OFFSETS, CONTEXT), expected, atol=1e-6)


def test_pooled_does_not_mind_the_order_of_rows() -> None:
    network = build(SHAPE["pooled"], ENCODER, 1)
    turned = torch.cat((ROWS[:2].flip(0), ROWS[2:7].flip(0), ROWS[7:]))
    assert torch.allclose(network(ROWS, OFFSETS, CONTEXT), network(turned, OFFSETS, CONTEXT), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("kernel", (3 * 6 + 6) + (6 * 4 + 4) + (4 + 1)),
        ("prior", 1 + (3 * 6 + 6) + (6 * 4 + 4) + (4 + 1)),
        ("flat", (28 * 6 + 6) + (6 + 1)),
        ("places", (28 * 6 + 6) + (6 * 5 + 5)),
        ("scalars", (3 * 6 + 6) + (6 * 4 + 4) + (4 + 1) + (5 * 7 + 7) + (7 + 1)),
        ("pooled", (3 * 6 + 6) + (6 * 4 + 4) + (8 * 5 + 5) + (5 + 1)),
        ("pairs", (2 + 1) + 14 * 6 + (6 * 5 + 5)),
        # state of 15 + 9 numbers, two modules of 2, streams of 4 + 2 + 2, out: 2 x 3 and 5 x 2 x 3
        ("future", (24 * 6 + 6) + (6 * 4 + 4) + 2 * ((2 * 3 + 3) + (3 * 2 + 2)) + 2 * (8 * 5 + 5) + 6 * 36),
        # two convolutions of three rows each: 3 -> 16 -> 32 channels; 32 x (5 + 3) numbers behind them
        (
            "future-cnn",
            2 * ((3 * 3 * 16 + 16) + (16 * 3 * 32 + 32))
            + (256 * 6 + 6)
            + (6 * 4 + 4)
            + 2 * ((2 * 3 + 3) + (3 * 2 + 2))
            + 9 * 36,
        ),
    ],
)
def test_numbers_of_parameters(kind: str, count: int) -> None:
    assert parameters(make_network(kind)) == count


def test_a_prior_begins_as_the_rule_of_the_first_feature() -> None:
    network = make_network("prior")
    assert torch.equal(network(ROWS, OFFSETS, CONTEXT), SHARPNESS * ROWS[:, :1])
    with torch.no_grad():
        network.factor.fill_(2.0)
        network.layers[-1].bias.fill_(0.5)
    assert torch.equal(network(ROWS, OFFSETS, CONTEXT), 2.0 * ROWS[:, :1] + 0.5)


def test_pairs_reads_two_numbers_at_a_time() -> None:
    network = make_network("pairs")
    seen = beside()
    pairs = torch.stack([network.pair(seen[:, k : k + 2])[:, 0] for k in range(0, seen.shape[1], 2)], 1)
    scores = network.last(torch.relu(network.hidden[0](pairs)))
    expected = torch.cat((scores[0, :2], scores[1], scores[2, :1]))
    assert torch.allclose(network(ROWS, OFFSETS, CONTEXT)[:, 0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["future", "future-cnn"])
def test_a_score_is_the_prediction_by_goal_and_offset(kind: str) -> None:
    network = make_network(kind)
    predicted = network.predict(ROWS, OFFSETS, CONTEXT)
    assert predicted.shape == (3, 5, 2, 3)
    weighed = 0.5 * predicted[..., 1] + 1.0 * predicted[..., 2]
    scores = weighed[..., 0] * CONTEXT[:, None, -2] + weighed[..., 1] * CONTEXT[:, None, -1]
    expected = torch.cat((scores[0, :2], scores[1], scores[2, :1]))
    assert torch.allclose(network(ROWS, OFFSETS, CONTEXT)[:, 0], expected, atol=1e-6)


def test_the_mean_over_the_actions_is_the_expectation() -> None:
    network = make_network("future")
    joint = torch.cat(
        (
            network.state(torch.cat((padded().flatten(1), CONTEXT[:, :9]), 1)),
            network.measurement(CONTEXT[:, 9:11]),
            network.goal(CONTEXT[:, 11:]),
        ),
        1,
    )
    mean = network.predict(ROWS, OFFSETS, CONTEXT).mean(1)
    assert torch.allclose(mean.flatten(1), network.expectation(joint), atol=1e-6)


@pytest.mark.parametrize(
    "encoder",
    [Encoder("pick", {"t": "t"}, machine={"used": "used[r]"}, resources=2), Encoder("pick", {"t": "t"})],
)
def test_future_prediction_needs_measurements_and_goals(encoder: Encoder) -> None:
    with pytest.raises(BridgeError, match="a measurement and a goal"):
        build(SHAPE["future"], encoder, 1)


def test_pairs_needs_an_even_number_of_inputs() -> None:
    with pytest.raises(BridgeError, match="even number"):
        build(SHAPE["pairs"], Encoder("pick", {"t": "t"}, window=3), 1)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BridgeError, match="unknown network") as error:
        build(NetworkConfig("transformer"), ENCODER, 1)
    assert "kernel, prior, flat, places, scalars, pooled, pairs, future, future-cnn" in error.value.remedy


def test_log_softmax_within_each_decision() -> None:
    scores = torch.tensor([0.0, np.log(3.0), 1000.0, 1000.0, -1000.0, 5.0])
    offsets = torch.tensor([0, 2, 5, 6])
    expected = [np.log(0.25), np.log(0.75), np.log(0.5), np.log(0.5), -2000 + np.log(0.5), 0.0]
    assert log_softmax(scores, offsets).tolist() == pytest.approx(expected, rel=1e-5)


def test_an_inspected_row_has_two_answers() -> None:
    scores, offsets = action_scores(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1, 2]))
    assert (scores.tolist(), offsets.tolist()) == ([1, 2, 3, 4], [0, 2, 4])
    scores, offsets = action_scores(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 1, 3]))
    assert (scores.tolist(), offsets.tolist()) == ([1, 2, 3], [0, 1, 3])


@pytest.mark.parametrize("kind", ["flat", "scalars"])
def test_asked_again_a_network_answers_and_learns_bit_for_bit_as_before(kind: str) -> None:
    torch.manual_seed(3)
    network = build(SHAPE[kind], ENCODER, 1)
    rows, offsets = torch.rand(7, ENCODER.width), torch.tensor([0, 2, 3, 7])
    context = torch.rand(3, ENCODER.context)
    answers = cached_forward(network, rows, offsets, context)
    for _ in range(2):
        found = []
        for values in (network(rows, offsets, context), answers()):
            network.zero_grad()
            values.square().sum().backward()
            found.append(
                [values.detach(), *(p.grad.clone() for p in network.parameters() if p.grad is not None)]
            )
        assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
        with torch.no_grad():  # other weights
            for parameter in network.parameters():
                parameter.add_(0.1)
