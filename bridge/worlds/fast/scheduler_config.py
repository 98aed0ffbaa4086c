"""The configuration of a replay: one typed object between command line, run folder and core."""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bridge.base.errors import BridgeError
from bridge.cluster.source import digest_of_cluster, read_cluster
from bridge.config import Constraint, Count
from bridge.config.fields import record_of
from bridge.scheduler.names import BACKFILLS, ESTIMATORS, MULTIFACTOR, ORDERS, RECORDED, SLURM_BACKFILL
from bridge.scheduler.protocol import PROTOCOLS, Policy, Protocol, protocol
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES, PRESETS, LoadRule

if TYPE_CHECKING:
    from bridge.cluster.description import Cluster
    from bridge.workload.select import Jobs
    from bridge.workload.table import Workload
    from bridge.worlds.fast.episode import Scenario

#: The fields of a setup that are its policy.
POLICY = ("order", "backfill", "candidate_order", "blocked", "action")


@dataclass(frozen=True)
class SchedulerConfig:
    """Everything but the log that decides a replay's schedule.

    Attributes:
        order: queue order: a name, or an expression such as '(w/t)**3*n', largest first. slurm is the formula
            of the SchedInspector paper. Two more need --cluster: multifactor (by the table [priority] of the
            cluster file) and user_shares (fair share as in AleaNG).
        backfill: the backfilling rule.  [default: easy; with --protocol slurm: Slurm's own]
        candidate_order: order of EASY's candidates: a name, or an expression of s, t and n.  [default: as in
            the queue]
        protocol: the exact rules. standard: textbook. cqsim: as CQSim. schedgym, schedgym-code: as the
            simulators of the RLScheduler papers. alea (as AleaNG) and slurm (as Slurm itself) need --cluster;
            with slurm the order is multifactor, unless you name one.
        preset: load the log (and draw sequences) as the public code of this paper does.  [default with
            schedgym: rlbackfilling]
        estimator: the estimator of run times. With predicted(NAME, requested), waiting jobs have their
            predicted time, and running jobs are expected to take their requested time.  [default: the
            protocol's own]
        cancelled: what happens with jobs that never ran: drop them, or keep them with a run time of 10 s.
            [default: as the loading rule says]
        nodes: number of nodes of the machine.  [default: as the log states]
        first: only the first N jobs that the loading rule keeps.
        rebase: count submit times from the first job that is kept.  [default: as the loading rule says]
        cluster: the site's nodes, partitions and rules: cluster.toml, slurm.conf, or one that comes with
            bridge.  [default: one pool of equal nodes]
        blocked: what becomes of a blocked pick, see `bridge.scheduler.protocol.Policy`.
        action: what the policy does beside ordering, such as guest(300), see `bridge.scheduler.actions`.
    """

    order: Annotated[str, Constraint(choices=lambda: ORDERS, open=True, plugin="order", metavar="ORDER")] = (
        "fcfs"
    )
    backfill: Annotated[str, Constraint(choices=lambda: (*BACKFILLS, SLURM_BACKFILL), plugin="backfill")] = (
        "easy"
    )
    candidate_order: Annotated[str, Constraint(option="--backfill-order", metavar="ORDER")] = ""
    protocol: Annotated[str, Constraint(choices=lambda: PROTOCOLS)] = "standard"
    preset: Annotated[str, Constraint(choices=lambda: ("", *PRESETS))] = ""
    estimator: Annotated[
        str, Constraint(choices=lambda: ESTIMATORS, open=True, plugin="estimator", metavar="NAME")
    ] = ""
    cancelled: Literal["", "keep", "drop"] = ""
    nodes: Count | None = None
    first: Annotated[Count | None, Constraint(metavar="N")] = None
    rebase: bool | None = None
    cluster: Annotated[str | None, Constraint(metavar="FILE", digest=digest_of_cluster)] = None
    blocked: Annotated[Literal["", "held", "first", "again"], Constraint(option="-")] = ""
    action: Annotated[str, Constraint(option="-")] = ""

    def rules(self) -> tuple[Protocol, LoadRule]:
        """Return the protocol and the loading rule; BridgeError: there is none of the name."""
        base = protocol(self.protocol)
        name = self.preset or DEFAULT_RULE[self.protocol]
        if name not in LOAD_RULES:
            raise BridgeError("unknown preset", where=repr(name), remedy=f"Choose {', '.join(PRESETS)}.")
        if base.name in ("schedgym", "schedgym-code"):
            from bridge.worlds.fast.episode import with_preset

            return with_preset(base, name)
        return base, LOAD_RULES[name]

    @property
    def recorded(self) -> bool:
        """Whether the log's own starts are played; BridgeError: with a part of a rule beside them."""
        if self.order != RECORDED:
            return False
        for part in ("candidate_order", "estimator", "blocked", "action"):
            if value := getattr(self, part):
                what = f"has no {part.replace('_', ' ')}: nobody decides"
                raise BridgeError(what, where=f"policy {RECORDED!r}, {value!r}", remedy="Leave it out.")
        if self.backfill != "none":
            what = "has no backfilling: nobody decides"
            remedy = f"Write --policy {RECORDED}."
            raise BridgeError(what, where=f"policy {RECORDED!r}, {self.backfill!r}", remedy=remedy)
        if self.protocol == "slurm":
            what = "nobody decides, so no passes of Slurm are played"
            remedy = "Leave the protocol out."
            raise BridgeError(what, where=f"policy {RECORDED!r}, {self.protocol!r}", remedy=remedy)
        return True

    @property
    def selection(self) -> tuple[object, ...]:
        """What decides which of a log's jobs it schedules."""
        cluster = self.cluster and digest_of_cluster(self.cluster)
        return (self.rules()[1], self.cancelled, self.nodes, self.first, self.rebase, cluster)

    def select(
        self,
        workload: "Workload",
        *,
        dependencies: bool = False,
        change: "Callable[[Cluster], Cluster] | None" = None,
    ) -> "Jobs":
        """Return the jobs that it schedules; BridgeError: no machine size, no job, an unknown demand.

        `dependencies`: jobs wait for their preceding ones, which only the standard protocol has. `change`: of
        the cluster.
        """
        from bridge.workload.select import select

        if dependencies and self.protocol != "standard":
            what, where = "has no jobs that follow others", f"protocol {self.protocol!r}"
            raise BridgeError(
                what, where=where, remedy="Leave out --dependencies, or use the standard protocol."
            )
        cluster = None if self.cluster is None else self._read_cluster(self.cluster)
        return select(
            workload,
            self.rules()[1],
            cancelled=self.cancelled or None,
            nodes=self.nodes,
            first=self.first,
            rebase=self.rebase,
            dependencies=dependencies,
            cluster=cluster if cluster is None or change is None else change(cluster),
        )

    def _read_cluster(self, name: str) -> "Cluster":
        """Return the cluster; BridgeError: the protocol has none, or another number of nodes is named."""
        rules = protocol(self.protocol)
        if not (rules.knows_clusters or rules.own_passes):
            remedy = "Leave out --cluster, or use the standard protocol, alea or slurm."
            raise BridgeError("has one pool of nodes", where=f"protocol {self.protocol!r}", remedy=remedy)
        if self.nodes is not None:
            what = "the cluster says how many nodes there are"
            raise BridgeError(what, where=f"--nodes {self.nodes}", remedy="Leave out --nodes or --cluster.")
        return read_cluster(name)

    def refuse_cluster(self, subject: str) -> None:
        """Raise BridgeError if a cluster is named to what does not honour it yet."""
        if self.cluster is not None:
            what, where = f"{subject} do not know the nodes of a cluster yet", f"--cluster {self.cluster}"
            raise BridgeError(what, where=where, remedy="Leave out --cluster: all nodes are then one pool.")

    def policy(
        self,
        decision: str = "",
        *,
        guard: bool = True,
        max_rejects: int = Policy.max_rejects,
        retry_after: float = Policy.retry_after,
    ) -> Policy:
        """Return the policy; `decision` (``pick``, ``inspect``, ``pick+backfill``, …) is an agent's.

        Under a protocol with passes of its own, what becomes of blocked picks is the agent's alone.
        """
        is_left_out = not decision and protocol(self.protocol).own_passes
        return Policy(
            self.order,
            self.backfill,
            self.candidate_order,
            agent=frozenset(decision.split("+") if decision else ()),
            blocked="" if is_left_out else self.blocked,
            action=self.action,
            guard=guard,
            max_rejects=max_rejects,
            retry_after=retry_after,
        )

    def build_scenario(self, jobs: "Jobs", policy: Policy | None = None) -> "Scenario":
        """Bring selected jobs, policy (if not the setup's own order and backfilling) and rules together."""
        from bridge.worlds.fast.episode import prepare

        rules, load = self.rules()
        if policy is None and self.recorded:
            from bridge.worlds.fast.recorded import recorded_scenario

            return recorded_scenario(jobs, rules, on_nodes=True)
        return prepare(jobs, rules, policy or self.policy(), self.estimator or rules.estimator, load)

    def with_usual_policy(self, stated: Container[str]) -> "SchedulerConfig":
        """Return it with what its protocol usually has where nobody stated order or backfilling."""
        if not protocol(self.protocol).own_passes:
            return self
        return replace(
            self,
            order=self.order if "order" in stated else MULTIFACTOR,
            backfill=self.backfill if "backfill" in stated else SLURM_BACKFILL,
        )

    def with_policy_of(self, other: "SchedulerConfig") -> "SchedulerConfig":
        """Return this setup's jobs and rules under another one's policy.

        Slurm's own backfilling, which one protocol has alone, stands in EASY's place there; and the other way
        round.
        """
        policy = {name: getattr(other, name) for name in POLICY}
        own = protocol(self.protocol).own_passes
        if policy["backfill"] == ("easy" if own else SLURM_BACKFILL):
            policy["backfill"] = SLURM_BACKFILL if own else "easy"
        return replace(self, **policy)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for a run's record; unset ones are None. A cluster has its digest beside it."""
        record = record_of(self)
        if not self.action:
            del record["action"]
        if self.cluster is None:
            del record["cluster"]
            return record
        return record | {"cluster_sha256": digest_of_cluster(self.cluster)}
