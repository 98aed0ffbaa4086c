"""Parallel tasks of the ordered queue: SimGrid without actors, moved from one date to the next.

An actor can wait for one task at a time, so each would need a thread, and the bindings only run a simulation
past all that ends before a date. So SimGrid's own steps are taken one by one, from its main thread.
"""

from typing import Any

import simgrid

from bridge.worlds.simgrid import c_library

#: The share of its time by which rounding may let a task be over sooner.
_ROUNDING = 1e-9


class SimGridTasks:
    """``engine`` is a simgrid.Engine with its platform loaded."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._move, self._end_what_is_over = c_library.steps()
        #: Task -> the date (s) before which it cannot be over, which spares asking SimGrid.
        self._running: dict[Any, float] = {}
        #: Whether SimGrid has shared the resources among the tasks that run now.
        self._shared = True

    def start(self, hosts: list[Any], flops: list[float], sizes: list[float]) -> Any:
        task = simgrid.this_actor.exec_init(hosts, flops, sizes)
        task.start()
        works = [(amount, host.speed) for amount, host in zip(flops, hosts, strict=True) if amount > 0]
        alone = max((amount / speed for amount, speed in works if speed > 0), default=0.0)
        self._running[task] = self._engine.clock + alone * (1 - _ROUNDING)
        self._shared = False
        return task

    def cancel(self, task: Any) -> None:
        del self._running[task]
        task.cancel()
        self._end_what_is_over()
        self._shared = False

    def share(self) -> None:
        """Let SimGrid share the resources among the tasks that run now."""
        if not self._shared:
            self._move(self._engine.clock)
            self._shared = True

    def wait(self, seconds: float | None) -> tuple[float, list[Any]]:
        """Let time pass until a task is over, up to ``seconds`` if given.

        Returns how much has passed, s (negative: nothing will ever be over), and what is over.
        """
        started_at = self._engine.clock
        until = -1.0 if seconds is None else started_at + seconds
        while self._move(until) >= 0:
            self._end_what_is_over()
            now = self._engine.clock
            done = [task for task, soonest in self._running.items() if soonest <= now and task.test()]
            self._shared = not done
            if done or now >= until >= 0:  # a step may also be that of a latency
                for task in done:
                    del self._running[task]
                return now - started_at, done
        return -1.0, []
