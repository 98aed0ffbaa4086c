"""One scheduler driven from outside, event by event: how a world that is not ours uses the core."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bridge.base.errors import BridgeError
from bridge.base.jit import entry
from bridge.scheduler import core
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import Policy, Protocol
from bridge.scheduler.running_jobs import renumber_running, running
from bridge.scheduler.state import LATEST, NEVER, SECOND, State, allocate, copy_into, unstarted

_FIRST_LENGTH = 1024
#: Most events of an instant that go to the core in one call.
_MOST_TOLD = 256
#: Steps of the availability profile that a kernel reads at most before Python sees Ctrl-C.
_WORK = 100_000_000
#: What a submission says of a job; see `JOB`.
_JOB_FIELDS = ["id", "submit", "est_wait", "est_run", "t", "s", "n", "user", "p"]
#: Most candidates that a backfilling rule in Python is shown.
_WINDOW = 1 << 16
#: Jobs that a scheduler has met, ended ones too, before it is to forget those; and times as many as are left.
_MET, _TIMES = 4096, 4


class JobEstimates(NamedTuple):
    """Believed lengths of one job, microseconds: as orders see it, while it waits, while it runs."""

    order: int
    waiting: int
    running: int

    @classmethod
    def same(cls, length: int) -> "JobEstimates":
        """Return one belief for all."""
        return cls(length, length, length)


class Session:
    """A scheduler and its memory, which grows with the jobs it has seen.

    A world tells what happened at one instant (`submit`, `finish`, `set_out_of_service`), calls `begin`, then
    `advance` until it returns ``machine.NOTHING``, answering any other kind, and collects the `starts`. What
    it tells is kept until somebody looks, so that one call of a kernel does for all of it.

    Args:
        capacity: amounts per resource, nodes first.
        policy: order, backfilling and agent decisions.
        protocol: the rules.
        window: most candidates shown to an agent.
        longest: longest believed length of the workload in seconds, for orders that use ``t_max``.
        shares: each user's assigned share (``slurm``); users are numbers below its length.
        resources: names for errors, nodes first.
    """

    has_lives = False  # jobs may be stopped, and wait again

    def __init__(
        self,
        capacity: Sequence[int],
        policy: Policy,
        protocol: Protocol,
        *,
        window: int = 128,
        longest: float = 0.0,
        shares: Sequence[float] = (1.0,),
        resources: Sequence[str] = (),
    ) -> None:
        self.resources = tuple(resources)
        self._names = self.resources or tuple(f"resource {r}" for r in range(len(capacity)))
        self.compiled = compile_policy(policy, protocol)
        if not self.has_lives:
            self.compiled.refuse_action("a scheduler that another world drives")
        self.n_jobs = 0
        self._capacity = tuple(map(int, capacity))
        self._pending_events: list[
            int
        ] = []  # submissions and completions that the kernel does not know of yet
        self._opening = False  # a pass that is not open yet
        self._window = window if self.compiled.chooser is None else _WINDOW
        self._shares = np.asarray(shares, np.float64)
        self._use(self._allocate(_FIRST_LENGTH, len(capacity)))
        state = self._state
        state.capacity[:] = capacity
        state.free[0] = capacity
        state.constants[:2] = longest, capacity[0]
        state.share[:] = self._shares

    def _use(self, state: State) -> None:
        self._state = state
        # plain views: reading a scalar of a record array costs more than a pass
        env = state.scalars.view(np.ndarray)
        names = ("now", "work", "bad_score", "n_started", "wake_at")
        self._now, self._work, self._bad, self._n_started, self._wake_at = (
            memoryview(env[name]) for name in names
        )
        self._started_as = state.jobs.view(np.ndarray)[0][["how", "past", "reserved"]]
        self._job_records, self._demand = state.jobs.view(np.ndarray)[0][_JOB_FIELDS], state.demand[0]
        self._buffer = np.zeros(_MOST_TOLD, np.int64)
        self._follow: Callable[..., Any] | None = None  # `machine.follow`, once it is compiled

    @property
    def state(self) -> State:
        """State arrays, after all pending events have been applied."""
        if self._pending_events:
            self._apply()
        if self._opening:
            self._opening = False
            core.begin_pass(self._state, 0)
        return self._state

    def _apply(self) -> None:
        """Let the core know what was told."""
        events, self._pending_events = self._pending_events, []
        for j in events:
            (core.submit if j >= 0 else core.finish)(self._state, 0, j if j >= 0 else -1 - j)

    def _allocate(self, length: int, resources: int) -> State:
        state = allocate(1, length, resources, window=self._window, users=len(self._shares))
        state.jobs.run[:] = -1
        return self.compiled.install_in(state)

    def _grow(self) -> None:
        old = self._state
        new = self._allocate(2 * old.jobs.shape[1], len(old.capacity))
        copy_into(new, old)  # the block list is a permutation: the old one, then the new numbers as they are
        self._use(new)

    def outgrown(self, left: int) -> bool:
        """Tell whether most of the memory is of jobs that are over, all but `left`: time to `compact`."""
        return self.n_jobs > max(_MET, _TIMES * left)

    def compact(self, keep: Sequence[int]) -> None:
        """Forget all jobs but these, in ascending order, which count from 0 on then; between two passes.

        Only jobs that have ended or were withdrawn may be forgotten. What is decided stays the same.
        """
        state, n, left = self.state, self.n_jobs, len(keep)
        jobs, env, kept = state.jobs[0], state.scalars[0], np.asarray(keep, np.int64)
        new = np.full(n + 1, -1, np.int32)  # by the old number; the last is for -1
        new[kept] = np.arange(left, dtype=np.int32)
        jobs[:left], state.demand[0, :left] = jobs[kept], state.demand[0, kept]
        jobs[left:n], state.demand[0, left:n] = np.zeros((), jobs.dtype), 0
        unstarted(jobs[left:n])
        jobs.run[left:n] = -1
        jobs.past[:left] = new[jobs.past[:left]]
        for block in state.blocks[0, : env.n_blocks]:
            items = state.items[0, block, : state.size[0, block]]
            items[:] = new[items]
        renumber_running(state, 0, new)
        for array, size in (
            (state.started[0], env.n_started),
            (state.kept.job, env.n_kept),
        ):
            array[:size] = new[array[:size]]
        env.head = new[env.head]
        if env.head < 0:
            env.is_reserved = 0
        self.n_jobs = left

    def how(self, j: int) -> tuple[int, int, int]:
        """Return how a job was started, one of ``state.HOW_*``, which blocked head it overtook, and the first
        shadow time that it had as blocked head itself; -1: none.
        """
        how, past, reserved = self._started_as[j].item()
        return how, past, reserved

    @property
    def now(self) -> int:
        """Microseconds."""
        return self._now[0]

    @now.setter
    def now(self, time: int) -> None:
        if time < self._now[0]:
            raise BridgeError(f"time runs backwards: {time / SECOND:.6f} s after {self.now / SECOND:.6f} s")
        if self._pending_events:
            self._apply()
        self._now[0] = time

    def submit(
        self,
        job_id: int,
        demand: Sequence[int],
        lengths: JobEstimates,
        *,
        user: int = 0,
        partition: float = 0.0,
        submitted: int | None = None,
    ) -> int:
        """Put a job in the queue and return its index; it waits since `submitted`, or since now.

        Raises:
            BridgeError: it can never run, the error names the resource; or its believed end is beyond int64.
        """
        j = self.n_jobs
        if j == len(self._job_records):
            self._grow()
        asks = self._demand[j]
        for r, amount in enumerate(demand):
            if amount > self._capacity[r]:
                raise BridgeError(
                    f"can never run: it asks for {amount} of {self._names[r]}, "
                    f"the machine has {self._capacity[r]}",
                    where=f"job {job_id}",
                )
            asks[r] = amount
        order, waiting, running = lengths
        longest = max(order, waiting, running)
        if longest >= LATEST:
            raise BridgeError(
                f"its believed length of {longest / SECOND:g} s is too long",
                where=f"job {job_id}",
            )
        self.n_jobs += 1
        since = self.now if submitted is None else submitted
        user = user if 0 <= user < len(self._shares) else 0
        self._job_records[j] = (
            *(job_id, since, waiting, running, order / SECOND, since / SECOND, demand[0]),
            *(user, partition),
        )
        self._pending_events.append(j)
        return j

    def adopt(self, j: int, start: int) -> None:
        """Waiting job `j` runs since `start`, whoever started it."""
        core.mark_running(self.state, 0, j, start)

    def finish(self, j: int) -> None:
        """Job `j` ended now, however it ended."""
        self._pending_events.append(-1 - j)

    def withdraw(self, j: int) -> None:
        """Take waiting job `j` out of the queue."""
        core.withdraw(self.state, 0, j)

    def set_out_of_service(self, amounts: Sequence[int]) -> None:
        """Set how much of each resource is neither free nor used by a job."""
        core.set_out_of_service(self.state, 0, np.asarray(amounts, np.int64))

    def running(self) -> list[int]:
        """Return the running jobs by believed end."""
        by_end: list[int] = running(self.state).tolist()
        return by_end

    def begin(self) -> None:
        """Open a pass: everything of this instant has been told."""
        self._opening = True

    def advance(self) -> int:
        """Carry the pass on; returns a kind of decision, NOTHING when the pass is over.

        Raises:
            BridgeError: an order's score is not a number.
        """
        kind = self._first() if self._opening else self._on()
        while kind != core.NOTHING and (kind == core.PAUSE or self.compiled.decide(self._state, 0, kind)):
            kind = self._on()
        return kind

    def _first(self) -> int:
        """Open the pass with what was told."""
        self._opening, events = False, self._pending_events
        if len(events) > _MOST_TOLD:
            self._apply()
            events = self._pending_events
        for k, j in enumerate(events):
            self._buffer[k] = j
        self._pending_events = []
        if self._follow is None:
            kind = self._checked(core.apply_events, self._buffer, len(events))
            self._follow = entry(core.apply_events)
            return kind
        return self._checked(self._follow, self._buffer, len(events))

    def _on(self) -> int:
        return self._checked(core.advance)

    def _checked(self, kernel: Callable[..., Any], *more: Any) -> int:
        self._work[0] = _WORK
        kind = int(kernel(self._state, 0, *more))
        bad = self._bad[0]
        if bad >= 0:
            raise BridgeError(
                f"the score of job {self._state.jobs.id[0, bad]} is not a finite number",
                where=f"order {self.compiled.order.name!r}",
            )
        return kind

    def answer(self, choice: int) -> None:
        """Answer the decision: a place among the candidates, or ``machine.DECLINE``.

        Raises:
            BridgeError: no such candidate.
        """
        if choice != core.DECLINE and not 0 <= choice < max(int(self.state.scalars.n_candidates[0]), 1):
            raise BridgeError(f"answer {choice} is not among {self.state.scalars.n_candidates[0]} candidates")
        core.apply_choice(self.state, 0, choice)

    def starts(self) -> list[int]:
        """Return the jobs started since the last call, in order."""
        n = self._n_started[0]
        if not n:
            return []
        self._n_started[0] = 0
        started: list[int] = self._state.started[0, :n].tolist()
        return started

    @property
    def wake_at(self) -> int:
        """When the scheduler wants to be woken, microseconds; ``state.NEVER`` if it does not."""
        return NEVER if self._opening else self._wake_at[0]

    def is_due(self) -> bool:
        """Tell whether the scheduler wanted to be woken by now; all that has happened was told."""
        return self.now >= self.wake_at
