"""Pooling in one pass is `torch.segment_reduce`, to the bit: values and gradients."""

import pytest
import torch

from bridge.learn.segments import pool

OFFSETS = torch.tensor([0, 1, 5, 40, 42])


def reduced(rows: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return what PyTorch makes of them."""
    sizes = offsets.diff()
    return torch.cat([torch.segment_reduce(rows, how, lengths=sizes, axis=0) for how in ("mean", "max")], 1)


def outcome(made: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor) -> list[bytes]:
    """Return the bits of what was made and of the rows' gradient under these weights."""
    (spread,) = torch.autograd.grad((made * weights).sum(), rows)
    return [t.detach().contiguous().numpy().tobytes() for t in (made, spread)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [0.001, 0.5, 4.0], ids=["distinct", "some tie", "most tie"])
def test_pooling_is_segment_reduce_to_the_bit(dtype: torch.dtype, steps: float) -> None:
    random = torch.Generator().manual_seed(1)
    rows = ((torch.randn(42, 5, generator=random) / steps).round() * steps / 3).to(dtype).requires_grad_()
    weights = torch.randn(4, 10, generator=random).to(dtype)  # of both signs
    assert outcome(pool(rows, OFFSETS), rows, weights) == outcome(reduced(rows, OFFSETS), rows, weights)


def test_what_is_not_a_number_stays_seen() -> None:
    rows = torch.zeros(42, 2)
    rows[2, 1] = float("nan")
    assert pool(rows, OFFSETS).isnan().nonzero().tolist() == [[1, 1]]
