"""A cluster from a log's own record: what its first half says, kept where the second half is met better."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressReporter
from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.cluster.limits import Qos
from bridge.cluster.node_table import build_node_table, partitions_of
from bridge.commands.fidelity import NEVER_STARTED
from bridge.commands.infer_config import InferConfig
from bridge.config.fields import record_of
from bridge.judge.fidelity import log_errors
from bridge.judge.fidelity_reasons import RecordedRun
from bridge.judge.inference import (
    Estimate,
    PoolEstimates,
    RecordedUse,
    pass_cycle,
    pass_delay,
    pool_sizes,
    user_limit,
)
from bridge.judge.listed_nodes import ListedNodes, cluster_of_lists, listed_nodes
from bridge.scheduler.state import SECOND
from bridge.workload.ran_on import read_ran_on
from bridge.workload.requests import read_texts
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs, select
from bridge.workload.table import Workload
from bridge.worlds.fast.continued_on_nodes import continue_on_nodes
from bridge.worlds.fast.recorded import is_recorded
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Requests of jobs that no estimate covers: on an inferred cluster they would have no place.
_UNCOVERED = (
    *("constraints", "nodelist", "exclude", "licenses", "reservation", "gpu_type"),
    *(f"{amount}_per_{unit}" for amount in ("memory", "gpus", "cores") for unit in ("node", "task")),
)
#: The QOS that holds a limit of users in all partitions.
LIMIT = "user-limit"


@dataclass(frozen=True)
class Step:
    """One thing that was inferred, and what it changed on the held-back half.

    Attributes:
        name: what was added: pools, limits.
        jobs: that were compared.
        before, after: paired log-MAE without it and with it; None: nothing was judged.
        kept: it is in the result.
    """

    name: str
    jobs: int
    before: float | None
    after: float | None
    kept: bool


@dataclass(frozen=True)
class InferredSite:
    """A cluster, what it stands on, and which steps were kept."""

    cluster: Cluster
    estimates: tuple[Estimate, ...]
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        return {
            "estimates": [record_of(one) for one in self.estimates],
            "steps": [record_of(step) for step in self.steps],
            "notes": list(self.notes),
        }

    def comment(self, log: str) -> str:
        return "\n".join([f"inferred from {log}; read it, and change what you know better", *self.lines()])

    def lines(self) -> list[str]:
        """Return the estimates with their evidence, and what became of each step, a line each."""
        lines = []
        for one in self.estimates:
            value = "not identifiable" if one.value is None else f"{one.value:g}"
            lines.append(f"{one.what}: {value} ({one.evidence})")
        return [*lines, *map(describe, self.steps), *self.notes]


def describe(step: Step) -> str:
    if step.before is None or step.after is None:
        return f"{step.name}: kept; no held-back window was played"
    verdict = "kept" if step.kept else "REFUSED, it makes held-back windows worse"
    change = f"log-MAE {step.before:.3f} -> {step.after:.3f}"
    windows = f"in windows of the second half, from the recorded state, {counted(step.jobs, 'job')}"
    return f"{step.name}: {verdict} ({change} {windows})"


def infer_site(
    workload: Workload, config: InferConfig, watch: ProgressReporter | None = None
) -> InferredSite:
    """Return what a log says of its site.

    Each step is judged by what the first half says, on windows of the second one, and refused if they are met
    worse than without it. What is kept has the nodes that the lists of the whole log name. BridgeError: the
    log does not record when its jobs started.
    """
    stated = workload.capacity.get("nodes")
    jobs = _jobs(workload)
    half = len(jobs) // 2
    texts = _partitions(workload, jobs)
    run = _record(jobs, texts[0], slice(0, half), stated)
    names = {code: name for code, name in texts[1].items() if (run.partition == code).any()}
    everywhere = {code: name for code, name in texts[1].items() if (texts[0] == code).any()}
    listed, listed_before = (_listed(workload, jobs, *texts, n) for n in (len(jobs), half))
    if listed is not None:
        names = everywhere
        pools = listed.pools()
    elif len(names) > 1:
        pools = pool_sizes(RecordedUse(run, names), stated)
    else:
        pools = PoolEstimates({}, {}, ())
    largest = RecordedUse(run, names).of([*names]).largest if names else 0
    notes: list[str] = list(listed.notes) if listed is not None else []
    if len(names) < 2:
        notes.append("jobs name fewer than two partitions: the machine is one pool")
    if listed is None:
        pools, more = _consistent(pools, names, stated)
        notes += more
    delay, cycle = pass_delay(run), pass_cycle(run)
    settle = (delay.value or 0.0) + (cycle.value or 0.0)
    sized = _record(jobs, texts[0], slice(0, half), stated, pools.sizes)
    limit = user_limit(sized, pools, settle)
    nodes = stated or max(largest, int(jobs.demand[:half, 0].max(initial=1)))
    site = _Versions(workload.name, stated or max(nodes, int(jobs.demand[:, 0].max())), everywhere)
    seen_before = _Versions(workload.name, nodes, everywhere)  # all that the gate may know
    estimates = (*pools.estimates, limit, delay, cycle)
    gate = _Gate(workload, config, watch)
    cluster, judged, steps = site.plain(), seen_before.plain(), list[Step]()
    if unread := gate.unread():
        notes.append(f"windows are played without what the estimates do not cover: {', '.join(unread)}")
    if listed is not None or pools.sizes:
        with_pools = seen_before.with_pools(pools, listed_before if listed is not None else None)
        if gate.keeps("pools", judged, with_pools, steps):
            cluster, judged = site.with_pools(pools, listed), with_pools
    if limit.value is not None:
        with_limit = _limited(judged, int(limit.value))
        if gate.keeps("limits", judged, with_limit, steps):
            cluster = _limited(cluster, int(limit.value))
    notes += gate.notes()
    if any(not row.exclusive for row in cluster.partitions):
        again = "next: import the log again with --cluster, this file and --force"
        notes.append(f"{again}; then its jobs request cores")
    if delay.value is not None or cycle.value is not None:
        notes.append("delay and cycle: no protocol here plays them, they are told only")
    return InferredSite(cluster, estimates, tuple(steps), tuple(notes))


def _jobs(workload: Workload) -> Jobs:
    jobs = select(workload, LOAD_RULES["standard"], nodes=workload.capacity.get("nodes") or _most(workload))
    has_record = is_recorded(jobs)
    if not has_record.any():
        what = "the log does not say when its jobs started (no record has a wait and a run time)"
        remedy = "Give a log with the column wait (SWF's third field)."
        raise BridgeError(what, where=workload.where, remedy=remedy)
    return jobs.take(has_record)


@dataclass(frozen=True)
class _Versions:
    """The clusters of so many nodes with these partitions: one pool, and with what was inferred of pools."""

    name: str
    nodes: int
    partitions: Mapping[int, str]

    def plain(self) -> Cluster:
        return _cluster(self.name, self.nodes, self.partitions, PoolEstimates({}, {}, ()))

    def with_pools(self, pools: PoolEstimates, listed: ListedNodes | None) -> Cluster:
        """Return the cluster of lists of nodes, or else of pools; without a node in a list it is plain."""
        if listed is not None:
            return cluster_of_lists(self.name, self.partitions, listed) if listed.of else self.plain()
        return _cluster(self.name, self.nodes, self.partitions, pools)


def _listed(
    workload: Workload, jobs: Jobs, partition: Ints, names: Mapping[int, str], n: int
) -> ListedNodes | None:
    """Return what the log's lists of nodes say, of its first `n` jobs; None: it has no lists."""
    nodes = read_ran_on(workload, jobs.id)
    if nodes is None:
        return None
    nodes, partition, jobs = nodes.head(n), partition[:n], jobs.take(slice(0, n))
    start = (jobs.submit + jobs.logged_wait) / SECOND
    end = start + np.maximum(jobs.logged_run, 0) / SECOND
    rows = pd.Index(workload.jobs["job_id"]).get_indexer(pd.Index(jobs.id))
    cores = np.full(len(jobs), -1, np.int64)
    if "cores" in workload.jobs:
        cores = workload.jobs["cores"].to_numpy(np.int64)[rows]
    here = {code: name for code, name in names.items() if (partition == code).any()}
    return listed_nodes(nodes, partition, here, start, end, cores)


def _most(workload: Workload) -> int:
    """Return a machine that any job fits in, where the log states none."""
    table = workload.jobs
    return int(max(table["procs"].max(), table["req_procs"].max(), 1))


def _partitions(workload: Workload, jobs: Jobs) -> tuple[Ints, dict[int, str]]:
    """Return codes of partitions [n], and their names as replays read them."""
    column = read_texts(workload.jobs, "partition_name")
    rows = pd.Index(workload.jobs["job_id"]).get_indexer(pd.Index(jobs.id))
    return column.code[rows], dict(enumerate(column.texts))


def _record(
    jobs: Jobs, partition: Ints, which: slice, stated: int | None, sizes: Mapping[int, int] | None = None
) -> RecordedRun:
    part = jobs.take(which)
    start = (part.submit + part.logged_wait) / SECOND
    end = start + np.maximum(part.logged_run, 0) / SECOND
    capacity = stated if stated is not None else 2**62
    return RecordedRun(
        part.submit / SECOND, start, end, part.request / SECOND, part.demand[:, 0], capacity, part.user,
        partition[which], sizes,
    )  # fmt: skip


def _consistent(
    pools: PoolEstimates, names: Mapping[int, str], stated: int | None
) -> tuple[PoolEstimates, list[str]]:
    """Return pools that fit into the machine, and what had to be given up for it."""
    notes: list[str] = []
    overlaps = dict(pools.overlaps)
    for code, size in pools.sizes.items():
        own = {pair: n for pair, n in overlaps.items() if code in pair}
        others = {other for pair in own for other in pair if other != code}
        tangled = any({*pair} <= others for pair in overlaps)
        if sum(own.values()) > size or tangled:
            overlaps = {pair: n for pair, n in overlaps.items() if code not in pair}
            notes.append(f"{names[code]} shares nodes with several partitions: which is not identifiable")
    total = sum(pools.sizes.values()) - sum(overlaps.values())
    if stated is not None and total > stated:
        notes.append(f"pools of {total:,} nodes are more than the machine's {stated:,}: none is written")
        return replace(pools, sizes={}, overlaps={}), notes
    return replace(pools, overlaps=overlaps), notes


def _cluster(name: str, machine: int, names: Mapping[int, str], pools: PoolEstimates) -> Cluster:
    """Return a cluster whose sized partitions have nodes of their own; the others may use any."""
    own: dict[int, list[str]] = {code: [] for code in pools.sizes}
    groups: list[NodeGroup] = []

    def add(label: str, count: int, codes: tuple[int, ...]) -> None:
        if count > 0:
            groups.append(NodeGroup(name=label, count=count))
            for code in codes:
                own[code].append(label)

    for code, size in pools.sizes.items():
        shared = sum(n for pair, n in pools.overlaps.items() if code in pair)
        add(f"p{code}-", size - shared, (code,))
    for (a, b), n in pools.overlaps.items():
        add(f"p{a}p{b}-", n, (a, b))
    total = sum(group.count or 0 for group in groups)
    if machine > total and (not groups or len(pools.sizes) < len(names)):
        groups.append(NodeGroup(name="n", count=machine - total))
    partitions = tuple(
        Partition(name=text, nodes=tuple(own.get(code) or ("ALL",)), default=place == 0)
        for place, (code, text) in enumerate(names.items())
    )
    return Cluster(name=name, nodes=tuple(groups), partitions=partitions)


def _limited(cluster: Cluster, limit: int) -> Cluster:
    partitions = cluster.partitions or (Partition(name="all", default=True),)
    return replace(
        cluster,
        partitions=tuple(replace(one, qos=LIMIT) for one in partitions),
        qos=(Qos(name=LIMIT, max_jobs_per_user=limit),),
    )


class _Gate:
    """Windows of the second half, played with and without what was inferred."""

    def __init__(self, workload: Workload, config: InferConfig, watch: ProgressReporter | None) -> None:
        self.workload, self.config, self.watch = workload, config, watch
        self.setup = SchedulerConfig(order=config.order, backfill=config.backfill)
        self._played: dict[int, tuple[Floats, Floats]] = {}
        self._clipped = 0

    def unread(self) -> list[str]:
        """Return the columns of requests that the estimates do not cover."""
        return [name for name in _UNCOVERED if name in self.workload.jobs]

    def _workload_on(self, cluster: Cluster) -> Workload:
        """Return the log as this cluster can play it: where jobs share nodes, with their cores of each."""
        table = self.workload.jobs.drop(columns=self.unread())
        if any(not one.exclusive for one in cluster.partitions):
            each = np.ceil(table["cores"] / np.maximum(table["procs"], 1)).astype(np.int64)
            table = table.assign(cores_per_node=np.maximum(each, 1))
        return replace(self.workload, jobs=self._clip(table, cluster))

    def _clip(self, table: pd.DataFrame, cluster: Cluster) -> pd.DataFrame:
        """Let jobs that ask for more than the nodes of their partition have all of these."""
        nodes_of = build_node_table(cluster)
        cores = np.array([cluster.nodes[g].cores for g in nodes_of.group], np.int64)
        own = {row.name: cores[nodes_of.indices(row.nodes)[0]] for row in partitions_of(cluster)}
        usual = next(iter(own.values()))
        names = read_texts(table, "partition_name")
        have = [own.get(text, usual) for text in names.texts] + [usual]  # the last: none is named
        most = np.array([len(row) for row in have], np.int64)[names.code]
        clipped = table.copy()
        if "cores_per_node" in table:
            largest = np.array([row.max() for row in have], np.int64)[names.code]
            each = np.minimum(table["cores_per_node"].to_numpy(), largest)
            most = np.array(
                [int((have[code] >= n).sum()) for code, n in zip(names.code, each, strict=True)], np.int64
            )
            clipped["cores_per_node"] = each
        amounts = [name for name in ("procs", "req_procs", "nodes", "cores_per_node") if name in table]
        for column in amounts[: len(amounts) - ("cores_per_node" in table)]:
            clipped[column] = np.minimum(table[column].to_numpy(), most)
        changed = (clipped[amounts].to_numpy() != table[amounts].to_numpy()).any(axis=1)
        self._clipped = max(self._clipped, int(changed.sum()))
        return clipped

    def notes(self) -> list[str]:
        """Return what else was done to jobs so that windows could be played."""
        if not self._clipped:
            return []
        jobs = counted(self._clipped, "job asks", "jobs ask")
        gets = "gets" if self._clipped == 1 else "get"
        return [f"{jobs} for more than the first half has seen, and {gets} all of that in windows"]

    def keeps(self, name: str, before: Cluster, after: Cluster, steps: list[Step]) -> bool:
        """Tell whether a step is kept, and add it to `steps`."""
        if not self.config.windows:
            steps.append(Step(name, 0, None, None, kept=True))
            return True
        errors = [self._errors(cluster) for cluster in (before, after)]
        if not len(errors[0]):
            steps.append(Step(name, 0, None, None, kept=True))
            return True
        means = [float(of.mean()) for of in errors]
        kept = means[1] <= means[0]
        steps.append(Step(name, len(errors[0]), means[0], means[1], kept=kept))
        return kept

    def _errors(self, cluster: Cluster) -> Floats:
        key = id(cluster)
        if key not in self._played:
            self._played[key] = self._play(cluster)
        replayed, recorded = self._played[key]
        return log_errors(replayed, recorded)

    def _play(self, cluster: Cluster) -> tuple[Floats, Floats]:
        jobs = select(self._workload_on(cluster), self.setup.rules()[1], cluster=cluster)
        has_record: Flags = is_recorded(jobs)
        length, half = self.config.window, len(jobs) // 2
        firsts = np.arange(half, len(jobs) - length + 1, length)
        if len(firsts) > self.config.windows:
            firsts = firsts[np.linspace(0, len(firsts) - 1, self.config.windows).round().astype(np.int64)]
        start = jobs.submit + jobs.logged_wait
        starts = continue_on_nodes(jobs, has_record, start, firsts, length, self.setup.build_scenario).start
        which = (firsts[:, None] + np.arange(length)).ravel()
        recorded = jobs.logged_wait[which] / SECOND
        replayed = (starts.ravel() - jobs.submit[which]) / SECOND
        replayed = np.where(starts.ravel() < 0, NEVER_STARTED, replayed)
        compared = has_record[which]
        return replayed[compared], recorded[compared]
