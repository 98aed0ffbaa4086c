"""Sets of nodes as whole numbers, bit n for node n."""

from collections.abc import Iterable, Iterator


def bits(mask: int) -> Iterator[int]:
    """Yield the members of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(members: Iterable[int]) -> int:
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask
