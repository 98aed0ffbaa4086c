"""The configuration of a replay: one typed object between command line, run folder and core."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from bridge.errors import BridgeError
from bridge.fast.episode import Prepared, prepare, with_preset
from bridge.scheduler.protocol import Policy, Protocol, protocol
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES, PRESETS, LoadRule
from bridge.workload.select import Jobs, select
from bridge.workload.table import Workload

#: The fields of a setup that are its policy.
POLICY = ("order", "backfill", "candidate_order", "blocked")


@dataclass(frozen=True)
class Setup:
    """Everything but the log that decides a replay's schedule.

    Attributes:
        order, backfill, candidate_order, blocked: the policy, see `bridge.scheduler.protocol.Policy`.
        protocol: ``standard``, ``cqsim`` or ``schedgym``.
        preset: loader and sampling of one code base of the SchedGym family; empty = the protocol's own.
        estimator: empty = the protocol's own.
        cancelled: keep or drop jobs that never ran; empty = the loading rule's own.
        nodes: machine size, if not the log's.
        first: only the first N kept jobs.
        rebase: submit times count from the first kept job; None = the loading rule's own.
    """

    order: str = "fcfs"
    backfill: str = "easy"
    candidate_order: str = ""
    protocol: str = "standard"
    preset: str = ""
    estimator: str = ""
    cancelled: Literal["", "keep", "drop"] = ""
    nodes: int | None = None
    first: int | None = None
    rebase: bool | None = None
    blocked: Literal["", "held", "first"] = ""

    def rules(self) -> tuple[Protocol, LoadRule]:
        """Return the protocol and the loading rule.

        Raises:
            BridgeError: unknown protocol or preset.
        """
        base = protocol(self.protocol)
        name = self.preset or DEFAULT_RULE[self.protocol]
        if name not in LOAD_RULES:
            raise BridgeError("unknown preset", where=repr(name), remedy=f"Choose {', '.join(PRESETS)}.")
        if base.name == "schedgym":
            return with_preset(base, name)
        return base, LOAD_RULES[name]

    def select(self, workload: Workload) -> Jobs:
        """Return the jobs that this setup schedules.

        Raises:
            BridgeError: a demand is not known, no machine size, or no job is left.
        """
        return select(
            workload,
            self.rules()[1],
            cancelled=self.cancelled or None,
            nodes=self.nodes,
            first=self.first,
            rebase=self.rebase,
        )

    def policy(
        self,
        decision: str = "",
        *,
        guard: bool = True,
        max_rejects: int = Policy.max_rejects,
        retry_after: float = Policy.retry_after,
    ) -> Policy:
        """Return the scheduler's policy: order and backfilling, with an agent for a decision if one is named.

        Args:
            decision: ``pick``, ``backfill``, ``inspect``, ``pick+backfill``, or empty: the rules decide all.
            guard, max_rejects, retry_after: see `bridge.scheduler.protocol.Policy`.
        """
        return Policy(
            self.order,
            self.backfill,
            self.candidate_order,
            agent=frozenset(decision.split("+") if decision else ()),
            blocked=self.blocked,
            guard=guard,
            max_rejects=max_rejects,
            retry_after=retry_after,
        )

    def prepare(self, jobs: Jobs, policy: Policy | None = None) -> Prepared:
        """Bring selected jobs, policy (if not the setup's own order and backfilling) and rules together."""
        rules, load = self.rules()
        return prepare(jobs, rules, policy or self.policy(), self.estimator or rules.estimator, load)

    def deciding_as(self, other: "Setup") -> "Setup":
        """Return this setup's jobs and rules under another one's policy."""
        return replace(self, **{name: getattr(other, name) for name in POLICY})

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for a run's record; unset ones are None."""
        return asdict(self)
