"""The Gymnasium environment of one episode at a time: PICK, BACKFILL, both, or INSPECT."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

from bridge.encode.encoder import Decision, Encoder
from bridge.env.episodes import Episodes, Flags, Observation
from bridge.env.outcome import Episode
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


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
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
        self._episodes = Episodes(task(decision, **options), 1)
        self.task = self._episodes.task
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
        if seed is not None:
            self._episodes.starts.rewind()
        first = (options or {}).get("start")
        starts = None if first is None else np.array([first], np.int64)
        self._episodes.begin(np.zeros(1, np.int64), self.np_random, starts)
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
