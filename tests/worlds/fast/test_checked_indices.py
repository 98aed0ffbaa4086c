"""No kernel's index is negative or beyond its array: kernels read an index as it stands."""

import pytest
from jit_modes import passes_with_checked_indices


def test_the_core_reads_nothing_beside_an_array() -> None:
    passes_with_checked_indices("scheduler/test_core.py")  # others compile for minutes: among the slow ones


@pytest.mark.slow
def test_nor_does_any_kernel() -> None:
    passes_with_checked_indices("env", "worlds/fast", "forecasting", "judge", "learn", "pool", "scheduler")
