"""The Gymnasium vector environment: many episodes side by side in the compiled core."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from bridge.encode.encoder import Decision
from bridge.env.environment import spaces_of
from bridge.env.episodes import Episodes, Flags, Floats, Ints, Observation
from bridge.env.outcome import Episode
from bridge.env.task import task


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Observation, Ints, npt.NDArray[Any]]):
    """`bridge.env.environment.SchedulingEnv`, B times, all on the same workload and from one generator.

    A place whose episode has ended begins the next one at the following step, whatever its action
    (Gymnasium's ``NEXT_STEP``). `info` holds arrays [B]; ``metric`` and ``base`` come with the masks
    ``_metric`` and ``_base`` of the places whose episode has just ended.

    Args:
        num_envs: B.
        decision: ``pick``, ``backfill``, ``pick+backfill`` or ``inspect``.
        options: see `bridge.env.task.task`.

    Raises:
        BridgeError: as `SchedulingEnv`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self, num_envs: int, decision: Decision, *, render_mode: None = None, **options: Any
    ) -> None:
        self.num_envs = num_envs
        self.render_mode = render_mode
        self._episodes = Episodes(task(decision, **options), num_envs)
        self.task = self._episodes.task
        self.single_observation_space, self.single_action_space = spaces_of(self.task.encoder)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        if self.task.seed is not None:
            super().reset(seed=self.task.seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode at every place.

        Args:
            seed: of this draw and those that follow; a list of starts begins again.
            options: ``start``: [B] the first jobs, in place of drawn ones.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._episodes.starts.rewind()
        first = (options or {}).get("start")
        starts = None if first is None else np.broadcast_to(np.asarray(first, np.int64), self.num_envs)
        self._episodes.begin(np.arange(self.num_envs), self.np_random, starts)
        return self._episodes.observation(), self._info(np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Ints) -> tuple[Observation, Floats, Flags, Flags, dict[str, Any]]:
        """Answer every waiting decision, and begin the next episode where one was over.

        Raises:
            BridgeError: as `bridge.env.batch.Batch.step`.
        """
        ended = np.flatnonzero(~self._episodes.waiting)
        done = self._episodes.answer(actions)
        if len(ended):
            self._episodes.begin(ended, self.np_random)
        info = self._info(done.invalid)
        if done.over.any():
            base = np.where(done.over, self._episodes.base, np.nan)
            info |= {"metric": done.values, "_metric": done.over, "base": base, "_base": done.over.copy()}
        truncated = np.zeros(self.num_envs, np.bool_)
        return self._episodes.observation(), done.rewards, done.over.copy(), truncated, info

    def _info(self, invalid: Flags) -> dict[str, Any]:
        return {
            "time": self._episodes.seconds,
            "first_job": self._episodes.first.copy(),
            "invalid": invalid,
        }

    def action_masks(self) -> Flags:
        """Return [B, actions] which are legal now; none at places whose episode is over."""
        return np.array(self._episodes.masks)

    def outcome(self, place: int) -> Episode:
        """Return what became of the jobs of a place's episode."""
        return self._episodes.outcome(place)
