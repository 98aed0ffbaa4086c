"""Translates a policy under a protocol to what the kernels read: switches and programs."""

import abc
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import cast

import numpy as np

from bridge.base import plugins
from bridge.base.arrays import Array
from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.action_state import ACTION_SWITCHES
from bridge.scheduler.actions import Action, format_action, parse_action
from bridge.scheduler.cluster_bookings import book_in_order
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.decisions import BOOK
from bridge.scheduler.growing_scores import is_non_decreasing
from bridge.scheduler.names import (
    BACKFILLS,
    CONSERVATIVE,
    CONSERVATIVE_KEEPS,
    EASY,
    MULTIFACTOR,
    SLURM_BACKFILL,
)
from bridge.scheduler.order import Order, order
from bridge.scheduler.protocol import BLOCKED, UNCAPPED, Policy, Protocol
from bridge.scheduler.python_rules import Chooser, decide
from bridge.scheduler.state import NEVER, SECOND, SWITCHES, State

#: Conservative backfilling keeps its bookings from pass to pass while more jobs than this wait; so few are
#: sooner booked afresh.
KEEP_ABOVE = 48


#: Decisions of an agent in a rule of action, and the rules that have them.
ACTING = {"preempt": ("las", "hybrid"), "trial": ("speculative", "guest")}


class Ranker(abc.ABC):
    """What brings the waiting jobs of a cluster into the order of their priorities."""

    @abc.abstractmethod
    def rank(self, state: State, b: int) -> None:
        """Write scores to the waiting jobs and sort them."""

    @abc.abstractmethod
    def save(self) -> object:
        """Return what it knows now, for `restore`."""

    @abc.abstractmethod
    def restore(self, saved: object) -> None:
        """Know again what it knew then."""


@dataclass(frozen=True)
class CompiledPolicy:
    """A policy under a protocol, as the kernels read it; `chooser` is a backfilling rule in Python."""

    protocol: Protocol
    policy: Policy
    order: Order
    candidate_order: Order
    rules: Array  # RULES [1]
    chooser: Chooser | None = None
    action: Action | None = None
    priorities: Ranker | None = None

    @property
    def python_rule(self) -> str:
        """The rule that the compiled pass waits for, for messages; empty if it needs none."""
        if self.order.scorer is not None or self.order.lookahead is not None:
            return f"order {self.order.name!r}"
        return f"backfilling {self.policy.backfill!r}" if self.chooser is not None else ""

    def refuse_action(self, subject: str) -> None:
        """Raise BridgeError if a rule of action is named to what cannot stop jobs yet."""
        if self.action is not None:
            remedy = "Leave the action out here; replay, evaluate, bound --actions and environments have it."
            where = f"action {format_action(self.action)!r}"
            raise BridgeError(f"{subject} cannot stop jobs yet", where=where, remedy=remedy)

    def install_in(self, state: State) -> State:
        """Return a state in which this decides."""
        program, alt_program = (one.program.view(np.recarray) for one in (self.order, self.candidate_order))
        own: dict[str, Array] = {"switches": self.rules, "program": program, "alt_program": alt_program}
        if self.action is not None:
            own["action"] = _action_switches(self.action, self.policy.agent)
        return state._replace(**own)

    def decide(self, state: State, b: int, kind: int) -> bool:
        """Let the rules outside decide, if there are, see `bridge.scheduler.python_rules.decide`."""
        if kind == BOOK:
            book_in_order(cast(ClusterState, state), b)
            return True
        if kind == core.SCORE and self.priorities is not None:
            self.priorities.rank(state, b)
            return True
        if kind == core.SCORE and self.order.lookahead is not None:
            self.order.lookahead.reorder_queue(state, b, self.order.others)
            return True
        return decide(state, b, kind, self.order.scorer, self.chooser)


def compile_policy(policy: Policy, rules_of: Protocol, *, on_nodes: bool = False) -> CompiledPolicy:
    """Translate a policy and a protocol to switches and programs; `on_nodes`: for a cluster.

    BridgeError: unknown order, backfill or agent decision, or one that the protocol does not have.
    """
    if rules_of.own_passes:
        return _compile_own(policy, rules_of, on_nodes=on_nodes)
    chooser = _backfill_rule(policy, rules_of)
    _refuse_settings(policy, rules_of)
    main = order(policy.order, rules_of.orders)
    alt_name = policy.candidate_order or rules_of.candidate_order
    alt = order(alt_name or "fcfs", rules_of.orders if alt_name != "fcfs" else None)
    if main.lookahead is not None:
        _refuse_beside_lookahead(policy, rules_of, alt_name)
    if alt_name and alt.dynamic:
        raise BridgeError(
            "candidates can only be sorted by an order that does not change while jobs wait",
            where=f"candidate order {alt_name!r}",
            remedy="Use fcfs, lcfs, sjf, saf, srf or an expression of s, t and n.",
        )
    if main.by_priority and not on_nodes:
        is_weighted = main.name == MULTIFACTOR
        what = "has the weights of a cluster" if is_weighted else "has the users and partitions of a cluster"
        hint = "; Slurm's formula as SchedInspector has it is the order slurm" if is_weighted else ""
        remedy = f"Name one with --cluster{hint}."
        raise BridgeError(f"{what}, and there is none", where=f"order {main.name!r}", remedy=remedy)
    if rules_of.needs_cluster and not on_nodes:
        what, remedy = (
            "needs the nodes of a cluster",
            "Name one with --cluster, or use another protocol.",
        )
        raise BridgeError(what, where=f"protocol {rules_of.name!r}", remedy=remedy)
    if rules_of.needs_cluster and (policy.agent or policy.blocked):
        what, remedy = "knows no agents", "Use the protocol standard."
        raise BridgeError(what, where=f"protocol {rules_of.name!r}", remedy=remedy)
    if on_nodes:
        _refuse_on_nodes(policy, rules_of)
    action = parse_action(policy.action) if policy.action else None
    _refuse_without_action(policy, action)
    if action is not None:
        _refuse_beside_action(policy, rules_of, main)
        if on_nodes:
            _refuse_action_on_nodes(policy, action)
    rules = _switches(policy, rules_of, main, chooser, has_candidate_order=bool(alt_name), on_nodes=on_nodes)
    return CompiledPolicy(rules_of, policy, main, alt, rules, chooser, action)


def _compile_own(policy: Policy, rules_of: Protocol, *, on_nodes: bool) -> CompiledPolicy:
    """Return the policy under a protocol whose passes are its own: an order, and some agents."""
    remedy = "Leave it out: the protocol has orders, as in --policy saf, and agents that pick or backfill."
    others = ", ".join(sorted(policy.agent - {"pick", "backfill"}))
    is_held = policy.blocked == "held" and "pick" in policy.agent
    for is_wrong, subject in (
        (policy.backfill not in rules_of.backfills, f"backfilling {policy.backfill!r}"),
        (bool(others), f"agent that decides {others}"),
        (bool(policy.action), f"the action {policy.action!r}"),
        (bool(policy.candidate_order), f"the candidate order {policy.candidate_order!r}"),
        (bool(policy.blocked) and not is_held, f"blocked picks ({policy.blocked!r})"),
    ):
        if is_wrong:
            what = f"the protocol {rules_of.name} has its own backfilling and clocks, and no {subject}"
            raise BridgeError(what, where=f"policy {policy.order}+{policy.backfill}", remedy=remedy)
    main = order(policy.order, rules_of.orders)
    foreign = sorted(main.uses & {"fairshare", "partition"})
    has_own_shares = main.by_priority and main.name != MULTIFACTOR
    if main.lookahead is not None or main.scorer is not None or foreign or has_own_shares:
        what = f"reads {foreign[0]}" if foreign else "is no expression of a job"
        remedy = "Use multifactor, a named order, or an expression of s, t, n, w, z, l, t_max and n_max."
        raise BridgeError(f"{what}, which the protocol {rules_of.name} does not have",
                          where=f"order {policy.order!r}", remedy=remedy)  # fmt: skip
    if not on_nodes:
        what = f"the protocol {rules_of.name} needs the nodes and rules of a cluster"
        remedy = "Give --cluster FILE; `bridge cluster import slurm.conf` makes one."
        raise BridgeError(what, where="--cluster", remedy=remedy)
    return CompiledPolicy(rules_of, policy, main, order("fcfs"), np.zeros(1, SWITCHES))


def _backfill_rule(policy: Policy, rules_of: Protocol) -> Chooser | None:
    """Return the callable of a backfilling rule of a package; None for those of the kernels."""
    if policy.backfill == SLURM_BACKFILL:
        what = f"the protocol {rules_of.name} has no {policy.backfill} backfilling"
        raise BridgeError(what, remedy=f"Choose {', '.join(rules_of.backfills)}, or the protocol slurm.")
    if policy.backfill not in BACKFILLS:
        rule = plugins.find("backfill", policy.backfill)
        if not callable(rule):
            raise plugins.unknown("backfilling", policy.backfill, BACKFILLS)
        if "backfill" in policy.agent:
            raise BridgeError("an agent backfills already", where=f"backfilling {policy.backfill!r}")
        return rule
    if policy.backfill not in rules_of.backfills:
        raise BridgeError(
            f"the protocol {rules_of.name} has no {policy.backfill} backfilling",
            remedy=f"Choose {', '.join(rules_of.backfills)}, or another protocol.",
        )
    return None


def _refuse_settings(policy: Policy, rules_of: Protocol) -> None:
    """Raise BridgeError for settings of the policy that contradict each other or the protocol."""
    if policy.candidate_order and policy.backfill in BACKFILLS and policy.backfill != "easy":
        raise BridgeError(
            "only EASY's candidates have an order of their own",
            where=f"backfilling {policy.backfill!r}",
            remedy=f"Leave out {policy.candidate_order!r}, or backfill by EASY.",
        )
    if policy.backfill == "conservative_keeps" and (policy.agent or policy.blocked or policy.action):
        raise BridgeError(
            "keeps the planned starts of jobs in queue order; no agent and no action may change them",
            where="backfilling 'conservative_keeps'",
            remedy="Use conservative or easy, or a fixed rule such as sjf+conservative_keeps.",
        )
    if policy.blocked not in BLOCKED:
        raise BridgeError(
            "unknown rule for a blocked pick",
            where=repr(policy.blocked),
            remedy="Choose held, first or again, or leave it out.",
        )
    if rules_of.uncapped and policy.max_rejects != Policy.max_rejects:
        raise BridgeError(
            f"the protocol {rules_of.name} has no cap on rejections",
            where=f"max_rejects {policy.max_rejects}",
            remedy="Leave it out, or use the protocol schedgym.",
        )
    unknown = policy.agent - {"pick", "inspect", "backfill", *ACTING}
    if unknown:
        raise BridgeError("unknown agent decision", where=", ".join(sorted(unknown)))


def _switches(
    policy: Policy,
    rules_of: Protocol,
    main: Order,
    chooser: Chooser | None,
    *,
    has_candidate_order: bool,
    on_nodes: bool,
) -> Array:
    """Return the policy and the protocol as the kernels read them: SWITCHES [1]."""
    rules = np.zeros(1, SWITCHES).view(np.recarray)
    one = rules[0]
    for switch in {f.name for f in fields(rules_of)} & set(SWITCHES.names or ()):
        one[switch] = int(getattr(rules_of, switch))
    one.own_candidate_order = int(has_candidate_order)
    one.backfill = EASY if chooser is not None else BACKFILLS[policy.backfill]
    one.scored_outside = int(main.scorer is not None or main.lookahead is not None or main.by_priority)
    one.dynamic_order = int(main.dynamic)
    one.uses_fairshare = int("fairshare" in main.uses)
    one.agent_pick = int("pick" in policy.agent)
    one.agent_inspect = int("inspect" in policy.agent)
    one.agent_backfill = int("backfill" in policy.agent or chooser is not None)
    one.guard = int(policy.guard if chooser is None else getattr(chooser, "guard", True))
    if policy.blocked in ("held", "again"):
        one.head_locked = int(policy.blocked == "held")
    one.head_first = int(policy.blocked == "first")
    one.max_rejects = UNCAPPED if rules_of.uncapped else policy.max_rejects
    one.retry_after = round(policy.retry_after * SECOND)
    one.keep_above = KEEP_ABOVE
    plans = one.backfill in {CONSERVATIVE, CONSERVATIVE_KEEPS}
    needs_order = policy.agent or policy.blocked or plans or one.agent_backfill
    needs_order = needs_order or rules_of.persistent_sort or rules_of.tie or rules_of.skip_next
    one.growing_order = int(
        main.dynamic
        and not on_nodes
        and not policy.action
        and not (needs_order or one.scored_outside or main.uses & {"z", "l", "fairshare"})
        and is_non_decreasing(main.program)
    )
    if policy.action:
        one.keep_above = NEVER  # stopped jobs come back into the midst of the queue
    return rules


def _action_switches(action: Action, agent: frozenset[str]) -> Array:
    """Return a rule of action, parts of which an agent may decide, as the kernels read it: [1]."""
    switches = np.zeros(1, ACTION_SWITCHES).view(np.recarray)
    levels = (*action.seconds, action.seconds[-1])
    switches[0] = (
        action.code,
        *(round(seconds * SECOND) for seconds in levels[:2]),
        *(round(seconds * SECOND) for seconds in (action.restart, action.host, action.resume, action.guard)),
        int("preempt" in agent),
        int("trial" in agent),
        int(action.latest),
    )
    return switches


def _refuse_on_nodes(policy: Policy, rules_of: Protocol) -> None:
    """Refuse what is not defined on the nodes of a cluster, or not there yet."""
    where = f"policy {policy.order}+{policy.backfill}"
    pairs = (
        (not rules_of.knows_clusters, f"the protocol {rules_of.name}"),
        (policy.backfill == "conservative_keeps", "the backfilling conservative_keeps"),
    )
    _refuse_first(
        pairs,
        "{} does not know the nodes of a cluster yet",
        where,
        "Use the protocol standard with none, easy, conservative or filler; or leave out --cluster.",
    )
    _refuse_first(
        [(policy.backfill in {"conservative", "filler"} and bool(policy.agent), policy.backfill)],
        "{} backfilling on a cluster goes through the queue in one go: no agent decides in it yet",
        where,
        "Let the agent decide beside easy or none; or leave out --cluster.",
    )


def _refuse_action_on_nodes(policy: Policy, action: Action) -> None:
    """Refuse what a rule of action is not defined beside on the nodes of a cluster, or not there yet."""
    books = policy.backfill == "conservative" and action.kind in ("las", "hybrid")
    pairs = (
        (bool(policy.agent), "an agent that decides", "its decisions name no nodes yet"),
        (books, "conservative backfilling", "which has no head that could preempt"),
    )
    for is_wrong, subject, why in pairs:
        if is_wrong:
            what = f"does not know {subject} on the nodes of a cluster: {why}"
            remedy = "Use another rule or backfilling, or leave out --cluster."
            raise BridgeError(what, where=f"action {policy.action!r}", remedy=remedy)


def _refuse_without_action(policy: Policy, action: Action | None) -> None:
    """Refuse an agent's decision that needs a rule of action of another kind, or one at all."""
    for decision in policy.agent & {*ACTING}:
        if action is None or action.kind not in ACTING[decision]:
            raise BridgeError(
                f"an agent that decides {decision} needs an action {' or '.join(ACTING[decision])}",
                where=f"action {policy.action!r}",
                remedy="Give the action, such as action='hybrid(0)' or action='guest(300)'.",
            )


def _refuse_beside_action(policy: Policy, rules_of: Protocol, main: Order) -> None:
    """Refuse what a rule of action is not defined beside."""
    pairs = (
        (rules_of.name != "standard", f"the protocol {rules_of.name}"),
        (main.lookahead is not None, f"the order {policy.order!r}"),
        (policy.backfill == "filler", "filler, which reserves nothing"),
        (bool(policy.agent - {*ACTING} or policy.blocked), "an agent that orders jobs"),
    )
    _refuse_first(
        pairs,
        "is not defined beside {}",
        f"action {policy.action!r}",
        "Use it with the protocol standard and a fixed rule, as saf+easy+guest(300).",
    )


def _refuse_beside_lookahead(policy: Policy, rules_of: Protocol, candidate_order: str) -> None:
    """Refuse what a roll-out would not play: it knows EASY under the standard protocol alone."""
    pairs = (
        (rules_of.name != "standard", f"the protocol {rules_of.name}"),
        (policy.backfill != "easy", f"the backfilling {policy.backfill!r}"),
        (bool(candidate_order), "an order of its own among candidates"),
        (bool(policy.agent or policy.blocked), "an agent"),
    )
    _refuse_first(
        pairs,
        "cannot look ahead under {}",
        f"order {policy.order!r}",
        "Use it with the protocol standard and EASY backfilling, as lookahead(saf)+easy.",
    )


def _refuse_first(pairs: Iterable[tuple[bool, str]], what: str, where: str, remedy: str) -> None:
    """Raise BridgeError for the first subject that does not go with the rest; `what` has a place for it."""
    for is_wrong, subject in pairs:
        if is_wrong:
            raise BridgeError(what.format(subject), where=where, remedy=remedy)
