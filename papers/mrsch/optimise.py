"""The optimisation rival of many-resource agents: start the set of waiting jobs that fills the machine best.

Y. Fan, Z. Lan, P. Rich, W. Allcock, M. Papka, B. Austin, D. Paul, "Scheduling Beyond CPUs for HPC", ACM HPDC
2019 (BBSched). MRSch compares itself with it (Li et al., IEEE CLUSTER 2022, IV-D). The rule of choice and its
thresholds are those of BBSched's public code.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np

from bridge.base.arrays import Flags, Floats, Floats32, Ints
from bridge.config import Constraint, Count, Natural, Share, verify
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder

#: Fractions of a capacity nearer than this are equal: what is seen of them is float32.
TIE = 1e-6
#: Another set is taken if the other resources gain more than this part of what the first has of them …
GAIN = 0.3
#: … and less than this part of all nodes is lost.
LOSS = 0.1
#: Most jobs whose sets can all be tried: a million.
_MOST = 20


@dataclass(frozen=True)
class Optimise:
    """A rule for PICK: the oldest job of the best set of the window's jobs that fit together right now.

    What is best says `chosen`. The rule remembers nothing: after each start it is asked again and optimises
    anew, for the machine as it is then and the window as it has moved on. If no job fits it answers with the
    oldest, for the scheduler to reserve it (``blocked="held"``, EASY behind it).

    Attributes:
        resources: R, nodes first.
        window: W, oldest waiting jobs that are looked at.
        exhaustive: up to so many fitting jobs all sets are tried; beyond, a genetic algorithm searches.
        population: sets of a generation.
        generations: how often they breed.
        mutation: probability that a job of a child is put in or taken out.
    """

    resources: Count
    window: Count = 10
    exhaustive: Annotated[int, Constraint(ge=0, le=_MOST)] = 10
    population: Annotated[int, Constraint(ge=2)] = 25
    generations: Natural = 50
    mutation: Share = 0.05

    def __post_init__(self) -> None:
        """Refuse what cannot be searched; BridgeError: a number is out of range."""
        verify(self, "optimisation (BBSched)")

    def encoder(self) -> Encoder:
        """Return what the rule sees: what each job asks for and what is in use, as fractions of capacity."""
        return Encoder(
            "pick",
            {"share": "share[r]"},
            window=self.window,
            machine={"used": "used[r]"},
            resources=self.resources,
        )

    def __call__(self, view: PackedObservations) -> Ints:
        """Return the row picked for each of D decisions, none of which is empty: [D]."""
        spans = zip(view.offsets[:-1].tolist(), view.offsets[1:].tolist(), strict=True)
        return np.array(
            [
                self._pick(view.rows[begin:end], view.context[d], view.keys[begin:end])
                for d, (begin, end) in enumerate(spans)
            ],
            np.int64,
        )

    def _pick(self, share: Floats32, used: Floats32, keys: Ints) -> int:
        """Return which of n waiting jobs is picked; the same decision draws the same random numbers.

        `share`: [n, R] fractions of the capacities, oldest job first; `used`: [R] what is in use of them;
        `keys`: [n] see `bridge.env.rows.key_rows`.
        """
        wanted, taken = share.astype(np.float64), used.astype(np.float64)
        fitting = np.flatnonzero(feasible(taken + wanted))
        if len(fitting) < 2:
            return int(fitting[0]) if len(fitting) else 0
        if len(fitting) <= self.exhaustive:
            sets = all_sets(len(fitting))
        else:
            rng = np.random.default_rng(keys.astype(np.uint64))
            sets = self.searched(wanted[fitting], taken, rng)
        best = sets[chosen(taken + sets @ wanted[fitting])]
        return int(fitting[np.argmax(best)])

    def searched(self, wanted: Floats, taken: Floats, rng: np.random.Generator) -> Floats:
        """Search good sets of k jobs, each of which fits alone, by a genetic algorithm: 0 or 1, [n, k].

        Sets mate in random pairs (one cut each), their children mutate and are made to fit (see `filled`).
        Of parents and children those live on that no other beats, and after them the youngest.
        BBSched throws away what does not fit; here that is mended, so that the rival is no weaker for it.
        Every set that ever lived is returned, those with older jobs first.
        """
        k, half = len(wanted), self.population // 2
        alive = rng.random((self.population, k)) < 0.5
        singles = rng.permutation(k)[: self.population]
        alive[np.arange(len(singles)), singles] = True
        alive = filled(alive, wanted, taken, rng)
        sets = [alive]
        for _ in range(self.generations):
            mothers, fathers = alive[rng.integers(len(alive), size=(2, half))]
            left = np.arange(k) < rng.integers(1, k, (half, 1))
            born = np.concatenate((np.where(left, mothers, fathers), np.where(left, fathers, mothers)))
            born ^= rng.random(born.shape) < self.mutation
            born = filled(born, wanted, taken, rng)
            sets.append(born)
            alive = np.concatenate((born, alive))
            alive = alive[np.sort(np.unique(alive, axis=0, return_index=True)[1])]
            unbeaten = pareto(alive @ wanted)
            alive = np.concatenate((alive[unbeaten], alive[~unbeaten]))[: self.population]
        return np.unique(np.concatenate(sets), axis=0)[::-1].astype(np.float64)


@lru_cache(maxsize=_MOST + 1)
def all_sets(k: int) -> Floats:
    """Return all sets of k jobs but the empty one as 0 or 1, [2^k − 1, k], those with older jobs first."""
    numbers = np.arange(2**k - 1, 0, -1)[:, None]
    sets = (numbers >> np.arange(k - 1, -1, -1) & 1).astype(np.float64)
    sets.setflags(write=False)
    return sets


def feasible(use: Floats) -> Flags:
    """Tell which uses [n, R], as fractions of the capacities, a machine can bear."""
    return np.asarray((use <= 1 + TIE).all(1), np.bool_)


def filled(sets: Flags, wanted: Floats, taken: Floats, rng: np.random.Generator) -> Flags:
    """Make sets [n, k] fit: jobs are put in one by one, in a random order, a set's own before the rest.

    A set to which a job could be added is beaten by that larger set, so that nothing good is missed.
    `wanted`: [k, R]; `taken`: [R].
    """
    order = rng.permutation(len(wanted))
    use = np.repeat(taken[None], len(sets), 0)
    completed = np.zeros_like(sets)
    for own in (True, False):
        for j in order:
            fits = (sets[:, j] == own) & feasible(use + wanted[j])
            completed[:, j] |= fits
            use[fits] += wanted[j]
    return completed


def pareto(use: Floats) -> Flags:
    """Tell which of n uses [n, R] no other beats: as much of every resource, more of one. Equals all stay."""
    more = use[None] - use[:, None]
    beaten = (more.min(2) >= -TIE) & (more.max(2) > TIE)
    return np.asarray(~beaten.any(1), np.bool_)


def chosen(use: Floats) -> int:
    """Choose among sets by what would be in use of each resource: [n, R], nodes first, running jobs included.

    Of the Pareto set of those the machine can bear, the base is the one with most nodes. It gives way to the
    one with most of the other resources, added up, among those whose *gain* is above 0.3 × |the base's sum of
    the other resources| and whose *loss* is below 0.1. Gain: the set's sum of the other resources less the
    base's. Loss: the base's share of nodes in use less the set's. All are fractions of the capacities, those
    of what already runs included, as BBSched's public code (``best_from_ga``) has them. Among equals the
    other resources' sum decides (nodes, where that is what was compared), then the first in order.

    The Pareto set itself need not be known: most nodes, then most of the rest, is beaten by nobody, and
    neither is most of the rest, then most nodes, among all with a loss below a limit: whoever beats it would
    lose less.

    Raises:
        ValueError: the machine can bear none.
    """
    able = feasible(use)
    if not able.any():
        raise ValueError("no set fits")
    nodes = np.where(able, use[:, 0], -np.inf)
    rest = np.where(able, use[:, 1:].sum(1), -np.inf)
    base = _highest(nodes, rest)
    better = (rest - rest[base] > GAIN * abs(rest[base]) + TIE) & (nodes > nodes[base] - LOSS + TIE)
    return _highest(np.where(better, rest, -np.inf), nodes) if better.any() else base


def _highest(values: Floats, then: Floats) -> int:
    """Return the place of the highest value, of those the highest of `then`, of those the first."""
    then = np.where(values >= values.max() - TIE, then, -np.inf)
    return int(np.argmax(then >= then.max() - TIE))
