"""Priorities by an order in place of the multifactor formula: what a plugin of a site could do."""

from collections.abc import Callable, Iterable, Sequence

from bridge.base.arrays import Array, Records
from bridge.base.jit import kernel
from bridge.scheduler.score import evaluate
from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.priority import Priorities
from bridge.scheduler.slurm.rows import Rows
from bridge.scheduler.slurm.site import Site, SlurmPart
from bridge.scheduler.state import State

#: Scores of jobs, by their keys, at a whole second since 1970.
Scorer = Callable[[Sequence[int], int], Sequence[float]]
#: The score 0, which would mean that a job is held.
_ZERO = 5e-324


@kernel
def score_jobs(state: State, program: Records, which: Array, n: int) -> None:
    """Leave an order's scores of the jobs ``which[:n]`` in ``stack[0]``."""
    evaluate(state, 0, program, which, n)


class OrderPriorities(Priorities):
    """Scores as priorities, as fresh as Slurm's own: at submission, and once in each calculation period."""

    def __init__(self, site: Site, rows: Rows, score: Scorer) -> None:
        super().__init__(site, rows)
        self.score = score
        rows.store.rules[[at.PERIODS, at.KEEPS_USAGE]] = at.BY_PYTHON, 0

    @property
    def is_basic(self) -> bool:
        return False

    def refresh(self, job: SlurmJob, now: int) -> None:
        if not job.held and not job.never and job.state == PENDING:
            self._take_score(job, self.score([job.key], now)[0])
            self.rows.write(job)

    def submit(self, job: SlurmJob, now: int) -> None:
        """Give a job that waits its score."""
        self.refresh(job, now)

    def _take_score(self, job: SlurmJob, score: float) -> None:
        job.priorities = {}
        job.priority = score or _ZERO

    def write_terms(self, job: SlurmJob, part: SlurmPart, e: int) -> None:
        """Write nothing: an order has no terms."""
        del job, part, e

    def run_period(self, waiting: Iterable[SlurmJob], running: Iterable[SlurmJob], now: int) -> None:
        """Let usage decay, which limits count, and give all pending jobs their present scores."""
        del running
        life = self.site.cluster.priority.half_life
        elapsed = now - self.last if self.last else 0
        self.ledger.decay(0.5 ** (elapsed / life) if life else 1.0)
        self.last = now
        jobs = [job for job in waiting if not job.held and not job.never]
        if jobs:
            for job, score in zip(jobs, self.score([job.key for job in jobs], now), strict=True):
                self._take_score(job, score)
        self.rows.write_priorities(jobs)
