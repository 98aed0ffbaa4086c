"""The order `user_shares`: AleaNG's fair share between users, computed afresh at each pass.

A job of a partition with a higher tier stands first; then that of a user who has used less in proportion to
its shares: the factor is 2 ** -((used / used by all) / (shares / shares of all)). What a user has used is, in
core-seconds, each term a whole number:

- what jobs used that have ended, from 1 on, times 0.75 every 48 h, first 5 s before the first submission;
- of each running job, 0.95 times what it used so far;
- of jobs that just started, all that they may use until their walltime, until a job of the user ends, usage
  decays, or a pass is more than a second later.
"""

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler import core
from bridge.scheduler.cluster_pass import list_waiting_on_nodes
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.compiled import Ranker
from bridge.scheduler.state import SECOND, State
from bridge.worlds.fast.cluster_arrays import ClusterArrays
from bridge.worlds.fast.cluster_nodes import CORES

if TYPE_CHECKING:
    from bridge.workload.select import Jobs

DECAY, DECAY_PERIOD, BEFORE_FIRST = 0.75, 48 * 3600 * SECOND, 5 * SECOND
#: Share of what running jobs use that counts.
RUNNING = 0.95
#: What every user has used at first.
AT_FIRST = 1


def _whole(value: float) -> int:
    """Round to the nearest whole number, halves up."""
    return math.floor(value + 0.5)


class _User:
    """What one user has used."""

    def __init__(self, shares: int) -> None:
        self.shares = shares
        self.running: set[int] = set()
        self.forget()

    def forget(self) -> None:
        """Let nothing have been used."""
        self.ended, self.started, self.changed = AT_FIRST, 0, 0
        self.running.clear()

    def change(self, ended: int, second: int) -> None:
        """Note what ended jobs have used, from a second on."""
        self.ended, self.started, self.changed = ended, 0, second


class UserShares(Ranker):
    """The order of the jobs of one log on a cluster; episodes may follow each other."""

    def __init__(self, arrays: ClusterArrays, jobs: "Jobs", start_gap: int) -> None:
        requests, classes = arrays.requests, arrays.classes
        shares = {row.name: row.shares for row in arrays.cluster.users}
        names = [*requests.user.texts, ""]
        self._users = {name: _User(shares.get(name, 1)) for name in dict.fromkeys((*shares, *names))}
        if not (requests.user.code < 0).any() and "" not in requests.user.texts:
            del self._users[""]
        of_code = [self._users.get(name) for name in names]
        self._user = [of_code[code] for code in requests.user.code.tolist()]
        taken = np.array([row.amounts for row in arrays.demands.taken], np.int64)
        self._cores: list[int] = taken[arrays.demands.shape, CORES].tolist()
        self._walltime: list[float] = (jobs.request / SECOND).tolist()
        tiers = np.array([partition.tier for partition in classes.partitions], np.int64)
        self._tier: list[int] = tiers[arrays.demands.partition].tolist()
        self._place = {number: j for j, number in enumerate(jobs.number.tolist())}
        self._first = int(jobs.submit[0]) - BEFORE_FIRST
        self._gap = start_gap
        self._begin(0)

    def _begin(self, serial: int) -> None:
        """Begin an episode: nobody has used anything."""
        self._now, self._serial, self._next_decay = 0, serial, self._first
        self._open: list[int] = []  # jobs that wait
        self._running: dict[int, int] = {}  # -> when they started, as the scheduler decided it
        for user in self._users.values():
            user.forget()

    def save(self) -> object:
        users = [(one.ended, one.started, one.changed, set(one.running)) for one in self._users.values()]
        own = (self._now, self._serial, self._next_decay)
        return own, [*self._open], dict(self._running), users

    def restore(self, saved: object) -> None:
        (self._now, self._serial, self._next_decay), waiting, running, users = cast(Any, saved)
        self._open, self._running = [*waiting], dict(running)
        for one, row in zip(self._users.values(), users, strict=True):
            one.ended, one.started, one.changed = row[:3]
            one.running = set(row[3])

    def _of(self, state: State, b: int, k: int) -> int:
        return self._place[int(state.jobs[b, k].id)]

    def rank(self, state: State, b: int) -> None:
        """Write the places by tier and factor to the waiting jobs, and sort them."""
        env, jobs = state.scalars[b], state.jobs[b]
        now = int(env.now)
        if env.serial < self._serial or now < self._now:
            self._begin(int(env.serial))
        which: Ints = np.zeros(int(env.n_waiting), np.int32)
        list_waiting_on_nodes(cast(ClusterState, state), b, which)
        self._follow(state, b, now)
        second = _whole(now / SECOND)
        for user in self._users.values():
            if second > user.changed + 1:
                user.started, user.changed = 0, second
        factor = self._factors(state, b, now)
        keys = [(self._tier[j], factor[id(self._user[j])]) for j in (self._of(state, b, k) for k in which)]
        places = {key: float(place) for place, key in enumerate(sorted(set(keys)))}
        jobs.score[which] = [places[key] for key in keys]
        self._open = which.tolist()
        self._now, self._serial = now, int(env.serial)
        core.sort_by_scores(state, b)

    def _factors(self, state: State, b: int, now: int) -> dict[int, float]:
        """Return the factor of each user."""
        used, jobs = {}, state.jobs[b]
        for user in self._users.values():
            seconds = ((k, (now - int(jobs[k].start)) / SECOND) for k in user.running)
            running = sum(_whole(self._cores[self._of(state, b, k)] * s * RUNNING) for k, s in seconds)
            used[id(user)] = user.ended + user.started + running
        total = float(sum(used.values()))
        shares = float(sum(user.shares for user in self._users.values()))
        return {
            id(user): 2.0 ** -((used[id(user)] / total) / (user.shares / shares))
            for user in self._users.values()
        }

    def _follow(self, state: State, b: int, now: int) -> None:
        """Let starts, ends and decays since the last pass count, in order of time."""
        jobs = state.jobs[b]
        for k in self._open:
            if jobs[k].start >= 0:
                j = self._of(state, b, k)
                user, decided = self._user[j], int(jobs[k].start) - self._gap
                self._running[k] = decided
                user.running.add(k)
                user.started += _whole(self._cores[j] * self._walltime[j])
                user.changed = _whole(decided / SECOND)
        ends = sorted((int(jobs[k].end), k) for k in self._running if 0 <= jobs[k].end <= now)
        for end, k in ends:
            self._decay_until(end)
            j = self._of(state, b, k)
            user = self._user[j]
            del self._running[k]
            user.running.remove(k)
            used = _whole(self._cores[j] * ((end - int(jobs[k].start)) / SECOND))
            user.change(user.ended + used, _whole(end / SECOND))
        self._decay_until(now)

    def _decay_until(self, time: int) -> None:
        while self._next_decay <= time:
            for user in self._users.values():
                user.change(_whole(user.ended * DECAY), _whole(self._next_decay / SECOND))
            self._next_decay += DECAY_PERIOD
