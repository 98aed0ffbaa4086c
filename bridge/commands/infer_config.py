"""How `bridge cluster infer` looks at a log; imports nothing heavy, for its help."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bridge.config import Constraint, Count


@dataclass(frozen=True)
class InferConfig:
    """How a log is looked at, and how what it says is judged.

    Attributes:
        window: number of jobs in a window of the second half; each window begins with the recorded state.
        windows: largest number of windows, spread over the second half; 0: nothing is tested, all estimates
            are kept.
        order: the order under which the windows are played.
        backfill: the backfilling rule under which the windows are played.
    """

    window: Annotated[Count, Constraint(metavar="JOBS")] = 500
    windows: Annotated[int, Constraint(ge=0, metavar="N")] = 12
    order: Literal["fcfs", "sjf"] = "fcfs"
    backfill: Literal["none", "easy"] = "easy"
