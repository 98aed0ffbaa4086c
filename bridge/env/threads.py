"""Several threads for the episodes of one batch: kernels hold no lock."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import numpy as np

S = TypeVar("S")


@functools.cache
def helpers(threads: int) -> ThreadPoolExecutor:
    """Return so many threads that wait for work; a forked process gets its own."""
    return ThreadPoolExecutor(threads, "episodes")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)


def bounds_of(size: int, threads: int) -> list[tuple[int, int]]:
    """Return the first and the last episode but one of each thread: equal parts, none empty."""
    parts = max(1, min(threads, size))
    return [(size * i // parts, size * (i + 1) // parts) for i in range(parts)]


def with_own_scratch(state: S, of_one_episode: S) -> S:
    """Return the state of a further thread: the same episodes, and arrays of its own to work in.

    `of_one_episode`: another state of the same jobs and policy that has one episode. An array that has the
    same shape there is not an episode's: it is never changed, or it is written before it is read.
    """
    if isinstance(state, tuple) and isinstance(of_one_episode, tuple):
        fields = [with_own_scratch(a, b) for a, b in zip(state, of_one_episode, strict=True)]
        return cast(S, getattr(type(state), "_make", tuple)(fields))
    if isinstance(state, np.ndarray) and isinstance(of_one_episode, np.ndarray):
        return of_one_episode if state.shape == of_one_episode.shape else state
    return state
