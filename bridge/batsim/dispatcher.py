"""The dispatcher: turns messages into a pass of the one scheduler core, and its starts into decisions.

All events of a message are applied first, then the scheduler runs once: the message is the instant of
the standard protocol. A message that can change no decision (a note, a stale wake-up) starts no pass.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.batsim.beliefs import Estimator, Facts, number_of, requested
from bridge.batsim.events import (
    CallMeLater,
    Decision,
    ExecuteJob,
    FinishRegistration,
    JobCompleted,
    JobSubmitted,
    MachineAvailability,
    Message,
    Notification,
    RejectJob,
    RequestedCall,
    ResourceStateChanged,
    SimulationBegins,
    SimulationEnds,
)
from bridge.batsim.job_profiles import JobProfiles
from bridge.batsim.machine_view import ASLEEP, UNAVAILABLE, Locality, MachineView
from bridge.batsim.placement import FirstFit, Rule
from bridge.batsim.power import Power, PowerPlan
from bridge.batsim.power_states import states
from bridge.errors import BridgeError
from bridge.scheduler import machine
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import PROTOCOLS, Policy, Protocol
from bridge.scheduler.session import Session
from bridge.scheduler.state import HOW_BACKFILLED, NEVER
from bridge.wire.hosts import Hosts
from bridge.wire.times import MICRO

#: What Batsim notifies after the last submission.
ALL_SUBMITTED = "no_more_static_job_to_submit"

#: Answers a decision of the scheduler (session, kind): a place among the candidates, or ``machine.DECLINE``.
Decider = Callable[[Session, int], int]


@dataclass(frozen=True)
class Setup:
    """Everything that decides what the dispatcher does.

    Attributes:
        policy, protocol: of the scheduler core.
        placement: the placement rule, and its name for the report.
        resources: further resources, name -> the machine's amount; a job's field of that name is its demand.
        estimator: believed lengths.
        facts: what some orders know of the workload.
        storage: storage label -> host name, where the label is not the host's name.
        decider: answers decisions that the policy leaves to an agent.
        window: most candidates shown to an agent.
        power: what is done with power states, which the platform must simulate; None: they are left alone.
    """

    policy: Policy = field(default_factory=Policy)
    protocol: Protocol = PROTOCOLS["standard"]
    placement: Rule = FirstFit
    placement_name: str = "first-fit"
    resources: Mapping[str, int] = field(default_factory=dict)
    estimator: Estimator = requested
    facts: Facts = field(default_factory=Facts)
    storage: Mapping[str, str] = field(default_factory=dict)
    decider: Decider | None = None
    window: int = 128
    power: PowerPlan | None = None

    def check(self) -> None:
        """Refuse what cannot work before anybody waits for it.

        Raises:
            BridgeError: an unknown policy, or one that lacks a decider or facts.
        """
        compiled = compile_policy(self.policy, self.protocol)
        self.facts.check(compiled.order)
        if self.policy.agent and self.decider is None:
            raise BridgeError(
                "has no agent to decide", where=", ".join(sorted(self.policy.agent)), remedy="Give a decider."
            )
        if self.power is not None and self.power.levels is not None and "power" not in self.resources:
            raise BridgeError("power per job is a resource", remedy="Say how much power there is for jobs.")


@dataclass(slots=True)
class Job:
    """What became of one job; times in microseconds, -1 = not yet.

    Attributes:
        index: its number in the session, -1 if it was rejected.
        start: when it was executed; later than the scheduler started it if hosts had to be woken.
        state: waiting, waking (its hosts are being switched on), running, rejected, or Batsim's state of a
            finished job.
        why: why it was rejected.
        level: its level where there is power per job.
    """

    job_id: str
    submit: int
    res: int
    index: int = -1
    start: int = -1
    finish: int = -1
    state: str = "waiting"
    hosts: Hosts = ()
    why: str = ""
    storage: dict[str, int] | None = None
    level: int = 0


def by_submission(event: JobSubmitted) -> tuple[int, bool, int, str]:
    """Sort by (submit, id), ids that are numbers as numbers, as the fast world does."""
    number = number_of(event.job_id)
    return event.submit, number is None, number or 0, event.job_id


def beginning(message: Message) -> SimulationBegins:
    """Return what the first message of a simulation begins with.

    Raises:
        BridgeError: it is no such message.
    """
    begin = message.events[0] if message.events else None
    if not isinstance(begin, SimulationBegins):
        raise BridgeError(
            "the first message is not SIMULATION_BEGINS",
            remedy="Was another decision process on this socket before? Start the simulation anew.",
        )
    return begin


def second_beginning() -> BridgeError:
    """Return the error of a simulation that begins where one has begun."""
    return BridgeError("a second simulation begins on this socket", remedy="One process, one simulation.")


def contradiction(event: JobCompleted, job: "Job | None") -> BridgeError:
    """Return the error of a completion that cannot be."""
    return BridgeError(
        "completed, but " + (f"is {job.state} here" if job else "was never submitted"),
        where=f"job {event.job_id}, time {event.time / MICRO:.6f} s",
    )


class Dispatcher:
    """Feeds one session from messages and places what it starts.

    Attributes:
        session: the scheduler, once the simulation has begun.
        jobs: every job ever submitted, by id, in order of submission.
        passes: passes made.
        ended: SIMULATION_ENDS has come.
    """

    def __init__(self, setup: Setup) -> None:
        setup.check()
        self._setup = setup
        self.session: Session | None = None
        self.jobs: dict[str, Job] = {}
        self.passes = 0
        self.ended = False
        self._index: list[Job] = []
        self._machine: MachineView | None = None
        self._sleep_states: list[frozenset[int]] = []
        self._profiles = JobProfiles()
        self._capacity: tuple[int, ...] = ()
        self._resources = tuple(setup.resources)
        self._calls: set[int] = set()
        self._lost_hosts = False
        self._power: Power | None = None
        self._granted: list[Job] = []  # started by the scheduler, not executed yet
        self._unfinished = 0
        self._more_jobs = True

    @property
    def submitted(self) -> int:
        """How many jobs were submitted."""
        return len(self.jobs)

    @property
    def locality(self) -> Locality:
        """How local the allocations were."""
        return self._machine.locality if self._machine else Locality(self._setup.placement_name)

    def decide(self, message: Message) -> list[Decision]:
        """Apply a message and return what to do about it, in order.

        Raises:
            BridgeError: the message contradicts earlier ones, or an order's score is no number.
        """
        decisions: list[Decision] = []
        arrivals: list[JobSubmitted] = []
        session, now = self.session, message.now
        fresh = session is None
        if session is None:
            session = self._expect_begin(message, decisions)
        session.now = now
        opens = changed = False
        for event in message.events:
            kind = type(event)
            if kind is JobCompleted:
                self._complete(session, event)  # type: ignore[arg-type]
                opens = True
            elif kind is JobSubmitted:
                arrivals.append(event)  # type: ignore[arg-type]
            elif kind is RequestedCall:
                opens |= now >= session.wake_at
            elif isinstance(event, MachineAvailability):
                self._change_availability(event)
                changed = True
            elif isinstance(event, ResourceStateChanged):
                changed |= self._change_power(event)
            elif isinstance(event, Notification):
                self._more_jobs &= event.kind != ALL_SUBMITTED
            elif kind is SimulationEnds:
                self.ended = True
            elif kind is SimulationBegins and not fresh:
                raise second_beginning()
        if arrivals:
            if len(arrivals) > 1:
                arrivals.sort(key=by_submission)
            for arrival in arrivals:
                opens |= self._submit(session, arrival, now, decisions)
        if self._lost_hosts or changed:
            self._tell_out_of_service(session)
            opens |= changed
        if self.ended:
            return decisions
        if opens:
            self._pass(session)
        self._carry_out(now, decisions)
        if opens:
            wake = session.wake_at
            if wake != NEVER and wake not in self._calls:
                self._call(max(wake, now + 1), now, decisions)
        return decisions

    def _expect_begin(self, message: Message, decisions: list[Decision]) -> Session:
        begin = beginning(message)
        if begin.dynamic_jobs:  # we register none, and Batsim would wait for us to say so
            decisions.append(FinishRegistration(message.now))
        setup = self._setup
        names = [host.name for host in begin.compute]
        self._machine = MachineView(names, setup.placement, setup.placement_name)
        self._sleep_states = [states(host)[1] for host in begin.compute]
        self._power = Power(setup.power, len(names)) if setup.power is not None else None
        self._profiles = JobProfiles(begin, setup.storage)
        self._capacity = (len(names), *setup.resources.values())
        self.session = Session(
            self._capacity,
            setup.policy,
            setup.protocol,
            window=setup.window,
            longest=setup.facts.longest,
            shares=setup.facts.shares,
            resources=("nodes", *self._resources),
        )
        asleep = tuple((host.id, host.id) for host in begin.compute if host.state == "sleeping")
        if asleep:
            self._change(asleep, False, ASLEEP)
            self._tell_out_of_service(self.session)
        return self.session

    # Jobs.

    def _submit(self, session: Session, event: JobSubmitted, now: int, decisions: list[Decision]) -> bool:
        """Queue a job, or reject it for what it asks; tells whether it was queued."""
        if event.job_id in self.jobs:
            raise BridgeError("was submitted twice", where=f"job {event.job_id}")
        job = self.jobs[event.job_id] = Job(event.job_id, event.submit, event.res)
        demand = [event.res, *(self._amount(event, name) for name in self._resources)]
        job.why = self._round_up(job, demand) or self._impossible(demand) or self._find_storage(event, job)
        if job.why:
            job.state = "rejected"
            decisions.append(RejectJob(now, event.job_id))
            return False
        setup = self._setup
        job.index = session.submit(
            number_of(event.job_id) or len(self._index) + 1,
            demand,
            setup.estimator(event),
            user=setup.facts.user(event),
            partition=setup.facts.partition(event),
        )
        self._index.append(job)
        self._unfinished += 1
        return True

    def _round_up(self, job: Job, demand: list[int]) -> str:
        """Book the level of power that a job's hosts will be set to; returns why that cannot be, if so."""
        levels = self._setup.power.levels if self._setup.power is not None else None
        if levels is None or job.res < 1:
            return ""
        place = 1 + self._resources.index("power")
        found = levels.round_up(job.res, demand[place])
        if found is None:
            return (
                f"asks for {demand[place]} power on {job.res} hosts, which can draw {levels.watts[-1]} W each"
            )
        job.level, demand[place] = found
        return ""

    def _amount(self, event: JobSubmitted, name: str) -> int:
        """Return how much of a further resource a job asks for; none if it has no such field."""
        asked = event.fields.get(name)
        if asked is None:
            return 0
        try:
            amount = int(asked)
            if isinstance(asked, (bool, str)) or amount != asked or amount < 0:
                raise ValueError
        except (TypeError, ValueError):
            raise BridgeError(
                f"its {name} is {asked}, not a whole amount",
                where=f"job {event.job_id}",
                remedy="Bytes and watts are whole numbers from 0 up.",
            ) from None
        return amount

    def _impossible(self, demand: Sequence[int]) -> str:
        if demand[0] < 1:
            return f"asks for {demand[0]} nodes"
        for name, asked, there in zip(("nodes", *self._resources), demand, self._capacity, strict=True):
            if asked > there:
                return f"asks for {asked} {name}, the machine has {there}"
        return ""

    def _find_storage(self, event: JobSubmitted, job: Job) -> str:
        found = self._profiles.storage_of(event)
        if isinstance(found, str):
            return found
        job.storage = found
        return ""

    def _complete(self, session: Session, event: JobCompleted) -> None:
        job = self.jobs.get(event.job_id)
        if job is None or job.state != "running":
            raise contradiction(event, job)
        job.finish, job.state = event.time, event.state
        session.finish(job.index)
        self._release(job, event.time)

    def _release(self, job: Job, now: int) -> None:
        assert self._machine is not None
        self._unfinished -= 1
        self._machine.release(job.hosts)
        if self._power is not None:
            self._power.release(job.hosts, now)

    # Hosts.

    def _change(self, hosts: Hosts, available: bool, why: str) -> None:
        assert self._machine is not None
        (self._machine.come_back if available else self._machine.leave)(hosts, why)
        self._lost_hosts = True

    def _change_availability(self, event: MachineAvailability) -> None:
        self._change(event.hosts, event.available, UNAVAILABLE)
        if self._power is None:
            return
        if self._power.plan.shuts_down:
            raise BridgeError(
                "hosts that leave and come back cannot be switched off and on besides",
                where=f"time {event.time / MICRO:.6f} s",
                remedy="Leave out --events, or shutdown_after.",
            )
        self._power.bar(event.hosts, not event.available)

    def _change_power(self, event: ResourceStateChanged) -> bool:
        """Take note of hosts that have reached a state; tells whether the scheduler has to know."""
        if self._power is not None:  # to the scheduler, hosts that we switch off are free
            self._power.arrived(event)
            return False
        for low, high in event.hosts:
            for host in range(low, min(high + 1, len(self._sleep_states))):
                self._change(((host, host),), event.pstate not in self._sleep_states[host], ASLEEP)
        return True

    def _tell_out_of_service(self, session: Session) -> None:
        assert self._machine is not None
        session.set_out_of_service((self._machine.withheld, *([0] * len(self._resources))))

    # The pass.

    def _pass(self, session: Session) -> None:
        self.passes += 1
        session.begin()
        while (kind := session.advance()) != machine.NOTHING:
            assert self._setup.decider is not None
            session.answer(self._setup.decider(session, kind))
        assert self._machine is not None
        for j in session.starts():
            job = self._index[j]
            job.hosts = self._machine.place(job.res)
            self._granted.append(job)
            if self._power is not None:
                job.state = "waking"
                self._power.grant(job.hosts, job.level, int(session.state.env.n_waiting[0]))

    def _call(self, at: int, now: int, decisions: list[Decision]) -> None:
        self._calls = {other for other in self._calls if other > now} | {at}
        decisions.append(CallMeLater(now, at))

    def _carry_out(self, now: int, decisions: list[Decision]) -> None:
        """Execute what was granted, once its hosts are in their power state, and let idle hosts sleep."""
        power = self._power
        if power is not None:
            if self._more_jobs or self._unfinished:  # else it would only make the simulation longer
                self._doze(power, now, decisions)
            decisions += power.changes(now)
        if not self._granted:
            return
        held = []
        for job in self._granted:
            if power is not None and not power.ready(job.hosts):
                held.append(job)
                continue
            job.start, job.state = now, "running"
            decisions.append(ExecuteJob(now, job.job_id, job.hosts, None, job.storage))
        self._granted = held

    def _doze(self, power: Power, now: int, decisions: list[Decision]) -> None:
        assert self._machine is not None
        hosts = power.doze(now)
        if hosts:
            self._machine.leave(hosts, ASLEEP)
        due = power.next_doze()
        if due is not None and not any(now < at <= due for at in self._calls):
            self._call(due, now, decisions)

    def refused(self, decision: Decision, why: str) -> None:
        """Take back a start that was not allowed: the job is lost, its hosts and amounts are free."""
        if isinstance(decision, ExecuteJob) and decision.job_id in self.jobs:
            job = self.jobs[decision.job_id]
            job.state, job.why = "lost", why
            job.start = -1
            assert self.session is not None and self._machine is not None
            self.session.finish(job.index)
            self._release(job, decision.time)

    def told(self, job: Job) -> dict[str, Any]:
        """Return what is to be said of a job besides."""
        started = self.session is not None and job.start >= 0
        return {
            "start_kind": ("backfilled" if self.backfilled(job) else "head") if started else None,
            "overtook": self.overtook(job) if started else "",
        }

    def waiting(self) -> list[Job]:
        """Return the jobs that never started, by submission."""
        return [job for job in self.jobs.values() if job.state == "waiting"]

    def backfilled(self, job: Job) -> bool:
        """Tell whether a started job was backfilled."""
        assert self.session is not None
        return job.index >= 0 and int(self.session.state.jobs.how[0, job.index]) == HOW_BACKFILLED

    def overtook(self, job: Job) -> str:
        """Return the id of the blocked job that a job was started behind, or an empty text."""
        assert self.session is not None
        past = int(self.session.state.jobs.past[0, job.index]) if job.index >= 0 else -1
        return self._index[past].job_id if past >= 0 else ""
