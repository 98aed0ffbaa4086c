"""Translates a policy under a protocol to what the kernels read: switches and programs."""

from dataclasses import dataclass, fields

import numpy as np

from bridge.errors import BridgeError
from bridge.scheduler.names import BACKFILLS
from bridge.scheduler.order import Order, order
from bridge.scheduler.protocol import BLOCKED, Policy, Protocol
from bridge.scheduler.score import OP_FAIRSHARE
from bridge.scheduler.state import RULES, SECOND, Array


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
