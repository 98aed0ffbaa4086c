"""What accounting says jobs ask of a cluster: the columns of `bridge.workload.requests`.

Columns of `sacct` count first; the line of submission tells what `sacct` has no column for. What the recorded
time of eligibility says counts only where neither a begin time nor another job of the list explains it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.cluster import slurm_values as values
from bridge.cluster.description import Cluster
from bridge.cluster.node_table import NodeTable, build_node_table, partitions_of
from bridge.cluster.request_texts import Dependency, parse_dependency
from bridge.workload.accounting.lives import JobLife, RecordCounter
from bridge.workload.accounting.submit_line import SubmitOptions, begin_of, parse_submit_line

_NO_NODES = ("", "None assigned", "(null)", "None")
#: A recorded eligibility is explained by a begin time that is no more than so much earlier or later, s.
_NEAR = 60
#: So many names are said at most.
_MOST = 5


class SiteRequests:
    """The columns of jobs on a cluster, of lives [n] with ids [n]; `zone`: of lines of submission."""

    def __init__(
        self,
        kept: Sequence[JobLife],
        ids: Sequence[int],
        cluster: Cluster,
        counted: RecordCounter,
        zone: tzinfo,
    ) -> None:
        self.kept, self.ids, self.cluster, self.counted, self.zone = kept, ids, cluster, counted, zone
        self.lines = [parse_submit_line(life.words.get("command", "")) for life in kept]
        self.table = build_node_table(cluster)
        self._last = {life.number: ident for life, ident in zip(kept, ids, strict=True)}
        self._labels = {life.label: ident for life, ident in zip(kept, ids, strict=True)}
        self._arrays = {array for life in kept if (array := array_of(life)) >= 0}

    def columns(self, origin: float, submit: Sequence[float]) -> dict[str, Any]:
        """Return the columns by name; instants count from `origin`. `submit`: [n], s since 1970."""
        self._note_unknown()
        shared = shared_nodes(self.kept, self.table)
        self._note_shared(shared)
        begins = [self._begin(n, submit[n]) for n in range(len(self.kept))]
        dependencies = [self._dependency(n) for n in range(len(self.kept))]
        holds = [
            self._hold(n, begin, bool(dependency))
            for n, (begin, dependency) in enumerate(zip(begins, dependencies, strict=True))
        ]
        columns: dict[str, Any] = dict(self._amounts())
        columns["begin"] = _instants(begins, origin)
        columns["hold_until"] = _instants(holds, origin)
        columns["array_id"] = np.array([array_of(life) for life in self.kept], np.int64)
        limits = self._array_limits()
        columns["array_limit"] = np.array(limits, np.int64)
        columns["exclusive"] = np.array([1 if line.exclusive else -1 for line in self.lines], np.int64)
        texts: Mapping[str, list[str]] = {
            "dependency": dependencies,
            "licenses": self._texts("licenses", "licenses"),
            "constraints": self._texts("constraints", "constraint"),
            "nodelist": [line.nodelist for line in self.lines],
            "exclude": [line.exclude for line in self.lines],
            "gpu_type": [self._gpu_type(life) for life in self.kept],
        }
        return columns | {name: column for name, column in texts.items() if any(column)}

    def _texts(self, word: str, option: str) -> list[str]:
        pairs = zip(self.kept, self.lines, strict=True)
        texts = [life.words.get(word) or getattr(line, option) for life, line in pairs]
        return ["" if text in _NO_NODES else text for text in texts]

    def _amounts(self) -> Iterator[tuple[str, Ints]]:
        rows = [self._row(life, line) for life, line in zip(self.kept, self.lines, strict=True)]
        names = (
            "nodes",
            "tasks",
            *(f"{a}_per_{u}" for u in ("node", "task") for a in ("cores", "memory", "gpus")),
        )
        for name in names:
            column = np.array([row.get(name, -1) for row in rows])
            if name in ("nodes", "tasks") or (column >= 0).any():
                yield name, column if (column != np.floor(column)).any() else column.astype(np.int64)

    def _row(self, life: JobLife, line: SubmitOptions) -> dict[str, float]:
        demand = {**life.allocated, **life.requested}
        granted = {**life.requested, **life.allocated}
        nodes = line.nodes if line.nodes and not line.is_range else granted.get("nodes", 1)
        nodes = max(nodes, 1)
        cores, memory = demand.get("cores", 0), demand.get("main_memory", 0) or granted.get("main_memory", 0)
        gpus = demand.get("gpus", 0)
        row: dict[str, float]
        if line.tasks and line.nodes is None and not line.tasks_per_node and not gpus:
            per, unit = line.tasks, "task"
            row = {"tasks": line.tasks, "cores_per_task": line.cores_per_task or max(-(-cores // per), 1)}
        else:
            per, unit = nodes, "node"
            row = {"nodes": nodes}
            if cores:
                row["cores_per_node"] = -(-cores // per)
        if memory:
            row[f"memory_per_{unit}"] = -(-memory // (per << 20))
        if gpus:
            row[f"gpus_per_{unit}"] = -(-gpus // per)
        return row

    def _gpu_type(self, life: JobLife) -> str:
        kinds = [
            name.removeprefix("gpus_") for name, n in life.requested.items() if n and name[:5] == "gpus_"
        ]
        if len(kinds) > 1:
            self.counted.note("asks for GPUs of several types: any type counts", life.number)
        return kinds[0] if len(kinds) == 1 else ""

    def _begin(self, n: int, submit: float) -> float | None:
        text = self.lines[n].begin
        if not text:
            return None
        begin = begin_of(text, submit, self.zone)
        if begin is None:
            self.counted.note("a begin time of a form that is not read", self.kept[n].number)
        return begin

    def _dependency(self, n: int) -> str:
        """Return a dependency on ids of this log; conditions on no job of it are left out, and counted."""
        text = self.lines[n].dependency
        if not text:
            return ""
        number = self.kept[n].number
        try:
            conditions, any_one = parse_dependency(text)
        except ValueError:
            self.counted.note("a dependency of a form that is not read", number)
            return ""
        words = [word for one in conditions if (word := self._condition(one))]
        if len(words) < len(conditions):
            self.counted.note("depends on a job that is not in the list: taken as met", number)
        return ("?" if any_one else ",").join(words)

    def _condition(self, one: Dependency) -> str:
        if one.kind == "singleton":
            return "singleton"
        delay = f"+{one.delay // 60}" if one.delay else ""
        if one.job.isdecimal() and int(one.job) in self._arrays and len(one.job) <= 18:
            return f"{one.kind}:{one.job}_*{delay}"
        ident = self._labels.get(one.job)
        if ident is None and one.job.isdecimal() and len(one.job) <= 18:
            ident = self._last.get(int(one.job))
        return "" if ident is None else f"{one.kind}:{ident}{delay}"

    def _hold(self, n: int, begin: float | None, depends: bool) -> float | None:
        """Return when a hold ends; None: it is not held."""
        life, line = self.kept[n], self.lines[n]
        eligible = life.eligible
        late = (
            eligible is not None and eligible > life.submit and (life.start is None or eligible <= life.start)
        )
        if begin is not None and (not late or eligible is None or abs(eligible - begin) <= _NEAR or depends):
            return None
        if not late:
            return math.inf if line.hold and life.start is None else None
        if depends and not line.hold:
            return None
        why = (
            "held" if line.hold else "eligible after its submission, and nothing that is recorded explains it"
        )
        self.counted.note(f"{why}: held until it was eligible", life.number)
        return eligible

    def _array_limits(self) -> list[int]:
        by_array: dict[int, int] = {}
        for life, line in zip(self.kept, self.lines, strict=True):
            if line.array_limit and (array := array_of(life)) >= 0:
                by_array[array] = line.array_limit
        return [by_array.get(array_of(life), -1) for life in self.kept]

    def _note_unknown(self) -> None:
        there = {one.name for one in partitions_of(self.cluster)}
        strange: Counter[str] = Counter()
        for life in self.kept:
            name = life.words.get("partition", "")
            if name and self.cluster.partitions and not there.issuperset(name.split(",")):
                strange[name] += 1
                self.counted.note("in partitions that the cluster does not have", life.number)
        nodes: Counter[str] = Counter()
        for life in self.kept:
            unknown = [name for name in nodes_of(life) if name not in self.table.index]
            if unknown:
                nodes.update(unknown)
                self.counted.note("ran on nodes that the cluster does not have", life.number)
        self.unknown_partitions, self.unknown_nodes = strange, nodes

    def _note_shared(self, shared: Flags) -> None:
        exclusive = {one.name for one in partitions_of(self.cluster) if one.exclusive}
        for life, is_shared in zip(self.kept, shared.tolist(), strict=True):
            if not is_shared:
                continue
            self.counted.note("shared a node with another job (NodeList)", life.number)
            if life.words.get("partition", "") in exclusive:
                self.counted.note(
                    "shared a node in a partition that the cluster calls exclusive", life.number
                )

    def remarks(self) -> Iterator[str]:
        """Yield a line for unknown partitions and nodes, the most frequent ones by name."""
        for what, counts in (("partitions", self.unknown_partitions), ("nodes", self.unknown_nodes)):
            if counts:
                names = ", ".join(name for name, _ in counts.most_common(_MOST))
                more = ", …" if len(counts) > _MOST else ""
                yield f"the cluster does not have {len(counts)} {what} of the list: {names}{more}"


def array_of(life: JobLife) -> int:
    """Return the number of the array that a job is a task of; -1: none."""
    match = re.fullmatch(r"(\d{1,18})_\d+", life.label, re.ASCII)
    return int(match[1]) if match else -1


def nodes_of(life: JobLife) -> list[str]:
    text = life.words.get("node_list", "")
    if text in _NO_NODES or life.start is None:
        return []
    try:
        return list(values.node_names(text))
    except ValueError:
        return []


def shared_nodes(kept: Sequence[JobLife], table: NodeTable) -> Flags:
    """Tell which jobs [n] ran on a node while another one did, by their lists of nodes."""
    index = dict(table.index)
    nodes, jobs = [], []
    for n, life in enumerate(kept):
        if life.end is None or (life.end or 0) <= (life.start or 0):
            continue
        for name in nodes_of(life):
            nodes.append(index.setdefault(name, len(index)))
            jobs.append(n)
    shared = np.zeros(len(kept), np.bool_)
    if not nodes:
        return shared
    node, job = np.array(nodes, np.int64), np.array(jobs, np.int64)
    start = np.array([life.start or 0 for life in kept])[job]
    end = np.array([life.end or 0 for life in kept])[job]
    order = np.lexsort((end, start, node))
    node, job, start, end = node[order], job[order], start[order], end[order]
    # the latest end of all before on the same node, and whose it is
    span = float(end.max() - start.min()) + 1.0
    reach = np.maximum.accumulate(end - start.min() + node * span)
    latest = reach[:-1] - node[1:] * span + start.min()
    meets = np.flatnonzero(latest > start[1:]) + 1
    shared[job[meets]] = True
    holder = _holders(end - start.min() + node * span)
    shared[job[holder[meets - 1]]] = True
    return shared


def _holders(reach: np.ndarray[Any, np.dtype[np.float64]]) -> Ints:
    """Return for each place which one up to it has the largest value."""
    largest = np.maximum.accumulate(reach)
    new = np.concatenate(([True], largest[1:] > largest[:-1]))
    return np.asarray(np.maximum.accumulate(np.where(new, np.arange(len(reach)), 0)), np.int64)


def _instants(times: Sequence[float | None], origin: float) -> Any:
    """Return instants on the log's clock; -1: none. Whole numbers if all of them are."""
    column = np.array([-1.0 if time is None else max(time - origin, 0.0) for time in times])
    return column if np.isinf(column).any() else np.rint(column).astype(np.int64)
