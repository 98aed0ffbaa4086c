"""Networks over packed rows: the same as over padded ones, whatever the neighbours."""

import numpy as np
import pytest
import torch

from bridge.encode.encoder import Encoder
from bridge.errors import BridgeError
from bridge.learn.network import NETWORKS, build, choices, log_softmax, owners, parameters, places
from bridge.learn.recipe import Network

ENCODER = Encoder("pick", {"t": "t", "n": "n", "w": "w"}, window=5, padding=(0.0, 1.0, 0.5))
SHAPE = {
    "kernel": Network("kernel", (6, 4)),
    "flat": Network("flat", (6,)),
    "places": Network("places", (6,)),
    "scalars": Network("scalars", (6, 4), (7,)),
    "pooled": Network("pooled", (6, 4), (5,)),
}
OFFSETS = torch.tensor([0, 2, 7, 8])
ROWS = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))


def test_owners_and_places() -> None:
    assert owners(OFFSETS).tolist() == [0, 0, 1, 1, 1, 1, 1, 2]
    assert [t.tolist() for t in places(OFFSETS)] == [owners(OFFSETS).tolist(), [0, 1, 0, 1, 2, 3, 4, 0]]


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_decision_scores_the_same_alone_as_in_company(kind: str) -> None:
    network = build(SHAPE[kind], ENCODER, 1)
    together = network(ROWS, OFFSETS)
    per_row = kind in ("kernel", "places")
    assert together.shape == ((8 if per_row else 3), 1)
    for d in range(3):
        part = slice(int(OFFSETS[d]), int(OFFSETS[d + 1]))
        alone = network(ROWS[part], torch.tensor([0, part.stop - part.start]))
        expected = together[part] if per_row else together[d : d + 1]
        assert torch.allclose(alone, expected, atol=1e-6)


def padded() -> torch.Tensor:
    """Return the rows as [3, 5, 3] with the padding row where there is none."""
    dense = torch.tensor(ENCODER.padding).expand(3, 5, 3).clone()
    dense[0, :2], dense[1], dense[2, :1] = ROWS[:2], ROWS[2:7], ROWS[7:]
    return dense


def test_flat_sees_all_rows_side_by_side() -> None:
    network = build(SHAPE["flat"], ENCODER, 2)
    assert torch.allclose(network(ROWS, OFFSETS), network.layers(padded().flatten(1)), atol=1e-6)


def test_places_gives_each_row_the_score_of_its_place() -> None:
    network = build(SHAPE["places"], ENCODER, 1)
    dense = network.layers(padded().flatten(1))
    expected = torch.cat((dense[0, :2], dense[1], dense[2, :1]))
    assert torch.allclose(network(ROWS, OFFSETS)[:, 0], expected, atol=1e-6)


def test_scalars_applies_its_kernel_to_padding_too() -> None:
    network = build(SHAPE["scalars"], ENCODER, 1)
    expected = network.head(network.rows(padded())[..., 0])
    assert torch.allclose(network(ROWS, OFFSETS), expected, atol=1e-6)


def test_pooled_does_not_mind_the_order_of_rows() -> None:
    network = build(SHAPE["pooled"], ENCODER, 1)
    turned = torch.cat((ROWS[:2].flip(0), ROWS[2:7].flip(0), ROWS[7:]))
    assert torch.allclose(network(ROWS, OFFSETS), network(turned, OFFSETS), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("kernel", (3 * 6 + 6) + (6 * 4 + 4) + (4 + 1)),
        ("flat", (15 * 6 + 6) + (6 + 1)),
        ("places", (15 * 6 + 6) + (6 * 5 + 5)),
        ("scalars", (3 * 6 + 6) + (6 * 4 + 4) + (4 + 1) + (5 * 7 + 7) + (7 + 1)),
        ("pooled", (3 * 6 + 6) + (6 * 4 + 4) + (8 * 5 + 5) + (5 + 1)),
    ],
)
def test_numbers_of_parameters(kind: str, count: int) -> None:
    assert parameters(build(SHAPE[kind], ENCODER, 1)) == count


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BridgeError, match="unknown network") as error:
        build(Network("transformer"), ENCODER, 1)
    assert "kernel, flat, places, scalars, pooled" in error.value.remedy


def test_log_softmax_within_each_decision() -> None:
    scores = torch.tensor([0.0, np.log(3.0), 1000.0, 1000.0, -1000.0, 5.0])
    offsets = torch.tensor([0, 2, 5, 6])
    expected = [np.log(0.25), np.log(0.75), np.log(0.5), np.log(0.5), -2000 + np.log(0.5), 0.0]
    assert log_softmax(scores, offsets).tolist() == pytest.approx(expected, rel=1e-5)


def test_an_inspected_row_has_two_answers() -> None:
    scores, offsets = choices(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1, 2]))
    assert (scores.tolist(), offsets.tolist()) == ([1, 2, 3, 4], [0, 2, 4])
    scores, offsets = choices(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 1, 3]))
    assert (scores.tolist(), offsets.tolist()) == ([1, 2, 3], [0, 1, 3])
