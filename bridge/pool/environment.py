"""The Gymnasium environments of the time-stepped pool: pick a waiting job, kill a running one, or wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from types import EllipsisType
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, Space

from bridge.base.arrays import Flags, Floats, Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean
from bridge.config import Count, Natural, Unsigned, verify
from bridge.env.gym_env import Draws, SchedulingEnvBase, SchedulingVectorEnvBase, StepResult, drawn_by
from bridge.env.options import refuse_kinds, refuse_options
from bridge.env.snapshot import EpisodeSnapshot
from bridge.pool.batch import PoolBatch
from bridge.pool.evaluate import jobs_of
from bridge.pool.jobset import STEP_SECONDS, JobSet, with_estimates
from bridge.pool.observation import highest
from bridge.pool.schedule import PoolSchedule
from bridge.pool.settings import PoolConfig
from bridge.pool.snapshot import take_snapshot
from bridge.pool.world import Sequences, draw_sequences
from bridge.scheduler.names import Kill

#: Sequences without jobs in a row before the search for one is given up.
TRIES = 100


@dataclass(frozen=True)
class PoolEnvConfig:
    """Configuration of a pool's environment.

    Attributes:
        data: a job file, a set of jobs, or None for synthetic jobs.
        kill: ``learned`` (the agent kills), ``rule`` (the paper's rule, before every decision), ``none``.
        estimator: beliefs, see `bridge.pool.jobset.with_estimates`.
        settings: of the pool, its objective among them.
        sequences: if given, these are played, in turn, and none is drawn; their beliefs are as they are.
        seed: of the draws, until a reset names another one.
    """

    data: Path | str | JobSet | None = None
    kill: Kill = "learned"
    rate: Unsigned = 0.7
    steps: Count = 200
    estimator: str = "running"
    settings: PoolConfig = field(default_factory=PoolConfig)
    sequences: Sequences | None = None
    seed: Natural | None = None

    def __post_init__(self) -> None:
        if self.kill not in get_args(Kill):
            raise BridgeError(f"unknown kill {self.kill!r}", remedy=f"One of {', '.join(get_args(Kill))}.")
        refuse_kinds(self, _KINDS)
        verify(self, "environment", ("rate", "steps", "estimator", "seed"))


#: What options that are no plain data are, and how to write them.
_KINDS: Mapping[str, tuple[Any, str]] = {
    "data": (str | PathLike | JobSet | None, "Write a job file's path, `synthetic`, or a JobSet."),
    "settings": (PoolConfig, "Write a bridge.pool.settings.Settings."),
    "sequences": (Sequences | None, "Write a bridge.pool.world.Sequences."),
}


class PoolEpisodes:
    """B parallel episodes of pools, see `bridge.env.gym_env.VectorEpisodes`.

    `observations` is float32 [B, H, width], see `bridge.pool.observation`; 0 where the episode is over. It
    and `masks` are new arrays after every call, so that a caller may keep them. Raises BridgeError: the jobs
    cannot be read or run, or an option is out of its range.
    """

    def __init__(self, task: PoolEnvConfig, size: int) -> None:
        self.task = task
        if task.sequences is not None:
            first = task.sequences
            self._jobs = first.jobs
        else:
            jobs = task.data if isinstance(task.data, JobSet) else jobs_of(task.data)
            self._jobs = with_estimates(jobs, task.estimator)
            first = draw_sequences(self._jobs, 0, rate=task.rate, steps=task.steps, sequences=1)
        self.pools = PoolBatch(first, size, task.settings, task.kill, most=first.arrivals.shape[1])
        self.observations: Floats32 = np.zeros((size, *self.pools.shape), np.float32)
        self.masks = self.pools.masks.copy()
        self._next = 0

    def __len__(self) -> int:
        return len(self.pools)

    @property
    def waiting(self) -> Flags:
        return self.pools.waiting.copy()

    def spaces(self) -> tuple[Space[Any], Discrete]:
        high = highest(self.task.settings)
        return Box(np.zeros_like(high), high, high.shape, np.float32), Discrete(self.task.settings.actions)

    def observation(self, b: int | EllipsisType = ...) -> Floats32:
        return self.observations[b]

    def info(self) -> dict[str, npt.NDArray[Any]]:
        return {"time": self.pools.state.env.now * float(STEP_SECONDS)}

    def reset(self, rng: Draws, options: dict[str, Any], *, rewind: bool) -> None:
        """Begin an episode at every place; `rewind`: play given sequences from the first one on."""
        refuse_options(options, ())
        if rewind:
            self._next = 0
        for places, own in drawn_by(rng, np.arange(len(self))):
            self.reset_at(places, own)

    def reset_at(self, places: Ints, rng: np.random.Generator) -> None:
        sequences, which = self._sequences(len(places), rng)
        self.observations = self.observations.copy()
        self.observations[places] = self.pools.begin(places, sequences, which).pictures(places)
        self.masks = self.pools.masks.copy()

    def _sequences(self, n: int, rng: np.random.Generator) -> tuple[Sequences, Ints]:
        """Return sequences and the numbers of the next n."""
        if (sequences := self.task.sequences) is not None:
            which = (self._next + np.arange(n)) % len(sequences)
            self._next = int(which[-1] + 1) if n else self._next
            return sequences, which
        arrivals = np.concatenate([self._draw(rng) for _ in range(n)])
        return Sequences(self._jobs, arrivals), np.arange(n)

    def _draw(self, rng: np.random.Generator) -> Ints:
        task = self.task
        for _ in range(TRIES):
            seed = int(rng.integers(2**32))
            sequences = draw_sequences(self._jobs, seed, rate=task.rate, steps=task.steps, sequences=1)
            if sequences.most:
                return sequences.arrivals
        raise BridgeError("no job arrives", remedy="Use a higher arrival rate or more steps.")

    def step(self, actions: npt.NDArray[np.integer]) -> StepResult:
        """Answer every waiting decision, [B]. One that is not legal counts as none."""
        waiting, none = self.waiting, self.task.settings.slots
        actions = np.asarray(actions).astype(np.int64)
        is_valid = (actions >= 0) & (actions < self.masks.shape[1])
        invalid = waiting & ~(is_valid & self.masks[np.arange(len(self)), np.where(is_valid, actions, none)])
        view = self.pools.step(np.where(invalid, none, actions))
        self.observations = view.pictures()
        self.masks = self.pools.masks.copy()
        ended = waiting & ~self.pools.waiting
        env = self.pools.state.env
        left = env.n_finished + env.n_rejected < self.pools.world.plan.jobs
        return StepResult(self.pools.rewards.copy(), ended & ~left, ended & left, invalid)

    def job_outcomes(self, b: int) -> PoolSchedule:
        return self.pools.schedule(b)

    def snapshot(self, b: int) -> EpisodeSnapshot:
        return take_snapshot(self.pools.state, b, self.task.settings.slots)

    def final_info(self, done: StepResult) -> dict[str, Floats]:
        """Return mean slowdowns and mean completion times (s) of episodes that have ended; else NaN."""
        values = np.full((2, len(self)), np.nan)
        for b in np.flatnonzero(done.terminated | done.truncated).tolist():
            values[:, b] = [self.pools.values(b, o).mean() for o in ("slowdown", "completion")]
        return {"slowdown": values[0], "completion_time": values[1] * STEP_SECONDS}


class PickOrKillEnv(SchedulingEnvBase):
    """RLSchert's pool: pick a waiting job, kill a running one, or let time pass.

    An observation is the picture of `bridge.pool.observation`. Actions are those of
    `bridge.pool.machine.apply_action`: a slot, none, a kill slot. One that is not legal (see `action_masks`)
    never fails: it counts as none, and ``info["invalid"]`` is True. Options are fields of `PoolEnvConfig`;
    errors as `PoolEpisodes`.

    The reward of an answer that lets time pass is minus the slowdown, or the completion time in steps, that
    all jobs in the system gain by it (`bridge.pool.machine`); other answers earn 0. An episode terminates
    when all jobs have ended, and is truncated after the pool's last step.

    `info` has ``time`` (s), ``invalid`` and ``action_mask`` (int8 [actions]); with the episode's last step
    also ``slowdown`` and ``completion_time`` (s), means over its jobs; one that has not ended by then
    counts as if it had. `outcome` is a `bridge.pool.schedule.PoolSchedule`.
    """

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(PoolEpisodes(_task(options), 1), render_mode)


class PickOrKillVectorEnv(SchedulingVectorEnvBase):
    """`PickOrKillEnv`, B times (`num_envs`), see `bridge.env.gym_env.SchedulingVectorEnvBase`."""

    def __init__(self, num_envs: int, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(PoolEpisodes(_task(options), num_envs), render_mode)


def _task(options: dict[str, Any]) -> PoolEnvConfig:
    names = [f.name for f in fields(PoolEnvConfig)]
    for name in options:
        if name not in names:
            remedy = f"{did_you_mean(name, names)}Known: {', '.join(names)}."
            raise BridgeError("unknown option", where=repr(name), remedy=remedy)
    return PoolEnvConfig(**options)
