"""The main pass: the sorted walk, in which a job that does not fit closes its partition for the rest."""

from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm import main_kernels as kernels
from bridge.scheduler.slurm import pass_kernels
from bridge.scheduler.slurm.controller import OUTCOMES, STARTED, Controller
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import SlurmPart

_begin, _go_on = Quick(kernels.begin_main), Quick(kernels.walk)
_idle_until, _end = Quick(pass_kernels.main_until), Quick(pass_kernels.end_main_now)
_is_closed, _is_over_limit = Quick(kernels.is_closed), Quick(kernels.is_over_limit)
_OVER = (kernels.DONE, kernels.CUT, kernels.NONE_BEHIND)


class MainWalk:
    """One walk through the queue, of `n` entries; `full`: to its end."""

    def __init__(self, slurm: Controller, now: int, n: int, *, full: bool) -> None:
        self.slurm, self.now = slurm, now
        slurm.rows.make_room()
        _begin(slurm.store.bundle, now, full, n)

    def go_on(self) -> bool | None:
        """Look at all jobs in turn, or at the next tasks of their arrays; the walk is over unless it is None.

        False: the pass looks at no more jobs; True: nothing behind could start.
        """
        slurm, store, came = self.slurm, self.slurm.store, -1
        while (stop := _go_on(store.bundle, came)) not in _OVER:
            came, (job, part) = -1, slurm.entry()
            slurm.see_starts()
            if stop == kernels.PREEMPT and (result := slurm.let_give_way(self.now, "main")) != STARTED:
                came = OUTCOMES.index(result)
                continue
            task = slurm.next_task(job, self.now)
            store.now[at.ENTRY] = -1 if task is None else task.entries[part.index]
        slurm.see_starts()
        return None if stop == kernels.DONE else bool(stop == kernels.NONE_BEHIND)

    def step(self, job: SlurmJob, part: SlurmPart) -> bool | None:
        """Look at one job, or the next tasks of its array; see `go_on`."""
        store = self.slurm.store
        store.turn[0] = job.entries[part.index]
        store.now[at.AT], store.now[at.LENGTH] = 0, 1
        return self.go_on()

    def is_closed(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether an earlier job of its reservation or partition was blocked."""
        return bool(_is_closed(self.slurm.store.bundle, job.entries[part.index]))

    def is_over_limit(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a limit keeps a job from being tried at all."""
        return bool(_is_over_limit(self.slurm.store.bundle, job.entries[part.index]))


def main_pass(slurm: Controller, now: int, *, full: bool) -> None:
    """Walk the queue once; `full`: to its end. A pass that provably changes nothing is left out."""
    n = begin_main(slurm, now, full=full)
    if n is not None:
        starts = slurm.n_starts
        is_cut = MainWalk(slurm, now, n, full=full).go_on() is False
        end_main(slurm, now, starts, whole=full or not is_cut)


def begin_main(slurm: Controller, now: int, *, full: bool) -> int | None:
    """Return how many entries a main pass looks at; None: the pass provably changes nothing."""
    if now < main_idle_until(slurm, full=full):
        return None
    n = slurm.queue(now)  # now the line is in order, so that more may be known
    slurm.rows.forget_left()
    return None if now < main_idle_until(slurm, full=full) else n


def end_main(slurm: Controller, now: int, starts: int, *, whole: bool) -> None:
    """Take note of a main pass that started nothing since there were `starts`; `whole`: it saw all jobs."""
    _end(slurm.store.bundle, now, starts, whole)


def main_idle_until(slurm: Controller, *, full: bool) -> int:
    """Return until when main passes provably change nothing, and leave the weights as they are."""
    return int(_idle_until(slurm.store.bundle, full))
