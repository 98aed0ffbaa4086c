"""Actors that switch a machine off or on, by way of a virtual power state that takes the time."""

from bridge.simgrid import kernel
from bridge.simgrid.errors import ModelError
from bridge.simgrid.kernel import Actor
from bridge.simgrid.machines import IDLE, SLEEPING, Machine
from bridge.simgrid.model import Model


def switch_off(model: Model, machine: Machine, pstate: int, where: str) -> Actor:
    """Switch a machine off, into a sleep state."""
    _check_free(machine, where)
    off, _on = machine.switches[pstate]
    yield from _pass(model, machine, off, pstate, SLEEPING)


def switch_on(model: Model, machine: Machine, pstate: int, where: str) -> Actor:
    """Switch a machine on, into a computation state."""
    _check_free(machine, where)
    _off, on = machine.switches[machine.host.pstate]
    yield from _pass(model, machine, on, pstate, IDLE)


def _pass(model: Model, machine: Machine, virtual: int, pstate: int, state: str) -> Actor:
    yield kernel.SET_PSTATE, machine.host, virtual
    yield kernel.COMPUTE, 1
    yield kernel.SET_PSTATE, machine.host, pstate
    model.machines.set_state(machine, state, model.clock())
    yield kernel.PUT, "server", ("switched", (machine.id, pstate))


def _check_free(machine: Machine, where: str) -> None:
    if machine.jobs:
        raise ModelError(
            f"machine {machine.id} ('{machine.name}') runs {', '.join(machine.jobs)} and cannot be switched",
            where=where,
            remedy="Switch idle machines only.",
        )
