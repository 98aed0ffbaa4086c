"""What happens to a cluster in time, as the arrays that `bridge.scheduler.timed_state` describes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.base.arrays import Flags, Ints, Records
from bridge.base.errors import BridgeError
from bridge.cluster.description import CalendarEvent, Cluster, Partition
from bridge.cluster.idle_events import idle_events, label_of
from bridge.cluster.limits import Limits, Qos
from bridge.scheduler import timed_state as timed
from bridge.scheduler.cluster_session import Outages
from bridge.scheduler.cluster_state import TIME_UNIT
from bridge.scheduler.state import SECOND
from bridge.workload.requests import MILLI, NEVER, JobRequests
from bridge.worlds.fast.cluster_nodes import NodeClasses
from bridge.worlds.fast.cluster_rules import SHORT_KINDS, account_of, chain_of, qos_of, user_of

if TYPE_CHECKING:
    from bridge.workload.select import Jobs

_MODES = {
    "off": timed.MODE_OFF,
    "requeue": timed.MODE_REQUEUE,
    "cancel": timed.MODE_CANCEL,
    "suspend": timed.MODE_SUSPEND,
}
_NODE_EVENTS = {"down": timed.NODES_DOWN, "drain": timed.NODES_DRAIN, "up": timed.NODES_UP}
_JOB_EVENTS = {"cancel": timed.CANCEL, "hold": timed.HOLD, "release": timed.RELEASE}
_PARTITION_STATES = {
    "up": timed.PARTITION_UP,
    "down": timed.PARTITION_DOWN,
    "drain": timed.PARTITION_CLOSED,
    "inactive": timed.PARTITION_CLOSED,
}
#: Lives that a world collects at once, at least.
_LOG = 1 << 12
_NO_LIMIT = 1 << 60


@dataclass(frozen=True)
class Calendar:
    """What happens to a cluster, and what it means for n jobs.

    Attributes:
        static: arrays by their names in `TimedFields`, which no scheduler changes.
        events: EVENT in order of time; jobs are places in the log.
        jobs: TIMED_JOB [n].
        suspends: whether jobs are ever suspended.
        places: [n] the place of each job in the log; None: they are the log's.
        notes: events that do nothing, and why.
    """

    static: Mapping[str, Any]
    events: Records
    jobs: Records
    suspends: bool
    places: Ints | None = None
    notes: tuple[str, ...] = ()

    @property
    def stops_jobs(self) -> bool:
        """Tell whether running jobs may be stopped: their nodes fail, or others preempt them."""
        return self._fails or self._preempts

    @property
    def repeats_jobs(self) -> bool:
        """Tell whether jobs that were stopped may run again."""
        may = self.jobs.may_requeue > 0
        preempted = (self.jobs.mode == timed.MODE_REQUEUE) & self._preempts
        return bool((may & (preempted | self._fails)).any())

    @property
    def _fails(self) -> bool:
        return bool((self.events.kind == timed.NODES_DOWN).any())

    @property
    def _preempts(self) -> bool:
        switches = self.static["timed_switches"][0]
        return bool((switches.by_tier or switches.by_qos) and (self.jobs.mode != timed.MODE_OFF).any())

    def outages(self) -> Outages:
        """Return which nodes leave service, or come back, and when (µs), in order."""
        of_nodes = self.events[self.events.kind <= timed.NODES_UP]
        nodes: Ints = self.static["event_nodes"]
        return tuple(
            (int(row.time), bool(row.kind != timed.NODES_UP), nodes[row.first : row.last]) for row in of_nodes
        )

    def sizes(
        self, sizes: Mapping[str, int], nodes: Ints, length: int, whole: bool, acts: bool
    ) -> dict[str, int]:
        """Return further sizes of a state, and how many entries of allocations there are.

        `nodes`: [n] what each job takes; those that are suspended keep their entries; `acts`: guests have
        entries, too.
        """
        n = len(self.static["node_class"])
        entries = (1 + acts) * sizes["units"] + sizes["C"] + 1
        if self.suspends:
            entries += int(np.sort(nodes)[::-1][:length].sum())
        return {
            "E": entries,
            "LG": 0,
            "T": 2 * sizes["T"],
            "N": n,
            "V": len(self.events),
            "VN": len(self.static["event_nodes"]),
            "AR": len(self.static["reservations"]),
            "Y": len(self.static["preempts"]),
            "LN": 2 * entries + _LOG if whole else 0,
            "LI": 4 * entries + _LOG if whole else 0,
        }

    def write(self, state: Any, b: int, first: int, last: int) -> None:
        """Write what is known of the jobs ``first:last``, and the events, to scheduler `b`."""
        state.timed_jobs[b][: last - first] = self.jobs[first:last]
        events = state.events[b]
        events[:] = self.events
        of_jobs = (events.kind >= timed.CANCEL) & (events.kind <= timed.RELEASE)
        inside = (events.which >= first) & (events.which < last)
        events.which = np.where(of_jobs, np.where(inside, events.which - first, -1), events.which)


def reset_calendar(state: Any, b: int) -> None:
    """Bring scheduler `b`'s nodes, partitions and limits to what they are at first."""
    state.timed_scalars[b] = np.zeros((), state.timed_scalars.dtype)
    state.node_is_out[b] = state.first_states
    up = state.node_class[state.first_states == 0]
    state.in_service[b] = np.bincount(up, minlength=state.in_service.shape[1])
    state.partition_states[b] = state.first_partition_states
    state.limits[b] = state.counted.limit
    state.held_amounts[b] = 0
    state.node_holder[b] = -1
    state.timed_switches.logs_lives = state.life_log.shape[1] > 0


def changes_in_time(cluster: Cluster) -> bool:
    """Tell whether a cluster has what needs a calendar."""
    return bool(
        cluster.calendar
        or cluster.reservations
        or cluster.scheduler.preempt != "none"
        or cluster.failures.mean_time_between
    )


def build_calendar(
    cluster: Cluster,
    classes: NodeClasses,
    jobs: "Jobs",
    partition: Ints,
    counters: Mapping[tuple[object, ...], int],
    inactive_reason: int,
) -> Calendar:
    """Return the calendar of a cluster for some jobs.

    `partition`: [n] where each job waits; `counters`: those of limits, by whose, kind and resource.

    Raises BridgeError: an event names what there is not, or changes a limit that no counter holds.
    """
    requests = jobs.requests
    assert requests is not None
    names = names_of_qos(cluster)
    preempts = np.zeros((len(names), len(names)), np.int8)
    for row in cluster.qos:
        for other in row.preempt:
            if other in names:
                preempts[names.index(row.name), names.index(other)] = 1
    origin = jobs.origin
    events, nodes = _Events(cluster, classes, jobs, counters).events()
    reservations = [
        (row.announced * SECOND - origin, row.start * SECOND - origin, row.end * SECOND - origin)
        for row in cluster.reservations
    ]
    records = _job_records(cluster, classes, requests, partition, names)
    switches = np.zeros(1, timed.TIMED_SWITCHES).view(np.recarray)
    switches.by_tier = "partition" in cluster.scheduler.preempt
    switches.by_qos = "qos" in cluster.scheduler.preempt
    switches.requeue_delay = cluster.scheduler.requeue_delay * SECOND
    static = {
        "timed_switches": switches,
        "class_first": np.cumsum([0, *map(len, classes.members)], dtype=np.int32),
        "class_nodes": np.concatenate(classes.members).astype(np.int32),
        "node_class": classes.class_of.astype(np.int32),
        "first_states": (~classes.is_up).astype(np.int8),
        "first_partition_states": np.array(
            [_PARTITION_STATES[row.state] for row in classes.partitions], np.int8
        ),
        "event_nodes": np.array(nodes, np.int32),
        "reservations": np.array(reservations, timed.RESERVATION).view(np.recarray),
        "is_reserved": np.array([*classes.reserved.values()], np.int8).reshape(-1, len(classes)),
        "preempts": preempts,
        "inactive_reason": np.array([inactive_reason], np.int32),
    }
    suspends = cluster.scheduler.preempt != "none" and bool((records.mode == timed.MODE_SUSPEND).any())
    notes = tuple(f"{label_of(n, cluster.calendar[n])}: {why}" for n, why in _idle(cluster, jobs))
    return Calendar(static, events, records, suspends, notes=notes)


def _idle(cluster: Cluster, jobs: "Jobs") -> Iterator[tuple[int, str]]:
    """Yield the places of events that do nothing, and why: as the file and the log have it."""
    yield from idle_events(cluster)
    for n, row, j in events_of_jobs(cluster, jobs):
        if j < 0:
            yield n, f"no job that is played has the id {row.job!r}"
        elif row.event == "cancel" and jobs.submit[j] + jobs.origin > row.time * SECOND:
            second = (int(jobs.submit[j]) + jobs.origin) / SECOND
            yield n, f"job {row.job!r} is submitted later, at {second:g} s"


def events_of_jobs(cluster: Cluster, jobs: "Jobs") -> Iterator[tuple[int, CalendarEvent, int]]:
    """Yield events that name a job: (place in the calendar, event, the job's place or -1)."""
    rows = [(n, row) for n, row in enumerate(cluster.calendar) if row.event in _JOB_EVENTS]
    places = {str(name): j for j, name in enumerate(jobs.id.tolist())} if rows else {}
    yield from ((n, row, places.get(row.job, -1)) for n, row in rows)


def idle_by_starts(cluster: Cluster, jobs: "Jobs", start: Ints) -> list[str]:
    """Return the events that came when their job had started; `start`: [n] µs, negative: it never did."""
    return [
        f"{label_of(n, row)}: job {row.job!r} has started by then"
        for n, row, j in events_of_jobs(cluster, jobs)
        if j >= 0 and 0 <= start[j] <= row.time * SECOND - jobs.origin
    ]


def _job_records(
    cluster: Cluster, classes: NodeClasses, requests: JobRequests, partition: Ints, names: Sequence[str]
) -> Records:
    """Return TIMED_JOB [n]."""
    n = len(requests)
    records: Records = np.zeros(n, timed.TIMED_JOB).view(np.recarray)
    for name in ("first_eligible", "first_start", "suspended_at", "grace_end", "reservation", "preemptor"):
        records[name] = -1
    records.may_requeue = requests.may_requeue
    records.is_held = requests.hold_until == NEVER
    places = {row.name: v for v, row in enumerate(cluster.reservations)}
    reservation = np.array([places.get(text, -1) for text in requests.reservation.texts] + [-1], np.int32)
    records.reservation = reservation[requests.reservation.code]
    tables = {row.name: row for row in cluster.qos}
    columns = (partition, requests.qos.code, requests.account.code, requests.user.code)
    _, first, of = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    rows = np.zeros(len(first), timed.TIMED_JOB).view(np.recarray)
    for k, j in enumerate(first.tolist()):
        own = classes.partitions[partition[j]]
        name = qos_of(cluster, requests, j, user_of(cluster, own.name, requests, j))
        set_preemption(rows[k], cluster, own, tables.get(name))
        rows[k].qos = names.index(name) if name in names else 0
    for name in ("mode", "grace", "exempt", "tier", "priority", "qos"):
        records[name] = rows[name][of.reshape(-1)]
    return records


def names_of_qos(cluster: Cluster) -> list[str]:
    """Return the names of which TIMED_JOB's `qos` is the place; the first: of no QOS."""
    return list(dict.fromkeys(("", *(row.name for row in cluster.qos))))


def set_preemption(record: Any, cluster: Cluster, partition: Partition, qos: Qos | None) -> None:
    """Write to a TIMED_JOB when and how a job of this partition and QOS is preempted."""
    mode = (qos and qos.preempt_mode) or partition.preempt_mode or cluster.scheduler.preempt_mode
    grace = qos.grace_time if qos is not None and qos.grace_time else partition.grace_time
    record.mode, record.grace = _MODES[mode], grace * SECOND
    record.exempt = cluster.scheduler.preempt_exempt_time * SECOND
    record.tier, record.priority = partition.tier, qos.priority if qos is not None else 0


class _Events:
    """The events of a cluster's calendar, reservations and failures."""

    def __init__(
        self,
        cluster: Cluster,
        classes: NodeClasses,
        jobs: "Jobs",
        counters: Mapping[tuple[object, ...], int],
    ) -> None:
        self._cluster, self._classes, self._jobs, self._counters = cluster, classes, jobs, counters
        self._nodes: list[int] = []
        self._ids: dict[str, int] = {}
        if any(row.job for row in cluster.calendar):
            self._ids = {str(name): j for j, name in enumerate(jobs.id.tolist())}

    def events(self) -> tuple[Records, list[int]]:
        """Return EVENT in order of time, and the nodes that they name."""
        rows: list[tuple[int, ...]] = []
        for n, row in enumerate(self._cluster.calendar):
            rows += self._limit(n, row) if row.event == "limit" else [self._event(n, row)]
        for one in self._cluster.reservations:
            for time in sorted({one.announced, one.start, one.end}):
                if time * SECOND > self._jobs.origin:
                    rows.append((self._time(time), 0, timed.MOMENT, 0, 0, 0))
        rows += self._failures()
        rows.sort(key=lambda row: row[0])  # events of one time stay in the file's order
        return np.array(rows, timed.EVENT).view(np.recarray), self._nodes

    def _time(self, seconds: int) -> int:
        return max(seconds * SECOND - self._jobs.origin, 0)

    def _event(self, n: int, row: CalendarEvent) -> tuple[int, ...]:
        time, where = self._time(row.time), f"cluster {self._cluster.name!r}, calendar[{n}]"
        if row.event in _NODE_EVENTS:
            first = len(self._nodes)
            self._nodes += self._classes.table.indices(row.nodes)[0].tolist()
            return time, 0, _NODE_EVENTS[row.event], 0, first, len(self._nodes)
        if row.event in _JOB_EVENTS:
            return time, 0, _JOB_EVENTS[row.event], self._ids.get(row.job, -1), 0, 0
        if row.event == "partition_state":
            names = [partition.name for partition in self._classes.partitions]
            if row.partition not in names:
                remedy = "Mend its 'partition'."
                raise BridgeError(f"there is no partition {row.partition!r}", where=where, remedy=remedy)
            state = _PARTITION_STATES[row.state or "up"]
            return time, state, timed.PARTITION_STATE, names.index(row.partition), 0, 0
        counter = self._counters.get((("license", row.license), "grp_tres", f"license_{row.license}"), -1)
        return time, row.value, timed.LIMIT, counter, 0, 0

    def _limit(self, n: int, row: CalendarEvent) -> list[tuple[int, ...]]:
        """Return the events of a limit that changes: one for each counter that it bounds."""
        kind, _, resource = row.limit.partition(".")
        tables: dict[tuple[str, ...], Limits] = {("qos", one.name): one for one in self._cluster.qos}
        tables |= {("account", one.name): one for one in self._cluster.accounts}
        tables |= {("user", one.name, "in", one.account): one for one in self._cluster.users}
        whose: tuple[str, ...] = ("qos", row.qos) if row.qos else ("account", row.account)
        if row.user:
            whose = ("user", row.user, "in", row.account)
        table = tables.get(whose)
        stated = None if table is None else getattr(table, kind, None)
        if isinstance(stated, Mapping):
            stated = stated.get(resource)
        counts = kind.startswith("grp_") or (
            whose[0] != "account" and "per_job" not in kind and kind != "max_wall"
        )
        denies = isinstance(table, Qos) and table.deny_on_limit
        if stated is None or not counts or denies:
            where = f"cluster {self._cluster.name!r}, calendar[{n}]"
            what = f"{row.limit} of {' '.join(whose)} cannot change"
            if stated is None:
                what += ": it is not stated"
            remedy = "Change limits that count several jobs, are stated in their table, and do not deny."
            raise BridgeError(what, where=where, remedy=remedy)
        scale = MILLI if resource.startswith("gpus") else 1
        scale *= 60 * SECOND // TIME_UNIT if kind == "grp_tres_mins" else 1
        value = row.value * scale if row.value >= 0 else _NO_LIMIT
        short = SHORT_KINDS.get(kind, kind) if whose[0] == "qos" else kind
        return [
            (self._time(row.time), value, timed.LIMIT, counter, 0, 0)
            for key, counter in self._counters.items()
            if key[1:] == (short, resource) and key[0][: len(whose)] == whose  # type: ignore[index]
        ]

    def _failures(self) -> list[tuple[int, ...]]:
        """Draw the failures of each node."""
        failures, jobs = self._cluster.failures, self._jobs
        if not failures.mean_time_between or not len(jobs):
            return []
        rng = np.random.default_rng(failures.seed)
        last = float(jobs.submit.max() + jobs.request.max()) / SECOND
        rows: list[tuple[int, ...]] = []
        for node in range(len(self._classes.table)):
            time = 0.0
            while (time := time + rng.exponential(failures.mean_time_between)) <= last:
                first = len(self._nodes)
                self._nodes.append(node)
                rows.append((round(time * SECOND), 0, timed.NODES_DOWN, 0, first, first + 1))
                time += failures.repair_time
                rows.append((round(time * SECOND), 0, timed.NODES_UP, 0, first, first + 1))
        return rows


def names_foreign_reservation(cluster: Cluster, requests: JobRequests) -> Flags:
    """Tell which jobs name a reservation whose users and accounts do not include theirs [n]."""
    rows = {row.name: row for row in cluster.reservations}
    foreign = np.zeros(len(requests), np.bool_)
    for j in np.flatnonzero(requests.reservation.code >= 0).tolist():
        account = account_of(requests, j, user_of(cluster, "", requests, j))
        chain = {account, *chain_of(cluster, account)}
        foreign[j] = not rows[requests.reservation.of(j)].admits(requests.user.of(j), chain)
    return foreign
