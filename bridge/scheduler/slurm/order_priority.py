"""Priorities by an order in place of the multifactor formula: what a plugin of a site could do."""

from collections.abc import Callable, Iterable, Sequence

from bridge.base.arrays import Array, Records
from bridge.base.jit import kernel
from bridge.scheduler.score import evaluate
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.limits import Ledger
from bridge.scheduler.slurm.priority import Priorities
from bridge.scheduler.slurm.site import Site
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

    def __init__(self, site: Site, ledger: Ledger, score: Scorer) -> None:
        super().__init__(site, ledger)
        self.score = score

    @property
    def is_basic(self) -> bool:
        return False

    def refresh(self, job: SlurmJob, now: int) -> None:
        if not job.held and not job.never:
            self._take(job, self.score([job.key], now)[0])

    def _take(self, job: SlurmJob, score: float) -> None:
        job.priorities = {}
        job.priority = score or _ZERO

    def run_period(self, jobs: Iterable[SlurmJob], now: int) -> None:
        """Let usage decay, which limits count, and give all pending jobs their present scores."""
        life = self.site.cluster.priority.half_life
        elapsed = now - self.last if self.last else 0
        self.ledger.decay(0.5 ** (elapsed / life) if life else 1.0)
        self.last = now
        waiting = [job for job in jobs if job.state == PENDING and not job.held and not job.never]
        if waiting:
            for job, score in zip(waiting, self.score([job.key for job in waiting], now), strict=True):
                self._take(job, score)

    def end(self, job: SlurmJob, now: int) -> None:
        """Keep no fair share."""
        del job, now
