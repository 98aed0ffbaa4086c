"""What a decision process saw and did, up to the end of the simulation or to whatever came instead."""

import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from bridge.base import files
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.config.fields import record_of
from bridge.wire import hosts
from bridge.wire.times import MICRO
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.machine_view import Locality
from bridge.worlds.batsim.referee import Refusal
from bridge.worlds.batsim.wire_scheduler import WireScheduler


class ExitReason(Enum):
    """How a decision process ended: in words, and the exit status of `bridge decide`."""

    ENDED = "the simulation ended", 0
    INCOMPLETE = "the simulation ended, but jobs are missing", 6
    FAILED = "stopped by an error", 1
    NEVER_CAME = "nothing came within the start-up deadline", 3
    GONE = "the other side was gone before the simulation had ended", 4
    SILENT = "the other side fell silent before the simulation had ended", 5
    INTERRUPTED = "interrupted", 130

    def __init__(self, words: str, status: int) -> None:
        self.words, self.status = words, status


def _seconds(time: int) -> float | None:
    return time / MICRO if time >= 0 else None


@dataclass
class ProcessResult:
    """The outcome and, whatever it is, all that was decided until then.

    Attributes:
        now: the simulation's time at the end, microseconds.
        messages, passes: received; made by the scheduler.
        refusals: decisions that the referee dropped.
    """

    outcome: ExitReason
    error: BridgeError | None
    now: int
    messages: int
    dispatcher: WireScheduler[Any]
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def jobs(self) -> list[DispatchedJob]:
        return list(self.dispatcher.jobs.values())

    @property
    def locality(self) -> Locality:
        return self.dispatcher.locality

    @property
    def starts(self) -> dict[str, int]:
        return {job.job_id: job.start for job in self.jobs if job.start >= 0}

    @property
    def missing(self) -> list[DispatchedJob]:
        """Jobs that neither finished nor were rejected."""
        return [job for job in self.jobs if job.finish < 0 and job.state != "rejected"]

    def counts(self) -> dict[str, int]:
        counts = {"submitted": self.dispatcher.submitted, "missing": len(self.missing)}
        for job in self.jobs:
            counts[job.state] = counts.get(job.state, 0) + 1
        return counts

    def explain(self) -> str:
        """Summarize how it ended and what is missing."""
        text = f"{self.outcome.words} at {self.now / MICRO:.6f} s after {counted(self.messages, 'message')}"
        missing = self.missing
        if missing:
            waiting = [job for job in missing if job.state == "waiting"]
            named = ", ".join(job.job_id for job in missing[:3]) + (", …" if len(missing) > 3 else "")
            text += (
                f"; {counted(len(missing), 'job is', 'jobs are')} missing ({len(waiting):,} "
                f"never started): {named}"
            )
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return the summary: outcome, counts, locality, refusals, and one entry a job (times in seconds)."""
        return {
            "outcome": self.outcome.name.lower(),
            "explanation": self.explain(),
            "error": str(self.error) if self.error else None,
            "now": self.now / MICRO,
            "messages": self.messages,
            "passes": self.dispatcher.passes,
            "counts": self.counts(),
            "locality": record_of(self.locality),
            "refused": [str(refusal) for refusal in self.refusals],
            "jobs": [self._job(job) for job in self.jobs],
        }

    def _job(self, job: DispatchedJob) -> dict[str, Any]:
        return {
            "job_id": job.job_id,
            "submit": job.submit / MICRO,
            "nodes": job.n_hosts,
            "state": job.state,
            "start": _seconds(job.start),
            "finish": _seconds(job.finish),
            "hosts": hosts.text_of(job.hosts),
            **self.dispatcher.report_fields(job),
            "why": job.why,
        }

    def write(self, path: str | Path) -> None:
        """Write the summary as JSON, whole or not at all (BridgeError)."""
        with files.open_write(Path(path)) as file:
            summary = self.as_dict()
            jobs = summary.pop("jobs")
            head = json.dumps(summary, indent=1, ensure_ascii=False)[:-2]
            lines_of_jobs = (json.dumps(job, ensure_ascii=False, separators=(",", ":")) for job in jobs)
            lines = ",\n".join(f"  {job}" for job in lines_of_jobs)
            file.write(f'{head},\n "jobs": [\n{lines}\n ]\n}}\n'.encode())
