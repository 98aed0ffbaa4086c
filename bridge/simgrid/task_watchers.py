"""Parallel tasks of the ordered queue, run by SimGrid: one actor lets time pass, others watch tasks.

The bindings can only wait for one execution at a time, and each waiting actor is a thread; the watchers are
reused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import simgrid

from bridge.simgrid.simgrid_kernel import stay_on_one_processor


@dataclass(slots=True, eq=False)
class _Watcher:
    """A thread that starts tasks and waits for them, one after the other."""

    bell: Any
    work: tuple[list[Any], list[float], list[float]] = ([], [], [])
    exec: Any = None
    cancelled: bool = False


class SimGridTasks:
    """Starts, watches and cancels parallel tasks.

    Args:
        engine: simgrid.Engine with its platform loaded.
        host: where the actors live; they use no resource of it.
        fail: called, in the thread of the actor, with an exception that must end the process; must not
            return.
        pin: keep the process on one processor.
    """

    def __init__(self, engine: Any, host: Any, fail: Callable[[BaseException], None], pin: bool) -> None:
        self._engine = engine
        self._host = host
        self._fail = fail
        self._pin = pin
        self._bell: Any = None
        self._idle: list[_Watcher] = []
        self._done: list[_Watcher] = []
        self._new: list[_Watcher] = []
        self._loop: Callable[[], None] = lambda: None

    def drive(self, loop: Callable[[], None]) -> None:
        """Call ``loop`` in an actor; return when it has returned."""
        if self._pin:
            stay_on_one_processor()
        self._loop = loop
        simgrid.Actor.create("model", self._host, self._drive)
        self._engine.run()

    def _drive(self) -> None:
        self._bell = simgrid.Semaphore(0)
        try:
            self._loop()
        except simgrid.ActorKilled:
            raise
        except BaseException as error:
            self._fail(error)

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
        """Cancel a running task."""
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
        before = self._engine.clock
        if seconds is None:
            self._bell.acquire()
        else:
            self._bell.acquire_timeout(seconds)
        # Watchers of other tasks that ended at this date have their turn before this returns.
        simgrid.this_actor.yield_()
        while not self._bell.would_block:
            self._bell.acquire()
        done, self._done = self._done, []
        self._idle += done
        return self._engine.clock - before, done
