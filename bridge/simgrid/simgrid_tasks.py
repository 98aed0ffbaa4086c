"""Parallel tasks of the ordered queue: SimGrid without actors, moved from one date to the next.

An actor can wait for one task at a time, so each would need a thread, and the bindings only run a simulation
past all that ends before a date. So SimGrid's own steps are taken one by one, from its main thread.
"""

from collections.abc import Iterable
from itertools import compress
from typing import Any

import simgrid

from bridge.simgrid import c_library


class SimGridTasks:
    """``engine`` is a simgrid.Engine with its platform loaded."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._move, self._end_what_is_over = c_library.steps()

    def start(self, hosts: list[Any], flops: list[float], sizes: list[float]) -> Any:
        """Start a parallel task; the handle is SimGrid's own, and must be kept until it is over."""
        task = simgrid.this_actor.exec_init(hosts, flops, sizes)
        task.start()
        return task

    def cancel(self, task: Any) -> None:
        task.cancel()
        self._end_what_is_over()

    def wait(self, seconds: float | None, running: Iterable[Any]) -> tuple[float, list[Any]]:
        """Let time pass until one of all that run is over, up to ``seconds`` if given.

        Returns:
            How much has passed, s (negative: nothing will ever be over), and what is over.
        """
        begun = self._engine.clock
        until = -1.0 if seconds is None else begun + seconds
        while self._move(until) >= 0:
            self._end_what_is_over()
            done = list(compress(running, map(simgrid.Exec.test, running)))
            if done or self._engine.clock >= until >= 0:  # a step may also be that of a latency
                return self._engine.clock - begun, done
        return -1.0, []
