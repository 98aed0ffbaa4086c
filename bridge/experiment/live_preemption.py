"""Preemption on a live site: which running jobs a pass may stop, and what it has decided of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bridge.cluster.node_table import partitions_of
from bridge.experiment.loaded_site import LoadedSite
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import MODE_OFF, MODE_SUSPEND, OVER, RUNNING, SUSPENDED, WAITING
from bridge.worlds.fast.cluster_calendar import names_of_qos, set_preemption
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.slurm.site_jobs import PendingJob, PlacedJob, SiteStop, StopKind

#: What a job that ran has become of, as what is to be done in Slurm.
_KINDS = {SUSPENDED: StopKind.SUSPEND, WAITING: StopKind.REQUEUE, OVER: StopKind.CANCEL}


def with_victims(scenario: Scenario, jobs: Sequence[PlacedJob]) -> tuple[Scenario, Mapping[str, str]]:
    """Return a scenario in which running jobs are preempted as their partitions and QOS say.

    `jobs`: of its first records, a record for each set of nodes on which a job has the same. Also the jobs
    that are not stopped all the same, and why.
    """
    assert scenario.cluster is not None
    calendar, site = scenario.cluster.calendar, scenario.cluster.cluster
    assert calendar is not None
    records = calendar.jobs.copy()
    partitions = {row.name: row for row in partitions_of(site)}
    tables, names = {row.name: row for row in site.qos}, names_of_qos(site)
    n_pieces = Counter(job.key for job in jobs)
    spared: dict[str, str] = {}
    for k, job in enumerate(jobs):
        record = records[k]
        record.is_held = 1  # it waits again when Slurm says so, not before
        record.may_requeue = job.may_requeue
        record.qos = names.index(job.qos) if job.qos in names else 0
        if job.partition not in partitions:
            record.mode = MODE_OFF
            continue
        set_preemption(record, site, partitions[job.partition], tables.get(job.qos))
        if record.mode != MODE_OFF and (why := _reason_spared(job, n_pieces[job.key])):
            spared[job.key] = why
            record.mode = MODE_OFF
    suspends = calendar.suspends or bool((records.mode == MODE_SUSPEND).any())
    calendar = replace(calendar, jobs=records, suspends=suspends)
    return replace(scenario, cluster=replace(scenario.cluster, calendar=calendar)), spared


def _reason_spared(job: PlacedJob, n_pieces: int) -> str:
    if "+" in job.key.partition("@")[0]:
        return "it is a component of a heterogeneous job"
    return "it does not have the same on each of its nodes" if n_pieces > 1 else ""


def resume_preemption(
    state: Any,
    jobs: Sequence[PlacedJob],
    waiting: Sequence[PendingJob],
    micro: Callable[[float], int],
    *,
    resumes: bool,
) -> None:
    """Let a scheduler know what earlier passes have decided: graces, and the jobs that go first.

    Not `resumes`: a pass takes somebody first who does not wait any more, and so lets no suspended job go on.
    """
    n, of, more = len(jobs), state.timed_jobs, state.timed_scalars
    place = {job.key: k for k, job in enumerate(waiting, n)}
    for k, job in enumerate(jobs):
        if job.suspended >= 0:
            of.stood[0, k] = round(job.stood * SECOND)
        if job.grace_end >= 0:
            of.grace_end[0, k] = micro(job.grace_end)
            of.preemptor[0, k] = place.get(job.preemptor, k)  # itself, if that job waits no more
            more.n_graces[0] += 1
    firsts = [place[job.key] for job in waiting if job.goes_first]
    if not resumes and not firsts and n > 0:
        firsts = [0]
    for j in firsts:
        state.firsts[0, more.n_firsts[0]] = j
        more.n_firsts[0] += 1


def _grace(present: LoadedSite, key: str, k: int, now: float) -> SiteStop:
    of = present.state.timed_jobs
    end = now + (int(of.grace_end[0, k]) - present.now) / SECOND
    preemptor = present.waiting[int(of.preemptor[0, k]) - len(present.pieces)].key
    return SiteStop(key, StopKind.GRACE, end, preemptor)


def read_preemption(present: LoadedSite, now: float) -> tuple[tuple[SiteStop, ...], frozenset[str], bool]:
    """Return what a pass has decided of jobs that have nodes.

    Also the jobs that the next one takes first, and whether it lets suspended jobs go on.
    """
    state, n = present.state, len(present.pieces)
    of, more = state.timed_jobs, state.timed_scalars
    stops = []
    for k, (job, _) in enumerate(present.pieces):
        doing = int(of.doing[0, k])
        if job.suspended >= 0:
            gives_way_again = of.suspended_at[0, k] == present.now and job.suspended < now
            if doing == RUNNING or gives_way_again:
                stops.append(SiteStop(job.key, StopKind.RESUME))
            if doing != RUNNING and gives_way_again:
                stops.append(SiteStop(job.key, StopKind.SUSPEND))
        elif doing in _KINDS:
            stops.append(SiteStop(job.key, _KINDS[doing]))
        if doing == RUNNING and of.grace_end[0, k] >= 0 and job.grace_end < 0:
            stops.append(_grace(present, job.key, k, now))
    for k, waited in enumerate(present.waiting, n):
        if of.grace_end[0, k] >= 0 and of.doing[0, k] == RUNNING:  # it has just started
            stops.append(_grace(present, waited.key, k, now))
    firsts = state.firsts[0, : int(more.n_firsts[0])].tolist()
    return tuple(stops), frozenset(present.waiting[j - n].key for j in firsts if j >= n), not firsts
