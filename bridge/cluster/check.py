"""What is wrong with a cluster: what contradicts itself, names that nothing has, and what changes nothing."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.idle_events import idle_events
from bridge.cluster.limits import Association, Limits, Qos
from bridge.cluster.node_table import NodeTable, build_node_table, names_of

Severity = Literal["error", "unknown", "unused"]
#: The root of accounts, which no file needs to state.
ROOT = "root"
_RESOURCE = re.compile(r"nodes|cores|memory|gpus|gpus_(?P<gpu>\w+)|license_(?P<license>\S+)", re.ASCII)
#: Event of the calendar -> the fields that it needs.
_NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("down", "drain", "up"), ("nodes",)),
    "partition_state": ("partition", "state"),
    "licenses": ("license",),
    "limit": ("limit",),
    **dict.fromkeys(("cancel", "hold", "release"), ("job",)),
}
#: Fields of a limit's event that say whose limit it is.
_WHOSE = ("partition", "qos", "account", "user")
#: Limits of partitions, which a calendar may change, too.
_OF_PARTITIONS = ("max_time", "min_nodes", "max_nodes")


@dataclass(frozen=True)
class ClusterFinding:
    """One thing that is wrong.

    Attributes:
        severity: error (no scheduler can use it), unknown (a name that nothing has), unused (it changes
            nothing).
        path: the field, as in ``partitions[2].max_time``.
    """

    severity: Severity
    path: str
    what: str


def require_consistent(cluster: Cluster, place: Callable[[str], str]) -> None:
    """Raise BridgeError for the first error of a cluster; `place` turns a field's path into file and line."""
    error = next((one for one in check_cluster(cluster) if one.severity == "error"), None)
    if error is not None:
        remedy = "`bridge cluster check` lists all that is wrong."
        raise BridgeError(error.what, where=place(error.path), remedy=remedy)


def check_cluster(cluster: Cluster) -> list[ClusterFinding]:
    order: dict[Severity, int] = {"error": 0, "unknown": 1, "unused": 2}
    return sorted(_Checker(cluster).findings(), key=lambda one: order[one.severity])


class _Checker:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.table: NodeTable | None = None
        self.partitions = [one.name for one in cluster.partitions]
        self.qos = [one.name for one in cluster.qos]
        self.accounts = [one.name for one in cluster.accounts]
        self.users = [one.name for one in cluster.users]
        self.licenses = [one.name for one in cluster.licenses]
        self.gpus = {kind for group in cluster.nodes for kind in group.gpus}

    def findings(self) -> Iterator[ClusterFinding]:
        nodes = list(self._nodes())
        yield from nodes
        if nodes and nodes[0].severity == "error":
            return  # nothing else can be told without the nodes
        yield from self._twice()
        yield from self._partitions()
        yield from self._qos()
        yield from self._associations()
        yield from self._preemption()
        yield from self._priority()
        yield from self._reservations()
        yield from (events := list(self._calendar()))
        if not any(one.severity == "error" for one in events):
            for n, why in idle_events(self.cluster):
                yield ClusterFinding("unused", f"calendar[{n}]", f"changes nothing: {why}")

    def _nodes(self) -> Iterator[ClusterFinding]:
        owner: dict[str, int] = {}
        for g, group in enumerate(self.cluster.nodes):
            try:
                names = names_of(group)
            except ValueError as error:
                yield ClusterFinding("error", f"nodes[{g}]", f"this group of nodes {error}")
                return
            for name in names:
                if name in owner:
                    what = f"node {name!r} is in this group twice"
                    if owner[name] != g:
                        what = f"node {name!r} is in the group nodes[{owner[name]}], too"
                    yield ClusterFinding("error", f"nodes[{g}]", what)
                    return
                owner[name] = g
            for kind in group.gpus:
                if not re.fullmatch(r"\w+", kind, re.ASCII):
                    what = f"GPU type {kind!r} has other characters than letters, digits and _"
                    yield ClusterFinding("error", f"nodes[{g}].gpus", what)
        if not owner:
            yield ClusterFinding("error", "nodes", "has no node")
            return
        self.table = build_node_table(self.cluster)
        if self.cluster.partitions:
            used: set[int] = set()
            for partition in self.cluster.partitions:
                try:
                    used.update(self.table.indices(partition.nodes)[0].tolist())
                except ValueError:
                    used.update(range(len(self.table)))  # it is an error of its own
            for g in range(len(self.cluster.nodes)):
                mine = [n for n, of in enumerate(self.table.group.tolist()) if of == g]
                if not used.issuperset(mine):
                    left = [self.table.names[n] for n in mine if n not in used]
                    what = f"{len(left)} of its nodes are in no partition ({left[0]}, …)"
                    what = f"node {left[0]} is in no partition" if len(left) == 1 else what
                    yield ClusterFinding("unused", f"nodes[{g}]", what)

    def _twice(self) -> Iterator[ClusterFinding]:
        users = [(one.name, one.account, one.partition) for one in self.cluster.users]
        reservations = [one.name for one in self.cluster.reservations]
        for table, names in (
            ("partitions", self.partitions),
            ("qos", self.qos),
            ("accounts", self.accounts),
            ("users", users),
            ("licenses", self.licenses),
            ("reservations", reservations),
        ):
            for n, name in enumerate(names):
                if name in names[:n]:
                    text = name if isinstance(name, str) else " in ".join(filter(None, name[:2]))
                    yield ClusterFinding("error", f"{table}[{n}].name", f"{text!r} is there twice")
        if ROOT in self.accounts:
            n = self.accounts.index(ROOT)
            if self.cluster.accounts[n].parent != ROOT:
                yield ClusterFinding("error", f"accounts[{n}].parent", "root is below no account")

    def _members(self, path: str, lists: Iterable[str]) -> Iterator[ClusterFinding]:
        assert self.table is not None
        try:
            members, unknown = self.table.indices(lists)
        except ValueError as error:
            yield ClusterFinding("error", path, str(error))
            return
        if unknown:
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            yield ClusterFinding("error", path, f"there is no node {unknown[0]!r}{more}")
        elif not len(members):
            yield ClusterFinding("error", path, "names no node")

    def _unknown_names(
        self, path: str, names: Iterable[str], what: str, there: Collection[str]
    ) -> Iterator[ClusterFinding]:
        """Yield unknown names: an error where the cluster has a table of such, else without consequence."""
        for name in names:
            if name and name not in there:
                severity: Severity = "error" if there else "unknown"
                yield ClusterFinding(severity, path, f"there is no {what} {name!r}")

    def _partitions(self) -> Iterator[ClusterFinding]:
        defaults = [n for n, one in enumerate(self.cluster.partitions) if one.default]
        for n in defaults[1:]:
            first = self.cluster.partitions[defaults[0]].name
            what = f"{first!r} is the default partition already"
            yield ClusterFinding("error", f"partitions[{n}].default", what)
        for n, one in enumerate(self.cluster.partitions):
            path = f"partitions[{n}]"
            yield from self._members(f"{path}.nodes", one.nodes)
            yield from self._unknown_names(f"{path}.qos", [one.qos], "QOS", self.qos)
            for name in ("allow_qos", "deny_qos"):
                yield from self._unknown_names(f"{path}.{name}", getattr(one, name), "QOS", self.qos)
            for name in ("allow_accounts", "deny_accounts"):
                accounts = [*self.accounts, ROOT] if self.accounts else []
                yield from self._unknown_names(f"{path}.{name}", getattr(one, name), "account", accounts)
            for kind in ("qos", "accounts"):
                allowed, denied = getattr(one, f"allow_{kind}"), getattr(one, f"deny_{kind}")
                if allowed and denied:
                    what = f"deny_{kind} says nothing beside allow_{kind}"
                    yield ClusterFinding("unused", f"{path}.deny_{kind}", what)
            if one.default_time and one.max_time and one.default_time > one.max_time:
                what = f"default_time is longer than max_time ({one.default_time} s, {one.max_time} s)"
                yield ClusterFinding("error", f"{path}.default_time", what)
            if one.max_nodes is not None and one.min_nodes > one.max_nodes:
                what = f"min_nodes is more than max_nodes ({one.min_nodes}, {one.max_nodes})"
                yield ClusterFinding("error", f"{path}.min_nodes", what)
            if one.exclusive:
                for name in ("max_cores_per_node", "default_memory_per_core", "default_memory_per_node"):
                    if getattr(one, name) is not None:
                        what = "says nothing where jobs have whole nodes (exclusive)"
                        yield ClusterFinding("unused", f"{path}.{name}", what)

    def _limits(self, path: str, limits: Limits) -> Iterator[ClusterFinding]:
        for field in fields(limits):
            if "_tres" in field.name:
                yield from self._resources(f"{path}.{field.name}", getattr(limits, field.name))
        for name, least in limits.min_tres_per_job.items():
            most = limits.max_tres_per_job.get(name)
            if most is not None and least > most:
                what = f"no job can have {least} {name} at least and {most} at most"
                yield ClusterFinding("error", f"{path}.min_tres_per_job", what)

    def _resources(self, path: str, names: Iterable[str]) -> Iterator[ClusterFinding]:
        for name in names:
            match = _RESOURCE.fullmatch(name)
            if not match:
                what = f"there is no resource {name!r} (nodes, cores, memory, gpus, gpus_TYPE, license_NAME)"
                yield ClusterFinding("error", f"{path}.{name}", what)
            elif match["gpu"] and match["gpu"] not in self.gpus:
                yield ClusterFinding(
                    "unknown", f"{path}.{name}", f"no node has GPUs of type {match['gpu']!r}"
                )
            elif match["license"] and match["license"] not in self.licenses:
                yield ClusterFinding("unknown", f"{path}.{name}", f"there is no licence {match['license']!r}")

    def _qos(self) -> Iterator[ClusterFinding]:
        for n, one in enumerate(self.cluster.qos):
            yield from self._limits(f"qos[{n}]", one)
            yield from self._unknown_names(f"qos[{n}].preempt", one.preempt, "QOS", self.qos)
            if one.name in one.preempt:
                yield ClusterFinding("error", f"qos[{n}].preempt", f"QOS {one.name!r} preempts itself")

    def _associations(self) -> Iterator[ClusterFinding]:
        below = {one.name: one.parent for one in self.cluster.accounts}
        there = [*self.accounts, ROOT]
        both: tuple[tuple[str, tuple[Association, ...]], ...] = (
            ("accounts", self.cluster.accounts),
            ("users", self.cluster.users),
        )
        for table, associations in both:
            for n, one in enumerate(associations):
                path = f"{table}[{n}]"
                yield from self._limits(path, one)
                for name, words in (("qos", one.qos), ("default_qos", (one.default_qos,))):
                    yield from self._unknown_names(f"{path}.{name}", words, "QOS", self.qos)
                if one.default_qos and one.qos and one.default_qos not in one.qos:
                    what = f"default_qos {one.default_qos!r} is not among its qos"
                    yield ClusterFinding("error", f"{path}.default_qos", what)
        for n, account in enumerate(self.cluster.accounts):
            if account.parent not in there:
                what = f"there is no account {account.parent!r}"
                yield ClusterFinding("error", f"accounts[{n}].parent", what)
                continue
            name, passed = account.name, set[str]()
            while name in below and name != ROOT and name not in passed:
                passed.add(name)
                name = below[name]
            if name in passed:
                what = f"account {account.name!r} is below itself"
                yield ClusterFinding("error", f"accounts[{n}].parent", what)
        defaults: dict[str, str] = {}
        for n, user in enumerate(self.cluster.users):
            yield from self._unknown_names(f"users[{n}].account", [user.account], "account", there)
            partitions = [*self.partitions] or ["all"]
            yield from self._unknown_names(f"users[{n}].partition", [user.partition], "partition", partitions)
            if user.default and defaults.setdefault(user.name, user.account) != user.account:
                what = f"user {user.name!r} has the default account {defaults[user.name]!r} already"
                yield ClusterFinding("error", f"users[{n}].default", what)

    def _preemption(self) -> Iterator[ClusterFinding]:
        scheduler, cluster = self.cluster.scheduler, self.cluster
        owners: list[tuple[str, Any]] = [
            (f"partitions[{n}]", one) for n, one in enumerate(cluster.partitions)
        ]
        owners += [(f"qos[{n}]", one) for n, one in enumerate(cluster.qos)]
        stated = [(path, one) for path, one in owners if one.preempt_mode not in (None, "off")]
        if scheduler.preempt == "none":
            for path, _ in stated:
                what = "says nothing: scheduler.preempt is none"
                yield ClusterFinding("unused", f"{path}.preempt_mode", what)
            for path, one in owners:
                if isinstance(one, Qos) and one.preempt:
                    yield ClusterFinding(
                        "unused", f"{path}.preempt", "says nothing: scheduler.preempt is none"
                    )
            if scheduler.preempt_mode != "off":
                what = "says nothing: scheduler.preempt is none"
                yield ClusterFinding("unused", "scheduler.preempt_mode", what)
        elif scheduler.preempt_mode == "off" and not stated:
            what = (
                f"preempt is {scheduler.preempt!r}, and every preempt_mode is off: no job is ever preempted"
            )
            yield ClusterFinding("unused", "scheduler.preempt", what)
        if "partition" in scheduler.preempt and len({one.tier for one in cluster.partitions}) < 2:
            what = "all partitions have one tier: no job is ever preempted"
            yield ClusterFinding("unused", "scheduler.preempt", what)
        if "qos" in scheduler.preempt and not any(one.preempt for one in cluster.qos):
            what = "no QOS preempts another one: no job is ever preempted"
            yield ClusterFinding("unused", "scheduler.preempt", what)

    def _priority(self) -> Iterator[ClusterFinding]:
        weights, cluster = self.cluster.priority, self.cluster
        yield from self._resources("priority.tres", weights.tres)
        if weights.qos and len({one.priority for one in cluster.qos}) < 2:
            yield ClusterFinding("unused", "priority.qos", "no two QOS have different priorities")
        if weights.partition and len({one.priority_factor for one in cluster.partitions}) < 2:
            what = "no two partitions have different priority factors"
            yield ClusterFinding("unused", "priority.partition", what)
        if weights.fairshare and not (cluster.accounts or cluster.users):
            yield ClusterFinding("unused", "priority.fairshare", "there are no accounts or users with shares")

    def _reservations(self) -> Iterator[ClusterFinding]:
        for n, one in enumerate(self.cluster.reservations):
            path = f"reservations[{n}]"
            yield from self._members(f"{path}.nodes", one.nodes)
            accounts = [*self.accounts, ROOT] if self.accounts else []
            yield from self._unknown_names(f"{path}.accounts", one.accounts, "account", accounts)
            if one.end <= one.start:
                what = f"ends at {one.end} s, not after its start at {one.start} s"
                yield ClusterFinding("error", f"{path}.end", what)
            if one.announced > one.start:
                what = f"is announced at {one.announced} s, after its start at {one.start} s"
                yield ClusterFinding("error", f"{path}.announced", what)

    def _calendar(self) -> Iterator[ClusterFinding]:
        for n, one in enumerate(self.cluster.calendar):
            path = f"calendar[{n}]"
            needed = _NEEDS[one.event]
            for name in needed:
                if not getattr(one, name):
                    yield ClusterFinding("error", path, f"the event {one.event} needs {name}")
            whose = [name for name in _WHOSE if getattr(one, name)]
            welcome = {*needed, *(_WHOSE if one.event == "limit" else ())}
            for name in ("nodes", "partition", "state", "license", "qos", "account", "user", "limit", "job"):
                if getattr(one, name) and name not in welcome:
                    yield ClusterFinding("error", f"{path}.{name}", f"the event {one.event} has no {name}")
            if one.nodes and "nodes" in welcome:
                yield from self._members(f"{path}.nodes", one.nodes)
            partitions = self.partitions or ["all"]
            yield from self._unknown_names(f"{path}.partition", [one.partition], "partition", partitions)
            yield from self._unknown_names(f"{path}.license", [one.license], "licence", [*self.licenses, ""])
            if one.event == "licenses" and one.value < 0:
                yield ClusterFinding("error", path, "the event licenses needs value, the new number")
            if one.event == "limit" and one.limit:
                yield from self._limit_event(path, one, whose)

    def _limit_event(self, path: str, one: Any, whose: list[str]) -> Iterator[ClusterFinding]:
        if not whose or (len(whose) > 1 and "user" not in whose):
            what = "a limit needs one of partition, qos, account, user (a user with its account)"
            yield ClusterFinding("error", path, what)
            return
        kind = "user" if "user" in whose else whose[0]
        yield from self._unknown_names(f"{path}.qos", [one.qos], "QOS", [*self.qos, ""])
        yield from self._unknown_names(f"{path}.account", [one.account], "account", [*self.accounts, ROOT])
        yield from self._unknown_names(f"{path}.user", [one.user], "user", [*self.users, ""])
        limit, _, resource = one.limit.partition(".")
        owner = {"qos": Qos, "account": Association, "user": Association}.get(kind)
        names = [f.name for f in fields(owner)] if owner else list(_OF_PARTITIONS)
        limits = [name for name in names if name.startswith(("grp_", "max_", "min_"))]
        if limit not in limits or ("_tres" in limit) != bool(resource):
            what = (
                f"there is no limit {one.limit!r} of a {kind} ({', '.join(limits)}; of _tres with .cores …)"
            )
            yield ClusterFinding("error", f"{path}.limit", what)
        elif resource:
            yield from self._resources(f"{path}.limit", [resource])
