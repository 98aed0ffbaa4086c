"""Machines change their power state: at once, or, off and on, by way of a virtual state that takes time."""

from bridge.base.errors import BridgeError
from bridge.wire import hosts
from bridge.worlds.simgrid import kernel, machines
from bridge.worlds.simgrid.kernel import Actor, SubActor, server_message
from bridge.worlds.simgrid.machines import COMPUTATION_PSTATE, SLEEP_PSTATE, SimulatedHost
from bridge.worlds.simgrid.model import SimulationModel

#: What the table of power states says of machines on the way to a state, by what that is for.
_ON_THE_WAY = {COMPUTATION_PSTATE: -1, SLEEP_PSTATE: -2}
#: Way -> a machine's state while it is on it, and at its end.
_WAYS = {"OFF": (machines.SWITCHING_OFF, machines.SLEEPING), "ON": (machines.SWITCHING_ON, machines.IDLE)}


class Switching:
    """The requests for a power state that are not fulfilled yet."""

    def __init__(self, model: SimulationModel) -> None:
        self._model = model
        #: Machines that are being switched off or on.
        self.under_way = 0
        #: Power state -> (machines of the request, those of them that are not there yet).
        self._requests: dict[int, list[tuple[tuple[int, ...], set[int]]]] = {}

    def request(self, ids: tuple[int, ...], pstate: int) -> SubActor:
        model, now = self._model, self._model.clock()
        chosen = model.machines.of(ids)
        for machine in chosen:
            if pstate not in machine.pstates:
                raise BridgeError(f"{machine} has no power state {pstate}")
        assert model.pstates is not None
        self._requests.setdefault(pstate, []).append((ids, set(ids)))
        yield from model.record_energy("p")
        model.pstates.write(now, ids, _ON_THE_WAY.get(chosen[0].pstates[pstate], -42))
        model.switch_requests += 1
        model.switched_machines += len(ids)
        for machine in chosen:
            yield from self._switch(machine, pstate)
        model.trace_states()

    def _switch(self, machine: SimulatedHost, pstate: int) -> SubActor:
        current = machine.host.pstate
        move = (machine.pstates[current], machine.pstates[pstate])
        if move == (COMPUTATION_PSTATE, COMPUTATION_PSTATE):
            yield kernel.SET_PSTATE, machine.host, pstate
            yield from self._arrived(machine, pstate)
        elif move == (COMPUTATION_PSTATE, SLEEP_PSTATE):
            yield from self._spawn("OFF", machine, machine.switches[pstate][0], pstate)
        elif move == (SLEEP_PSTATE, COMPUTATION_PSTATE):
            yield from self._spawn("ON", machine, machine.switches[current][1], pstate)
        elif move[0] == SLEEP_PSTATE:
            what = f"{machine} sleeps in {current} and cannot go to {pstate}"
            raise BridgeError(what, remedy="From a sleep state, go to a computation state.")
        # Anything else Batsim reports and ignores: the request never ends, and is never answered.

    def _spawn(self, way: str, machine: SimulatedHost, virtual: int, pstate: int) -> SubActor:
        model = self._model
        if machine.jobs:
            what = f"{machine} runs {', '.join(machine.jobs)} and cannot be switched"
            raise BridgeError(what, remedy="Switch idle machines only.")
        state, end = _WAYS[way]
        model.machines.set_state(machine, state, model.clock())
        actor = _switch_actor(model, machine, virtual, pstate, end)
        yield kernel.SPAWN, f"switch {way} {machine.id}", machine.host, actor
        self.under_way += 1

    def done(self, machine: SimulatedHost, pstate: int) -> SubActor:
        if (yield from self._arrived(machine, pstate)):
            self._model.trace_states()
        self.under_way -= 1

    def _arrived(self, machine: SimulatedHost, pstate: int) -> SubActor:
        """Return whether the machine was the last of its request; the decision process is told so then."""
        model, requests = self._model, self._requests[pstate]
        ids, missing = request = next(request for request in requests if machine.id in request[1])
        missing.remove(machine.id)
        if missing:
            return False
        requests.remove(request)
        assert model.pstates is not None
        model.pstates.write(model.clock(), ids, pstate)
        yield from model.record_energy("p")
        model.outbox.resources("RESOURCE_STATE_CHANGED", hosts.from_ids(ids), "state", str(pstate))
        return True


def _switch_actor(
    model: SimulationModel, machine: SimulatedHost, virtual: int, pstate: int, end: str
) -> Actor:
    yield kernel.SET_PSTATE, machine.host, virtual
    yield kernel.COMPUTE, 1
    yield kernel.SET_PSTATE, machine.host, pstate
    model.machines.set_state(machine, end, model.clock())
    yield server_message("switched", machine, pstate)
