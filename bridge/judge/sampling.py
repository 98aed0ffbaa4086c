"""Which test sequences a protocol draws from a workload."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError

Ints = npt.NDArray[np.int64]


def gym_random_state(seed: int) -> np.random.RandomState:
    """Return the generator of gym ≤ 0.21's ``np_random(seed)``.

    The seed is hashed (SHA-512 of its decimal text, first 8 bytes, little endian) and handed to the legacy
    generator as 32-bit words, low word first.
    """
    number = int.from_bytes(hashlib.sha512(str(seed).encode()).digest()[:8], "little")
    words = []
    while number > 0:
        number, word = divmod(number, 2**32)
        words.append(word)
    return np.random.RandomState(np.array(words or [0], np.uint32))


@dataclass(frozen=True)
class Sampler:
    """How starts are drawn: generator, and the bounds of `randint(low, high)`.

    Attributes:
        generator: ``default`` (NumPy's default generator), ``legacy`` (RandomState(seed)) or ``gym``.
        skip_first: the first L jobs are never drawn, and one more job is left at the end.
        last: the last start can be drawn (only without `skip_first`).
        sequences, length, seed: the paper's own protocol.
    """

    generator: Literal["default", "legacy", "gym"]
    skip_first: bool
    sequences: int
    length: int
    seed: int
    last: bool = False


SAMPLERS: Mapping[str, Sampler] = {
    "standard": Sampler("default", False, 200, 256, 1, last=True),
    "rlbackfilling": Sampler("legacy", True, 10, 1024, 1),
    "rlscheduler": Sampler("gym", True, 10, 1024, 1),
    "schedinspector": Sampler("gym", False, 50, 256, 1),
}


def sample(sampler: Sampler, size: int, sequences: int, length: int, seed: int) -> Ints:
    """Draw the first job of each test sequence.

    Args:
        sampler: generator and bounds.
        size: jobs in the workload.
        sequences: how many to draw (with replacement).
        length: jobs a sequence, L.
        seed: the generator's seed.

    Returns:
        [sequences] indices.

    Raises:
        BridgeError: the workload is too short.
    """
    low = length if sampler.skip_first else 0
    high = size - length - 1 if sampler.skip_first else size - length + int(sampler.last)
    if high <= low:
        raise BridgeError(
            f"{size} jobs are too few for sequences of {length}",
            remedy=f"Use --length {max(size // 4, 1)} or less, or a longer log.",
        )
    if sampler.generator == "default":
        return np.random.default_rng(seed).integers(low, high, sequences)
    rng = np.random.RandomState(seed) if sampler.generator == "legacy" else gym_random_state(seed)
    return np.array([rng.randint(low, high) for _ in range(sequences)], np.int64)
