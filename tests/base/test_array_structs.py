"""Kernels take a named tuple of arrays by one address, which no copy shares."""

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

from bridge.base.arrays import Bundle
from bridge.base.jit import inner, kernel

PAIR = np.dtype([("a", "i8"), ("b", "f4")], align=True)


class _Arrays(NamedTuple):
    grid: Any  # i4 [M, N]
    pairs: Any  # PAIR [K]
    cube: Any  # f8 [A, B, C]


class Bundled(Bundle, _Arrays):
    pass


def make_bundled(k: int = 3) -> Bundled:
    return Bundled(
        np.arange(12, dtype=np.int32).reshape(3, 4),
        np.zeros(k, PAIR).view(np.recarray),
        np.arange(24.0).reshape(2, 3, 4),
    )


@inner
def _touch(bundle: Any, i: int) -> float:
    bundle.pairs[i].a += bundle.grid[i, bundle.grid.shape[1] - 1]
    return float(bundle.cube[bundle.cube.shape[0] - 1, i][2])


@kernel
def touch(bundle: Any, n: int) -> float:
    """Read and write everything, by rows, by places and through another function."""
    total = 0.0
    for i in range(n):
        row = bundle.grid[i]
        row[0] += 100
        total += _touch(bundle, i) + bundle.pairs.shape[0] + bundle.cube.size + bundle.grid.strides[0]
    return total


def test_a_kernel_reads_and_writes_the_arrays_themselves() -> None:
    bundle = make_bundled()
    assert touch(bundle, 3) == (14 + 18 + 22) + 3 * (3 + 24 + 16)
    assert bundle.grid[:, 0].tolist() == [100, 104, 108]
    assert bundle.pairs.a.tolist() == [3, 7, 11]


@pytest.mark.parametrize(
    "other",
    [
        copy.copy,
        copy.deepcopy,
        lambda b: pickle.loads(pickle.dumps(b)),
        lambda b: b._replace(grid=b.grid.copy()),
    ],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_a_copy_is_found_where_its_own_arrays_are(other: Any) -> None:
    bundle = make_bundled()
    touch(bundle, 1)
    second = other(bundle)
    assert type(second) is Bundled
    assert second.address != bundle.address
    touch(second, 2)
    assert second.grid[:2, 0].tolist() == [200, 104]
    assert bundle.grid[1, 0] == (104 if second.grid is bundle.grid else 4)


def test_arrays_of_other_sizes_need_no_other_kernel() -> None:
    touch(make_bundled(), 1)
    before = len(getattr(touch, "signatures", ()))
    touch(make_bundled(50), 1)
    assert len(getattr(touch, "signatures", ())) == before


def test_arrays_with_gaps_are_refused() -> None:
    broken = make_bundled()._replace(grid=np.zeros((4, 8), np.int32)[:, ::2])
    with pytest.raises(ValueError, match="contiguous"):
        _ = broken.address
    if hasattr(touch, "signatures"):
        with pytest.raises(ValueError, match="contiguous"):
            touch(broken, 1)
