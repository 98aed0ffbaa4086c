"""What runs on SimGrid's own threads: every actor of the model, or only the parallel tasks of the queue.

Nothing is emulated: dates, contention and the order of what happens at one date are SimGrid's. Each actor is
a thread of which one runs at a time, so everything stays on one processor (switching between threads is much
faster there).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter, methodcaller
from typing import Any

import simgrid

from bridge.simgrid import c_library, kernel
from bridge.simgrid.kernel import CANCELLED, DONE, TIMED_OUT, Actor, killed_while_sending
from bridge.simgrid.machines import Machine

#: Up to so many machines are asked for their energy one by one, as Batsim does, which lets other actors of
#: the same date run in between; more are asked at once, which is much faster.
_ONE_BY_ONE = 256


class _Threads:
    """Actors as threads of SimGrid.

    Args:
        engine: simgrid.Engine with its platform loaded.
        fail: called, in the thread of the actor, with the exception that an actor raised; must not return.
        pin: keep the process on one of its processors, which one depending on its number.
    """

    def __init__(self, engine: Any, fail: Callable[[BaseException], None], pin: bool) -> None:
        self._engine, self._fail, self._pin = engine, fail, pin

    def run(self) -> None:
        """Run until no actor is left or none can go on."""
        if self._pin:
            allowed = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {allowed[os.getpid() % len(allowed)]})
        self._engine.run()

    def _guarded(self, body: Callable[[], None]) -> None:
        """Run the body of an actor; SimGrid could not pass on what it raises."""
        try:
            body()
        except simgrid.ActorKilled:
            raise
        except BaseException as error:
            self._fail(error)


class SimGridKernel(_Threads):
    """Runs each actor of the model as one of SimGrid's, and each request as SimGrid's own blocking call."""

    def __init__(self, engine: Any, fail: Callable[[BaseException], None], pin: bool) -> None:
        super().__init__(engine, fail, pin)
        self._library = c_library.simgrid_library()
        #: Actors by name, until their threads take them over.
        self._bodies: dict[str, Actor] = {}
        self._created = 0
        self._entry = self._enter
        self._operations = kernel.operations(self)

    _do_sleep = staticmethod(simgrid.this_actor.sleep_for)
    _do_compute = staticmethod(simgrid.this_actor.execute)
    _do_exec = staticmethod(simgrid.this_actor.exec_init)
    _do_kill = staticmethod(methodcaller("kill"))
    _do_cancel = staticmethod(methodcaller("cancel"))
    _do_remaining = staticmethod(attrgetter("remaining_ratio"))

    def clock(self) -> float:
        now: float = self._engine.clock
        return now

    def _enter(self) -> None:
        self._guarded(self._body)

    def _body(self) -> None:
        actor = self._bodies.pop(simgrid.Actor.self().name)
        operations, answer = self._operations, None
        while True:
            try:
                request = actor.send(answer)
            except StopIteration:
                return
            answer = operations[request[0]](*request[1:])

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
        simgrid.Mailbox.by_name(mailbox).put(message, size)

    def _do_get(self, mailbox: str, timeout: float | None) -> Any:
        if timeout is None:
            try:
                return simgrid.Mailbox.by_name(mailbox).get()
            except simgrid.NetworkFailureException:
                raise killed_while_sending() from None
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
        return DONE

    def _do_set_pstate(self, host: Any, pstate: int) -> None:
        host.pstate = pstate

    def _do_consumed(self, machines: list[Machine]) -> float:
        if len(machines) > _ONE_BY_ONE:
            self._library.sg_host_energy_update_all()
        pointers = [c_library.host_pointer(machine.name) for machine in machines]
        return float(sum(map(self._library.sg_host_get_consumed_energy, pointers)))


@dataclass(slots=True, eq=False)
class _Watcher:
    """A thread that starts tasks and waits for them, one after the other."""

    bell: Any
    work: tuple[list[Any], list[float], list[float]] = ([], [], [])
    exec: Any = None
    cancelled: bool = False


class SimGridTasks(_Threads):
    """Parallel tasks of the ordered queue: one actor lets time pass, others start tasks and wait for them.

    The bindings can only wait for one execution at a time, and each waiting actor is a thread; they are
    reused. ``host`` is where they live; they use no resource of it.
    """

    def __init__(self, engine: Any, fail: Callable[[BaseException], None], pin: bool, host: Any) -> None:
        super().__init__(engine, fail, pin)
        self._host = host
        self._bell: Any = None
        self._idle: list[_Watcher] = []
        self._done: list[_Watcher] = []
        self._new: list[_Watcher] = []

    def drive(self, loop: Callable[[], None]) -> None:
        """Call ``loop`` in an actor; return when it has returned."""

        def body() -> None:
            self._bell = simgrid.Semaphore(0)
            loop()

        simgrid.Actor.create("model", self._host, lambda: self._guarded(body))
        self.run()

    def start(self, hosts: list[Any], flops: list[float], sizes: list[float]) -> Any:
        """Start a parallel task; the handle is free for another one after its end."""
        if self._idle:
            watcher = self._idle.pop()
        else:
            watcher = _Watcher(simgrid.Semaphore(0))
            self._new.append(watcher)
            simgrid.Actor.create("watcher", self._host, self._watch).daemonize()
        watcher.work, watcher.exec, watcher.cancelled = (hosts, flops, sizes), None, False
        watcher.bell.release()
        return watcher

    def _watch(self) -> None:
        watcher = self._new.pop()
        while True:
            watcher.bell.acquire()
            watcher.exec = simgrid.this_actor.exec_init(*watcher.work)
            try:
                watcher.exec.start()
                watcher.exec.wait()
            except simgrid.CancelException:
                pass
            if watcher.cancelled:
                self._idle.append(watcher)
            else:
                self._done.append(watcher)
                self._bell.release()

    def cancel(self, task: Any) -> None:
        self._begun(task)
        task.cancelled = True
        task.exec.cancel()

    def remaining(self, task: Any) -> float:
        """Return the fraction that is left of a running task."""
        self._begun(task)
        return float(task.exec.remaining_ratio)

    def _begun(self, task: _Watcher) -> None:
        while task.exec is None:
            simgrid.this_actor.yield_()

    def wait(self, seconds: float | None) -> tuple[float, list[Any]]:
        """Let time pass until a task is done, up to ``seconds`` if given."""
        before, rung = self._engine.clock, 1
        if seconds is None:
            self._bell.acquire()
        elif self._bell.acquire_timeout(seconds):
            simgrid.this_actor.yield_()  # for watchers of tasks that ended at this very date
            rung = 0
        done, self._done = self._done, []
        for _ in done[rung:]:  # tasks that end at one date wake their watchers together, so all have rung
            self._bell.acquire()
        self._idle += done
        return self._engine.clock - before, done
