"""Which sequences each protocol draws, pinned to the generators of the papers' code."""

import hashlib
import struct

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.judge.sequences import SAMPLERS, gym_random_state, sample

SDSC = 59_705  # jobs, as RLBackfilling loads the log


class Twister:
    """MT19937 with NumPy's legacy array seeding and bounded integers, from Matsumoto & Nishimura (1998)."""

    def __init__(self, key: list[int]) -> None:
        mt = [19650218]
        for i in range(1, 624):
            mt.append((1812433253 * (mt[-1] ^ mt[-1] >> 30) + i) & 0xFFFFFFFF)
        i, j = 1, 0
        for _ in range(max(624, len(key))):
            mt[i] = (mt[i] ^ (mt[i - 1] ^ mt[i - 1] >> 30) * 1664525) + key[j] + j & 0xFFFFFFFF
            i, j = i + 1, (j + 1) % len(key)
            if i >= 624:
                mt[0], i = mt[623], 1
        for _ in range(623):
            mt[i] = (mt[i] ^ (mt[i - 1] ^ mt[i - 1] >> 30) * 1566083941) - i & 0xFFFFFFFF
            i += 1
            if i >= 624:
                mt[0], i = mt[623], 1
        mt[0] = 0x80000000
        self.mt, self.at = mt, 624

    def word(self) -> int:
        if self.at == 624:
            mt = self.mt
            for k in range(624):
                y = mt[k] & 0x80000000 | mt[(k + 1) % 624] & 0x7FFFFFFF
                mt[k] = mt[(k + 397) % 624] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
            self.at = 0
        y = self.mt[self.at]
        self.at += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        return y ^ y >> 18

    def randint(self, low: int, high: int) -> int:
        """Draw by rejection under the smallest mask of ones."""
        span = high - 1 - low
        mask = (1 << span.bit_length()) - 1
        while (value := self.word() & mask) > span:
            pass
        return low + value


@pytest.mark.parametrize("seed", [0, 1, 42, 123456789])
def test_gyms_generator_is_seeded_with_the_hash_of_the_seed(seed: int) -> None:
    words = struct.unpack("<II", hashlib.sha512(str(seed).encode()).digest()[:8])
    twister = Twister(list(words))
    rng = gym_random_state(seed)
    assert [int(rng.randint(0, 1000)) for _ in range(1000)] == [twister.randint(0, 1000) for _ in range(1000)]


def test_first_draws_are_pinned() -> None:
    assert gym_random_state(1).randint(0, 1_000_000, 5).tolist() == [74685, 548816, 411332, 60619, 859794]


def test_rlbackfilling_draws_from_the_legacy_generator() -> None:
    rng = np.random.RandomState(29)
    expected = [rng.randint(1024, SDSC - 1025) for _ in range(10)]
    assert sample(SAMPLERS["rlbackfilling"], SDSC, 10, 1024, 29).tolist() == expected


def test_rlscheduler_and_schedinspector_draw_from_gyms() -> None:
    words = list(struct.unpack("<II", hashlib.sha512(b"1").digest()[:8]))
    twister = Twister(words)
    expected = [twister.randint(1024, 10_000 - 1024 - 1) for _ in range(10)]
    assert sample(SAMPLERS["rlscheduler"], 10_000, 10, 1024, 1).tolist() == expected
    twister = Twister(words)
    expected = [twister.randint(0, 10_000 - 256) for _ in range(50)]
    assert sample(SAMPLERS["schedinspector"], 10_000, 50, 256, 1).tolist() == expected


def test_the_papers_own_protocols() -> None:
    expected = {"rlbackfilling": (10, 1024, 1), "rlscheduler": (10, 1024, 1), "schedinspector": (50, 256, 1)}
    assert {k: (s.sequences, s.length, s.seed) for k, s in SAMPLERS.items() if k != "standard"} == expected


@pytest.mark.parametrize(
    ("preset", "size", "length", "first", "last"),
    [
        ("standard", 12, 10, 0, 2),  # every start at which a sequence fits
        ("schedinspector", 12, 10, 0, 1),
        ("rlbackfilling", 24, 10, 10, 12),
        ("rlscheduler", 24, 10, 10, 12),
    ],
)
def test_the_bounds_of_the_draws(preset: str, size: int, length: int, first: int, last: int) -> None:
    drawn = sample(SAMPLERS[preset], size, 200, length, 3)
    assert sorted(set(drawn.tolist())) == list(range(first, last + 1))


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    for sampler in SAMPLERS.values():
        one = sample(sampler, 50_000, 20, 100, 5)
        np.testing.assert_array_equal(one, sample(sampler, 50_000, 20, 100, 5))
        np.testing.assert_array_equal(one[:7], sample(sampler, 50_000, 7, 100, 5))
        assert np.any(one != sample(sampler, 50_000, 20, 100, 6))


@pytest.mark.parametrize(("preset", "size"), [("standard", 9), ("schedinspector", 10), ("rlbackfilling", 21)])
def test_a_log_too_short_for_a_sequence_is_refused(preset: str, size: int) -> None:
    with pytest.raises(BridgeError, match=f"{size} jobs are too few for sequences of 10"):
        sample(SAMPLERS[preset], size, 1, 10, 1)
    assert len(sample(SAMPLERS[preset], size + 1, 1, 10, 1)) == 1
