"""The Gymnasium environments of the event-driven scheduler, one episode at a time or many."""

from typing import Any

from bridge.env.encoder import DecisionKind
from bridge.env.env_config import build_env_config
from bridge.env.episodes import LogEpisodes
from bridge.env.gym_env import SchedulingEnvBase, SchedulingVectorEnvBase


class SchedulingEnv(SchedulingEnvBase):
    """A scheduler that asks the agent for every decision of one kind, on episodes of a job log.

    An observation has one row per candidate; an absent one is the encoder's padding, as are all rows behind
    the end. If the encoder has a context, an observation is ``{"rows": …, "context": …}``, and the context
    behind the end is zeros. Action k takes the candidate of row k (PICK, BACKFILL; PREEMPT: this running job
    gives way to the blocked head; TRIAL: this waiting job is tried; with a stop action the last one
    declines), or 0 accepts and 1 rejects (INSPECT). Decisions with one possible answer are not asked.

    An action that is not legal (see `action_masks`) never fails: it counts as DECLINE where there is such an
    action (BACKFILL with a stop action), else as the first legal one, and ``info["invalid"]`` is True.

    `info` has ``time`` (s), ``first_job``, ``invalid`` and ``action_mask`` (int8 [actions]); with the
    episode's last step also ``metric`` (the schedule's value) and ``base`` (the base policy's on the same
    jobs). `reset` knows the option ``start``: the first job, in place of a drawn one. `outcome` is a
    `bridge.env.reward.EpisodeOutcome`.

    Args:
        decision: ``pick``, ``backfill``, ``pick+backfill``, ``inspect``, ``preempt`` or ``trial``.
        render_mode: what `render` returns: ``ansi`` (text) or ``rgb_array`` (a picture); None = nothing.
        options: see `bridge.env.env_config.build_env_config`.

    Raises:
        BridgeError: as `bridge.env.env_config.build_env_config` and `bridge.env.episodes.LogEpisodes`.
    """

    def __init__(self, decision: DecisionKind, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(LogEpisodes(build_env_config(decision, **options), 1), render_mode)


class SchedulingVectorEnv(SchedulingVectorEnvBase):
    """`SchedulingEnv`, `num_envs` times on one workload; ``start`` is [B]."""

    def __init__(
        self, num_envs: int, decision: DecisionKind, *, render_mode: str | None = None, **options: Any
    ) -> None:
        super().__init__(LogEpisodes(build_env_config(decision, **options), num_envs), render_mode)
