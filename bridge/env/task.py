"""Everything that makes an environment, as one typed object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from bridge.encode.encoder import DECISIONS, Decision, Encoder
from bridge.env.defaults import ENCODERS, SETUPS, WORKLOAD
from bridge.env.reward import Reward
from bridge.errors import BridgeError
from bridge.fast.setup import Setup
from bridge.scheduler.protocol import Policy
from bridge.workload.select import Jobs
from bridge.workload.table import Workload

Guard = Literal["none", "penalty", "mask"]


@dataclass(frozen=True)
class Task:
    """What is decided, on which jobs, under which rules, and what is seen and rewarded.

    Attributes:
        decision: ``pick``, ``backfill``, ``pick+backfill`` (both by one agent) or ``inspect``.
        setup: order, backfilling, protocol, …; without the agent this is the base that rewards compare with.
        encoder: rows, features, window, stop action, padding, context; may be for any number of resources.
        reward: see `bridge.env.reward.Reward`.
        workload: a log's path, a bundled or fetched one's name, a Workload, or Jobs selected already.
        guard: BACKFILL: ``mask`` (only what EASY allows is offered), ``penalty`` (see `Reward`) or ``none``.
        max_rejects, retry_after: INSPECT, see `bridge.scheduler.protocol.Policy`.
        length: L, jobs an episode.
        part: fractions of the workload, in submission order, that episodes are drawn from.
        starts: first jobs, taken in this order again and again; None = drawn at random from `part`.
        seed: of the draws until the first `reset` that names one; None = not repeatable.
        constants: what features may use beside the scheduler's variables; None = ``max_run`` of the workload.
    """

    decision: Decision
    setup: Setup
    encoder: Encoder
    reward: Reward = field(default_factory=Reward)
    workload: str | Path | Workload | Jobs = WORKLOAD
    guard: Guard = "none"
    max_rejects: int = 72
    retry_after: float = 600.0
    length: int = 256
    part: tuple[float, float] = (0.0, 1.0)
    starts: Sequence[int] | None = None
    seed: int | None = None
    constants: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            BridgeError: see there.
        """
        if self.encoder.decision != self.decision:
            raise BridgeError(
                f"an encoder of {self.encoder.decision} decisions shows no {self.decision} decision",
                where="encoder",
            )
        if "backfill" in self.decision and self.setup.backfill != "easy":
            raise BridgeError(
                f"no agent can backfill behind backfill={self.setup.backfill!r}",
                remedy="Use backfill='easy'.",
            )
        if self.guard not in get_args(Guard):
            raise BridgeError(
                "unknown guard", where=repr(self.guard), remedy=f"Choose {', '.join(get_args(Guard))}."
            )
        if self.guard == "penalty" and self.reward.penalty <= 0:
            raise BridgeError("a guard by penalty needs a reward with a penalty above 0", where="reward")
        self.reward.check()

    def policy(self) -> Policy:
        """Return the scheduler's policy with the agent in it."""
        return self.setup.policy(
            self.decision,
            guard=self.guard == "mask",
            max_rejects=self.max_rejects,
            retry_after=self.retry_after,
        )


def task(decision: Decision, **options: Any) -> Task:
    """Return a decision's task.

    Args:
        decision: ``pick``, ``backfill``, ``pick+backfill`` or ``inspect``.
        options: any field of `Task`, or of its `Setup` (``order="sjf"``, ``blocked="held"``, …); the
            others are as `bridge.env.defaults` has them.

    Raises:
        BridgeError: an unknown decision or option, or options that contradict each other.
    """
    if decision not in DECISIONS:
        raise BridgeError("unknown decision", where=repr(decision), remedy=f"Choose {', '.join(DECISIONS)}.")
    own = {f.name for f in fields(Task)} - {"decision"}
    rules = {f.name for f in fields(Setup)}
    if unknown := sorted(options.keys() - own - rules):
        known = ", ".join(sorted(own | rules))
        raise BridgeError("unknown option", where=repr(unknown[0]), remedy=f"Known: {known}.")
    setup = replace(
        options.get("setup") or SETUPS[decision], **{k: v for k, v in options.items() if k in rules}
    )
    given = {k: v for k, v in options.items() if k in own and v is not None}
    return Task(**{"decision": decision, "encoder": ENCODERS[decision], **given, "setup": setup})
