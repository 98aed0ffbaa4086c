"""How `bridge cluster infer` looks at a log; imports nothing heavy, for its help."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bridge.config import Constraint, Count


@dataclass(frozen=True)
class InferConfig:
    """How a log is looked at, and how what it says is judged.

    Attributes:
        window: jobs of a held-back window, each played from the recorded state.
        windows: windows that are spread over the second half, at most; 0: nothing is judged, all is kept.
        order: the order under which they are played.
        backfill: the backfilling rule under which they are played.
    """

    window: Annotated[Count, Constraint(metavar="JOBS")] = 500
    windows: Annotated[int, Constraint(ge=0, metavar="N")] = 12
    order: Literal["fcfs", "sjf"] = "fcfs"
    backfill: Literal["none", "easy"] = "easy"
