"""A cluster and the jobs of a log as the arrays that `bridge.scheduler.cluster_state` describes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bridge.base.arrays import Array, Floats, Ints, Records
from bridge.base.errors import BridgeError
from bridge.cluster import reasons
from bridge.cluster.description import Cluster
from bridge.cluster.request_texts import parse_licenses
from bridge.scheduler.acting_state import ActingNodes, allocate_acting, reset_acting
from bridge.scheduler.cluster_state import (
    CONDITION,
    COUNT_RUNNING,
    COUNT_SUBMITTED,
    COUNT_TIME,
    COUNTED,
    LANE,
    NODE_JOB,
    TIME_UNIT,
    UNCOUNTED,
    ClusterState,
    allocate_cluster,
)
from bridge.scheduler.state import NEVER, SECOND
from bridge.scheduler.timed_state import TimedState, allocate_timed
from bridge.workload.requests import JobRequests
from bridge.worlds.fast.cluster_calendar import (
    Calendar,
    build_calendar,
    changes_in_time,
    names_foreign_reservation,
    reset_calendar,
)
from bridge.worlds.fast.cluster_conditions import Conditions, build_conditions
from bridge.worlds.fast.cluster_demands import Demands, build_demands
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, MEMORY, NodeClasses, build_node_classes
from bridge.worlds.fast.cluster_rules import (
    Rule,
    account_of,
    not_allowed,
    qos_of,
    rules_for,
    user_of,
    within_partition,
)
from bridge.worlds.fast.cluster_shapes import (
    as_records,
    fit_sizes,
    node_arrays,
    node_switches,
    shape_arrays,
)

if TYPE_CHECKING:
    from bridge.workload.select import Jobs

#: Entries of allocations that a world collects at once, at least.
_LOG = 1 << 12
#: Amounts of all steps of the profile of conservative backfilling, at most: 4 GiB, of which few are touched.
_STEP_AMOUNTS = 1 << 29


@dataclass(frozen=True)
class ClusterArrays:
    """What a scheduler knows of a cluster, and of n jobs on it.

    Attributes:
        cluster: the description.
        requests: what the jobs ask of it.
        classes: its nodes.
        demands: of the jobs.
        conditions: of the jobs.
        static: arrays by their names in `ClusterFields`, which no scheduler changes.
        jobs: NODE_JOB [n], without conditions and groups.
        quantity: [n, Q] what counters count.
        reasons: names of reasons; arrays hold places in it.
        n_counters: how many counters there are.
        notes: what was decided for jobs, with how many they are.
        calendar: what happens in time; None: nothing does.
        acts: a rule of action may stop jobs.
    """

    cluster: Cluster
    requests: JobRequests
    classes: NodeClasses
    demands: Demands
    conditions: Conditions
    static: Mapping[str, Array]
    jobs: Records
    quantity: Ints
    reasons: tuple[str, ...]
    n_counters: int
    notes: Mapping[str, int]
    calendar: Calendar | None = None
    acts: bool = False

    @property
    def requested_nodes(self) -> Ints:
        """Nodes that each job takes of the empty cluster [n]."""
        return np.array([row.nodes for row in self.demands.taken], np.int64)[self.demands.shape]

    @property
    def is_shared(self) -> bool:
        return self.classes.is_shared

    def capacity(self) -> dict[str, int]:
        """Return what all nodes have: cores, and GPUs where there are some."""
        return self.classes.capacity()

    def stated(self, names: Sequence[str]) -> dict[str, Floats]:
        """Return by these settings of QOS and partitions what they say of their jobs [n], NaN: nothing.

        What nobody says of any job is not there.
        """
        columns: dict[str, Floats] = {}
        for name in names:
            of_qos = [*(getattr(row, name) for row in self.cluster.qos), None]  # the last: of no QOS
            of_partition = [getattr(row, name) for row in self.classes.partitions]
            if any(value is not None for value in (*of_qos, *of_partition)):
                own, other = (
                    np.array([np.nan if value is None else float(value) for value in values], np.float64)
                    for values in (of_qos, of_partition)
                )
                by_qos, by_partition = own[self.jobs.qos], other[self.demands.partition]
                columns[name] = np.where(np.isnan(by_qos), by_partition, by_qos)
        return columns

    @property
    def counts_memory(self) -> bool:
        """Tell whether nodes have a memory that jobs share."""
        return bool((self.classes.amounts[:, MEMORY] < UNCOUNTED).any())

    def refuse_calendar(self, subject: str) -> None:
        """Raise BridgeError if the cluster changes in time, or preempts, which `subject` does not know."""
        if self.calendar is not None:
            what = f"{subject} do not know a calendar, advance reservations, failures and preemption yet"
            remedy = (
                "Leave out [[calendar]], [[reservations]] and [failures], and set scheduler.preempt to none;"
            )
            remedy += " or replay a whole log."
            raise BridgeError(what, where=f"cluster {self.cluster.name!r}", remedy=remedy)

    def shares_nodes(self, which: Array) -> Ints:
        """Return 1 for jobs that share nodes with others, 0 for those that have whole nodes [n]."""
        whole = np.array([shape.whole for shape in self.demands.shapes], np.bool_)
        shares: Ints = (~whole[self.demands.shape[which]]).astype(np.int64)
        return shares

    def partition_names(self, which: Array) -> list[str]:
        """Return the names of the partitions that jobs wait in."""
        names = [partition.name for partition in self.classes.partitions]
        return [names[p] for p in self.demands.partition[which].tolist()]

    def sizes(self, batch: int, length: int, whole: bool, pauses: bool, books: bool) -> dict[str, int]:
        """Return the sizes of a state of B schedulers for up to `length` jobs each.

        `whole`: the world wants their allocations, `pauses`: which it collects now and then; `books`: for
        conservative backfilling.
        """
        units = sum(
            len(members) if self.classes.counted[c] else int(self.classes.amounts[c, CORES])
            for c, members in enumerate(self.classes.members)
        )
        n_classes = len(self.classes)
        entries = min(units, length * n_classes) + n_classes + 1
        conditions = self._most_conditions(length)
        groups = int(self.conditions.group.max(initial=-1)) + 1
        members = min(length, int((self.conditions.group >= 0).sum()))
        log = (2 * entries + _LOG if pauses else self._most_entries() + entries + 1) if whole else 0
        by_axis = {"CP": "class_partitions", "PC": "partition_classes", "S": "shapes", "SC": "set_classes"}
        by_axis |= {"A": "admits", "G": "lanes", "GK": "counted"}
        by_axis |= {"QO": "qos_priority"}
        sizes = {axis: len(self.static[name]) for axis, name in by_axis.items()} | {
            **fit_sizes(n_classes, len(self.demands.shapes), batch),
            "AC": int(self.jobs.account.max(initial=-1)) + 1,
            "C": n_classes,
            "C1": n_classes + 1,
            "R": len(self.classes.resources),
            "P": len(self.classes.partitions),
            "P1": len(self.classes.partitions) + 1,
            "Q": self.quantity.shape[1],
            "K": self.n_counters,
            "CO": conditions,
            "CH": conditions,
            "GR": groups,
            "GR1": groups + 1,
            "GM": members,
            "T": 4 * length + 3 * conditions + 8,
            "E": entries,
            "PT": min(units, length) + 3 if self.classes.counted.all() else 0,
            "LG": log,
            "ST": self._most_steps(length) if books else 0,
        }
        if self.calendar is not None:
            more = sizes | {"units": units}
            sizes |= self.calendar.sizes(more, self.requested_nodes, length, whole, self.acts)
        return sizes

    def _most_steps(self, length: int) -> int:
        """Return how many steps the profile of conservative backfilling may have; memory bounds them."""
        most = 3 * length + len(self.cluster.reservations) + 8
        return min(most, max(_STEP_AMOUNTS // (len(self.classes) * len(self.classes.resources)), 64))

    def _most_entries(self) -> int:
        """Return how many entries the allocations of all jobs have at most."""
        most = [min(shape.nodes or shape.tasks, len(shape.classes)) for shape in self.demands.shapes]
        return int(np.array(most, np.int64)[self.demands.shape].sum())

    def _most_conditions(self, length: int) -> int:
        """Return how many conditions any `length` jobs in a row have."""
        first = self.conditions.first
        n = len(first) - 1
        if length >= n:
            return int(first[-1])
        return int((first[length:] - first[: n + 1 - length]).max(initial=0))

    def allocate(
        self,
        batch: int,
        length: int,
        *,
        window: int,
        users: int,
        whole: bool = False,
        pauses: bool = False,
        books: bool = False,
    ) -> ClusterState:
        """Return the empty state of schedulers of up to `length` jobs each; see `sizes`."""
        sizes = self.sizes(batch, length, whole, pauses, books)
        if self.calendar is not None:
            make = allocate_acting if self.acts else allocate_timed
            timed: Any = make(batch, length, sizes, window=window, users=users)
            switches = self.calendar.static["timed_switches"].copy()  # each state logs lives, or does not
            own = {**self.static, **self.calendar.static, "timed_switches": switches}
            return cast(ClusterState, timed._replace(**own))
        state: Any = allocate_cluster(batch, length, sizes, window=window, users=users)
        return cast(ClusterState, state._replace(**self.static))

    def write(self, state: Any, b: int, place: int, first: int, last: int) -> None:
        """Write what is known of the jobs ``first:last`` to scheduler `b`'s records from `place` on.

        Conditions on jobs that are not among them are met. Only whole episodes have conditions: `place` is 0.
        """
        n = last - first
        row = state.node_jobs[b][place : place + n]
        row[:] = self.jobs[first:last]
        state.quantity[b, place : place + n] = self.quantity[first:last]
        if place > 0:
            return
        if self.calendar is not None:
            self.calendar.write(state, b, first, last)
        begin, end = int(self.conditions.first[first]), int(self.conditions.first[last])
        conditions = state.conditions[b]
        here = self.conditions.records[begin:end].copy()
        inside = (here.parent >= first) & (here.parent < last)
        here.parent = np.where(inside, here.parent - first, -1)
        conditions[: end - begin] = here
        row.first_condition = self.conditions.first[first:last] - begin
        row.last_condition = self.conditions.first[first + 1 : last + 1] - begin
        child = np.repeat(np.arange(n), np.diff(self.conditions.first[first : last + 1]))[inside]
        parent = here.parent[inside]
        order = np.lexsort((child, parent))
        state.children[b, : len(order)] = child[order]
        bounds = np.searchsorted(parent[order], np.arange(n + 1))
        row.first_child, row.last_child = bounds[:-1], bounds[1:]
        group = self.conditions.group[first:last]
        row.group = group
        among = np.flatnonzero(group >= 0)
        by_group = among[np.argsort(group[among], kind="stable")]
        state.group_members[b, : len(by_group)] = by_group
        state.group_first[b] = np.searchsorted(group[by_group], np.arange(state.group_first.shape[1]))


def reset_cluster(state: Any, b: int) -> None:
    """Make the nodes of scheduler `b` free, and its lanes, counters and timers empty."""
    more = state.node_scalars[b]
    state.node_scalars[b] = np.zeros((), state.node_scalars.dtype)
    more = state.node_scalars[b]
    more.n_free_blocks = state.blocks.shape[1]
    more.n_live = -1
    state.free_node[b] = state.class_capacity
    single = (state.class_capacity >= state.node_amounts).all(axis=1)
    state.free[b, 0] = np.where(state.classes.counted > 0, state.class_capacity[:, 0], single).sum()
    lanes = state.lane_states[b]
    lanes.head = lanes.tail = lanes.cursor = -1
    lanes.n = 0
    state.heads.job[b] = -1
    state.heads.n[b] = 0
    state.locked[b] = -1
    state.held_jobs[b] = 0
    state.struck[b] = -1
    state.no_fit[b] = -1
    state.fits.of_shape[b] = -1
    state.counter_used[b] = 0
    state.group_running[b] = 0
    state.group_pending[b] = state.group_first[b, :-1]
    entries = state.entry_next.shape[1]
    state.entry_next[b] = np.arange(1, entries + 1)
    cores = np.where(
        state.classes.counted > 0,
        state.class_capacity[:, 0] * state.node_amounts[:, CORES],
        state.class_capacity[:, CORES],
    )
    first = state.partition_first
    for p in range(state.room.shape[1]):
        state.room[b, p] = cores[state.partition_classes[first[p] : first[p + 1]]].sum()
    if isinstance(state, TimedState):
        reset_calendar(state, b)
    if isinstance(state, ActingNodes):
        reset_acting(state, b)


def build_cluster_arrays(cluster: Cluster, jobs: "Jobs", *, acts: bool = False) -> ClusterArrays:
    """Return the scheduler's arrays of a cluster and jobs; `acts`: a rule of action may stop these.

    Raises BridgeError: a reservation that there is not, a job that the cluster can never hold, or
    a text of a job that cannot be read.
    """
    requests = jobs.requests
    assert requests is not None
    _refuse_unknown_reservations(cluster, requests, jobs)
    lists = [*requests.nodelist.texts, *requests.exclude.texts]
    classes = build_node_classes(cluster, list(dict.fromkeys(lists)))
    walltime = -(-jobs.request // SECOND)
    demands = build_demands(cluster, classes, requests, walltime, jobs.id.tolist())
    static = node_arrays(classes, cluster.scheduler.select) | shape_arrays(classes, demands.shapes)
    static["node_switches"] = node_switches(classes, cluster.scheduler.select)
    static |= _feature_arrays(cluster, classes, static)
    static["node_switches"].kills_invalid = cluster.scheduler.kill_invalid_dependency
    lanes = _Lanes(cluster, classes, demands, requests, walltime, jobs.id)
    conditions = build_conditions(requests, jobs.id.tolist())
    records = lanes.records
    ok = requests.succeeded & (jobs.logged_run <= jobs.request)
    records["shape_number"] = demands.shape
    in_time = acts or changes_in_time(cluster)
    held = requests.hold_until
    if in_time:  # a hold without end may be released
        held = np.where(held == NEVER, -1, held)
    records.begin = np.maximum(requests.begin, held)
    records.allocation = records.head_at = records.never_at = -1
    records.any_is_enough = conditions.any_is_enough
    records.is_singleton = conditions.is_singleton
    records.succeeds = ok
    foreign = names_foreign_reservation(cluster, requests)
    if foreign.any():
        records.refuse = np.where(foreign, 1 + lanes.reason(reasons.RESERVATION_NOT_ALLOWED), records.refuse)
    records.block = -1
    notes = {
        "name no partition of the cluster: the default partition taken": int(demands.elsewhere.sum()),
        "name several partitions, and the first does not admit them": int(demands.redirected.sum()),
        "depend on a job that is not there: met": conditions.n_unknown,
        "name a reservation of other users or accounts: refused": int(foreign.sum()),
    }
    calendar = None
    if in_time:
        inactive = lanes.reason(reasons.PARTITION_INACTIVE)
        calendar = build_calendar(cluster, classes, jobs, demands.partition, lanes.counters, 1 + inactive)
    return ClusterArrays(
        cluster,
        requests,
        classes,
        demands,
        conditions,
        static | lanes.static(),
        records,
        lanes.quantity(),
        tuple(lanes.reasons),
        max(len(lanes.counters), 1),
        {note: count for note, count in notes.items() if count},
        calendar,
        acts,
    )


def _refuse_unknown_reservations(cluster: Cluster, requests: JobRequests, jobs: "Jobs") -> None:
    """Refuse a job that names an advance reservation which there is not."""
    there = {row.name for row in cluster.reservations}
    named = np.array([text not in there for text in requests.reservation.texts] + [False], np.bool_)
    unknown = np.flatnonzero(named[requests.reservation.code])
    if len(unknown):
        j = int(unknown[0])
        raise BridgeError(
            f"names the advance reservation {requests.reservation.of(j)!r}, which the cluster does not have",
            where=f"job {jobs.id[j]}",
            remedy="Empty the column 'reservation', or add the cluster's [[reservations]].",
        )


def _feature_arrays(cluster: Cluster, classes: NodeClasses, static: Mapping[str, Any]) -> dict[str, Any]:
    """Return what only features read of a cluster."""
    up = np.array([classes.is_up[members].sum() for members in classes.members], np.int64)
    shapes, of_set = static["shapes"], static["set_classes"]
    shares = [
        up[of_set[first:last]].sum() for first, last in zip(shapes["first"], shapes["last"], strict=True)
    ]
    highest = max((qos.priority for qos in cluster.qos), default=0)
    return {
        "admissible_share": np.array(shares, np.float64) / max(up.sum(), 1),
        "largest_node": classes.amounts.max(axis=0),
        "partition_cores": classes.in_partition @ (up * classes.amounts[:, CORES]),
        "qos_priority": np.array([qos.priority / max(highest, 1) for qos in cluster.qos], np.float64),
    }


class _Lanes:
    """The lanes of jobs, and the counters that hold them back."""

    def __init__(
        self,
        cluster: Cluster,
        classes: NodeClasses,
        demands: Demands,
        requests: JobRequests,
        walltime: Ints,
        names: Any,
    ) -> None:
        self._cluster, self._classes, self._demands = cluster, classes, demands
        self._requests, self._walltime, self._names = requests, walltime, names
        self._licenses = {row.name: row.count for row in cluster.licenses}
        self.reasons: dict[str, int] = {}
        self.counters: dict[tuple[object, ...], int] = {}
        self._quantities: dict[str, int] = {"jobs": 0}
        self._lanes: dict[tuple[object, ...], int] = {}
        self._qos = {row.name: k for k, row in enumerate(cluster.qos)}
        self._accounts = {row.name: k for k, row in enumerate(cluster.accounts)}
        n = len(requests)
        self.records: Records = np.zeros(n, NODE_JOB).view(np.recarray)
        # what tells lanes apart, and what decides static rules
        limited = np.where(requests.array_limit > 0, requests.array_id, -1)
        columns = (
            *(demands.partition, requests.qos.code, requests.account.code, requests.user.code),
            *(requests.licenses.code, limited, np.where(limited >= 0, requests.array_limit, 0)),
        )
        keys, first, of = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
        of = of.reshape(-1)
        rules_of: list[list[Rule]] = []
        lane_of = np.zeros((len(keys), 3), np.int64)
        for row, job in enumerate(first.tolist()):
            rules = self._rules(job)
            rules_of.append(rules)
            lane_of[row] = (self._lane(int(demands.partition[job]), rules), *self._qos_and_account(job))
        for k, name in enumerate(("lane", "qos", "account")):
            self.records[name] = lane_of[of, k]
        self._refuse_and_hold(rules_of, of)

    def reason(self, name: str) -> int:
        return self.reasons.setdefault(name, len(self.reasons))

    def _qos_and_account(self, job: int) -> tuple[int, int]:
        """Return the places of a job's QOS and account, -1: none."""
        requests, cluster = self._requests, self._cluster
        partition = self._classes.partitions[self._demands.partition[job]]
        user = user_of(cluster, partition.name, requests, job)
        account = account_of(requests, job, user)
        place = self._accounts.setdefault(account, len(self._accounts)) if account else -1
        return self._qos.get(qos_of(cluster, requests, job, user), -1), place

    def _rules(self, job: int) -> list[Rule]:
        """Return the rules that hold for a job, in the order in which they are tested."""
        requests, cluster = self._requests, self._cluster
        partition = self._classes.partitions[self._demands.partition[job]]
        user = user_of(cluster, partition.name, requests, job)
        rules: list[Rule] = []
        if requests.array_limit[job] > 0 and requests.array_id[job] >= 0:
            group = ("array", str(requests.array_id[job]))
            limit = int(requests.array_limit[job])
            rules.append(Rule(group, "grp_jobs", "", limit, reasons.ARRAY_LIMIT))
        qos = qos_of(cluster, requests, job, user)
        account = account_of(requests, job, user)
        rules += rules_for(cluster, partition, qos, user, requests.user.of(job), account)
        text = requests.licenses.of(job)
        if text:
            try:
                licenses = parse_licenses(text)
            except ValueError as error:
                where, remedy = f"job {self._names[job]}", "Mend its column 'licenses', or leave it empty."
                raise BridgeError(str(error), where=where, remedy=remedy) from error
            for name in licenses:
                limit = self._licenses.get(name, 0)
                rules.append(Rule(("license", name), "grp_tres", f"license_{name}", limit, reasons.LICENSES))
        return rules

    def _lane(self, partition: int, rules: list[Rule]) -> int:
        """Return the lane of a partition and rules."""
        entries: dict[int, tuple[int, ...]] = {}
        for rule in rules:
            if not rule.group:
                continue
            submits = rule.kind.removesuffix("_per_account").endswith("submit_jobs")
            kind = COUNT_SUBMITTED if submits else COUNT_RUNNING
            limit = rule.limit
            if rule.kind == "grp_tres_mins":
                kind, limit = COUNT_TIME, limit * 60 * SECOND // TIME_UNIT
            key = (rule.group, rule.kind, rule.resource)
            counter = self.counters.setdefault(key, len(self.counters))
            quantity = self._quantities.setdefault(rule.resource or "jobs", len(self._quantities))
            entry = (counter, quantity, kind, int(rule.is_tested), self.reason(rule.reason), limit)
            if counter not in entries or rule.is_tested:
                entries[counter] = entry
        return self._lanes.setdefault((partition, *entries.values()), len(self._lanes))

    def static(self) -> dict[str, Any]:
        rows: list[tuple[Any, ...]] = []
        counted: list[Any] = []
        for partition, *entries in self._lanes:
            down = self._classes.partitions[partition].state != "up"  # type: ignore[call-overload]
            rows.append((partition, len(counted), len(counted) + len(entries), down))
            counted += entries
        quantity = self.quantity()
        least = np.zeros((len(rows), quantity.shape[1]), np.int64)
        order = np.argsort(self.records.lane, kind="stable")
        if len(order):
            starts = np.searchsorted(self.records.lane[order], np.arange(len(rows)))
            least = np.minimum.reduceat(quantity[order], starts, axis=0)
        return {
            "lanes": as_records(rows, LANE),
            "counted": as_records(counted, COUNTED),
            "lane_least": np.ascontiguousarray(least),
        }

    def quantity(self) -> Ints:
        """Return what counters count of each job [n, Q]."""
        n = len(self._requests)
        values = np.zeros((n, len(self._quantities)), np.int64)
        for name, q in self._quantities.items():
            values[:, q] = self._amounts(name)
        return values

    def _amounts(self, name: str) -> Ints:
        """Return the amounts [n] of a resource of limits that jobs request."""
        taken, shape = self._demands.taken, self._demands.shape
        n = len(self._requests)
        if name == "jobs":
            return np.ones(n, np.int64)
        if name == "nodes":
            return np.array([row.nodes for row in taken], np.int64)[shape]
        if name.startswith("license_"):
            license_ = name.removeprefix("license_")
            counts = [parse_licenses(text).get(license_, 0) for text in self._requests.licenses.texts]
            return np.array([*counts, 0], np.int64)[self._requests.licenses.code]
        places = {"cores": CORES, "memory": MEMORY, "gpus": GPUS}
        places |= {resource: r for r, resource in enumerate(self._classes.resources)}
        if name not in places:
            return np.zeros(n, np.int64)
        return np.array([row.amounts[places[name]] for row in taken], np.int64)[shape]

    def _refuse_and_hold(self, rules_of: list[list[Rule]], of: Ints) -> None:
        """Note the jobs that no change can let start, and those that are refused when submitted."""
        requests, partitions = self._requests, self._classes.partitions
        nodes = np.array([row.nodes for row in self._demands.taken], np.int64)[self._demands.shape]
        matrix = np.column_stack((of, nodes, self._walltime, self._demands.shape))
        _, first, place = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
        hold, refuse = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
        for row, job in enumerate(first.tolist()):
            partition = partitions[self._demands.partition[job]]
            if partition.state in ("drain", "inactive") and not changes_in_time(self._cluster):
                refuse[row] = 1 + self.reason(reasons.PARTITION_INACTIVE)
            walltime = int(self._walltime[job])
            why = not_allowed(self._cluster, partition, requests, job) or within_partition(
                self._cluster, partition, requests, job, walltime, int(nodes[job])
            )
            for rule in rules_of[of[job]]:
                if rule.is_tested and self._alone_beyond(rule, job, walltime):
                    if rule.denies:
                        refuse[row] = refuse[row] or 1 + self.reason(rule.reason)
                    elif not rule.group:
                        why = why or rule.reason
            if why:
                hold[row] = 1 + self.reason(why)
        place = place.reshape(-1)
        self.records.for_ever, self.records.refuse = hold[place], refuse[place]

    def _alone_beyond(self, rule: Rule, job: int, walltime: int) -> bool:
        """Tell whether a job alone is beyond a limit."""
        if rule.kind == "max_wall":
            return walltime > rule.limit
        if not rule.resource or rule.kind == "grp_tres_mins":
            return False
        amount = int(self._amount_of(rule.resource, job))
        return amount < rule.limit if rule.kind == "min_tres_per_job" else amount > rule.limit

    def _amount_of(self, name: str, job: int) -> int:
        cached = self.__dict__.setdefault("_by_name", {})
        if name not in cached:
            cached[name] = self._amounts(name)
        return int(cached[name][job])


__all__ = ["CONDITION", "NEVER", "ClusterArrays", "build_cluster_arrays", "reset_cluster"]
