"""Protocols: the exact rules of a replay, as records of switches on the one scheduler.

| switch | standard | cqsim | schedgym |
|---|---|---|---|
| a pass sees | all events of an instant | one event | one event |
| first of one instant | – | completions | arrivals |
| queue | sorted afresh, ties by submission | one list sorted stably at each pass | sorted afresh |
| wait that orders see | exact | whole seconds | −1 − submit (a bug of the authors' code) |
| blocked head | re-picked at each pass | re-picked | locked until it starts |
| reservation | refreshed at each pass | refreshed | computed once |
| extra nodes | used | used | not used |
| candidate in time | end ≤ shadow | end ≤ shadow | end < shadow |
| candidates in | queue order | queue order | FCFS order |
| after a backfill | next candidate | next candidate | skips one (preset rlbackfilling) |
| completions of one instant | by start | by start | by believed end at the last reservation, then start |
| running past its estimate | believed to end in 1 s | as logged | as logged |
| estimates by default | requested | cqsim | requested |
| killed at the request | yes | yes | no |

Sources: `standard` is textbook EASY (Mu'alem & Feitelson 2001) and conservative backfilling, one pass
per instant; `cqsim` is CQSim (SPEAR group, IIT) as measured; `schedgym` is the simulator shared by
RLScheduler (SC 2020), SchedInspector (HPDC 2022) and RLBackfilling (2023), as their public code behaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from bridge.errors import BridgeError
from bridge.scheduler.machine import CONSERVATIVE, EASY, NO_BACKFILL
from bridge.scheduler.order import Order, order
from bridge.scheduler.score import OP_FAIRSHARE
from bridge.scheduler.state import RULES, SECOND, Array

#: What becomes of a blocked pick, see `Policy`.
BLOCKED = ("", "held", "first")
BACKFILLS: Mapping[str, int] = {"none": NO_BACKFILL, "easy": EASY, "conservative": CONSERVATIVE}


@dataclass(frozen=True)
class Protocol:
    """The switches of one protocol; see the module's table."""

    name: str
    per_event: bool = False
    arrivals_first: bool = False
    persistent_sort: bool = False
    truncate_wait: bool = False
    head_locked: bool = False
    reserve_once: bool = False
    extra_nodes: bool = True
    strict: bool = False
    candidate_order: str = ""
    skip_next: bool = False
    clamp_overrun: bool = True
    resort_running: bool = False
    estimator: str = "requested"
    backfills: tuple[str, ...] = tuple(BACKFILLS)
    orders: Mapping[str, str] = field(default_factory=dict)
    tie: str = ""


_FROZEN_WAIT = {
    "wfp3": "((-1 - s)/t)**3*n",
    "unicep": "(-1 - s + 1e-15)/(log2(n + 1e-15)*t)",
    "f1": "-(log10(max(t, 0.1))*n + 870*log10(max(s, 0.1)))",
}

PROTOCOLS: Mapping[str, Protocol] = {
    "standard": Protocol("standard"),
    "cqsim": Protocol(
        "cqsim",
        per_event=True,
        persistent_sort=True,
        truncate_wait=True,
        clamp_overrun=False,
        estimator="cqsim",
        orders={"fcfs": "w"},
    ),
    "schedgym": Protocol(
        "schedgym",
        per_event=True,
        arrivals_first=True,
        head_locked=True,
        reserve_once=True,
        extra_nodes=False,
        strict=True,
        candidate_order="fcfs",
        clamp_overrun=False,
        resort_running=True,
        backfills=("none", "easy"),
        orders=_FROZEN_WAIT,
    ),
}


def protocol(name: str) -> Protocol:
    """Return a protocol by name."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise BridgeError(
            "unknown protocol", where=repr(name), remedy=f"Choose {', '.join(PROTOCOLS)}."
        ) from None


@dataclass(frozen=True)
class Policy:
    """What decides: an order, a backfilling rule, and which decisions are an agent's.

    Attributes:
        order: name or expression of the queue's order.
        backfill: ``none``, ``easy`` or ``conservative``.
        candidate_order: order among EASY's candidates (static); empty = the protocol's.
        agent: decisions bound to an agent, any of ``pick``, ``inspect``, ``backfill``.
        guard: an agent's backfills must obey EASY's rule.
        max_rejects: most rejections of one job (SchedInspector §4.1: 72).
        retry_after: seconds until a rejected job is considered again (SchedInspector §4.1: 600).
        blocked: what becomes of a pick that does not fit: ``held`` (it stays the head until it starts),
            ``first`` (the queue's first job takes its place: it starts, or is reserved) or empty: as the
            protocol has it.
    """

    order: str = "fcfs"
    backfill: str = "easy"
    candidate_order: str = ""
    agent: frozenset[str] = frozenset()
    guard: bool = True
    max_rejects: int = 72
    retry_after: float = 600.0
    blocked: str = ""


@dataclass(frozen=True)
class Compiled:
    """A policy under a protocol, as the kernels read it."""

    protocol: Protocol
    policy: Policy
    order: Order
    rules: Array  # RULES [1]
    program: Array
    alt_program: Array


def compile_policy(policy: Policy, rules_of: Protocol) -> Compiled:
    """Translate a policy and a protocol to switches and programs.

    Raises:
        BridgeError: unknown order, backfill or agent decision, or one that the protocol does not have.
    """
    if policy.backfill not in BACKFILLS:
        raise BridgeError(
            "unknown backfilling", where=repr(policy.backfill), remedy=f"Choose {', '.join(BACKFILLS)}."
        )
    if policy.backfill not in rules_of.backfills:
        raise BridgeError(
            f"the protocol {rules_of.name} has no {policy.backfill} backfilling",
            remedy=f"Choose {', '.join(rules_of.backfills)}, or another protocol.",
        )
    if policy.blocked not in BLOCKED:
        raise BridgeError(
            "unknown rule for a blocked pick",
            where=repr(policy.blocked),
            remedy="Choose held or first, or leave it out.",
        )
    unknown = policy.agent - {"pick", "inspect", "backfill"}
    if unknown:
        raise BridgeError("unknown agent decision", where=", ".join(sorted(unknown)))
    main = order(policy.order, rules_of.orders)
    alt_name = policy.candidate_order or rules_of.candidate_order
    alt = order(alt_name or "fcfs", rules_of.orders if alt_name != "fcfs" else None)
    if alt_name and alt.dynamic:
        raise BridgeError(
            "candidates can only be sorted by an order that does not change while jobs wait",
            where=f"candidate order {alt_name!r}",
            remedy="Use fcfs, lcfs, sjf, saf, srf or an expression of s, t and n.",
        )
    rules = np.zeros(1, RULES).view(np.recarray)
    one = rules[0]
    for switch in {f.name for f in fields(rules_of)} & set(RULES.names or ()):
        one[switch] = int(getattr(rules_of, switch))
    one.own_candidate_order = int(bool(alt_name))
    one.backfill = BACKFILLS[policy.backfill]
    one.dynamic_order = int(main.dynamic)
    one.uses_fairshare = int(OP_FAIRSHARE in main.uses)
    one.agent_pick = int("pick" in policy.agent)
    one.agent_inspect = int("inspect" in policy.agent)
    one.agent_backfill = int("backfill" in policy.agent)
    one.guard = int(policy.guard)
    one.head_locked |= int(policy.blocked == "held")
    one.head_first = int(policy.blocked == "first")
    one.max_rejects = policy.max_rejects
    one.retry_after = round(policy.retry_after * SECOND)
    return Compiled(rules_of, policy, main, rules, main.program, alt.program)
