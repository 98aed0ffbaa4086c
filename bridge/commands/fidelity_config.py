"""Which jobs `bridge fidelity` compares, and how they are played; imports nothing heavy, for its help."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bridge.config import Constraint, Count


@dataclass(frozen=True)
class FidelityConfig:
    """Which jobs are compared, and how they are played.

    Attributes:
        begin: only jobs after this part of the log.
        until: only jobs before this part of the log.
        window: play windows of JOBS jobs. Each begins with the recorded state.  [default: one replay of the
            whole log]
        runs: run times. cut: a job ends at the latest when its requested time is over, as in a replay under a
            rule. recorded: as recorded.
    """

    begin: Annotated[float, Constraint(ge=0, lt=1, option="--from", metavar="FRACTION")] = 0.0
    until: Annotated[float, Constraint(gt=0, le=1, metavar="FRACTION")] = 1.0
    window: Annotated[Count | None, Constraint(metavar="JOBS")] = None
    runs: Literal["cut", "recorded"] = "cut"
