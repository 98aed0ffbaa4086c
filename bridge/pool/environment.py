"""The Gymnasium environments of the time-stepped pool: pick a waiting job, kill a running one, or wait."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from bridge.errors import BridgeError
from bridge.pool.evaluate import jobs_of
from bridge.pool.jobset import STEP_SECONDS, JobSet, believing
from bridge.pool.picture import Picture, View, highest
from bridge.pool.pools import Pools
from bridge.pool.schedule import Schedule
from bridge.pool.settings import Kill, Settings
from bridge.pool.state import Flags, Floats, Ints
from bridge.pool.world import Sequences, draw

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
        observations: float32 [B, H, width] `bridge.pool.picture`; 0 where the episode is over. Every call
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


def _spaces(settings: Settings) -> tuple[Space[Any], Discrete]:
    high = highest(settings)
    return Box(np.zeros_like(high), high, high.shape, np.float32), Discrete(settings.actions)


class PickOrKillEnv(gymnasium.Env[Picture, np.int64]):
    """RLSchert's pool: pick a waiting job, kill a running one, or let time pass.

    An observation is the picture of `bridge.pool.picture`. Actions are those of
    `bridge.pool.machine.answer`: a slot, none, a kill slot. One that is not legal (see `action_masks`)
    never fails: it counts as none, and ``info["invalid"]`` is True.

    The reward of an answer that lets time pass is minus the slowdown, or the completion time in steps, that
    all jobs in the system gain by it (`bridge.pool.machine`); other answers earn 0. An episode terminates
    when all jobs have ended, and is truncated after the pool's last step.

    `info` has ``time`` (s) and ``invalid``; with the episode's last step also ``slowdown`` and
    ``completion_time`` (s), means over its jobs; one that has not ended by then counts as if it had.

    Args:
        render_mode: None; there is nothing to render.
        options: fields of `bridge.pool.environment.Task`.

    Raises:
        BridgeError: as `bridge.pool.environment.Episodes`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(self, *, render_mode: None = None, **options: Any) -> None:
        self.render_mode = render_mode
        self.task = _task(options)
        self._episodes = Episodes(self.task, 1)
        self.observation_space, self.action_space = _spaces(self.task.settings)
        if self.task.seed is not None:
            super().reset(seed=self.task.seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Begin the next episode.

        Args:
            seed: of this draw and those that follow; given sequences begin again.
            options: none are known.
        """
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._episodes.rewind()
        self._episodes.begin(np.zeros(1, np.int64), self.np_random)
        return self._episodes.observations[0], self._info(False)

    def step(self, action: np.int64 | int) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        """Answer the decision that waits.

        Raises:
            BridgeError: the episode is over.
        """
        if not self._episodes.waiting[0]:
            raise BridgeError("no decision waits for an answer", remedy="Call reset() first.")
        done = self._episodes.answer(np.array([action], np.int64))
        over, cut = bool(done.over[0]), bool(done.cut[0])
        info = self._info(bool(done.invalid[0]))
        if over or cut:
            slowdown, completion = self._episodes.means(np.ones(1, np.bool_))
            info |= {"slowdown": float(slowdown[0]), "completion_time": float(completion[0]) * STEP_SECONDS}
        return self._episodes.observations[0], float(done.rewards[0]), over, cut, info

    def _info(self, invalid: bool) -> dict[str, Any]:
        return {"time": float(self._episodes.now[0]) * STEP_SECONDS, "invalid": invalid}

    def action_masks(self) -> Flags:
        """Return [actions] which are legal now, as sb3-contrib's MaskablePPO asks; none behind the end."""
        return np.array(self._episodes.masks[0])

    def outcome(self) -> Schedule:
        """Return what has become of the episode's jobs so far."""
        return self._episodes.outcome(0)


class PickOrKillVectorEnv(gymnasium.vector.VectorEnv[Picture, Ints, npt.NDArray[Any]]):
    """`PickOrKillEnv`, B times, all from one generator, in one call.

    A place whose episode has ended begins the next one at the following step, whatever its action
    (Gymnasium's ``NEXT_STEP``). `info` holds arrays [B]; ``slowdown`` and ``completion_time`` come with the
    masks ``_slowdown`` and ``_completion_time`` of the places whose episode has just ended.

    Args:
        num_envs: B.
        render_mode: None.
        options: fields of `bridge.pool.environment.Task`.

    Raises:
        BridgeError: as `PickOrKillEnv`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int, *, render_mode: None = None, **options: Any) -> None:
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.task = _task(options)
        self._episodes = Episodes(self.task, num_envs)
        self.single_observation_space, self.single_action_space = _spaces(self.task.settings)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        if self.task.seed is not None:
            super().reset(seed=self.task.seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Begin an episode at every place.

        Args:
            seed: of this draw and those that follow; given sequences begin again.
            options: none are known.
        """
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._episodes.rewind()
        self._episodes.begin(np.arange(self.num_envs), self.np_random)
        return self._episodes.observations, self._info(np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Ints) -> tuple[Picture, Floats, Flags, Flags, dict[str, Any]]:
        """Answer every waiting decision, and begin the next episode where one was over."""
        ended = np.flatnonzero(~self._episodes.waiting)
        done = self._episodes.answer(actions)
        if len(ended):
            self._episodes.begin(ended, self.np_random)
        info = self._info(done.invalid)
        if (last := done.over | done.cut).any():
            slowdown, completion = self._episodes.means(last)
            info |= {"slowdown": slowdown, "_slowdown": last}
            info |= {"completion_time": completion * STEP_SECONDS, "_completion_time": last.copy()}
        return self._episodes.observations, done.rewards, done.over, done.cut, info

    def _info(self, invalid: Flags) -> dict[str, Any]:
        return {"time": self._episodes.now * float(STEP_SECONDS), "invalid": invalid}

    def action_masks(self) -> Flags:
        """Return [B, actions] which are legal now; none at places whose episode is over."""
        return np.array(self._episodes.masks)

    def outcome(self, place: int) -> Schedule:
        """Return what has become of the jobs of a place's episode so far."""
        return self._episodes.outcome(place)


def _task(options: dict[str, Any]) -> Task:
    try:
        return Task(**options)
    except TypeError as error:
        raise BridgeError(
            f"unknown option: {error}", where="PickOrKill", remedy="See bridge.pool.environment.Task."
        ) from None
