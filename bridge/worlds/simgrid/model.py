"""The state that all actors of one simulation share, and the files that record what happens to it."""

import math
from typing import Any

from bridge.base.errors import BridgeError
from bridge.worlds.simgrid import c_library, kernel
from bridge.worlds.simgrid.kernel import ActorRuntime, SubActor
from bridge.worlds.simgrid.machines import COMPUTING, IDLE, UNAVAILABLE, SimulatedHosts
from bridge.worlds.simgrid.options import SimulationOptions, log_line
from bridge.worlds.simgrid.outputs import EnergyTable, JobsTable, PajeTrace, PstatesTable, StatesTable
from bridge.worlds.simgrid.peer import DecisionProcessClient, Outbox
from bridge.worlds.simgrid.sleeps import PRECISION_S
from bridge.worlds.simgrid.workload import ExternalEvent, Job, SimulatedWorkload

#: Rounding errors that SimGrid's clock may have summed up by the end of a sleep, in its last place.
_MOST_ULPS = 64


_SHARED_ENERGY = (
    "bridge simgrid: note: jobs had machines together; the consumed_energy of each job is all that its\n"
    "machines consumed meanwhile, as in Batsim, so that they sum to more than the machines' own"
)


class SimulationModel:
    """Hosts, workloads, queued events and output files of a simulation."""

    def __init__(
        self,
        options: SimulationOptions,
        machines: SimulatedHosts,
        workloads: list[SimulatedWorkload],
        events: list[list[ExternalEvent]],
        run: ActorRuntime,
    ) -> None:
        self.options, self.machines = options, machines
        self.static, self.events = workloads, events
        self.workloads = {workload.name: workload for workload in workloads}
        self.kernel = run
        self.clock = run.clock
        #: Whether messages take no time, so that only rounding tells two dates apart that are meant as one.
        self._is_instant = _is_instant(machines.master.host)
        self.outbox = Outbox(self.clock)
        self.peer: DecisionProcessClient | None = None
        self.registration_finished = False
        #: The server ended as it should.
        self.finished = False
        self.ending = False
        #: Energy (J) when the first job was submitted, and when the last one ended.
        self.energy_first = -1.0
        self.energy_last = -1.0
        self.switch_requests = self.switched_machines = 0
        #: Least power (W) of a host with these wattages in this power state.
        self._wattmin: dict[tuple[str, int], float] = {}
        #: Whether jobs had a machine together whose energy is told.
        self._shared_energy = False
        self._closed = False
        prefix = options.export
        self.jobs_table = JobsTable(prefix)
        self.states = StatesTable(prefix, machines) if options.machine_state_tracing else None
        self.paje = PajeTrace(prefix, machines) if options.schedule_tracing else None
        self.energy = EnergyTable(prefix) if options.energy else None
        self.pstates = PstatesTable(prefix, machines) if options.energy else None

    def close(self, complete: bool) -> None:
        """Close the output files; the schedule summary is only written for a simulation that ended."""
        if self._closed:
            return
        self._closed = True
        if self.paje:
            self.paje.end(self.clock())
        for table in (self.states, self.energy, self.pstates, self.jobs_table):
            if table:
                table.close()
        if self._shared_energy:
            log_line(_SHARED_ENERGY)
        if complete:
            waited, energy = self.peer.waited_s if self.peer else 0.0, self.energy_last - self.energy_first
            switches = self.switch_requests, self.switched_machines
            self.jobs_table.write_schedule(self.machines, waited, energy, switches)

    def is_later(self, date: float, now: float) -> bool:
        """Whether a date (s) is later than another one by more than SimGrid's clock may err."""
        rounding = max(PRECISION_S, _MOST_ULPS * math.ulp(now)) if self._is_instant else 0.0
        return date > now + rounding

    def sleep_until(self, date: float) -> SubActor:
        now = self.clock()
        if self.is_later(date, now):
            yield kernel.SLEEP, date - now

    def workload(self, name: str) -> SimulatedWorkload:
        if name not in self.workloads:
            remedy = f"Known: {', '.join(self.workloads)}."
            raise BridgeError(f"the workload '{name}' does not exist", remedy=remedy)
        return self.workloads[name]

    def job(self, job_id: str) -> Job:
        return self.workload(split_id(job_id)[0]).job(job_id)

    def job_starts(self, job: Job) -> None:
        now = self.clock()
        for machine in self.machines.of(job.allocation):
            self.machines.set_state(machine, COMPUTING, now)
            self._shared_energy |= self.options.energy and bool(machine.jobs)
            if self.paje and not machine.jobs:
                self.paje.computing(machine.id, job.id, now)
            machine.jobs[job.id] = None
        self.trace_states()

    def job_ends(self, job: Job) -> None:
        now = self.clock()
        for machine in self.machines.of(job.allocation):
            first = next(iter(machine.jobs))
            del machine.jobs[job.id]
            if not machine.jobs and machine.state != UNAVAILABLE:
                self.machines.set_state(machine, IDLE, now)
                if self.paje:
                    self.paje.idle(machine.id, now)
            elif self.paje and machine.jobs and first == job.id:
                self.paje.computing(machine.id, next(iter(machine.jobs)), now)
        self.trace_states()

    def trace_states(self) -> None:
        if self.states:
            self.states.write(self.clock())

    def consumed(self, ids: Any) -> SubActor:
        """Return the energy (J) that machines have consumed so far; None stands for all of them."""
        chosen = self.machines.all if ids is None else self.machines.of(ids)
        for machine in chosen:
            if "wattage_per_state" not in machine.properties:
                what = f"host '{machine.name}' has no property wattage_per_state"
                remedy = "With -E every host needs it; watt_per_state is a name that SimGrid dropped."
                raise BridgeError(what, where=self.options.platform, remedy=remedy)
        total: float = yield kernel.CONSUMED, chosen
        return total

    def record_energy(self, event: str) -> SubActor:
        """Add a row to the table of consumed energy and return the total, J."""
        assert self.energy is not None
        total = yield from self.consumed(None)
        watts_before, wattmin = self._wattmin, 0.0
        for machine in self.machines.all:
            key = machine.properties["wattage_per_state"], machine.host.pstate
            if key not in watts_before:
                at = c_library.simgrid_library().sg_host_get_wattmin_at
                watts_before[key] = at(c_library.host_pointer(machine.name), key[1])
            wattmin += watts_before[key]
        self.energy.write(self.clock(), total, event, wattmin)
        return total


def _is_instant(master: Any) -> bool:
    """Whether a message of the master to itself takes less than SimGrid's precision."""
    links, latency = master.route_to(master)
    return bool(latency + max((1 / link.bandwidth for link in links), default=0.0) < PRECISION_S)


def split_id(job_id: str) -> tuple[str, str]:
    parts = job_id.split("!")
    if len(parts) != 2:
        raise BridgeError(f"'{job_id}' is not WORKLOAD!JOB")
    return parts[0], parts[1]
