"""The availability profile of the slotted pool: units free in each of the next H steps."""

from bridge.jit import inline
from bridge.pool.state import Array, State


@inline
def shift(state: State, b: int) -> None:
    """Move on by one step; the new last step is free."""
    free = state.free[b]
    last = free.shape[0] - 1
    for h in range(last):
        free[h] = free[h + 1]
    free[last] = state.pool[0].units


@inline
def add(free: Array, first: int, last: int, units: int) -> None:
    """Add `units` to steps `first` … `last` - 1, as far as they lie within the horizon."""
    for h in range(max(first, 0), min(last, free.shape[0])):
        free[h] += units


@inline
def earliest(free: Array, units: int, length: int) -> int:
    """Return the first t in [0, H - length) such that `units` are free in `length` steps from t, or -1."""
    together = 0
    for h in range(free.shape[0] - 1):
        together = together + 1 if free[h] >= units else 0
        if together == length:
            return h - length + 1
    return -1


@inline
def fits_now(free: Array, units: int, length: int) -> bool:
    """Tell whether `units` are free in the next `length` steps."""
    last = min(length, free.shape[0])
    h = 0
    while h < last and free[h] >= units:
        h += 1
    return bool(h == last)
