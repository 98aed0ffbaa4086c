"""The Gymnasium environments, one episode at a time or many: PICK, BACKFILL, both, or INSPECT."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from bridge.encode.encoder import Decision, Encoder
from bridge.env.episodes import Episodes, Flags, Floats, Ints, Observation
from bridge.env.reward import Episode
from bridge.env.task import task
from bridge.errors import BridgeError

_LIMIT = float(np.finfo(np.float32).max)  # features are finite; more is not known about them


def spaces_of(encoder: Encoder) -> tuple[Space[Any], Discrete]:
    """Return the observation space and the action space of an encoder.

    What is seen is float32 [rows, features]; with a context a dictionary of these ``rows`` and the
    ``context``, float32 [C].
    """
    rows = Box(-_LIMIT, _LIMIT, (encoder.rows, encoder.width), np.float32)
    actions = Discrete(encoder.actions)
    if not encoder.context:
        return rows, actions
    context = Box(-_LIMIT, _LIMIT, (encoder.context,), np.float32)
    return Dict({"rows": rows, "context": context}), actions


class _Asking:
    """What both environments do alike: they make episodes of a task, and begin them."""

    def _make(self, decision: Decision, size: int, options: dict[str, Any]) -> None:
        self._episodes = Episodes(task(decision, **options), size)
        self.task = self._episodes.task

    def _restart(self, seed: int | None, options: dict[str, Any] | None, rng: np.random.Generator) -> None:
        """Begin an episode at every place, at the first jobs ``start`` if they are given."""
        if seed is not None:
            self._episodes.starts.rewind()
        size, first = len(self._episodes), (options or {}).get("start")
        starts = None if first is None else np.broadcast_to(np.asarray(first, np.int64), size)
        self._episodes.begin(np.arange(size), rng, starts)


class SchedulingEnv(_Asking, gymnasium.Env[Observation, np.int64]):
    """A scheduler that asks the agent for every decision of one kind, on episodes of a job log.

    An observation has one row per candidate; an absent one is the encoder's padding, as are all rows behind
    the end. If the encoder has a context, an observation is ``{"rows": …, "context": …}``, and the context
    behind the end is zeros. Action k takes the candidate of row k (PICK, BACKFILL; with a stop action the
    last one declines), or 0 accepts and 1 rejects (INSPECT). Decisions with one possible answer are not
    asked.

    An action that is not legal (see `action_masks`) never fails: it counts as DECLINE where there is such an
    action (BACKFILL with a stop action), else as the first legal one, and ``info["invalid"]`` is True.

    `info` has ``time`` (s), ``first_job`` and ``invalid``; with the episode's last step also ``metric`` (the
    schedule's value) and ``base`` (the base policy's on the same jobs).

    Args:
        decision: ``pick``, ``backfill``, ``pick+backfill`` or ``inspect``.
        render_mode: None; there is nothing to render.
        options: see `bridge.env.task.task`.

    Raises:
        BridgeError: as `bridge.env.task.task` and `bridge.env.episodes.Episodes`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(self, decision: Decision, *, render_mode: None = None, **options: Any) -> None:
        self.render_mode = render_mode
        self._make(decision, 1, options)
        self.observation_space, self.action_space = spaces_of(self.task.encoder)
        if self.task.seed is not None:
            super().reset(seed=self.task.seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode.

        Args:
            seed: of this draw and those that follow; a list of starts begins again.
            options: ``start``: the first job, in place of a drawn one.
        """
        super().reset(seed=seed)
        self._restart(seed, options, self.np_random)
        return self._episodes.observation(0), self._info(False)

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer the decision that waits.

        Raises:
            BridgeError: the episode is over, or as `bridge.env.batch.Batch.step`.
        """
        if not self._episodes.waiting[0]:
            raise BridgeError("no decision waits for an answer", remedy="Call reset() first.")
        done = self._episodes.answer(np.array([action], np.int64))
        info = self._info(bool(done.invalid[0]))
        if done.over[0]:
            info |= {"metric": float(done.values[0]), "base": float(self._episodes.base[0])}
        return self._episodes.observation(0), float(done.rewards[0]), bool(done.over[0]), False, info

    def _info(self, invalid: bool) -> dict[str, Any]:
        return {
            "time": float(self._episodes.seconds[0]),
            "first_job": int(self._episodes.first[0]),
            "invalid": invalid,
        }

    def action_masks(self) -> Flags:
        """Return [actions] which are legal now, as sb3-contrib's MaskablePPO asks; none behind the end."""
        return np.array(self._episodes.masks[0])

    def outcome(self) -> Episode:
        """Return what has become of the episode's jobs so far; who has not started yet starts at NaN."""
        return self._episodes.outcome(0)


class SchedulingVectorEnv(_Asking, gymnasium.vector.VectorEnv[Observation, Ints, npt.NDArray[Any]]):
    """`SchedulingEnv`, B times, all on the same workload and from one generator.

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
        self.num_envs, self.render_mode = num_envs, render_mode
        self._make(decision, num_envs, options)
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
        self._restart(seed, options, self.np_random)
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
