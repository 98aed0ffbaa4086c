"""A fork: one state, played forward again and again by the fast world, each time with other run times."""

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.fast import world
from bridge.fast.world import DONE, World, expect, play
from bridge.futures.state import State
from bridge.jit import inline, kernel
from bridge.policy_name import parse_policy
from bridge.scheduler import machine
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.compiled import Compiled, compile_policy
from bridge.scheduler.machine import begin
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.running import add_running
from bridge.scheduler.state import NEVER, SECOND, Array
from bridge.scheduler.state import State as Scheduler

Ints = npt.NDArray[np.int64]

#: Episodes of a fork's batch: the present, which stays as it is, and the future that is being played.
_PRESENT, _FUTURE = 0, 1
#: Passes between two looks at Ctrl-C.
_PASSES = 200_000
#: Where a future's play stands, beside the kinds of the world: it is not begun.
_FRESH = -9


class Fork:
    """The futures of one state under one policy.

    The fork's memory is one batch of the compiled scheduler and can be used for state after state.

    Args:
        state: the present.
        policy: order and backfilling by name; empty = the state's own.

    Raises:
        BridgeError: the policy is not known, or no order and backfilling rule.
    """

    def __init__(self, state: State, policy: str = "") -> None:
        self.compiled = compiled(policy or state.policy)
        self._length = self._users = -1
        self._scheduler: Scheduler
        self._world: World
        self.load(state)

    def load(self, state: State) -> None:
        """Take another state, of a machine with the same resources."""
        n = len(state)
        names = [*dict.fromkeys(state.user)]
        if (
            n > self._length
            or len(names) > self._users
            or len(state.capacity) != len(self._scheduler.capacity)
        ):
            self._allocate(max(n, 2 * self._length), max(len(names), 2 * self._users), len(state.capacity))
        self.state = state
        scheduler, lengths = self._scheduler, state.lengths
        scheduler.capacity[:] = state.capacity
        scheduler.constants[:2] = state.longest, state.capacity[0]
        for b in (_PRESENT, _FUTURE):
            scheduler_state.reset(scheduler, b)
            scheduler.env.now[b] = state.now
            scheduler.env.used_total[b] = state.used
            scheduler.free[b] = state.free + state.demand[: state.n_running].sum(axis=0)
            row = scheduler.jobs[b]
            for name, values in (
                ("submit", state.submit),
                ("est_wait", lengths.waiting),
                ("est_run", lengths.running),
                ("p", state.partition),
                ("t", lengths.order / SECOND),
                ("s", state.submit / SECOND),
                ("n", state.demand[:, 0]),
                ("start", np.where(np.arange(n) < state.n_running, state.start, -1)),
            ):
                row[name][:n] = values
            row["tie"][:n] = 0
            scheduler.demand[b, :n] = state.demand
        of_user = {name: u for u, name in enumerate(names)}
        scheduler.jobs["user"][:, :n] = [of_user[name] for name in state.user]
        for name, u in of_user.items():
            fair = state.users.get(name)
            scheduler.share[u] = fair.share if fair else 0.0
            scheduler.usage[:, u] = fair.used if fair else 0.0
        _enter(scheduler, n, state.n_running)
        _check_scores(self.compiled, state, scheduler, _PRESENT)

    def play(self, runs: Ints, wanted: Ints | None = None) -> Ints:
        """Play one future per row of run times.

        Args:
            runs: [F, n] microseconds, from its start for a job that runs, which ends after the present.
            wanted: the waiting jobs after whose starts a future ends; None = all of them.

        Returns:
            [F, n] starts, microseconds; NEVER where a job cannot start, or had not when the future ended.

        Raises:
            BridgeError: an order's score is not a number.
        """
        state, scheduler = self.state, self._scheduler
        runs = np.ascontiguousarray(runs, np.int64)
        if runs.shape[1:] != (len(state),) or np.any(runs <= state.elapsed):
            raise BridgeError("run times of a future must be longer than what has run", where="fork")
        starts = np.full(runs.shape, NEVER, np.int64)
        wanted = state.waiting if wanted is None else np.asarray(wanted, np.int64)
        settled = state.settled and self.compiled.policy == compiled(state.policy).policy
        future, kind = 0, _FRESH
        while future < len(runs):
            future, kind = play_futures(
                scheduler, self._world, runs, starts, wanted, state.n_running, settled, future, kind, _PASSES
            )
            _check_scores(self.compiled, state, scheduler, _FUTURE)
            if future < len(runs):
                self.compiled.decide(scheduler, _FUTURE, kind)
        return starts

    def _allocate(self, length: int, users: int, resources: int) -> None:
        """Make room for `length` jobs of so many users."""
        window = 1 if self.compiled.chooser is None else length
        made = scheduler_state.allocate(2, length, resources, window=window, users=users)
        self._scheduler = self.compiled.onto(made)
        self._world = world.allocate(2, length)
        self._length, self._users = length, users


def compiled(policy: str) -> Compiled:
    """Return a policy by name, as the kernels read it under the standard protocol.

    Raises:
        BridgeError: it is not known, or no order and backfilling rule.
    """
    name = parse_policy(policy)
    if name.agent or name.plugin or name.only_pool:
        raise BridgeError(
            "is no order and backfilling rule",
            where=f"policy {policy!r}",
            remedy="Futures are played by rules, such as saf+easy.",
        )
    return compile_policy(Policy(name.order, name.backfill or Policy.backfill), protocol("standard"))


def _check_scores(rules: Compiled, state: State, scheduler: Scheduler, b: int) -> None:
    bad = int(scheduler.env.bad_score[b])
    if bad >= 0:
        raise BridgeError(
            f"the score of job {state.id[bad]} is not a finite number", where=f"order {rules.order.name!r}"
        )


@kernel
def _enter(state: Scheduler, n: int, n_running: int) -> None:
    """Make the jobs of the present run and wait."""
    for j in range(n_running):
        job = state.jobs[0, j]
        for r in range(state.capacity.shape[0]):
            state.free[0, r] -= state.demand[0, j, r]
        job.est_end = job.start + job.est_run
        state.jobs[1, j].est_end = job.est_end
        job.serial = j
        state.jobs[1, j].serial = j
        add_running(state, 0, j)
    state.env[0].serial = n_running
    for j in range(n_running, n):
        machine.submit(state, 0, j)
        copy, job = state.jobs[1, j], state.jobs[0, j]
        copy.score = job.score
        copy.alt = job.alt
        copy.size_class = job.size_class


@inline
def _restart(state: Scheduler, memory: World, runs: Array, n_running: int, settled: bool) -> None:
    """Bring the future back to the present, with other run times."""
    present = state.env[0]
    n = runs.shape[0]
    state.env[1] = state.env[0]
    for r in range(state.capacity.shape[0]):
        state.free[1, r] = state.free[0, r]
    for u in range(state.usage.shape[1]):
        state.usage[1, u] = state.usage[0, u]
    for i in range(state.blocks.shape[1]):
        state.blocks[1, i] = state.blocks[0, i]
    for i in range(present.n_blocks):
        block = state.blocks[0, i]
        size = state.size[0, block]
        state.size[1, block] = size
        state.least[1, block] = state.least[0, block]
        for c in range(state.shortest.shape[2]):
            state.shortest[1, block, c] = state.shortest[0, block, c]
        for k in range(size):
            state.items[1, block, k] = state.items[0, block, k]
    for k in range(n_running):
        state.run_end[1, k] = state.run_end[0, k]
        state.run_job[1, k] = state.run_job[0, k]
    clock = memory.clock[1]
    clock.arrived = clock.last = n
    clock.pending = 0
    clock.open = 0
    for j in range(n):
        job = state.jobs[1, j]
        job.run = runs[j]
        if j < n_running:
            expect(memory, 1, job.start + job.run, job.serial, j)
        else:
            job.start = -1
            job.reserved = -1
            job.rejects = 0
    if not settled:
        begin(state, 1)
        clock.open = 1


@kernel
def play_futures(
    state: Scheduler,
    memory: World,
    runs: Array,
    starts: Array,
    wanted: Array,
    n_running: int,
    settled: bool,
    future: int,
    kind: int,
    passes: int,
) -> tuple[int, int]:
    """Play the futures from one on, each from where it stands.

    Returns:
        (the future that needs Python before it can go on, or their number; the kind it needs)
    """
    n = runs.shape[1]
    while future < runs.shape[0]:
        if kind == _FRESH:
            _restart(state, memory, runs[future], n_running, settled)
        begun = 0
        while True:
            while begun < wanted.shape[0] and state.jobs[1, wanted[begun]].start >= 0:
                begun += 1
            if begun == wanted.shape[0]:
                break
            kind = play(state, memory, 1, 1)
            passes -= 1
            if kind < machine.PAUSE or kind == DONE:
                break
            if kind != machine.PAUSE or state.env[1].bad_score >= 0 or passes <= 0:
                return future, kind
        for j in range(n_running, n):
            if state.jobs[1, j].start >= 0:
                starts[future, j] = state.jobs[1, j].start
        kind = _FRESH
        future += 1
    return future, kind
