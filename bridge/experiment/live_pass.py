"""One pass of a policy on a real site as it is now: jobs run on their nodes, jobs wait, and some start.

Nothing is remembered between two passes. The same scheduler decides as in replays on a cluster.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.node_groups import format_nodes
from bridge.cluster.node_table import build_node_table, partitions_of
from bridge.cluster.slurm_live import mark_out
from bridge.experiment.live_preemption import read_preemption, resume_preemption, with_victims
from bridge.experiment.loaded_site import LoadedSite, NodePiece
from bridge.scheduler import core
from bridge.scheduler.calendar import apply_due_now
from bridge.scheduler.cluster_present import load_present
from bridge.scheduler.cluster_state import UNCOUNTED
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import PROTOCOLS, Policy, Protocol
from bridge.scheduler.state import NEVER, SECOND
from bridge.scheduler.timed_state import RUNNING, TimedState
from bridge.workload.requests import MILLI, JobRequests, intern_texts
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs
from bridge.worlds.fast import episode
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, MEMORY, NodeClasses
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import WORK, check_outcome
from bridge.worlds.slurm.live_scheduler import LivePolicy
from bridge.worlds.slurm.site_jobs import (
    NodePart,
    PlacedJob,
    SiteDecision,
    SiteQueue,
    SiteRequest,
    SiteStart,
    SiteStop,
)

#: Partitions of our own in which running jobs stand, whatever partition they came through: no limit of a
#: partition holds there. No partition of Slurm has such a name.
_SHARED, _WHOLE = "(shared)", "(whole)"


class _Row(NamedTuple):
    """A job as the scheduler gets it; times in µs."""

    request: SiteRequest
    number: int
    submit: int
    length: int


class ClusterPass:
    """The passes of one policy; see `bridge.worlds.slurm.site_jobs.SitePass`.

    `decider`: answers what the policy leaves to an agent, which sees `window` candidates at most.

    Raises BridgeError: the policy has an action, or an order that needs more than the present.
    """

    def __init__(
        self,
        policy: Policy,
        protocol: Protocol,
        decider: Callable[[Any, int], int] | None = None,
        window: int = 128,
    ) -> None:
        if reason := _beyond_present(policy, protocol):
            what = f"{reason} does not decide on the nodes of a real site yet"
            remedy = "Name one partition, whose nodes are then one pool; or use a rule such as saf+easy."
            raise BridgeError(what, where=f"policy {policy.order}+{policy.backfill}", remedy=remedy)
        self._policy, self._protocol = policy, protocol
        self._decider, self._window = decider, window
        self._key: tuple[Cluster, frozenset[str]] | None = None
        self._site: Cluster | None = None

    def refusal(self, cluster: Cluster, request: SiteRequest) -> str:
        named = request.partition.split(",")
        if unknown := {*named} - {row.name for row in partitions_of(cluster)}:
            return f"may go to partition {sorted(unknown)[0]}"
        if request.nodelist:
            listed = len(build_node_table(cluster).indices([request.nodelist])[0])
            if request.nodes > listed:
                return f"asks for {counted(request.nodes, 'node')}, of which it names {request.nodelist}"
        try:
            self._scenario(cluster, [_Row(request, 1, 0, SECOND)])
        except BridgeError as error:
            return error.what
        return ""

    @classmethod
    def of(cls, deciding: LivePolicy) -> "ClusterPass":
        """Return the passes of who decides; errors as the class."""
        return cls(deciding.policy, deciding.protocol, deciding.decider, deciding.window)

    def decide(self, queue: SiteQueue) -> SiteDecision:
        if not queue.waiting and all(job.suspended < 0 and job.grace_end < 0 for job in queue.running):
            return SiteDecision([])
        present = self.load(queue)
        if isinstance(present.state, TimedState):
            apply_due_now(present.state, 0)
            if read_preemption(present, queue.now)[0]:  # graces are over: a pass follows
                return _read_decision(present, queue.now, was_made=False)
        self._make_pass(present)
        return _read_decision(present, queue.now)

    def load(self, queue: SiteQueue, *, for_futures: bool = False) -> "LoadedSite":
        """Return a scheduler that knows the present of a site; no pass is open.

        `for_futures`: its clock is that of the site, and each running job is there, wherever it has nodes.
        """
        waiting, running, now = queue.waiting, queue.running, queue.now
        site = self._present_site(queue.cluster, queue.out)
        preempts = site.scheduler.preempt != "none"
        if preempts:
            running = sorted(running, key=lambda job: (job.suspended < 0, job.suspended, job.number))
        begin = min([now, *(job.submit for job in waiting), *(job.start for job in running)])
        origin = 0 if for_futures else int(begin) - 1

        def micro(seconds: float) -> int:
            return round((seconds - origin) * SECOND)

        pieces = _pieces_of(site, running, all_jobs=for_futures)
        rows = [
            _Row(piece.request, k + 1, 0, micro(_believed_end(job)) - micro(job.start))
            for k, (job, piece) in enumerate(pieces)
        ]
        order = sorted(waiting, key=lambda job: (job.submit, job.number, job.key))
        rows += [
            _Row(job.request, len(rows) + k + 1, micro(job.submit), round(job.length * SECOND))
            for k, job in enumerate(order)
        ]
        scenario = self._scenario(site, rows, origin)
        spared: Mapping[str, str] = {}
        if preempts:
            scenario, spared = with_victims(scenario, [job for job, _ in pieces])
        assert scenario.cluster is not None
        starts = np.array([micro(job.start) for job, _ in pieces], np.int64)
        n = len(rows)
        window = self._window if self._policy.agent else 1 if scenario.compiled.chooser is None else n
        state: Any = episode.allocate(scenario, 1, n, window=window)
        episode.fill(state, 0, scenario, 0, n)
        since = [micro(job.suspended) if job.suspended >= 0 else -1 for job, _ in pieces]
        nodes = [piece.nodes for _, piece in pieces]
        _place(state, scenario.cluster.classes, nodes, starts, np.array(since, np.int64), n, micro(now))
        if preempts:
            resume_preemption(state, [job for job, _ in pieces], order, micro, resumes=queue.resumes)
        for k, job in enumerate(order, len(pieces)):
            state.jobs.rejects[0, k] = job.rejects
            if job.is_head:
                head = state.heads[0, scenario.cluster.demands.partition[k]]
                head.job, head.n = k, 1
        return LoadedSite(scenario, state, pieces, order, micro(now), origin, spared=spared)

    def _make_pass(self, present: "LoadedSite") -> None:
        """Let the policy decide."""
        state, scenario = present.state, present.scenario
        core.begin_pass(state, 0)
        while True:
            state.scalars.work[0] = WORK
            kind = core.advance(state, 0)
            check_outcome(kind, state, 0, scenario)
            if kind == core.NOTHING:
                return
            if kind == core.PAUSE or scenario.compiled.decide(state, 0, kind):
                continue
            assert self._decider is not None
            core.apply_choice(state, 0, self._decider(present, kind))

    def _present_site(self, cluster: Cluster, out: frozenset[str]) -> Cluster:
        """Return the site with the nodes that are out, and where running jobs stand."""
        key = self._key
        if self._site is None or key is None or key[0] is not cluster or key[1] != out:
            self._key, self._site = (cluster, out), _with_standing(mark_out(cluster, out))
        return self._site

    def _scenario(self, site: Cluster, rows: Sequence[_Row], origin: int = 0) -> Scenario:
        jobs = _jobs_of(site, rows, origin)
        rule = LOAD_RULES["standard"]
        return episode.prepare(jobs, self._protocol, self._policy, "requested", rule)


def _beyond_present(policy: Policy, protocol: Protocol) -> str:
    """Return what of a policy needs more than the present of a site; empty if nothing does."""
    if policy.action:
        return "a rule that kills jobs"
    if policy.backfill == "conservative_keeps":
        return "backfilling that keeps the starts of earlier passes"
    if not protocol.knows_clusters:
        return f"the protocol {protocol.name}"
    order = compile_policy(policy, protocol, on_nodes=True).order
    return "an order by past use" if order.by_priority and order.lookahead is None else ""


def decides_on_sites(policy: Policy) -> bool:
    """Tell whether a policy decides on the nodes of a site."""
    return not _beyond_present(policy, PROTOCOLS["standard"])


def site_pass_of(deciding: LivePolicy, partitions: int) -> ClusterPass | None:
    """Return the passes of a policy on a site of so many partitions; None: one partition is one pool to it.

    BridgeError: a policy of a pool is to decide for several partitions.
    """
    if partitions == 1 and _beyond_present(deciding.policy, deciding.protocol):
        return None
    return ClusterPass.of(deciding)


def _with_standing(cluster: Cluster) -> Cluster:
    """Return a cluster with the partitions in which running jobs stand."""
    table = build_node_table(cluster)
    shared: set[int] = set()
    for row in cluster.partitions:
        if not row.exclusive:
            shared.update(table.indices(row.nodes)[0].tolist())
    own = []
    for name, is_shared in ((_SHARED, True), (_WHOLE, False)):
        nodes = [node for n, node in enumerate(table.names) if (n in shared) == is_shared]
        if nodes:
            own.append(Partition(name=name, nodes=(format_nodes(nodes),), exclusive=not is_shared))
    return replace(cluster, partitions=(*cluster.partitions, *own))


def _pieces_of(
    site: Cluster, running: Sequence[PlacedJob], *, all_jobs: bool = False
) -> list[tuple[PlacedJob, NodePiece]]:
    """Return what running jobs have on the site's nodes that are up; licences count with the first piece.

    A node is full when all of its cores are given: no further job on it counts; suspended jobs give theirs
    back. `all_jobs`: even those that have nothing there have a piece.
    """
    table = build_node_table(site)
    standing = {row.name: row for row in site.partitions}
    shared = standing.get(_SHARED)
    is_shared = np.zeros(len(table), np.bool_)
    if shared is not None:
        is_shared[table.indices(shared.nodes)[0]] = True
    groups = [site.nodes[g] for g in table.group]
    of_running = [group.cores if group.state == "up" else 0 for group in groups]
    full = of_running.copy()
    pieces: list[tuple[PlacedJob, NodePiece]] = []
    for job in running:
        left = of_running if job.suspended < 0 else full.copy()
        own: dict[SiteRequest, list[int]] = {}
        for part in job.parts:
            for n in [table.index[name] for name in part.nodes if name in table.index]:
                group, taken = groups[n], left[n]
                if taken <= 0:
                    continue
                if not is_shared[n] or part.whole:
                    left[n] = 0
                    place = _SHARED if is_shared[n] else _WHOLE
                    own.setdefault(SiteRequest(place, 1, exclusive=True), []).append(n)
                    continue
                for request in _requests_of(part, taken, group.memory, group.gpus):
                    if left[n] > 0:
                        left[n] -= request.cores
                        own.setdefault(request, []).append(n)
        alike = [NodePiece(replace(request, nodes=len(nodes)), nodes) for request, nodes in own.items()]
        if not alike and (all_jobs or job.licenses or job.array >= 0):
            alike = [NodePiece(SiteRequest(_SHARED if shared is not None else _WHOLE, 1), [])]
        if alike:
            first = alike[0]
            first.request = replace(
                first.request, licenses=job.licenses, array=job.array, array_limit=job.array_limit
            )
        pieces += [(job, piece) for piece in alike]
    return pieces


def _requests_of(part: NodePart, cores: int, memory: int | None, gpus: Any) -> list[SiteRequest]:
    """Return what a part takes of one node that has so much; each type of GPUs beyond the first by itself."""
    most = part.memory if memory is None else min(part.memory, memory)
    first = SiteRequest(_SHARED, 1, cores=max(min(part.cores, cores), 1), memory=most)
    typed = [(kind, min(count, gpus[kind])) for kind, count in part.gpus.items() if gpus.get(kind)]
    plain = part.gpus.get("gpu", 0) if "gpu" not in gpus else 0  # of a type that the details do not name
    if plain:
        typed.append(("", min(plain, sum(gpus.values()))))
    typed = [(kind, count) for kind, count in typed if count > 0]
    if typed:
        first = replace(first, gpu_type=typed[0][0], gpus=typed[0][1])
    return [first, *(SiteRequest(_SHARED, 1, gpu_type=kind, gpus=count) for kind, count in typed[1:])]


def _jobs_of(site: Cluster, rows: Sequence[_Row], origin: int) -> Jobs:
    n = len(rows)
    requests = [row.request for row in rows]

    def whole(values: Any) -> Ints:
        return np.fromiter(values, np.int64, n)

    length, none = whole(row.length for row in rows), np.full(n, -1, np.int64)

    def texts(name: str) -> Any:
        return intern_texts([getattr(request, name) for request in requests])

    nothing, qos = intern_texts([""] * n), {row.name for row in site.qos}
    columns = JobRequests(
        nodes=whole(request.nodes for request in requests),
        tasks=whole(request.tasks for request in requests),
        cores=whole(request.cores for request in requests),
        memory=whole(request.memory for request in requests),
        gpus=whole(request.gpus * MILLI for request in requests),
        exclusive=whole(1 if request.exclusive else -1 for request in requests),
        begin=none,
        hold_until=none,
        array_id=whole(request.array for request in requests),
        array_limit=whole(request.array_limit for request in requests),
        succeeded=np.ones(n, np.bool_),
        may_requeue=np.fromiter((request.may_requeue for request in requests), np.bool_, n),
        partition=texts("partition"),
        qos=intern_texts([request.qos if request.qos in qos else "" for request in requests]),
        account=nothing,
        user=nothing,
        job_name=nothing,
        gpu_type=texts("gpu_type"),
        constraints=texts("features"),
        licenses=texts("licenses"),
        reservation=texts("reservation"),
        nodelist=texts("nodelist"),
        exclude=texts("exclude"),
        dependency=nothing,
    )
    return Jobs(
        name=f"the site {site.name!r}",
        id=whole(row.number for row in rows),
        submit=whole(row.submit for row in rows),
        run=length,
        request=length,
        logged_run=length,
        logged_wait=np.zeros(n, np.int64),
        demand=np.ones((n, 1), np.int64),
        resources=("nodes",),
        capacity=np.array([len(build_node_table(site))], np.int64),
        user=np.zeros(n, np.int64),
        queue=np.zeros(n, np.int64),
        origin=origin * SECOND,
        cluster=site,
        requests=columns,
    )


def _believed_end(job: PlacedJob) -> float:
    """Return when a job is believed to end, s since 1970; of one that is suspended, as if it had run on."""
    end = job.start + job.length + (job.stood if job.suspended < 0 else 0.0)
    return end if job.grace_end < 0 else max(min(end, job.grace_end), job.start)


def _place(
    state: Any,
    classes: NodeClasses,
    nodes: Sequence[list[int]],
    start: Ints,
    suspended: Ints,
    n_jobs: int,
    now: int,
) -> None:
    """Let a scheduler know all jobs; `nodes`: of those that have some, which are the first."""
    first, first_node = np.zeros((2, len(nodes) + 1), np.int64)
    which: list[int] = []
    units: list[int] = []
    by_class: list[int] = []
    for j, own in enumerate(nodes):
        of, counts = np.unique(classes.class_of[own], return_counts=True)
        which += of.tolist()
        units += counts.tolist()
        by_class += sorted(own, key=lambda node: (int(classes.class_of[node]), node))
        first[j + 1], first_node[j + 1] = len(which), len(by_class)
    classes_of, units_of, in_order = (np.array(row, np.int64) for row in (which, units, by_class))
    load_present(state, start, first, classes_of, units_of, first_node, in_order, suspended, n_jobs, now)


def _read_decision(present: LoadedSite, now: float, *, was_made: bool = True) -> SiteDecision:
    """Return what the pass has decided; `now`: s since 1970; `was_made`: else only graces have ended."""
    state, first = present.state, len(present.pieces)
    starts = _read_starts(state, present.scenario, present.pieces, [job.key for job in present.waiting])
    started = {start.key for start in starts}
    stops: tuple[SiteStop, ...] = ()
    firsts, resumes = frozenset[str](), True
    if isinstance(state, TimedState):
        stops, firsts, resumes = read_preemption(present, now)
    heads = set()
    if state.switches[0].head_locked:
        heads = {int(head.job) for head in state.heads[0] if head.job >= 0 and head.n >= 0}
    left = [
        replace(job, rejects=int(state.jobs.rejects[0, k]), is_head=k in heads, goes_first=job.key in firsts)
        for k, job in enumerate(present.waiting, first)
        if job.key not in started
    ]
    wake = int(state.scalars.wake_at[0])
    wake_at = now + (wake - present.now) / SECOND if wake < NEVER else math.inf
    goes_on = (
        bool(firsts) or (bool(stops) and not was_made) or any(0 <= row.grace_end <= now for row in stops)
    )
    return SiteDecision(starts, tuple(left), wake_at, stops, present.spared, goes_on, resumes)


def _read_starts(
    state: Any, scenario: Scenario, pieces: Sequence[tuple[PlacedJob, NodePiece]], keys: Sequence[str]
) -> list[SiteStart]:
    """Return what was started and not stopped at once, each on its nodes.

    Where classes count their nodes, these are the free ones of lowest index.
    """
    assert scenario.cluster is not None
    classes = scenario.cluster.classes
    is_free: Flags = classes.is_up.copy()
    for _, piece in pieces:
        is_free[piece.nodes] = False
    in_time = isinstance(state, TimedState)
    started = dict.fromkeys(state.started[0, : int(state.scalars.n_started[0])].tolist())
    partitions = classes.partitions
    starts = []
    for j in started:
        if j < len(pieces) or (in_time and state.timed_jobs.doing[0, j] != RUNNING):
            continue  # a suspended job goes on; a job was stopped at once
        parts = []
        entry = int(state.node_jobs.allocation[0, j])
        shape = scenario.cluster.demands.shapes[int(state.node_jobs.shape_number[0, j])]
        request = scenario.cluster.requests
        counted: dict[int, list[int]] = {}
        while entry >= 0:
            c, units = int(state.entry_class[0, entry]), int(state.entry_units[0, entry])
            members = classes.members[c]
            if classes.counted[c] and in_time:  # an entry for each node
                counted.setdefault(c, []).append(int(state.entry_node[0, entry]))
                entry = int(state.entry_next[0, entry])
                continue
            if classes.counted[c]:
                members = members[is_free[members]][:units]
                is_free[members] = False
            names = tuple(classes.table.names[n] for n in members.tolist())
            whole = shape.whole or bool(classes.counted[c])
            gpu_type = request.gpu_type.of(j)
            parts.append(_part(names, classes.amounts[c], shape.vector, units, gpu_type, whole))
            entry = int(state.entry_next[0, entry])
        for own in counted.values():
            parts.append(NodePart(tuple(classes.table.names[n] for n in sorted(own)), whole=True))
        parts.sort(key=lambda part: classes.table.index[part.nodes[0]])
        partition = partitions[int(scenario.cluster.demands.partition[j])].name
        starts.append(SiteStart(keys[j - len(pieces)], tuple(parts), partition))
    return starts


def _part(
    names: tuple[str, ...], amounts: Ints, vector: Sequence[int], units: int, gpu_type: str, whole: bool
) -> NodePart:
    """Return what a job that starts takes of each of some nodes."""
    if whole:
        return NodePart(names, whole=True)
    memory = vector[MEMORY] * units
    if memory < 0:
        memory = int(amounts[MEMORY]) if amounts[MEMORY] < UNCOUNTED else 0
    gpus = vector[GPUS] * units // MILLI
    return NodePart(names, vector[CORES] * units, memory, {gpu_type or "gpu": gpus} if gpus else {})
