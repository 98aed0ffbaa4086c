"""Sets of nodes as words of 32 bits, as kernels read them; in Python they are whole numbers."""

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.jit import inline

#: Bits of a word: few enough that nothing of it overflows 64 bits.
WORD = 32


def words_of(mask: int, n_words: int) -> Ints:
    """Return a set as words."""
    return np.frombuffer(mask.to_bytes(4 * n_words, "little"), "<u4").astype(np.int64)


def mask_of_words(words: Ints) -> int:
    """Return words as a set."""
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


@inline
def has(words: Ints, n: int) -> bool:
    """Tell whether node `n` is a member."""
    return bool((words[n >> 5] >> (n & 31)) & 1)


@inline
def put(words: Ints, n: int) -> None:
    """Take node `n` in."""
    words[n >> 5] |= 1 << (n & 31)


@inline
def ones(x: int) -> int:
    """Return how many bits of a word are set."""
    x -= (x >> 1) & 0x55555555
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24) & 0xFF


@inline
def count(words: Ints) -> int:
    """Return how many members there are."""
    total = 0
    for w in range(words.shape[0]):
        total += ones(words[w])
    return total


@inline
def count_both(words: Ints, others: Ints) -> int:
    """Return how many members are among others."""
    total = 0
    for w in range(words.shape[0]):
        total += ones(words[w] & others[w])
    return total


@inline
def within(words: Ints, others: Ints) -> bool:
    """Tell whether all members are among others."""
    outside = 0
    for w in range(words.shape[0]):
        outside |= words[w] & ~others[w]
    return outside == 0


@inline
def meets(words: Ints, others: Ints) -> bool:
    """Tell whether some members are among others."""
    both = 0
    for w in range(words.shape[0]):
        both |= words[w] & others[w]
    return both != 0


@inline
def zeros_below(x: int) -> int:
    """Return how many bits of a word are clear below the lowest one that is set; of 0: 32."""
    return ones(((x & -x) - 1) & 0xFFFFFFFF)


@inline
def move(words: Ints, to: Ints, first: int, last: int) -> None:
    """Move the members ``first…last`` from one set into another."""
    for w in range(first >> 5, (last >> 5) + 1):
        low, high = max(first - 32 * w, 0), min(last - 32 * w, 31)
        part = words[w] & (((1 << (high + 1 - low)) - 1) << low)
        words[w] &= ~part
        to[w] |= part


@inline
def copy(to: Ints, source: Ints) -> None:
    """Make one set, or any row, another."""
    for w in range(source.shape[0]):
        to[w] = source[w]
