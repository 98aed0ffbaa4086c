"""The main pass: the sorted walk, in which a job that does not fit closes its partition for the rest."""

from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm import main_kernels as kernels
from bridge.scheduler.slurm.controller import FAR, OUTCOMES, STARTED, Controller
from bridge.scheduler.slurm.quick import Quick

_begin, _go_on = Quick(kernels.begin_main), Quick(kernels.walk)


def main_pass(slurm: Controller, now: int, *, full: bool) -> None:
    """Walk the queue once; `full`: to its end. A pass that provably changes nothing is left out."""
    if now < main_idle_until(slurm, full=full):
        return
    n = slurm.queue(now)  # now the line is in order, so that more may be known
    if now < main_idle_until(slurm, full=full):
        return
    starts = slurm.n_starts
    whole = _walk(slurm, n, now, full=full)
    if slurm.n_starts == starts:  # else the next one may find a job over a limit that blocked in this one
        until = next_change(slurm, now)
        slurm.is_passed = slurm.version, full or whole, until, slurm.line.changes, slurm.packed


def main_idle_until(slurm: Controller, *, full: bool) -> int:
    """Return until when main passes provably change nothing, and leave the weights as they are."""
    if not slurm.pending:
        return FAR
    version, was_whole, until, changes, packed = slurm.is_passed
    is_same = version == slurm.version and changes == slurm.line.changes and packed == slurm.packed
    return until if is_same and slurm.line.is_kept and (was_whole or not full) else 0


def next_change(slurm: Controller, now: int) -> int:
    """Return until when nothing that a pass looks at changes by the time alone; `now`: it may at any time."""
    parameters = slurm.site.parameters
    if slurm.reservations or parameters.bf_min_age or parameters.bf_min_prio or slurm.ledger.counts_minutes:
        return now
    if slurm.preempts:
        return now
    until = FAR
    for job in slurm.line.odd.values():
        if job.dependencies or job.singleton:
            return now
        for time in (job.begin, job.requeued_until):
            if time > now:
                until = min(until, time)
    return until


def _walk(slurm: Controller, n: int, now: int, *, full: bool) -> bool:
    """Walk so many entries; tell whether the end was reached."""
    store, came = slurm.store, -1
    _begin(store.bundle, now, full, n)
    while (stop := _go_on(store.bundle, came)) not in (kernels.DONE, kernels.CUT):
        came, (job, part) = -1, slurm.entry()
        if stop == kernels.START:
            slurm.start_entry(now, "main")
        elif stop == kernels.PREEMPT and (result := slurm.let_give_way(now, "main")) != STARTED:
            came = OUTCOMES.index(result)
            continue
        task = slurm.next_task(job, now)
        store.now[at.ENTRY] = -1 if task is None else task.entries[part.index]
    slurm.take_changes()
    slurm.has_skipped, slurm.has_barred = store.now[[at.HAS_SKIPPED, at.HAS_BARRED]].astype(bool).tolist()
    return bool(stop == kernels.DONE)
