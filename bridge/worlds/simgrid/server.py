"""The server actor: it gets every internal message, in turn, and speaks to the decision process."""

from collections.abc import Callable, Sequence
from typing import Any

from bridge.base.errors import BridgeError, add_location
from bridge.wire.json_numbers import dumps
from bridge.worlds.simgrid import failures, kernel
from bridge.worlds.simgrid.decisions import ask_actor
from bridge.worlds.simgrid.execution import job_actor, killer_actor, stillborn_actor
from bridge.worlds.simgrid.kernel import Actor, SubActor, server_message
from bridge.worlds.simgrid.machines import COMPUTATION_PSTATE, COMPUTE, COMPUTING, IDLE, STORAGE, UNAVAILABLE
from bridge.worlds.simgrid.model import SimulationModel
from bridge.worlds.simgrid.parallel_task import JobAllocation
from bridge.worlds.simgrid.switching import Switching
from bridge.worlds.simgrid.workload import (
    COMPLETE,
    HOST_UNAVAILABLE,
    KILLED,
    REJECTED,
    RUNNING,
    SUBMITTED,
    ExternalEvent,
    Job,
)

#: A call that is due sooner is put off to this, s: SimGrid's clock would not move.
_SHORTEST_WAIT_S = 1e-5
#: Name in SIMULATION_BEGINS -> option.
_CONFIG = {
    "redis-hostname": "redis_hostname",
    "redis-port": "redis_port",
    "redis-prefix": "redis_prefix",
    "profiles-forwarded-on-submission": "forward_profiles",
    "dynamic-jobs-enabled": "dynamic_jobs",
    "dynamic-jobs-acknowledged": "acknowledge_jobs",
    "profile-reuse-enabled": "profile_reuse",
    "sched-config": "sched_config",
    "forward-unknown-events": "forward_unknown",
}


class Server:
    """Counts submitted, running and finished jobs, and answers internal messages."""

    def __init__(self, model: SimulationModel) -> None:
        self.model = model
        #: The place of the message that is being served, for errors.
        self.where = ""
        self.ready = self.over = False
        self.switching = Switching(model)
        #: Submitters that are not done.
        self.expected = {"jobs": len(model.static), "events": len(model.events)}
        self.submitted = self.running = self.completed = 0
        self.waiting = self.killing = 0
        self.to_forget: list[Job] = []

    def actor(self) -> Actor:
        """Serve messages until the decision process has acknowledged the end."""
        model = self.model
        handlers: dict[str, Callable[..., SubActor | None]] = {
            name[3:]: getattr(self, name) for name in dir(self) if name.startswith("on_")
        }
        handlers |= {"set_pstate": self.switching.request, "switched": self.switching.done}
        handlers |= {"hello": lambda: None, "register_profile": lambda: None}  # they only take time
        self._begin()
        yield from self._speak()
        while not self.over:
            kind, self.where, arguments = yield kernel.GET, "server", None
            with add_location(self.where):
                part = handlers[kind](*arguments)
                if part is not None:
                    yield from part
            if not self.ready or self.over or (yield kernel.PENDING, "server"):
                continue
            if model.outbox:
                yield from self._speak()
                self._forget()
            elif self._done() and not model.ending:
                model.outbox.add("SIMULATION_ENDS", "{}")
                yield from self._speak()
                model.ending = True
        if not self.ready or not self._done():
            what = "the decision process still decided something after SIMULATION_ENDS"
            where = f"answer {model.peer.answers}" if model.peer else ""
            raise BridgeError(what, where=where, remedy="Answer SIMULATION_ENDS with no events.")
        model.finished = True

    def _begin(self) -> None:
        model, options, machines = self.model, self.model.options, self.model.machines
        config = {"redis-enabled": False} | {name: getattr(options, field) for name, field in _CONFIG.items()}
        begin_data = {
            "nb_resources": len(machines.all),
            "nb_compute_resources": len(machines.compute),
            "nb_storage_resources": len(machines.storage),
            "allow_compute_sharing": options.compute_sharing,
            "allow_storage_sharing": options.storage_sharing,
            "config": config,
            "compute_resources": [machine.describe() for machine in machines.compute],
            "storage_resources": [machine.describe() for machine in machines.storage],
            "workloads": {w.name: w.file for w in model.static},
        }
        profiles = ",".join(
            f"{dumps(w.name)}:{{{','.join(f'{dumps(n)}:{p.text}' for n, p in w.profiles.items() if p)}}}"
            for w in model.static
        )  # each as the text that it came from
        model.outbox.add("SIMULATION_BEGINS", f'{dumps(begin_data)[:-1]},"profiles":{{{profiles}}}}}')

    def _speak(self) -> SubActor:
        model = self.model
        message = model.outbox.take()
        yield kernel.SPAWN, "Scheduler REQ-REP", model.machines.master.host, ask_actor(model, message)
        self.ready = False

    def _forget(self) -> None:
        for job in self.to_forget:
            job.workload.forget(job.id, collect_profiles=not self.model.options.profile_reuse)
            if self.model.paje:
                self.model.paje.forget(job.id)
        self.to_forget.clear()

    def _done(self) -> bool:
        return (
            not any(self.expected.values())
            and (not self.model.options.dynamic_jobs or self.model.registration_finished)
            and self.completed == self.submitted
            and not (self.running or self.switching.under_way or self.waiting or self.killing)
        )

    def _over(self, job: Job) -> None:
        """Count, record and drop a job that is complete."""
        self.completed += 1
        self.model.jobs_table.write(job)
        self.to_forget.append(job)

    # Messages of the submitters.

    def on_no_more(self, what: str) -> None:
        """A workload has been submitted, or all events of a file have occurred."""
        self.expected[what] -= 1
        if not self.expected[what]:
            kind = {"jobs": "static_job_to_submit", "events": "external_event_to_occur"}[what]
            self.model.outbox.add("NOTIFY", dumps({"type": f"no_more_{kind}"}))

    def on_jobs(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.state = SUBMITTED
            self.submitted += 1
            self._announce(job)

    def _announce(self, job: Job) -> None:
        profile = f',"profile":{job.profile.text}' if self.model.options.forward_profiles else ""
        self.model.outbox.add("JOB_SUBMITTED", f'{{"job_id":{dumps(job.id)},"job":{job.text}{profile}}}')

    def on_events(self, events: list[ExternalEvent]) -> None:
        for event in events:
            if event.machines:
                with add_location(f"event {event.kind} at {event.time:g}"):
                    self._change_availability(event)
                self.model.outbox.resources("NOTIFY", event.machines, "type", f"event_{event.kind}")
            else:
                self.model.outbox.add("NOTIFY", event.text)

    def _change_availability(self, event: ExternalEvent) -> None:
        machines, lost = self.model.machines, event.kind == HOST_UNAVAILABLE
        for machine in machines.of(machines.ids(event.machines)):
            if (machine.state == UNAVAILABLE) == lost:
                raise BridgeError(f"{machine} is {machine.state} already")
            state = UNAVAILABLE if lost else COMPUTING if machine.jobs else IDLE
            machines.set_state(machine, state, self.model.clock())

    # Messages of the actors that the server has created.

    def on_sched_ready(self) -> None:
        """The decision process has answered, and time has reached its answer's date."""
        self.ready = True
        self.over = self.model.ending

    def on_job_completed(self, job: Job) -> None:
        self.running -= 1
        self.model.outbox.job_completed(job.id, job.state, job.return_code, job.allocation)
        self._over(job)

    def on_from_job(self, job: Job, message: str) -> None:
        self.model.outbox.add("FROM_JOB_MSG", f'{{"job_id":{dumps(job.id)},"msg":{message}}}')

    def on_waiting_done(self) -> None:
        self.model.outbox.add("REQUESTED_CALL", "{}")
        self.waiting -= 1

    def on_killing_done(self, job_ids: list[str], progress: dict[str, Any]) -> None:
        """Jobs have been killed; those that had ended before are named all the same."""
        for job in map(self.model.job, job_ids):
            if job.state == KILLED:
                self.on_job_completed(job)
        # Jobs that ended before the kill have no progress.
        steps = {job_id: step.to_json() for job_id, step in progress.items()}
        self.model.outbox.add("JOB_KILLED", dumps({"job_ids": job_ids, "job_progress": steps}))
        self.killing -= 1

    # Decisions.

    def on_registration(self, finished: bool) -> None:
        self.model.registration_finished = finished

    def on_register_job(self, job: Job) -> None:
        self.submitted += 1
        if self.model.options.acknowledge_jobs:
            self._announce(job)

    def on_set_metadata(self, job_id: str, text: str) -> None:
        self.model.job(job_id).metadata = text

    def on_to_job(self, job_id: str, text: str) -> None:
        self.model.job(job_id).inbox.append(text)

    def on_tell_energy(self) -> SubActor:
        total = yield from self.model.consumed(None)
        self.model.outbox.add("ANSWER", f'{{"consumed_energy":{total:f}}}')

    def on_call_me_later(self, target: float) -> SubActor:
        now = self.model.clock()
        if not self.model.is_later(target, now):
            what = f"the call at {target:f} lies in the past: it is {now:f}"
            raise BridgeError(what, remedy="Ask for a later date.")
        self.waiting += 1
        yield kernel.SPAWN, f"waiter {target:f}", self.model.machines.master.host, _waiter(self.model, target)

    def on_reject_job(self, job_id: str) -> None:
        job = self.model.job(job_id)
        _require(job, (SUBMITTED,), "Only a waiting job can be rejected.")
        job.state = REJECTED
        self._over(job)

    def on_change_state(self, job_id: str, state: str) -> None:
        job = self.model.job(job_id)
        if (job.state, state) != (SUBMITTED, RUNNING):
            # Batsim records a job before it changes its state, and stops since the job is not complete.
            event = {SUBMITTED: "REJECT_JOB", RUNNING: "KILL_JOB"}.get(job.state, "no event")
            raise BridgeError(f"'{job_id}' cannot go from {job.state} to {state}", remedy=f"Use {event}.")
        job.start, job.state = self.model.clock(), state
        self.running += 1

    def on_kill_jobs(self, job_ids: list[str]) -> SubActor:
        """Kill running jobs; a second request for the same job is ignored."""
        chosen = []
        for job_id in job_ids:
            job = self.model.job(job_id)
            if job.kill_requested:
                continue
            _require(job, (RUNNING, *COMPLETE), "Only a running job can be killed.")
            job.kill_requested = True
            chosen.append(job_id)
        if chosen:
            self.killing += 1
            actor = killer_actor(self.model, chosen, self.where)
            yield kernel.SPAWN, "killer_process", self.model.machines.master.host, actor

    def on_execute_job(self, job: Job, allocation: JobAllocation) -> SubActor:
        _require(job, (SUBMITTED,), "Only a waiting job can be executed.")
        job.state = RUNNING
        self.running += 1
        self._check_machines(job, allocation)
        self._check_size(job, allocation)
        machines, ids = self.model.machines, allocation.machines
        host, actor = machines.all[ids[0]].host, job_actor(self.model, job, allocation, True)
        if machines.failed(ids):
            host, actor = machines.master.host, stillborn_actor(self.model, job, allocation)
        elif machines.may_fail:
            yield from failures.guard(self.model, job, ids)
        handle = yield kernel.SPAWN, f"job_{job.id}", host, actor
        job.actors.append(handle)

    def _check_machines(self, job: Job, allocation: JobAllocation) -> None:
        machines, options = self.model.machines, self.model.options
        alone = {} if options.compute_sharing else {COMPUTE: "--enable-compute-sharing is not given"}
        alone |= {} if options.storage_sharing else {STORAGE: "--disable-storage-sharing is given"}
        for machine in machines.of(allocation.machines):
            place = f"'{job.id}' cannot use {machine}"
            if machine.jobs and machine.role in alone:
                remedy = f"Choose a free machine: {alone[machine.role]}."
                raise BridgeError(f"{place}, on which {', '.join(machine.jobs)} runs", remedy=remedy)
            if machine.state not in (COMPUTING, IDLE):
                raise BridgeError(f"{place}, which is {machine.state}")
            if options.energy and machine.pstates[machine.host.pstate] != COMPUTATION_PSTATE:
                raise BridgeError(f"{place} in power state {machine.host.pstate}")

    def _check_size(self, job: Job, allocation: JobAllocation) -> None:
        n_hosts = len(allocation.mapping or allocation.machines)
        # A job all of whose steps divide a total may run on another number of machines than it asks for.
        steps = job.profile.steps or [job.profile]
        if n_hosts != job.n_hosts and any(step.kind != "parallel_homogeneous_total" for step in steps):
            what = "ranks" if allocation.mapping else "machines"
            what = f"'{job.id}' asks for {job.n_hosts} machines and is given {n_hosts} {what}"
            remedy = "Give it exactly as many, or place several ranks on a machine with a mapping."
            raise BridgeError(what, remedy=remedy)


def _require(job: Job, states: Sequence[str], remedy: str) -> None:
    if job.state not in states:
        raise BridgeError(f"'{job.id}' is {job.state}", remedy=remedy)


def _waiter(model: SimulationModel, target: float) -> Actor:
    now = model.clock()
    if now < target:
        yield kernel.SLEEP, max(target - now, _SHORTEST_WAIT_S)
    if not model.ending:
        yield server_message("waiting_done")
