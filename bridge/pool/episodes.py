"""Episodes on time-stepped pools as Gymnasium wants them: drawn sequences, whole pictures, masks."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.pool.encode import Picture
from bridge.pool.evaluate import jobs_of
from bridge.pool.jobset import JobSet, believing
from bridge.pool.pools import Flags, Floats, Ints, Pools, View
from bridge.pool.schedule import Schedule
from bridge.pool.sequences import Sequences, draw
from bridge.pool.settings import Kill, Settings

#: Sequences without jobs in a row before the search for one is given up.
TRIES = 100


@dataclass(frozen=True)
class Task:
    """What an environment plays.

    Attributes:
        data: a job file, a set of jobs, or None for synthetic jobs.
        kill: ``learned`` (the agent kills), ``rule`` (the paper's rule, before every decision), ``none``.
        rate: arrivals per step.
        steps: time steps in which jobs arrive.
        estimator: beliefs, see `bridge.pool.jobset.believing`.
        settings: of the pool, its objective among them.
        sequences: if given, these are played, in turn, and none is drawn; their beliefs are as they are.
        seed: of the draws, until a reset names another one.
    """

    data: Path | str | JobSet | None = None
    kill: Kill = "learned"
    rate: float = 0.7
    steps: int = 200
    estimator: str = "running"
    settings: Settings = field(default_factory=Settings)
    sequences: Sequences | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.kill not in get_args(Kill):
            raise BridgeError(f"unknown kill {self.kill!r}", remedy=f"One of {', '.join(get_args(Kill))}.")


@dataclass(frozen=True)
class Step:
    """What one answer to every waiting decision brought, each [B].

    Attributes:
        rewards: float64; 0 where nothing was waiting.
        over: all jobs have ended.
        cut: the episode was ended by force, after the pool's last step.
        invalid: the action was not among the legal ones; time moved, as none has it.
    """

    rewards: Floats
    over: Flags
    cut: Flags
    invalid: Flags


class Episodes:
    """B places, each with an episode that waits for a decision or is over.

    Args:
        task: what is played.
        size: B.

    Attributes:
        observations: float32 [B, H, width] `bridge.pool.encode`; 0 where the episode is over. Every call
            makes a new array, so that a caller may keep it.
        masks: bool [B, actions] which actions are legal; none where the episode is over.

    Raises:
        BridgeError: the jobs cannot be read or run, or an option is out of its range.
    """

    def __init__(self, task: Task, size: int) -> None:
        self.task = task
        if task.sequences is not None:
            first = task.sequences
            self._jobs = first.jobs
        else:
            jobs = task.data if isinstance(task.data, JobSet) else jobs_of(task.data)
            self._jobs = believing(jobs, task.estimator)
            first = draw(self._jobs, 0, rate=task.rate, steps=task.steps, sequences=1)
        self.pools = Pools(first, size, task.settings, task.kill, most=first.arrivals.shape[1])
        self.observations: Picture = np.zeros((size, *self.pools.shape), np.float32)
        self.masks = self.pools.masks.copy()
        self._next = 0

    def __len__(self) -> int:
        return len(self.pools)

    @property
    def waiting(self) -> Flags:
        """[B] whether a decision waits for an answer."""
        return self.pools.waiting.copy()

    @property
    def now(self) -> Ints:
        """[B] steps since each episode began."""
        return np.array(self.pools.state.env.now, np.int64)

    def rewind(self) -> None:
        """Play given sequences from the first one again."""
        self._next = 0

    def begin(self, places: Ints, rng: np.random.Generator) -> None:
        """Begin an episode at each of these places; what waits elsewhere stays.

        Raises:
            BridgeError: all sequences that were drawn are without jobs.
        """
        drawn, which = self._sequences(len(places), rng)
        self.observations = self.observations.copy()
        self._show(self.pools.begin(places, drawn, which), places)
        self.masks = self.pools.masks.copy()

    def _sequences(self, n: int, rng: np.random.Generator) -> tuple[Sequences, Ints]:
        """Return sequences and the numbers of the next n."""
        if (given := self.task.sequences) is not None:
            which = (self._next + np.arange(n)) % len(given)
            self._next = int(which[-1] + 1) if n else self._next
            return given, which
        arrivals = np.concatenate([self._draw(rng) for _ in range(n)])
        return Sequences(self._jobs, arrivals), np.arange(n)

    def _draw(self, rng: np.random.Generator) -> Ints:
        task = self.task
        for _ in range(TRIES):
            seed = int(rng.integers(2**32))
            drawn = draw(self._jobs, seed, rate=task.rate, steps=task.steps, sequences=1)
            if drawn.most:
                return drawn.arrivals
        raise BridgeError("no job arrives", remedy="Use a higher arrival rate or more steps.")

    def answer(self, actions: npt.NDArray[np.integer]) -> Step:
        """Answer every waiting decision.

        Args:
            actions: [B]. One that is not legal counts as none.
        """
        waiting, none = self.waiting, self.task.settings.slots
        actions = np.asarray(actions).astype(np.int64)
        known = (actions >= 0) & (actions < self.masks.shape[1])
        invalid = waiting & ~(known & self.masks[np.arange(len(self)), np.where(known, actions, none)])
        view = self.pools.step(np.where(invalid, none, actions))
        self.observations = np.zeros_like(self.observations)
        self._show(view, np.arange(len(self)))
        self.masks = self.pools.masks.copy()
        ended = waiting & ~self.pools.waiting
        env = self.pools.state.env
        left = env.n_finished + env.n_rejected < self.pools.world.plan.jobs
        return Step(self.pools.rewards.copy(), ended & ~left, ended & left, invalid)

    def _show(self, view: View, places: Ints) -> None:
        self.observations[places] = view.pictures(places)

    def outcome(self, b: int) -> Schedule:
        """Return what has become of the jobs of a place's episode so far."""
        return self.pools.schedule(b)

    def means(self, ended: Flags) -> tuple[Floats, Floats]:
        """Return mean slowdowns and mean completion times (steps) of episodes that have ended; else NaN."""
        found = np.full((2, len(self)), np.nan)
        for b in np.flatnonzero(ended).tolist():
            found[:, b] = [self.pools.values(b, o).mean() for o in ("slowdown", "completion")]
        return found[0], found[1]
