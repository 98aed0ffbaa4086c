"""How the agent works beside a Slurm. Plain data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from bridge.config import Constraint, Natural, Positive


@dataclass(frozen=True)
class AgentConfig:
    """How the agent works.

    Attributes:
        partition: the partition of the jobs. For rules you can give several, separated by commas.
        mode: live writes; dry-run only says what it would start; shadow also compares with what Slurm does.
        directory: the folder that `bridge slurm setup` has written (gate, heartbeat, events).  [default: no
            gate]
        events: the file to which Slurm's plugins append.  [default: DIRECTORY/events; without it, the agent
            only polls]
        kick: the partition for kicks. With kicks a job starts after 0.04 s, without them after 0.5 s.
            [default: none]
        max_starts_per_s: largest number of starts in a second.
        requeue: kill and requeue jobs if the action of the policy (speculative or trial) says so. The job
            must allow this (sbatch --requeue), and its partition, too (PreemptMode=REQUEUE).
        max_starts: largest number of jobs that the agent starts; 0: no limit.
        audit: append every decision to this file, as JSON lines.
    """

    partition: Annotated[str, Constraint(metavar="P")] = ""
    mode: Literal["live", "dry-run", "shadow"] = "live"
    directory: Annotated[Path | None, Constraint(metavar="DIR")] = None
    events: Annotated[Path | None, Constraint(metavar="FILE")] = None
    kick: Annotated[str, Constraint(metavar="P")] = ""
    max_starts_per_s: Positive = 10.0
    max_starts: Natural = 0
    requeue: bool = False
    audit: Annotated[Path | None, Constraint(metavar="FILE")] = None
