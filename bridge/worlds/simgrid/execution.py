"""What a job does from its start to its end, and how it is killed."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError, add_location
from bridge.worlds.simgrid import kernel, parallel_task
from bridge.worlds.simgrid.kernel import Actor, SubActor, server_message
from bridge.worlds.simgrid.model import SimulationModel
from bridge.worlds.simgrid.options import read_text
from bridge.worlds.simgrid.parallel_task import JobAllocation
from bridge.worlds.simgrid.profile_types import PARALLEL, Profile
from bridge.worlds.simgrid.workload import FAILED, KILLED, RUNNING, SUCCESS, WALLTIME, Job

#: A job that took no time at all is said to have taken this long, s.
_INSTANT_S = 1e-5
#: Steps within steps, at most: a 'recv' can choose itself.
_MOST_LEVELS = 300
_WALLTIME_REACHED = -1
_KILLED = -2
_BROKEN = 1
#: How a parallel task ended -> return code.
_CODES = {
    kernel.DONE: 0,
    kernel.TIMED_OUT: _WALLTIME_REACHED,
    kernel.CANCELLED: _KILLED,
    kernel.BROKEN: _BROKEN,
}
#: Return code -> final state; others are of jobs that failed (positive) or were killed.
_STATES = {0: SUCCESS, _WALLTIME_REACHED: WALLTIME, _KILLED: KILLED}


@dataclass(slots=True, eq=False)
class ProfileStep:
    """A profile under execution: how far it is, and the step it is in, if it is composed of some."""

    profile: Profile
    io: Profile | None = None
    level: int = 0
    index: int = -1
    current: "ProfileStep | None" = None
    progress: float = 0.0
    #: The parallel task, once there is one.
    exec: Any = None
    #: Of a delay: when it began (-1: not yet) and how long it takes, s.
    began: float = -1.0
    length: float = -1.0

    def enter(self, index: int, profile: Profile, io: Profile | None) -> "ProfileStep":
        """Begin the step of this number and return it."""
        self.index, self.current = index, ProfileStep(profile, io, self.level + 1)
        return self.current

    def to_json(self) -> dict[str, Any]:
        """Return the progress in JOB_KILLED's form."""
        record: dict[str, Any] = {"profile_name": self.profile.name}
        if self.exec is not None or self.began != -1:
            return record | {"progress": float(self.progress)}
        inner = {"current_task": self.current.to_json()} if self.current else {}
        return record | {"current_task_index": self.index} | inner


def job_actor(model: SimulationModel, job: Job, allocation: JobAllocation, notify: bool) -> Actor:
    """Run a job. ``notify``: tell the server when it is over."""
    yield from _begin(model, job, allocation)
    run = _Run(model, job, allocation, job.walltime)
    with add_location(f"job '{job.id}'"):
        job.return_code = yield from run.step(job.task)
    job.state = _STATES.get(job.return_code, FAILED if job.return_code > 0 else KILLED)
    if model.paje and job.return_code < 0:
        model.paje.killed(job.id, job.allocation, model.clock())
    yield from _end(model, job)
    if notify and job.state != KILLED:
        yield server_message("job_completed", job)
    job.actors.clear()


def _begin(model: SimulationModel, job: Job, allocation: JobAllocation) -> SubActor:
    job.start = model.clock()
    job.allocation = allocation.machines
    job.task = ProfileStep(job.profile, allocation.io_profile)
    if model.options.energy:
        job.energy = yield from model.consumed(job.allocation)
        yield from model.record_energy("s")
    model.job_starts(job)


def _end(model: SimulationModel, job: Job) -> SubActor:
    for guard in job.guards:
        yield kernel.KILL, guard
    job.guards.clear()
    model.job_ends(job)
    job.runtime = (model.clock() - job.start) or _INSTANT_S
    if model.options.energy:
        # Until the job ends, its energy is what its machines had consumed when it started.
        job.energy = (yield from model.consumed(job.allocation)) - job.energy
        model.energy_last = yield from model.record_energy("e")


def stillborn_actor(model: SimulationModel, job: Job, allocation: JobAllocation) -> Actor:
    """Let a job fail at once; for want of a machine of its own it does so on the master."""
    yield from _begin(model, job, allocation)
    yield from break_off(model, job)


def break_off(model: SimulationModel, job: Job) -> SubActor:
    """End a running job, one of whose machines has failed, and tell the server."""
    for handle in job.actors:
        yield kernel.KILL, handle
    job.actors.clear()
    job.state, job.return_code = FAILED, _BROKEN
    yield from _end(model, job)
    yield server_message("job_completed", job)


@dataclass(slots=True)
class _Run:
    """One execution of a job: what is left of its walltime (s; negative: none), and how each type is done."""

    model: SimulationModel
    job: Job
    allocation: JobAllocation
    left: float

    def step(self, step: ProfileStep) -> SubActor:
        """Execute a step; return 0, the profile's own positive code, -1 at the walltime or -2 when killed."""
        profile = step.profile
        if profile.kind in PARALLEL:
            code = yield from self._parallel(step)
        elif profile.kind == "composed":
            code = yield from self._composed(step)
        elif profile.kind == "delay":
            step.began, step.length = self.model.clock(), profile.numbers["delay"]
            code = yield from self._sleep(step.length)
        elif profile.kind == "send":
            yield server_message("from_job", self.job, profile.numbers["msg"])
            code = yield from self._sleep(profile.numbers["sleeptime"])
        elif profile.kind == "recv":
            code = yield from self._receive(step)
        else:
            self._check_tasks(profile)
            code = yield from self._usage_trace(profile)
        return code or profile.ret

    def _composed(self, step: ProfileStep) -> SubActor:
        parts, extras = step.profile.steps, step.io.steps if step.io else ()
        for i in range(step.profile.numbers["repeat"] * len(parts)):
            k = i % len(parts)
            code = yield from self.step(step.enter(i, parts[k], extras[k] if extras else None))
            if code:
                return code
        return 0

    def _sleep(self, seconds: float) -> SubActor:
        if self.left < 0 or seconds < self.left:
            yield kernel.SLEEP, seconds
            if self.left > 0:
                self.left -= seconds
            return 0
        yield kernel.SLEEP, self.left
        self.left = 0.0
        return _WALLTIME_REACHED

    def _check_tasks(self, profile: Profile) -> None:
        if self.model.machines.wifi:
            what = f"its profile '{profile.name}' is a parallel task, which SimGrid cannot run beside Wi-Fi"
            remedy = "Make it a delay, or the platform's Wifi zones Full ones with SHARED links."
            raise BridgeError(what, remedy=remedy)

    def _parallel(self, step: ProfileStep) -> SubActor:
        self._check_tasks(step.profile)
        machines, flops, sizes = parallel_task.build_parallel_task(
            self.model, step.profile, self.allocation, step.io
        )
        step.exec = yield kernel.EXEC, [machine.host for machine in machines], flops, sizes
        before = self.model.clock()
        outcome = yield kernel.RUN, step.exec, self.left if self.left >= 0 else None
        if self.left >= 0:
            self.left -= self.model.clock() - before
        return _CODES[outcome]

    def _receive(self, step: ProfileStep) -> SubActor:
        numbers, inbox = step.profile.numbers, self.job.inbox
        name = numbers["timeout"]
        while not inbox and not name:
            code = yield from self._sleep(numbers["polltime"])
            if code:
                return code
        if inbox:
            message = inbox.popleft()
            name = numbers["success" if re.fullmatch(numbers["regex"], message) else "failure"]
        if not name:
            return 0
        with add_location(f"profile '{step.profile.name}'"):
            profile = self.job.workload.profile(name)
            if step.level >= _MOST_LEVELS:
                raise BridgeError(f"profiles have chosen one another {step.level} times, one within another")
        return (yield from self.step(step.enter(0, profile, None)))

    def _usage_trace(self, profile: Profile) -> SubActor:
        job, traces = self.job, profile.numbers["traces"]
        hosts = [machine.host for machine in self.allocation.ranks(self.model)]
        ranks = job.ranks or [i % job.n_hosts for i in range(len(traces))]
        if len(ranks) != len(traces):
            what = f"smpi_ranks_to_hosts_mapping places {len(ranks)} ranks, the trace has {len(traces)}"
            raise BridgeError(what)
        mailbox = f"job_{job.id}_smpi_termination"
        children = {}
        for rank, (trace, place) in enumerate(zip(traces, ranks, strict=True)):
            actor = _replay_rank(hosts[place], rank, trace, mailbox)
            children[rank] = yield kernel.SPAWN, f"{job.id}_{rank}", hosts[place], actor
            job.actors.append(children[rank])
        limited = self.left >= 0
        while children:
            before = self.model.clock()
            finished = yield kernel.GET, mailbox, self.left if limited else None
            if finished == kernel.TIMED_OUT:
                for child in children.values():
                    job.actors.remove(child)
                    yield kernel.KILL, child
                return _WALLTIME_REACHED
            job.actors.remove(children.pop(finished))
            if limited:
                self.left -= self.model.clock() - before
        return 0


def _replay_rank(host: Any, rank: int, trace: Path, mailbox: str) -> Actor:
    """Compute what a usage trace says, phase by phase: the given flops on each of the cores in use."""
    for usage, flops in _phases(trace, rank):
        cores = max(math.floor(usage * host.core_count + 0.5), 1)
        task = yield kernel.EXEC, [host] * cores, [flops] * cores, []
        yield kernel.RUN, task, None
    yield kernel.PUT, mailbox, rank, 4


def _phases(trace: Path, rank: int) -> Iterator[tuple[float, float]]:
    for number, line in enumerate(read_text(trace).splitlines(), 1):
        words = line.split()
        if not words or words[0] != str(rank):
            continue
        with suppress(IndexError, ValueError):
            usage, flops = float(words[2]), float(words[3])
            if words[1] == "m_usage" and 0 <= usage <= 1 and 0 <= flops < math.inf:
                yield usage, flops
                continue
        remedy = "Write 'RANK m_usage FRACTION FLOPS', the fraction of the cores between 0 and 1."
        raise BridgeError(f"'{line}' is not a phase of rank {rank}", where=f"{trace}:{number}", remedy=remedy)


def killer_actor(model: SimulationModel, job_ids: list[str], where: str) -> Actor:
    """Kill jobs and tell the server how far they were. Jobs that are complete by now are left alone."""
    progress: dict[str, Any] = {}
    with add_location(where):
        for job_id in job_ids:
            job = model.job(job_id)
            if job.state == RUNNING:
                if job.task is None:
                    raise BridgeError(f"the job '{job_id}' has not begun to run")
                yield from _measure(model, job.task)
                progress[job_id] = job.task
                yield from _kill(model, job)
    yield server_message("killing_done", job_ids, progress, where=where)


def _kill(model: SimulationModel, job: Job) -> SubActor:
    step = job.task
    while step and step.exec is None:
        step = step.current
    if step:
        # The job's own actor wakes up, sees that its task was cancelled, and ends the job as killed.
        yield kernel.CANCEL, step.exec
        return
    for handle in list(job.actors):
        yield kernel.KILL, handle
    job.actors.clear()
    job.state = KILLED
    yield from _end(model, job)


def _measure(model: SimulationModel, step: ProfileStep) -> SubActor:
    if step.profile.kind == "composed":
        if step.current:
            yield from _measure(model, step.current)
    elif step.profile.kind in PARALLEL:
        if step.exec is not None:
            step.progress = 1 - (yield kernel.REMAINING, step.exec)
    elif step.profile.kind == "delay":
        step.progress = (model.clock() - step.began) / step.length
    elif step.current:
        what = f"the job is in a profile that '{step.profile.name}' (recv) chose, where Batsim cannot kill it"
        raise BridgeError(what)
