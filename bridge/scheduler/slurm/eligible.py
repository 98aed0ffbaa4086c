"""Which pending jobs a pass looks at: times, dependencies, arrays, partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from bridge.scheduler.slurm.advance import Advance
from bridge.scheduler.slurm.jobs import DONE, PENDING, RUNNING, SUSPENDED, SlurmJob
from bridge.scheduler.slurm.limits import job_limit
from bridge.scheduler.slurm.site import Site, SlurmPart

#: What a dependency says of a job.
MET, WAITS, NEVER = "met", "waits", "never"


def _state_of(kind: str, parents: Sequence[SlurmJob], minutes: int, now: int) -> str:
    if not parents:  # purged
        return MET
    if kind == "after":
        together = all(one.start or one.cancelled or one.state == DONE for one in parents)
        late = max((one.start for one in parents), default=0) + 60 * minutes
        return MET if together and late <= now else WAITS
    if any(one.state != DONE or one.completing for one in parents):
        return WAITS
    failed = any(one.exit_code != 0 or one.cancelled for one in parents)
    if kind == "afterok":
        return NEVER if failed else MET
    if kind == "afternotok":
        return MET if failed else NEVER
    return MET


def dependency(job: SlurmJob, by_id: Mapping[int, Sequence[SlurmJob]], now: int) -> str:
    """Return whether what a job waits for is met, never will be, or not yet."""
    results = []
    for kind, parents in job.dependencies:
        for parent, minutes in parents:
            tasks = by_id.get(parent, ())
            if kind == "aftercorr":
                tasks = [one for one in tasks if one.task == job.task]
                kind = "afterok"  # noqa: PLW2901
            results.append(_state_of(kind, tasks, minutes, now))
    if not results:
        return MET
    if job.any_dependency:
        if MET in results:
            return MET
        return NEVER if all(one == NEVER for one in results) else WAITS
    if NEVER in results:
        return NEVER
    return MET if all(one == MET for one in results) else WAITS


def singleton_waits(job: SlurmJob, others: Iterable[SlurmJob]) -> bool:
    """Tell whether an earlier job, or a running one, of the same user and name goes first."""
    for one in others:
        if one is job or one.user != job.user or one.name != job.name or one.id == job.id:
            continue
        if one.state in (RUNNING, SUSPENDED) or (one.state == PENDING and one.id < job.id):
            return True
    return False


def array_is_full(job: SlurmJob, by_id: Mapping[int, Sequence[SlurmJob]]) -> bool:
    """Tell whether as many tasks of a job's array run as may."""
    if not job.array_most:
        return False
    return sum(one.state in (RUNNING, SUSPENDED) for one in by_id[job.id]) >= job.array_most


def reservation_is_open(job: SlurmJob, reservations: Mapping[str, Advance], now: int) -> bool:
    """Tell whether a job's reservation has begun, or may be used before."""
    if not job.reservation:
        return True
    own = reservations.get(job.reservation)
    if own is None:
        return False
    return own.end > now and (own.flex or own.start <= now)


def partition_reason(site: Site, job: SlurmJob, part: SlurmPart) -> str:
    """Return why a job waits in a partition whatever is free there; empty: it does not."""
    version, reason = job.kept_out.get(part.index, (-1, ""))
    if version != part.version:
        reason = _partition_reason(site, job, part)
        job.kept_out[part.index] = part.version, reason
    return reason


def _partition_reason(site: Site, job: SlurmJob, part: SlurmPart) -> str:
    qos = site.qos[job.qos]
    if part.state == "down":
        return "PartitionDown"
    if part.state in ("inactive", "drain"):
        return "PartitionInactive"
    if (
        part.max_time is not None
        and job_limit_asked(job, part) > part.max_time
        and not qos.partition_time_limit
    ):
        return "PartitionTimeLimit"
    if part.max_nodes is not None and job.min_nodes > part.max_nodes and not qos.partition_max_nodes:
        return "PartitionNodeLimit"
    if part.min_nodes and job.max_nodes < part.min_nodes and not qos.partition_min_nodes:
        return "PartitionNodeLimit"
    if job.min_cpus > part.cpus or job.min_nodes > part.mask.bit_count():
        return "PartitionConfig"
    about, account = part.about, job.assoc.parent
    names = {one.name for one in account.chain()} if account is not None else {"root"}
    if about.allow_accounts and not names & set(about.allow_accounts):
        return "AccountNotAllowed"
    if about.deny_accounts and names & set(about.deny_accounts):
        return "AccountNotAllowed"
    if (about.allow_qos and job.qos not in about.allow_qos) or job.qos in about.deny_qos:
        return "QOSNotAllowed"
    return ""


def job_limit_asked(job: SlurmJob, part: SlurmPart) -> int:
    """Return the shortest time for which a job asks, s."""
    return job.min_limit or job.limit or job_limit(job, part)


#: A pass' queue: jobs, each in one of its partitions.
Entry = tuple[SlurmJob, SlurmPart]
Compare = Callable[[Entry, Entry], int]
