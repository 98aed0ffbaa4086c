"""One life of a job, from its submission to its end or its requeue, whichever way Slurm has told of it."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bridge.workload.table import Reason

#: The states that accounting knows; a cancelled job's may name who did it.
STATES = re.compile(
    r"(BOOT_FAIL|CANCELLED|COMPLETED|COMPLETING|CONFIGURING|DEADLINE|FAILED|LAUNCH_FAILED|NODE_FAIL"
    r"|OUT_OF_MEMORY|PENDING|PREEMPTED|RECONFIG_FAIL|REQUEUED|REQUEUE_FED|REQUEUE_HOLD|RESIZING|REVOKED|RUNNING"
    r"|SIGNALING|SPECIAL_EXIT|STAGE_OUT|STOPPED|SUSPENDED|TIMEOUT)( by .+)?"
)
#: States in which a job has not come to an end.
WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT", "REQUEUE_FED"})
AT_WORK = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING"})


@dataclass(frozen=True)
class Life:
    """One life of a job. Times in seconds since 1970, None where there is none; amounts by resource.

    Attributes:
        label: the id as users see it: ``12``, a task ``12_3`` of an array, a component ``30+1``.
        number: Slurm's own number of it, of which no other job has the same at that time.
        elapsed: seconds at work, None if unknown.
        suspended: seconds suspended, None if unknown.
        limit: seconds; infinite = unlimited, None = the partition's.
        requested, allocated: demands by resource (memory in bytes), as asked and as granted.
        words: what else is known: user, account, partition, qos, name, exit code.
    """

    label: str
    number: int
    state: str
    submit: float
    eligible: float | None
    start: float | None
    end: float | None
    elapsed: float | None
    suspended: float | None
    limit: float | None
    requested: Mapping[str, int]
    allocated: Mapping[str, int]
    words: Mapping[str, str]

    @property
    def ran(self) -> bool:
        """Whether it has come to an end after a start."""
        return self.start is not None and (self.end is not None or self.elapsed is not None)


@dataclass
class Counted:
    """Records that are left out, mended or remarkable, counted by reason; with ids or lines as examples."""

    _ids: dict[tuple[Literal["dropped", "repaired", "noted"], str], list[int]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def drop(self, why: str, number: int) -> None:
        """Count a record that is left out."""
        self._ids["dropped", why].append(number)

    def mend(self, why: str, number: int) -> None:
        """Count a record that is mended."""
        self._ids["repaired", why].append(number)

    def note(self, why: str, number: int) -> None:
        """Count a remarkable record."""
        self._ids["noted", why].append(number)

    def tally(self) -> dict[str, Reason]:
        """Return what was counted, by reason."""
        return {why: Reason(kind, len(ids), tuple(ids[:3])) for (kind, why), ids in self._ids.items()}
