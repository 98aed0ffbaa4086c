"""How the lives of jobs in an accounting become jobs of a workload. Plain data."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bridge.config import Constraint, Count


@dataclass(frozen=True)
class ImportConfig:
    """How lives become jobs.

    Attributes:
        unit: what the processors of a job are: whole nodes, or cores (if jobs share nodes).
        partition: only jobs of this partition, on its nodes.
        unlimited: requested time of jobs without a limit.  [default: the limit of the partition, or the
            longest limit or run time of the log]
        anonymous: leave out the names of users, accounts and jobs.
    """

    unit: Literal["nodes", "cores"] = "nodes"
    partition: Annotated[str | None, Constraint(metavar="P")] = None
    unlimited: Annotated[Count | None, Constraint(metavar="S")] = None
    anonymous: bool = False
