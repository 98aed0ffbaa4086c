"""The Gymnasium environments of the time-stepped pool: pick a waiting job, kill a running one, or wait."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from bridge.errors import BridgeError
from bridge.pool.encode import Picture, highest
from bridge.pool.episodes import Episodes, Task
from bridge.pool.jobset import STEP_SECONDS
from bridge.pool.pools import Flags, Floats, Ints
from bridge.pool.schedule import Schedule
from bridge.pool.settings import Settings


def _spaces(settings: Settings) -> tuple[Space[Any], Discrete]:
    high = highest(settings)
    return Box(np.zeros_like(high), high, high.shape, np.float32), Discrete(settings.actions)


class PickOrKillEnv(gymnasium.Env[Picture, np.int64]):
    """RLSchert's pool: pick a waiting job, kill a running one, or let time pass.

    An observation is the picture of `bridge.pool.encode`. Actions are those of
    `bridge.pool.machine.answer`: a slot, none, a kill slot. One that is not legal (see `action_masks`)
    never fails: it counts as none, and ``info["invalid"]`` is True.

    The reward of an answer that lets time pass is minus the slowdown, or the completion time in steps, that
    all jobs in the system gain by it (`bridge.pool.machine`); other answers earn 0. An episode terminates
    when all jobs have ended, and is truncated after the pool's last step.

    `info` has ``time`` (s) and ``invalid``; with the episode's last step also ``slowdown`` and
    ``completion_time`` (s), means over its jobs; one that has not ended by then counts as if it had.

    Args:
        render_mode: None; there is nothing to render.
        options: fields of `bridge.pool.episodes.Task`.

    Raises:
        BridgeError: as `bridge.pool.episodes.Episodes`.
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
        options: fields of `bridge.pool.episodes.Task`.

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
            f"unknown option: {error}", where="PickOrKill", remedy="See bridge.pool.episodes.Task."
        ) from None
