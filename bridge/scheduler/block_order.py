"""The order of a list's blocks: all block numbers, first those in use, in order, then the free ones."""

from bridge.base.arrays import Array
from bridge.base.jit import inline


@inline
def open_block(order: Array, n: int, place: int) -> int:
    """Put a free block at `place` of the `n` in use, and return its number."""
    block = order[n]
    for i in range(n, place, -1):
        order[i] = order[i - 1]
    order[place] = block
    return int(block)


@inline
def close_block(order: Array, n: int, place: int) -> None:
    """Give the block at `place` of the `n` in use back to the free ones."""
    block = order[place]
    for i in range(place, n - 1):
        order[i] = order[i + 1]
    order[n - 1] = block
