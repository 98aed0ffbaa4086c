"""What a killed slurmctld leaves behind: jobs that it has forgotten, jobs that it shows after their end."""

from collections.abc import Mapping

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.client import Client, Control
from bridge.worlds.slurm.event_file import EndedJobs, EventLine
from bridge.worlds.slurm.install import configuration
from bridge.worlds.slurm.jobs import Phase, TrackedJob
from bridge.worlds.slurm.report import Journal

#: Seconds for which slurmctld must know ended jobs (MinJobAge), so that one it does not know was lost.
_REMEMBERS = 30


class JobLosses:
    """Reports lost jobs, and cancels those that are over; `former`: as slurmctld went away, by key."""

    def __init__(self, client: Client, control: Control, journal: Journal) -> None:
        self._client, self._control, self._journal = client, control, journal
        age = configuration(client).get("minjobage", "0").partition(" ")[0]
        self._remembers = age.isdigit() and int(age) >= _REMEMBERS
        self._ended_lives = EndedJobs()
        self.former: dict[str, TrackedJob] = {}

    def note(self, line: EventLine) -> None:
        self._ended_lives.add(line)

    def miss(self, job: TrackedJob, now: float) -> None:
        """Report a job that is no longer listed, if Slurm would still know one that has ended."""
        if self._remembers:
            self._check(job, now)

    def set_aside(self, jobs: Mapping[str, TrackedJob]) -> None:
        """Remember the jobs that were followed: slurmctld is away."""
        self.former |= jobs

    def compare(self, jobs: Mapping[str, TrackedJob], now: float) -> None:
        """Report the jobs that Slurm has forgotten while it was away."""
        former, self.former = self.former, {}
        for key, job in former.items():
            if key not in jobs:
                self._check(job, now)

    def bury(self, job: TrackedJob, now: float) -> None:
        """A job is shown as running; if jobcomp has told of its end, end it for Slurm, too."""
        row = job.row
        ended = self._ended_lives.has_ended(row.raw, row.submit, row.start)
        if not ended or row.key in self._journal.counts.ended_unnoticed:
            return
        self._journal.counts.ended_unnoticed.append(row.key)
        self._journal.say(f"ENDED {row.label}: Slurm was killed before it could write that down; cancelled")
        try:
            answer = self._client.call("scancel", row.label)
        except BridgeError as error:
            answer = str(error)
        self._journal.audit.write({"time": now, "ghost": row.key, "answer": answer})

    def _check(self, job: TrackedJob, now: float) -> None:
        if job.phase is Phase.FOREIGN or self._is_known(job):
            return
        self._journal.counts.lost.append(job.row.key)
        self._journal.say(f"LOST {job.row.label}: Slurm does not know it any more")
        self._journal.audit.write({"time": now, "lost": job.row.key})

    def _is_known(self, job: TrackedJob) -> bool:
        """Tell whether Slurm knows a job; one of the same id is another one, unless it was requeued."""
        answer = self._control(f"show job {job.row.label}").replace("\n", " ")
        again = " Restarts=" in answer and " Restarts=0 " not in answer
        return f"SubmitTime={job.row.submit} " in answer or again
