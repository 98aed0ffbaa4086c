"""What the agent reports: counts of what it has done, lines for its operator, and its audit log."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from bridge.config.fields import Constraint
from bridge.worlds.slurm.audit import AuditLog


@dataclass
class AgentCounters:
    polls: int = 0
    passes: int = 0
    starts: int = 0
    withdrawn: int = 0
    requeued: int = 0
    cancelled: int = 0
    suspended: int = 0
    lost: list[str] = field(default_factory=list)
    ended_unnoticed: Annotated[list[str], Constraint(key="ghosts")] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    foreign: dict[str, str] = field(default_factory=dict)
    n_unreachable: Annotated[int, Constraint(key="away")] = 0
    #: Of shadow: job -> (when we would have started it on the machine as Slurm had it, when Slurm did).
    compared: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Journal:
    """Where all parts of the agent report to: counters, the audit log, and lines for the operator."""

    counts: AgentCounters
    audit: AuditLog
    say: Callable[[str], None]


def write_report(report: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
