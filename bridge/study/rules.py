"""Fixed rules that answer as agents do: what an agent has to beat before its learning is worth anything."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bridge import plugins
from bridge.arrays import Ints
from bridge.encode.encoder import Encoder
from bridge.env.batch import View


class Rule(Protocol):
    """What a fixed rule is: what it sees, and its answers."""

    def encoder(self) -> Encoder:
        """Return what the rule sees, of the decision that it answers."""

    def __call__(self, view: View) -> Ints:
        """Return an answer for each decision."""


@dataclass(frozen=True)
class Reject:
    """A rule for INSPECT.

    Attributes:
        expressions: of features; a pick is rejected where any of them is above 0.
    """

    expressions: tuple[str, ...]

    def encoder(self) -> Encoder:
        """Return what the rule sees."""
        return Encoder("inspect", {str(k): text for k, text in enumerate(self.expressions)})

    def __call__(self, view: View) -> Ints:
        """Return 1 (reject) or 0 (accept) for each inspected job."""
        return np.asarray((view.rows > 0).any(1), np.int64)


def rule_of(reject: tuple[str, ...], name: str, maker: Any, resources: int) -> Rule:
    """Return a row's fixed rule.

    Args:
        reject: expressions of `Reject`; or
        name: of a rule that is registered as ``rule``, and
        maker: what is registered: called with the number of resources it makes one.
        resources: of the machine.

    Raises:
        BridgeError: nobody brings a rule of this name.
    """
    if reject:
        return Reject(reject)
    if not callable(maker):
        raise plugins.unknown("rule", name, ())
    found: Rule = maker(resources)
    return found
