"""Amounts per resource, as jobs ask for them and as they are free: every change of what is free, or extra.

Only a profile's steps change elsewhere, in `bridge.scheduler.profile.change`: as columns of an array they
would cost conservative backfilling 4 % of its speed here.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline


@inline
def take(free: Array, amounts: Array) -> None:
    """Take amounts, of a job that starts or is reserved, from what is free."""
    for r in range(free.shape[0]):
        free[r] -= amounts[r]


@inline
def give(free: Array, amounts: Array) -> None:
    """Give amounts, of a job that ends, back to what is free."""
    for r in range(free.shape[0]):
        free[r] += amounts[r]


@inline
def copy_amounts(to: Array, amounts: Array) -> None:
    """Begin anew: what is free now, or by some other reckoning."""
    for r in range(to.shape[0]):
        to[r] = amounts[r]
