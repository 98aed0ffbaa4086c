"""A fork: one state, played forward again and again by the fast world, each time with other run times."""

from functools import cache

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.forecasting.kernels import FRESH, FUTURE, PRESENT, load_present_jobs, play_futures
from bridge.forecasting.state import MachineState
from bridge.policy_name import parse_policy
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.compiled import CompiledPolicy, compile_policy
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import NEVER, SECOND
from bridge.scheduler.state import State as Scheduler
from bridge.worlds.fast import world
from bridge.worlds.fast.world import WorldState

#: Passes between two looks at Ctrl-C.
_PASSES = 200_000


class Fork:
    """The futures of one state under one policy; empty = the state's own (BridgeError: it is no rule).

    The fork's memory is one batch of the compiled scheduler and can be used for state after state.
    """

    def __init__(self, state: MachineState, policy: str = "") -> None:
        self.compiled = compile_policy(policy_of(policy or state.policy), protocol("standard"))
        self.compiled.refuse_action("forecasts")
        self._length = self._users = -1
        self._scheduler: Scheduler
        self._world: WorldState
        self.load(state)

    def load(self, state: MachineState) -> None:
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
        # plain views: attribute access on record arrays costs more than a future
        env, jobs = scheduler.scalars.view(np.ndarray), scheduler.jobs.view(np.ndarray)[:, :n]
        env[:] = np.zeros((), env.dtype)
        for name, one in (("head", -1), ("bad_score", -1), ("wake_at", NEVER), ("now", state.now)):
            env[name] = one
        env["used_total"] = state.used
        scheduler.free[:] = state.free + state.demand[: state.n_running].sum(axis=0)
        scheduler_state.empty_lists(scheduler, slice(None))
        jobs[:] = np.zeros((), jobs.dtype)
        scheduler_state.unstarted(jobs)
        jobs["start"][:, : state.n_running] = state.start[: state.n_running]
        for name, values in (
            ("submit", state.submit),
            ("est_wait", lengths.waiting),
            ("est_run", lengths.running),
            ("p", state.partition),
            ("t", lengths.order / SECOND),
            ("s", state.submit / SECOND),
            ("n", state.demand[:, 0]),
        ):
            jobs[name] = values
        scheduler.demand[:, :n] = state.demand
        if self.compiled.rules["uses_fairshare"][0]:
            of_user = {name: u for u, name in enumerate(names)}
            jobs["user"] = [of_user[name] for name in state.user]
            for name, u in of_user.items():
                fair = state.users.get(name)
                scheduler.share[u] = fair.share if fair else 0.0
                scheduler.usage[:, u] = fair.used if fair else 0.0
        load_present_jobs(scheduler, n, state.n_running)
        _check_scores(self.compiled, state, scheduler, PRESENT)

    def simulate_futures(self, runs: Ints, wanted: Ints | None = None) -> Ints:
        """Play one future per row of run times [F, n] (µs; a running job's are from its start to after now).

        A future ends when the `wanted` waiting jobs, None = all, have started. Returns [F, n] starts, µs;
        NEVER where a job cannot start, or had not when the future ended. BridgeError: an order's score is no
        number.
        """
        state, scheduler = self.state, self._scheduler
        runs = np.ascontiguousarray(runs, np.int64)
        if runs.shape[1:] != (len(state),) or np.any(runs <= state.elapsed):
            raise BridgeError("run times of a future must be longer than what has run", where="fork")
        starts = np.full(runs.shape, NEVER, np.int64)
        wanted = state.waiting if wanted is None else np.asarray(wanted, np.int64)
        settled = state.settled and self.compiled.policy == policy_of(state.policy)
        future, kind = 0, FRESH
        while future < len(runs):
            future, kind = play_futures(
                scheduler, self._world, runs, starts, wanted, state.n_running, settled, future, kind, _PASSES
            )
            _check_scores(self.compiled, state, scheduler, FUTURE)
            if future < len(runs):
                self.compiled.decide(scheduler, FUTURE, kind)
        return starts

    def _allocate(self, length: int, users: int, resources: int) -> None:
        window = 1 if self.compiled.chooser is None else length
        arrays = scheduler_state.allocate(2, length, resources, window=window, users=users)
        self._scheduler = self.compiled.install_in(arrays)
        self._world = world.allocate(2, length)
        self._length, self._users = length, users


@cache
def policy_of(policy: str) -> Policy:
    """Return an order and backfilling rule by its name (else BridgeError)."""
    name = parse_policy(policy)
    if not name.is_rule:
        remedy = "Futures are played by rules, such as saf+easy."
        raise BridgeError("is no order and backfilling rule", where=f"policy {policy!r}", remedy=remedy)
    return name.policy()


def _check_scores(rules: CompiledPolicy, state: MachineState, scheduler: Scheduler, b: int) -> None:
    bad = int(scheduler.scalars.bad_score[b])
    if bad >= 0:
        raise BridgeError(
            f"the score of job {state.id[bad]} is not a finite number", where=f"order {rules.order.name!r}"
        )
