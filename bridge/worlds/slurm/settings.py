"""How the agent works beside a Slurm. Plain data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from bridge.config import Constraint, Natural, Positive


@dataclass(frozen=True)
class AgentConfig:
    """How the agent works.

    Attributes:
        partition: the partition of the jobs; for rules also several, with commas between them.
        mode: live writes; dry-run only says what it would start; shadow also compares with what Slurm does.
        directory: the folder that `bridge slurm setup` wrote (gate, heartbeat, events).  [default: no gate]
        events: the file that Slurm's plugins append to.  [default: DIRECTORY/events, else poll only]
        kick: partition of kicks. With kicks a job starts after 0.04 s, not 0.5 s.  [default: none]
        max_starts_per_s: no more starts a second.
        requeue: kill and requeue jobs if the policy's action (speculative or trial) says so. The job must
            allow it (sbatch --requeue), and its partition, too (PreemptMode=REQUEUE).
        max_starts: largest number of starts; 0 = no limit.
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
