"""Runs each actor of the model as one of SimGrid's, and each request as SimGrid's own blocking call.

Nothing is emulated: dates, contention and the order of what happens at one date are SimGrid's. Each actor is
a thread of which one runs at a time, so everything stays on one processor (switching between threads is much
faster there).
"""

import os
from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

import simgrid

from bridge.worlds.simgrid import c_library, kernel
from bridge.worlds.simgrid.kernel import (
    BROKEN,
    CANCELLED,
    DONE,
    TIMED_OUT,
    Actor,
    killed_while_sending,
    message_lost,
)
from bridge.worlds.simgrid.machines import SimulatedHost

#: Up to so many machines are asked for their energy one by one, as Batsim does, which lets other actors of
#: the same date run in between; more are asked at once, which is much faster.
_ONE_BY_ONE = 256


class SimGridRuntime:
    """SimGrid runs the actors.

    Args:
        engine: simgrid.Engine with its platform loaded.
        fail: called, in the thread of the actor, with the exception that an actor raised; must not return.
        pin: keep the process on one of its processors, which one depending on its number.
        may_fail: whether the platform says of hosts or links when they fail.
    """

    def __init__(
        self, engine: Any, fail: Callable[[BaseException], None], pin: bool, may_fail: bool = False
    ) -> None:
        self._engine, self._fail, self._pin, self._may_fail = engine, fail, pin, may_fail
        self._library = c_library.simgrid_library()
        #: Actors by name, until their threads take them over.
        self._bodies: dict[str, Actor] = {}
        self._created = 0
        self._entry = self._body
        self._operations = kernel.operations(self)

    _do_sleep = staticmethod(simgrid.this_actor.sleep_for)
    _do_compute = staticmethod(simgrid.this_actor.execute)
    _do_exec = staticmethod(simgrid.this_actor.exec_init)
    _do_kill = staticmethod(methodcaller("kill"))
    _do_join = staticmethod(methodcaller("join"))
    _do_cancel = staticmethod(methodcaller("cancel"))
    _do_remaining = staticmethod(attrgetter("remaining_ratio"))

    def clock(self) -> float:
        now: float = self._engine.clock
        return now

    def run(self) -> None:
        if self._pin:
            allowed = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {allowed[os.getpid() % len(allowed)]})
        self._engine.run()

    def prepare(self) -> None:
        pass  # SimGrid waits for the actor that asks

    def _body(self) -> None:
        actor = self._bodies.pop(simgrid.Actor.self().name)
        operations, answer = self._operations, None
        try:
            while True:
                request = actor.send(answer)
                answer = operations[request[0]](*request[1:])
        except StopIteration:
            return
        except simgrid.ActorKilled:
            raise
        except BaseException as error:  # SimGrid could not pass it on
            self._fail(error)

    def _do_spawn(self, name: str, host: Any, actor: Actor) -> Any:
        # The new actor runs before this call returns. It finds its generator by its name: the bindings never
        # release the arguments of an actor, so it is given none.
        self._created += 1
        unique = f"{name} #{self._created}"
        self._bodies[unique] = actor
        return simgrid.Actor.create(unique, host, self._entry)

    #: Create an actor before the simulation runs.
    start = _do_spawn

    # Looking a mailbox up by name is a call to SimGrid's scheduler, during which other actors of the same
    # date go on. Batsim looks it up each time it sends, receives or checks, so the order of events depends on
    # doing that here too.

    def _do_put(self, mailbox: str, message: Any, size: int = 1) -> None:
        try:
            simgrid.Mailbox.by_name(mailbox).put(message, size)
        except simgrid.NetworkFailureException:
            raise message_lost() from None

    def _do_get(self, mailbox: str, timeout: float | None) -> Any:
        if timeout is None:
            try:
                return simgrid.Mailbox.by_name(mailbox).get()
            except simgrid.NetworkFailureException:
                raise (message_lost() if self._may_fail else killed_while_sending()) from None
        comm, slot = simgrid.Mailbox.by_name(mailbox).get_async()
        try:
            comm.wait_for(timeout)
        except simgrid.TimeoutException:
            return TIMED_OUT
        return slot.get()

    def _do_pending(self, mailbox: str) -> bool:
        return bool(self._library.sg_mailbox_listen(mailbox.encode()))

    def _do_run(self, task: Any, timeout: float | None) -> str:
        try:
            task.start()
            if timeout is None:
                task.wait()
            else:
                task.wait_for(timeout)
        except simgrid.TimeoutException:
            return TIMED_OUT
        except simgrid.CancelException:
            return CANCELLED
        except (simgrid.HostFailureException, simgrid.NetworkFailureException):
            return BROKEN
        return DONE

    def _do_set_pstate(self, host: Any, pstate: int) -> None:
        host.pstate = pstate

    def _do_consumed(self, machines: list[SimulatedHost]) -> float:
        if len(machines) > _ONE_BY_ONE:
            self._library.sg_host_energy_update_all()
        pointers = [c_library.host_pointer(machine.name) for machine in machines]
        return float(sum(map(self._library.sg_host_get_consumed_energy, pointers)))
