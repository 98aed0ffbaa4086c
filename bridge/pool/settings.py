"""What one slotted pool is like: its size, what an agent sees of it, and how an episode ends."""

from dataclasses import dataclass, fields
from typing import Literal

from bridge.errors import BridgeError

Objective = Literal["slowdown", "completion"]
#: Who kills: nobody; the paper's rule, before every decision; a learnt policy itself.
Kill = Literal["none", "rule", "learned"]


@dataclass(frozen=True)
class Settings:
    """The pool of RLSchert (Wang et al., Appl. Sci. 2021, Table 2).

    Attributes:
        units: R, size of the pool.
        slots: waiting jobs that a policy sees and may select.
        backlog: waiting jobs that find room behind them; more are rejected.
        kill_slots: running jobs that a policy sees and may kill.
        horizon: H, steps that can be booked ahead.
        last_step: an episode is ended after this step whatever happens.
        oracle_clamp: at every booking each belief is replaced by the submit-time belief where that one is
            nearer to the TRUE length. Behaviour of the authors' code, on in the paper's numbers: an oracle.
        objective: what the reward measures.
    """

    units: int = 20
    slots: int = 5
    backlog: int = 600
    kill_slots: int = 8
    horizon: int = 120
    last_step: int = 3000
    oracle_clamp: bool = False
    objective: Objective = "slowdown"

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name in ("backlog", "kill_slots") else 1
            if field.name not in ("oracle_clamp", "objective") and value < least:
                raise BridgeError(
                    f"must be {least} or more, not {value}", where=f"slotted pool: {field.name}"
                )
        if self.objective not in ("slowdown", "completion"):
            raise BridgeError(f"unknown objective {self.objective!r}", remedy="Use slowdown or completion.")

    @property
    def actions(self) -> int:
        """Number of answers: select a slot, none, kill a slot."""
        return self.slots + 1 + self.kill_slots
