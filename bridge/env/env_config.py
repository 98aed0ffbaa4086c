"""Everything that makes an environment, as one typed object, and its defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean
from bridge.config import Natural, Positive, verify
from bridge.env.encoder import DECISIONS, DecisionKind, Encoder
from bridge.env.options import refuse_kinds
from bridge.env.reward import OwnReward, Reward
from bridge.scheduler.compiled import ACTING
from bridge.scheduler.names import SLURM_BACKFILL
from bridge.scheduler.protocol import Policy
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig

Guard = Literal["none", "penalty", "mask"]

# What an environment shows and decides behind when nothing else is said. Every feature lies in −1 … 1.
#: Of the row's job: wait, believed length, nodes, its slowdown so far, whether it can start now.
_JOB = {
    "wait": "min(log10(1 + w)/7, 1)",
    "length": "min(log10(1 + t)/7, 1)",
    "nodes": "n/n_max",
    "slowdown": "min(log10(1 + w/max(t, 10))/4, 1)",
    "fits": "fits",
}
#: Of the machine and the queue; `pressure` is how fast the bounded slowdowns of all waiting jobs grow.
_MACHINE = {
    "free": "free/n_max",
    "waiting": "min(log2(1 + waiting)/16, 1)",
    "running": "min(log2(1 + running)/16, 1)",
    "pressure": "min(log10(1 + 10*cost)/4, 1)",
}
#: Of the reservation of the blocked head, and of the head; without one `head nodes` is 0.
_RESERVATION = {
    "safe": "safe",
    "gap": "min(log10(1 + max(gap, 0))/7, 1)",
    "past gap": "max(-1, min(1, (t - gap)/max(t, 1)))",
    "extra": "min(extra/n_max, 1)",
    "head wait": "min(log10(1 + head_w)/7, 1)",
    "head length": "min(log10(1 + head_t)/7, 1)",
    "head nodes": "head_n/n_max",
}
#: Of the inspected pick: how often it was rejected, and how many others fit (0 without backfilling).
_INSPECTED = {
    "rejects": "min(rejects/72, 1)",
    "backfillable": "min(log2(1 + backfillable)/16, 1)",
}

#: Of a running job that may give way: for how long it is believed to run on, alone and times its nodes.
_STOPPED = {
    "left": "min(log10(1 + max(left, 0))/7, 1)",
    "left area": "min(log10(1 + max(left, 0)*n)/12, 1)",
}

ENCODERS: Mapping[DecisionKind, Encoder] = {
    "pick": Encoder("pick", {**_JOB, **_MACHINE}, window=64),
    "backfill": Encoder(
        "backfill", {**_JOB, "stop": "blocked", **_RESERVATION, **_MACHINE}, window=64, stop=True
    ),
    "pick+backfill": Encoder("pick+backfill", {**_JOB, **_RESERVATION, **_MACHINE}, window=64),
    "inspect": Encoder("inspect", {**_JOB, **_INSPECTED, **_MACHINE}),
    "preempt": Encoder(
        "preempt", {**_JOB, "stop": "blocked", **_STOPPED, **_RESERVATION, **_MACHINE}, window=64, stop=True
    ),
    "trial": Encoder("trial", {**_JOB, "stop": "blocked", **_RESERVATION, **_MACHINE}, window=64, stop=True),
}
_BEHIND = SchedulerConfig(order="fcfs", backfill="easy")
SETUPS: Mapping[DecisionKind, SchedulerConfig] = {
    "pick": _BEHIND,
    "backfill": _BEHIND,
    "pick+backfill": replace(_BEHIND, blocked="held"),
    "inspect": SchedulerConfig(order="sjf", backfill="none"),
    "preempt": SchedulerConfig(order="saf", backfill="easy", action="hybrid(300)"),
    "trial": SchedulerConfig(order="saf", backfill="easy", action="guest(300)"),
}
#: The workload that comes with bridge.
WORKLOAD = "bundled-128"


class DecisionConfig:
    """Scheduler configuration in which an agent takes some of the decisions."""

    setup: SchedulerConfig
    encoder: Encoder
    reward: Reward
    guard: Guard
    max_rejects: int
    retry_after: float

    def policy(self, setup: SchedulerConfig | None = None) -> Policy:
        """Return the scheduler's policy with the agent in it; `setup`: this one's, not its own."""
        guard, decision = self.guard == "mask", self.encoder.decision
        rejects, after, setup = self.max_rejects, self.retry_after, setup or self.setup
        return setup.policy(decision, guard=guard, max_rejects=rejects, retry_after=after)

    def base(self) -> SchedulerConfig:
        """Return what rewards compare with: the setup without the agent, or a base of the reward's own."""
        order, candidates = self.reward.base_order, self.reward.base_candidate_order
        if not order:
            return self.setup
        return replace(self.setup, order=order, candidate_order=candidates, blocked="")


@dataclass(frozen=True)
class EnvConfig(DecisionConfig):
    """What is decided, on which jobs, under which rules, and what is seen and rewarded.

    Attributes:
        decision: ``pick``, ``backfill``, ``pick+backfill`` (both by one agent), ``inspect``; ``preempt`` or
            ``trial`` beside a rule of action in `setup`, in whose choice the agent stands.
        setup: order, backfilling, protocol, …; without the agent this is the base that rewards compare with.
        encoder: rows, features, window, stop action, padding, context; may be for any number of resources.
        reward: see `bridge.env.reward.Reward`; or a function of the episode that is over
            (`bridge.env.reward.EpisodeOutcome`), whose value (more is better) comes with its last decision.
        workload: a log's path, a bundled or fetched one's name, a Workload, or Jobs selected already.
        guard: BACKFILL: ``mask`` (only what EASY allows is offered), ``penalty`` (see `Reward`) or ``none``.
        max_rejects: INSPECT, see `bridge.scheduler.protocol.Policy`.
        retry_after: INSPECT, see `bridge.scheduler.protocol.Policy`.
        length: L, jobs an episode.
        part: fractions of the workload, in submission order, that episodes are drawn from.
        starts: first jobs, taken in this order again and again; None = drawn at random from `part`.
        seed: of the draws until the first `reset` that names one; None = not repeatable.
        constants: what features may use beside the scheduler's variables; None = ``max_run`` of the workload.
    """

    decision: DecisionKind
    setup: SchedulerConfig
    encoder: Encoder
    reward: Reward = field(default_factory=Reward)
    workload: str | Path | Workload | Jobs = WORKLOAD
    guard: Guard = "none"
    max_rejects: Natural = 72
    retry_after: Positive = 600.0
    length: int = 256
    part: tuple[float, float] = (0.0, 1.0)
    starts: Sequence[int] | None = None
    seed: Natural | None = None
    constants: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if callable(self.reward):
            object.__setattr__(self, "reward", OwnReward(function=self.reward))
        refuse_kinds(self, _KINDS)
        shown_decision, behind, guards = self.encoder.decision, self.setup.backfill, get_args(Guard)
        if shown_decision != self.decision:
            what = f"an encoder of {shown_decision} decisions shows no {self.decision} decision"
            raise BridgeError(what, where="encoder")
        if "backfill" in self.decision and behind not in ("easy", SLURM_BACKFILL):
            what = f"no agent can backfill behind backfill={behind!r}"
            raise BridgeError(what, remedy="Use backfill='easy', or 'slurm' with the protocol of this name.")
        if self.guard not in guards:
            remedy = f"Choose {', '.join(guards)}."
            raise BridgeError("unknown guard", where=repr(self.guard), remedy=remedy)
        if self.guard == "penalty" and self.reward.penalty <= 0:
            raise BridgeError("a guard by penalty needs a reward with a penalty above 0", where="reward")
        self.reward.check()
        if self.decision in ACTING and (self.reward.spread == "time" or self.reward.idle):
            what = "jobs that may be stopped have no rewards spread over time, and no idle cost"
            raise BridgeError(what, where="reward", remedy="Use spread='end' and idle=0.")
        verify(self, "environment", _PLAIN)
        verify(self.setup, "environment")


#: What options that are no plain data are, and how to write them.
_KINDS: Mapping[str, tuple[Any, str]] = {
    "setup": (
        SchedulerConfig,
        "Write a bridge.worlds.fast.scheduler_config.Setup, or its fields as options of their own.",
    ),
    "encoder": (Encoder, "Write a bridge.env.encoder.Encoder; bridge.env.env_config.ENCODERS has some."),
    "reward": (
        Reward,
        "Write a bridge.env.reward.Reward, such as Reward('bsld', 'percentage'), or a function of an Episode "
        "that returns a number.",
    ),
    "workload": (
        str | PathLike | Workload | Jobs,
        "Write a log's path, the name of a bundled or a fetched one, a Workload, or Jobs.",
    ),
}
_PLAIN = ("max_rejects", "retry_after", "length", "part", "seed", "constants")


def build_env_config(decision: DecisionKind, **options: Any) -> EnvConfig:
    """Return a decision's task: ``pick``, ``backfill``, ``inspect``, ``preempt``, …, see `DECISIONS`.

    `options`: any field of `EnvConfig`, or of its `setup` (``order="sjf"``, ``blocked="held"``, …); the
    others are as `ENCODERS` and `SETUPS` have them. Raises BridgeError: one is unknown, or they contradict
    each other.
    """
    if decision not in DECISIONS:
        raise BridgeError("unknown decision", where=repr(decision), remedy=f"Choose {', '.join(DECISIONS)}.")
    own = {f.name for f in fields(EnvConfig)} - {"decision"}
    rules = {f.name for f in fields(SchedulerConfig)}
    if unknown := sorted(options.keys() - own - rules):
        valid_names = sorted(own | rules)
        remedy = f"{did_you_mean(unknown[0], valid_names)}Known: {', '.join(valid_names)}."
        raise BridgeError("unknown option", where=repr(unknown[0]), remedy=remedy)
    changes = {name: _plain(value) for name, value in options.items() if name in rules}
    own_options = {
        name: _plain(value) for name, value in options.items() if name in own and value is not None
    }
    setup = options.get("setup") or SETUPS[decision]
    own_options["setup"] = replace(setup, **changes) if isinstance(setup, SchedulerConfig) else setup
    return EnvConfig(**{"decision": decision, "encoder": ENCODERS[decision], **own_options})


def _plain(value: Any) -> Any:
    """Return a number of NumPy's as Python's; anything else is as it is."""
    return value.item() if isinstance(value, np.generic) else value
