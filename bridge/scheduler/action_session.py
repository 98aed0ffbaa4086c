"""One scheduler with a rule of action, driven from outside: its jobs may be stopped, and wait again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.scheduler.action_state import SPECULATES, TERMS, allocate_actions, blank_lives, reset_actions
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.starts import HOW_SPECULATIVE
from bridge.scheduler.state import NEVER, State, reset


class ActionSession(Session):
    """A `Session` whose policy has a rule of action.

    After each pass the world collects the `stops` as well, before the `starts`: a job that was stopped and
    starts again is in both.
    """

    has_lives = True

    def __init__(self, capacity: Sequence[int], *settings: Any, **more: Any) -> None:
        super().__init__(capacity, *settings, **more)
        self._acting.idle[0] = capacity

    @property
    def _acting(self) -> Any:
        return self._state

    def _allocate(self, length: int, resources: int) -> State:
        state = allocate_actions(1, length, resources, window=self._window, users=len(self._shares))
        reset(state, 0)
        reset_actions(state, 0)
        state.jobs.run[:] = -1
        return self.compiled.install_in(state)

    def submit(
        self,
        job_id: int,
        demand: Sequence[int],
        lengths: JobEstimates,
        *,
        user: int = 0,
        partition: float = 0.0,
        submitted: int | None = None,
        permits: int = 0,
    ) -> int:
        """As `Session.submit`; `permits`: what may be done to the job, see `bridge.scheduler.actions`."""
        j = super().submit(job_id, demand, lengths, user=user, partition=partition, submitted=submitted)
        self._acting.lives.permits[0, j] = permits
        return j

    def compact(self, keep: Sequence[int]) -> None:
        state: Any = self.state
        n, left, kept = self.n_jobs, len(keep), np.asarray(keep, np.int64)
        new = np.full(n + 1, -1, np.int32)
        new[kept] = np.arange(left, dtype=np.int32)
        lives, acts = state.lives[0], state.acts[0]
        lives[:left] = lives[kept]
        blank_lives(lives[left:n])
        for name in TERMS:
            lives[name][left:n] = 0
        state.limited[0, : acts.n_limited] = new[state.limited[0, : acts.n_limited]]
        super().compact(keep)

    def stops(self) -> list[int]:
        """Return the jobs that were stopped since the last call, in order; they wait again."""
        acts = self._acting.acts[0]
        n = int(acts.n_stopped)
        if not n:
            return []
        stopped: list[int] = self._acting.stopped[0, :n].tolist()
        acts.n_stopped = 0
        return stopped

    def peek_starts(self) -> list[int]:
        """Return the jobs that `starts` will return."""
        started: list[int] = self._state.started[0, : self._n_started[0]].tolist()
        return started

    def limit_of(self, j: int) -> int:
        """Return when the present life of job `j` is stopped, µs; ``state.NEVER``: never."""
        return int(self._acting.lives.limit_at[0, j])

    def adopt_limited(self, j: int, start: int, limit: int, *, speculative: bool) -> None:
        """As `adopt`, of a life that is stopped at `limit`; `speculative`: its nodes count as free."""
        state: Any = self.state
        acts = state.acts[0]
        if speculative:
            self.withdraw(j)
            state.jobs.start[0, j], state.jobs.how[0, j] = start, HOW_SPECULATIVE
            state.lives.does[0, j], state.lives.first_start[0, j] = SPECULATES, start
            state.idle[0] -= state.demand[0, j]
        else:
            self.adopt(j, start)
        state.lives.limit_at[0, j] = limit
        state.limited[0, acts.n_limited] = j
        acts.n_limited += 1

    def next_life(self, j: int) -> tuple[int, int]:
        """Return the overhead that the next life of waiting job `j` begins with, and its progress, µs."""
        life = self._acting.lives[0, j]
        return int(life.overhead), int(life.progress)

    def is_speculative(self, j: int) -> bool:
        """Tell whether the present, or last, life of job `j` began on idle nodes that count as free."""
        return self.how(j)[0] == HOW_SPECULATIVE

    @property
    def wake_at(self) -> int:
        """When the scheduler wants to be woken: also for what the rule of action does then."""
        return NEVER if self._opening else min(self._wake_at[0], int(self._acting.acts.wake_at[0]))
