"""Encoders: which rows a decision shows to a network, and which features each row has.

A feature is an expression, as an order is: of the job (w wait, t believed length, n nodes, …), of the machine
and the pass (free, gap, …, see `bridge.scheduler.order.VIEW`), and of constants that the training workload
gave once and for all. An encoder is text, so a checkpoint carries it and no code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bridge.errors import BridgeError
from bridge.scheduler.order import compile_feature
from bridge.scheduler.state import Array, Records

Decision = Literal["pick", "backfill", "inspect"]
DECISIONS: tuple[Decision, ...] = ("pick", "backfill", "inspect")


@dataclass(frozen=True)
class Encoder:
    """What a network sees of a decision, one row per answer (INSPECT: one row, the inspected job's).

    Attributes:
        decision: what is decided.
        features: name -> expression, one column each, in this order.
        window: W, most candidates shown.
        stop: BACKFILL only: the blocked head has a row, the last one; choosing it means DECLINE.
        padding: [F] the row that stands for an absent candidate where a network wants W rows; zeros if empty.
    """

    decision: Decision
    features: Mapping[str, str]
    window: int = 128
    stop: bool = False
    padding: tuple[float, ...] = field(default=())

    def __post_init__(self) -> None:
        """Refuse what fits no decision.

        Raises:
            BridgeError: no features, an unknown decision, or one that cannot stop.
        """
        if self.decision not in DECISIONS:
            raise BridgeError(
                "unknown decision", where=repr(self.decision), remedy=f"Choose {', '.join(DECISIONS)}."
            )
        if not self.features:
            raise BridgeError("an encoder needs features")
        if self.window < 1:
            raise BridgeError("the window holds at least one candidate", where=f"window {self.window}")
        if self.stop and self.decision != "backfill":
            raise BridgeError(f"a {self.decision} decision has no stop row", remedy="Leave `stop` out.")
        if self.padding and len(self.padding) != len(self.features):
            raise BridgeError(f"the padding has {len(self.padding)} values for {len(self.features)} features")

    @property
    def rows(self) -> int:
        """Most rows that one decision can have."""
        return 1 if self.decision == "inspect" else self.window + int(self.stop)

    @property
    def actions(self) -> int:
        """Most answers that one decision can have."""
        return 2 if self.decision == "inspect" else self.rows

    def compile(self, constants: Mapping[str, float]) -> "Compiled":
        """Return the encoder as the kernels read it.

        Args:
            constants: name -> value, from the training workload.

        Raises:
            BridgeError: a feature is no expression, or uses an unknown name.
        """
        programs = [compile_feature(text, constants) for text in self.features.values()]
        ends = np.cumsum([len(program) for program in programs]).astype(np.int32)
        return Compiled(self, np.concatenate(programs).view(np.recarray), ends)


@dataclass(frozen=True)
class Compiled:
    """An encoder's programs.

    Attributes:
        encoder: what they were compiled from.
        program: INSTRUCTION [P], all features one after the other.
        ends: i4 [F], where each feature's instructions end.
    """

    encoder: Encoder
    program: Records
    ends: Array
