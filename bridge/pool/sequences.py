"""Job sequences: at every step a job arrives with a fixed probability, drawn from a set of jobs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.pool.jobset import JobSet
from bridge.pool.settings import Settings
from bridge.pool.state import State, reset
from bridge.pool.state import allocate as allocate_state
from bridge.pool.world import World
from bridge.pool.world import allocate as allocate_world

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sequences:
    """S sequences over T steps.

    Attributes:
        jobs: what they are drawn from.
        arrivals: [S, T] index of the job that arrives at a step, or -1. What is drawn for step 0 never
            arrives, as in the authors' code.
    """

    jobs: JobSet
    arrivals: Ints

    def __len__(self) -> int:
        return len(self.arrivals)

    def drawn(self, s: int) -> tuple[Ints, Ints]:
        """Return (arrival steps, indices into `jobs`) of the jobs of sequence `s`, in order of arrival."""
        steps = np.flatnonzero(self.arrivals[s, 1:] >= 0) + 1
        return steps, self.arrivals[s, steps]

    @property
    def most(self) -> int:
        """Jobs of the longest sequence."""
        return int((self.arrivals[:, 1:] >= 0).sum(axis=1).max())


def draw(jobs: JobSet, seed: int, *, rate: float = 0.7, steps: int = 200, sequences: int = 16) -> Sequences:
    """Draw sequences with the authors' random calls, so that equal seeds give their sequences.

    For every sequence and step: a job arrives if rand() < rate; then its index is randint(0, N).

    Args:
        jobs: N jobs, in the order that indices refer to.
        seed: of NumPy's legacy generator: 314159 is the paper's test set, 42 its training set.
        rate: arrivals per step (job_rate).
        steps: T (simu_len: time steps, not jobs).
        sequences: S (num_ex).

    Raises:
        BridgeError: a number out of its range.
    """
    if not 0.0 <= rate <= 1.0:
        raise BridgeError(f"the arrival rate must lie in 0 … 1 jobs per step, not {rate:g}")
    if not 0 <= seed < 2**32:
        raise BridgeError(f"the seed must lie in 0 … {2**32 - 1}, not {seed}")
    if steps < 2 or sequences < 1:
        raise BridgeError(
            f"{sequences} sequences of {steps} steps hold no job", remedy="Use at least 1 and 2."
        )
    random = np.random.RandomState(seed)  # the published sequences came from this generator
    arrivals = np.full(sequences * steps, -1, np.int64)
    for k in range(len(arrivals)):
        if random.rand() < rate:
            arrivals[k] = random.randint(0, len(jobs))
    return Sequences(jobs, arrivals.reshape(sequences, steps))


def allocate(
    sequences: Sequences, batch: int, settings: Settings, *, most: int = 0, palette_seed: int = 0
) -> tuple[State, World]:
    """Return the memory for `batch` pools that can play any of the sequences; `load` one into each.

    Args:
        sequences, batch, settings: what is to be played.
        most: jobs of the longest sequence, if others of the same jobs are to be played, too.
        palette_seed: see `bridge.pool.state.allocate`.

    Raises:
        BridgeError: a job cannot run in such a pool.
    """
    sequences.jobs.check(settings)
    width = sequences.jobs.beliefs.shape[1]
    most = max(most, sequences.most)
    state = allocate_state(batch, most, width, settings, palette_seed=palette_seed)
    return state, allocate_world(batch)


def load(state: State, world: World, b: int, sequences: Sequences, s: int) -> None:
    """Put pool `b` at the beginning of sequence `s`: step 0, idle, an answer is wanted."""
    steps, index = sequences.drawn(s)
    jobs, n = sequences.jobs, len(steps)
    records = state.jobs[b, :n]
    for name, values in (
        ("id", jobs.id),
        ("units", jobs.units),
        ("length", jobs.length),
        ("believed", jobs.believed),
    ):
        records[name] = values[index]
    records["submit"] = steps
    state.beliefs[b, :n] = jobs.beliefs[index]
    reset(state, b)
    plan = world.plan[b]
    plan.arrived, plan.jobs, plan.span = 0, n, sequences.arrivals.shape[1]
