"""What is believed of a job in the detailed world: its length, its user, its share of the workload."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.base.errors import BridgeError
from bridge.scheduler.actions import permits_of
from bridge.scheduler.order import Order
from bridge.scheduler.session import JobEstimates
from bridge.wire.events import JobSubmitted
from bridge.wire.times import MICRO, micro

#: A job without a walltime is believed to last this long, and no job longer: 365 days. Far beyond any real
#: request, so that such jobs hold their hosts "for ever", and short enough for sums of them to fit in int64.
LONGEST = 365 * 86_400 * MICRO

#: The largest number of 64 bits.
_LARGEST = 2**63 - 1

#: What is believed of a job's length when it is submitted.
Estimator = Callable[[JobSubmitted], JobEstimates]


def estimate_requested(job: JobSubmitted) -> JobEstimates:
    """Believe the requested time: the job's field ``req_time`` (s), else its walltime, else `LONGEST`.

    A job has a ``req_time`` of its own where the platform does not kill it then. Raises BridgeError:
    ``req_time`` is no number.
    """
    length = LONGEST if job.walltime is None else job.walltime
    if "req_time" in job.fields:
        try:
            requested_time = micro(job.fields["req_time"])
        except ValueError as error:
            raise BridgeError(f"req_time: {error}", where=f"job {job.job_id}") from None
        length = requested_time if requested_time > 0 else length
    return JobEstimates.same(min(length, LONGEST))


def number_of(job_id: str) -> int | None:
    """Return the job's number in its workload's log: ``w0!0042`` is 42; None if its name is no number.

    Digits beyond what 64 bits hold are a name.
    """
    name = job_id.rpartition("!")[2]
    digits = name.isascii() and name.isdigit() and len(name) <= len(str(_LARGEST))
    return int(name) if digits and int(name) <= _LARGEST else None


@dataclass(frozen=True)
class Numbering:
    """Numbers of a workload's jobs: their ids, or where ids are texts their `places`."""

    places: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, job_id: str) -> int | None:
        return self.places.get(job_id.rpartition("!")[2]) if self.places else number_of(job_id)


@dataclass(frozen=True)
class EstimateLookup:
    """Lengths looked up by the job's number, as an estimator gave them for the workload's log."""

    lengths: Mapping[int, JobEstimates]
    numbering: Numbering = Numbering()

    def __call__(self, job: JobSubmitted) -> JobEstimates:
        """Return the lengths of a job; raises BridgeError if the log does not have it."""
        number = self.numbering(job.job_id)
        if number is None or number not in self.lengths:
            remedy = "The estimator reads --workload: give the log that the simulated jobs come from."
            raise BridgeError("there is no estimate for it", where=f"job {job.job_id}", remedy=remedy)
        return self.lengths[number]


@dataclass(frozen=True)
class WorkloadFacts:
    """Facts about the whole workload that some orders need, as in the fast world.

    Attributes:
        longest: longest believed length, seconds (``t_max``); 0 = not known.
        users: a job's field ``user`` as text -> dense user number.
        shares: each user's share of the workload's node-seconds (``fairshare``).
        queues: a job's field ``queue`` as text -> the queue's share (``partition``).
        numbering: what the jobs are called.
        permits: what a rule of action may do to each job, as bits, by its number; empty: the jobs' own fields
            say it.
    """

    longest: float = 0.0
    users: Mapping[str, int] = field(default_factory=dict)
    shares: Sequence[float] = (1.0,)
    queues: Mapping[str, float] = field(default_factory=dict)
    numbering: Numbering = Numbering()
    permits: Mapping[int, int] = field(default_factory=dict)

    def permitted(self, job: JobSubmitted) -> int:
        """Return what may be done to a job, as bits; raises BridgeError if the log does not have it."""
        if not self.permits:
            return permits_of(job.fields)
        number = self.numbering(job.job_id)
        if number is None or number not in self.permits:
            remedy = "Give the log that the simulated jobs come from as --workload."
            raise BridgeError("nobody says what may be done to it", where=f"job {job.job_id}", remedy=remedy)
        return self.permits[number]

    def user(self, job: JobSubmitted) -> int:
        """Return the job's dense user number; unknown users are user 0."""
        return self.users.get(str(job.fields.get("user", -1)), 0) if self.users else 0

    def partition(self, job: JobSubmitted) -> float:
        """Return the share of the job's queue; 0 if it is not known."""
        return self.queues.get(str(job.fields.get("queue", -1)), 0.0) if self.queues else 0.0

    def check(self, order: Order) -> None:
        """Refuse (BridgeError) an order that uses t_max, fairshare or partition, if they are not known."""
        missing = [name for name in ("t_max", "fairshare", "partition") if name in order.uses]
        if missing and not self.longest:
            what = f"uses {', '.join(missing)}, which only the whole workload tells"
            remedy = "Give --workload, the log that the simulated jobs come from."
            raise BridgeError(what, where=f"order {order.name!r}", remedy=remedy)


#: What is believed of a job of the time-stepped pool: (job as it was submitted, steps that it has run) ->
#: steps that it runs in total. After 0 steps: before it runs.
Believe = Callable[[JobSubmitted, int], int]
#: More steps than any pool can book.
_MOST_STEPS = 1 << 31


def estimate_from_series(job: JobSubmitted, run: int) -> int:
    """Believe the job's fields: ``believed`` before it runs, then ``beliefs``, whose last value stays.

    Both are total lengths in steps; ``beliefs`` has one per step run, from 0 on, and may be missing. Raises
    BridgeError: a field is missing, or is not what it should be.
    """
    first = estimate_at_submission(job, run)
    series = job.fields.get("beliefs", [first])
    if run == 0:
        _lengths(job, "beliefs", series)
        return first
    return int(series[min(run, len(series) - 1)])


def estimate_at_submission(job: JobSubmitted, run: int) -> int:  # noqa: ARG001
    """Believe the field ``believed`` (steps) for ever: DeepRM's view; raises BridgeError if there is none."""
    return _lengths(job, "believed", [job.fields.get("believed")])[0]


def _lengths(job: JobSubmitted, name: str, values: Any) -> list[int]:
    some = values if isinstance(values, list) else []
    if some and all(type(value) is int and 1 <= value <= _MOST_STEPS for value in some):
        return some
    fault = f"is {str(job.fields[name])[:40]}" if name in job.fields else "is missing"
    what = f"its field {name!r} {fault}: the pool needs to know how many steps it is believed to run"
    remedy = "`bridge validate POLICY --scheduler pool --no-start --out DIR` writes such workloads."
    raise BridgeError(what, where=f"job {job.job_id}", remedy=remedy)
