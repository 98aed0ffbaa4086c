"""A policy as the live world wants it, for tests."""

from dataclasses import dataclass
from typing import Any

from bridge.scheduler.protocol import PROTOCOLS, Policy, Protocol


@dataclass(frozen=True)
class Deciding:
    policy: Policy
    protocol: Protocol = PROTOCOLS["standard"]
    decider: Any = None
    window: int = 128


def rule(order: str, backfill: str = "easy") -> Deciding:
    return Deciding(Policy(order, backfill))
