"""The order `multifactor`: Slurm's priorities by the weights of a cluster's [priority], with fair share.

A priority is a whole number, at least 1. At every multiple of the calculation period usage decays, what
running jobs used since is added, and all priorities are computed afresh; in between they stay. A job that
becomes eligible has its own at once, of the age 0. Equal priorities go by submission. What a run that is cut
short used since the last calculation does not count; a suspended job uses on.
"""

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bridge.base.arrays import Floats, Ints, Records
from bridge.cluster.limits import Limits
from bridge.scheduler import core
from bridge.scheduler.cluster_pass import list_waiting_on_nodes
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.compiled import Ranker
from bridge.scheduler.slurm import fair_tree as shares
from bridge.scheduler.slurm.site import Assoc
from bridge.scheduler.slurm.usage_kernels import size_factor
from bridge.scheduler.state import SECOND, State
from bridge.worlds.fast.cluster_arrays import ClusterArrays
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, MEMORY
from bridge.worlds.fast.cluster_rules import account_of, qos_of, user_of

if TYPE_CHECKING:
    from bridge.workload.select import Jobs

_ROOT = "root"


class _Associations:
    """The tree of accounts and users, and the user of each job."""

    def __init__(self, arrays: ClusterArrays) -> None:
        cluster = arrays.cluster
        self.root = Assoc(_ROOT, None, False, 1, Limits(), None)
        self.accounts: dict[str, Assoc] = {_ROOT: self.root}
        waiting = [row for row in cluster.accounts if row.name != _ROOT]
        while waiting:  # a parent may stand behind its children
            row = next((one for one in waiting if one.parent in self.accounts), waiting[0])
            waiting.remove(row)
            parent = self.accounts.get(row.parent, self.root)
            self.accounts[row.name] = self._below(parent, row.name, False, row.shares)
        self.users: dict[tuple[str, str, str], Assoc] = {}
        for user in cluster.users:
            parent = self.accounts.get(user.account, self.root)
            key = (user.name, user.account, user.partition)
            self.users[key] = self._below(parent, user.name, True, user.shares)
        self._arrays = arrays

    def _below(self, parent: Assoc, name: str, is_user: bool, count: int) -> Assoc:
        one = Assoc(name, parent, is_user, count, Limits(), None)
        parent.children.append(one)
        self.root.tree = None
        return one

    def of(self, j: int) -> tuple[Assoc, str, int]:
        """Return the association of a job, its QOS and its association's priority."""
        arrays, requests = self._arrays, self._arrays.requests
        partition = arrays.classes.partitions[arrays.demands.partition[j]].name
        user = user_of(arrays.cluster, partition, requests, j)
        account = account_of(requests, j, user) or _ROOT
        key = (requests.user.of(j), account, "")
        if user is not None:
            key = (user.name, user.account, user.partition)
        if key not in self.users:  # the cluster does not name it: one share
            self.users[key] = self._below(self.accounts.get(account, self.root), key[0], True, 1)
        return self.users[key], qos_of(arrays.cluster, requests, j, user), user.priority if user else 0

    def reset(self) -> None:
        """Let nobody have used anything."""
        for one in (*self.accounts.values(), *self.users.values()):
            one.usage = 0.0


class MultifactorPriorities(Ranker):
    """Priorities of the jobs of one log on a cluster; episodes may follow each other."""

    def __init__(self, arrays: ClusterArrays, jobs: "Jobs") -> None:
        self._weights = arrays.cluster.priority
        self._tree = _Associations(arrays)
        n = len(arrays.requests)
        columns = (
            *(arrays.demands.partition, arrays.requests.qos.code),
            *(arrays.requests.account.code, arrays.requests.user.code),
        )
        _, first, of = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
        rows = [self._tree.of(j) for j in first.tolist()]
        self._user = [rows[k][0] for k in of.reshape(-1).tolist()]
        qos = {row.name: row for row in arrays.cluster.qos}
        tables = [qos.get(row[1]) for row in rows]
        factor = np.array([1.0 if row is None else row.usage_factor for row in tables], np.float64)
        taken = np.array([row.amounts for row in arrays.demands.taken], np.int64)[arrays.demands.shape]
        self._billing: Floats = (taken[:, CORES] * factor[of.reshape(-1)]).astype(np.float64)
        priority = np.array([0 if row is None else row.priority for row in tables], np.float64)
        own = np.array([row[2] for row in rows], np.float64)
        self._fixed = self._fixed_part(arrays, jobs, taken)
        most = max((row.priority for row in arrays.cluster.qos), default=0)
        self._fixed += self._weights.qos * priority[of.reshape(-1)] / max(most, 1)
        most = max((row.priority for row in arrays.cluster.users), default=0)
        self._fixed += self._weights.association * own[of.reshape(-1)] / max(most, 1)
        self._place = {number: j for j, number in enumerate(jobs.number.tolist())}
        assert len(self._fixed) == n
        self._begin(0)

    def _fixed_part(self, arrays: ClusterArrays, jobs: "Jobs", taken: Ints) -> Floats:
        """Return what does not change of each job's priority [n]: size, partition, amounts."""
        weights, classes = self._weights, arrays.classes
        counts = np.array([len(members) for members in classes.members], np.int64)
        of_partition = classes.in_partition @ (classes.amounts * counts[:, None])
        nodes_of = classes.in_partition @ counts
        total, every = int(counts.sum()), arrays.capacity()["cores"]
        most = max(row.priority_factor for row in classes.partitions)
        names = {"cores": CORES, "memory": MEMORY, "gpus": GPUS}
        names |= {name: r for r, name in enumerate(classes.resources)}
        fixed = np.zeros(len(taken), np.float64)
        nodes, seconds = arrays.requested_nodes.tolist(), (jobs.request / SECOND).tolist()
        relative, small = weights.relative_to_time, weights.favor_small
        for j, p in enumerate(arrays.demands.partition.tolist()):
            amount = weights.job_size * size_factor(
                relative, small, nodes[j], int(taken[j, CORES]), seconds[j], total, every
            )
            amount += weights.partition * classes.partitions[p].priority_factor / max(most, 1)
            for name, weight in weights.tres.items():
                if name == "nodes":
                    amount += weight * nodes[j] / int(nodes_of[p])
                elif name in names and of_partition[p, names[name]] > 0:
                    amount += weight * float(taken[j, names[name]]) / float(of_partition[p, names[name]])
            fixed[j] = amount
        return fixed

    def _begin(self, serial: int) -> None:
        """Begin an episode: nobody has used anything."""
        self._now, self._serial, self._last = 0, serial, 0
        self._open: dict[int, int] = {}  # jobs that wait or run: since when their usage does not count yet
        self._tree.reset()
        shares.normalise_shares(self._tree.root)
        self._share()

    def save(self) -> object:
        rows = [*self._tree.accounts.values(), *self._tree.users.values()]
        numbers = [(one.usage, one.fs, one.effective) for one in rows]
        return self._now, self._serial, self._last, dict(self._open), numbers

    def restore(self, saved: object) -> None:
        self._now, self._serial, self._last, waiting, numbers = cast(Any, saved)
        self._open = dict(waiting)
        rows = [*self._tree.accounts.values(), *self._tree.users.values()]
        for one, row in zip(rows, numbers, strict=True):
            one.usage, one.fs, one.effective = row

    def _share(self) -> None:
        """Compute the fair shares from the usage as it is now."""
        tree = self._tree
        if self._weights.fair_tree:
            shares.fair_tree(tree.root)
            return
        shares.forget_effective(tree.users.values())
        for user in tree.users.values():
            user.fs = shares.classic(user, tree.root)

    def rank(self, state: State, b: int) -> None:
        """Write the priorities to the waiting jobs, and sort them."""
        env, jobs = state.scalars[b], state.jobs[b]
        if env.serial < self._serial or env.now < self._now:
            self._begin(int(env.serial))
        which = np.zeros(int(env.n_waiting), np.int32)
        list_waiting_on_nodes(cast(ClusterState, state), b, which)
        self._account(jobs, int(env.now))
        for j in which.tolist():
            self._open.setdefault(j, -1)
        self._now, self._serial = int(env.now), int(env.serial)
        for j in which.tolist():
            jobs[j].score = self._priority(self._place[int(jobs[j].id)], int(jobs[j].submit))
        core.sort_by_scores(state, b)

    def _priority(self, j: int, eligible: int) -> int:
        """Return the priority of a job, whose age counts from when it became eligible."""
        weights, total = self._weights, float(self._fixed[j])
        age = max(self._last - eligible, 0) / SECOND
        total += weights.age * min(1.0, age / weights.max_age if weights.max_age else 1.0) * (age > 0)
        total += weights.fairshare * self._user[j].fs
        return max(int(total), 1)

    def _account(self, jobs: Records, now: int) -> None:
        """Let what happened since the last look count: ends, and calculations, in order of time."""
        ends = []
        for k in self._open:
            end = int(jobs[k].end)
            if 0 <= end <= now:
                ends.append((end, k))
        for end, k in sorted(ends):
            self._calculate_until(jobs, end)
            self._use(jobs, k, end)
            del self._open[k]
        self._calculate_until(jobs, now)

    def _calculate_until(self, jobs: Records, time: int) -> None:
        """Calculate at every multiple of the period until a time; while nobody runs, once for all of them."""
        period = self._weights.calculation_period * SECOND
        n = (time - self._last) // period
        if n > 0 and all(jobs[k].start < 0 for k in self._open):
            self._calculate(jobs, self._last + n * period)
            return
        for _ in range(n):
            self._calculate(jobs, self._last + period)

    def _calculate(self, jobs: Records, time: int) -> None:
        """Let usage decay, add what running jobs used, and compute the shares."""
        life = self._weights.half_life
        decay = 0.5 ** ((time - self._last) / SECOND / life) if life else 1.0
        tree = self._tree
        for one in (*tree.accounts.values(), *tree.users.values()):
            one.usage *= decay
        if not self._weights.fair_tree:
            shares.set_effective(tree.accounts.values(), tree.root)
        self._last = time
        for k in sorted(self._open):
            self._use(jobs, k, time)
        self._share()

    def _use(self, jobs: Records, k: int, time: int) -> None:
        """Add what running job `k` used until a time."""
        start = int(jobs[k].start)
        since = max(self._open[k], start)
        if start < 0 or since >= time:
            return
        seconds, life = (time - since) / SECOND, self._weights.half_life
        j = self._place[int(jobs[k].id)]
        amount = seconds * float(self._billing[j]) * (math.pow(0.5, seconds / life) if life else 1.0)
        for one in self._user[j].chain():
            one.usage += amount
        self._open[k] = time
