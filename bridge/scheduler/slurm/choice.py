"""Which nodes a job gets (select/cons_tres): usable CPUs by node, tightest runs of neighbours, weights."""

from dataclasses import dataclass

from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.masks import bits
from bridge.scheduler.slurm.site import Site
from bridge.scheduler.slurm.usage import SlurmUsage

#: Node -> CPUs of the job there.
Chosen = dict[int, int]


def with_feature(site: Site, alternative: frozenset[str], nodes: int) -> int:
    """Return the nodes that have all of some features."""
    if not alternative:
        return nodes
    return sum(1 << n for n in bits(nodes) if alternative <= site.nodes[n].features)


def is_exclusive(job: SlurmJob, exclusive_part: bool) -> bool:
    """Tell whether a job has its nodes for itself."""
    return job.exclusive or exclusive_part


def default_memory(site: Site, job: SlurmJob, part_index: int) -> tuple[int, int]:
    """Return MiB a node and MiB a CPU of a job; (0, 0): it takes the whole node's."""
    if job.memory_node or job.memory_cpu:
        return job.memory_node, job.memory_cpu
    about = site.parts[part_index].about
    return about.default_memory_per_node or 0, about.default_memory_per_core or 0


def usable_cpus(
    site: Site, job: SlurmJob, usage: SlurmUsage, n: int, part_index: int, exclusive: bool
) -> int:
    """Return the CPUs that a job could use on a node; 0: it cannot."""
    node = site.nodes[n]
    if exclusive:
        if usage.jobs[n]:
            return 0
        cpus = node.cpus
    else:
        cpus = usage.cpus[n]
    per_node, per_cpu = default_memory(site, job, part_index)
    free = usage.memory[n]
    if per_node:
        if free < per_node:
            return 0
    elif per_cpu:
        if exclusive and not job.memory_cpu:
            pass
        else:
            cpus = min(cpus, free // per_cpu)
    elif free < node.memory and node.memory < 1 << 60:
        return 0
    for kind, count in job.gres.items():
        if usage.gres[n].get(kind, 0) < count:
            return 0
    limit = site.parts[part_index].about.max_cores_per_node
    if limit is not None:
        cpus = min(cpus, limit)
    if job.node_cpus:
        if cpus < job.node_cpus:
            return 0
        return cpus if exclusive else job.node_cpus
    each = job.cpus_per_task
    if each > 1 and not exclusive:
        cpus -= cpus % each
    return cpus if cpus >= each else 0


@dataclass(slots=True)
class _Need:
    """What is missing yet."""

    cpus: int
    nodes: int
    most: int
    whole: bool
    least: int

    @property
    def is_met(self) -> bool:
        return self.nodes <= 0 and self.cpus <= 0

    def take(self, available: int) -> int:
        """Take a node; return the CPUs that are used of it."""
        used = self.part_of(available)
        self.nodes -= 1
        self.most -= 1
        self.cpus -= used
        return used

    def part_of(self, available: int) -> int:
        """Return the CPUs used of a node: one core is kept for each further node that is needed."""
        if self.whole:
            return available
        rest = self.cpus - max(self.nodes - 1, 0)
        return available if available <= rest else min(available, max(rest, self.least))


def choose(
    site: Site,
    job: SlurmJob,
    nodes: int,
    usage: SlurmUsage,
    part_index: int,
    weights: list[int],
    *,
    exclusive: bool,
) -> Chosen | None:
    """Return the nodes of a job among some, with its CPUs on each; None: it does not fit."""
    if job.required & ~nodes:
        return None
    if exclusive:
        nodes &= usage.idle
        if job.required & ~nodes:
            return None
    else:
        nodes &= ~usage.full
    if nodes.bit_count() < job.min_nodes:
        return None
    if not job.one_feature:
        return _choose(site, job, nodes, usage, part_index, weights, exclusive, job.features)
    for alternative in job.features:
        chosen = _choose(site, job, nodes, usage, part_index, weights, exclusive, (alternative,))
        if chosen is not None:
            return chosen
    return None


def _choose(
    site: Site,
    job: SlurmJob,
    nodes: int,
    usage: SlurmUsage,
    part_index: int,
    weights: list[int],
    exclusive: bool,
    features: tuple[frozenset[str], ...],
) -> Chosen | None:
    available: dict[int, int] = {}
    for n in bits(nodes):
        if features[0] and not any(one <= site.nodes[n].features for one in features):
            continue
        cpus = usable_cpus(site, job, usage, n, part_index, exclusive)
        if cpus:
            available[n] = cpus
    required = list(bits(job.required))
    if any(n not in available for n in required) or len(available) < job.min_nodes:
        return None
    spread = site.cluster.scheduler.select == "least_loaded"
    least = 0
    while True:
        fill = _least_loaded if spread else _tightest
        chosen = fill(site, job, available, weights, exclusive)
        if chosen is not None:
            return _rounded(site, chosen, exclusive)
        more = [cpus for n, cpus in available.items() if n not in required and cpus > least]
        if job.max_nodes >= len(available) or not more:
            return None
        least = min(more)
        available = {n: cpus for n, cpus in available.items() if cpus > least or n in required}
        if len(available) < job.min_nodes:
            return None


def _rounded(site: Site, chosen: Chosen, exclusive: bool) -> Chosen:
    """Return the CPUs of whole cores."""
    if exclusive:
        return {n: site.nodes[n].cpus for n in sorted(chosen)}
    return {n: -(-chosen[n] // site.nodes[n].threads) * site.nodes[n].threads for n in sorted(chosen)}


def _need(job: SlurmJob, exclusive: bool) -> _Need:
    return _Need(job.min_cpus, job.min_nodes, job.max_nodes, exclusive, job.cpus_per_task)


@dataclass(slots=True)
class _Run:
    """Usable nodes that are neighbours and of one weight."""

    weight: int
    nodes: list[int]
    cpus: int = 0
    required: int = -1


def _runs(available: dict[int, int], weights: list[int], required: set[int]) -> list[_Run]:
    runs: list[_Run] = []
    last = -2
    for n, cpus in available.items():
        if n != last + 1 or runs[-1].weight != weights[n]:
            runs.append(_Run(weights[n], []))
        run = runs[-1]
        if n in required:
            if run.required < 0:
                run.required = n
        else:
            run.cpus += cpus
        run.nodes.append(n)
        last = n
    return runs


def _tightest(
    _: Site, job: SlurmJob, available: dict[int, int], weights: list[int], exclusive: bool
) -> Chosen | None:
    """Fill a job from the tightest run of neighbours that suffices, or from the largest ones."""
    need, required = _need(job, exclusive), set(bits(job.required))
    runs = _runs(available, weights, required)
    chosen = {n: need.take(available[n]) for n in available if n in required}
    if required and need.is_met:
        return chosen
    left = [run for run in runs if len(run.nodes) > (sum(n in required for n in run.nodes))]
    while left and need.most > 0:
        best, best_key = None, None
        for run in left:
            if job.contiguous and required and run.required < 0:
                continue
            free = sum(n not in chosen for n in run.nodes)
            suffices = run.cpus >= need.cpus and free >= need.nodes
            key = (run.required < 0, run.weight, not suffices, run.cpus if suffices else -run.cpus)
            if best_key is None or key < best_key:
                best, best_key = run, key
        if best is None or best_key is None or (job.contiguous and best_key[2]):
            return None
        _fill(best, need, chosen, available, suffices=not best_key[2])
        if need.is_met:
            return chosen
        if job.contiguous:
            return None
        left.remove(best)
    return chosen if need.is_met else None


def _fill(run: _Run, need: _Need, chosen: Chosen, available: dict[int, int], *, suffices: bool) -> None:
    """Take nodes of a run until the need is met."""
    if run.required >= 0:
        order = [n for n in run.nodes if n >= run.required] + [
            n for n in reversed(run.nodes) if n < run.required
        ]
    else:
        order = run.nodes
        if suffices and need.nodes <= 1 and need.most >= 1:
            single = min(
                (n for n in order if available[n] >= need.cpus), key=lambda n: available[n], default=-1
            )
            if single >= 0:
                chosen[single] = need.take(available[single])
                return
    for n in order:
        if need.most <= 0 or need.is_met:
            return
        if n not in chosen:
            chosen[n] = need.take(available[n])


def _least_loaded(
    site: Site, job: SlurmJob, available: dict[int, int], weights: list[int], exclusive: bool
) -> Chosen | None:
    """Fill a job from the nodes with the largest share of free CPUs, the lowest weights first."""
    need, required = _need(job, exclusive), set(bits(job.required))
    chosen = {n: need.take(available[n]) for n in available if n in required}
    order = sorted(
        (n for n in available if n not in required),
        key=lambda n: (weights[n], -available[n] / site.nodes[n].cpus, n),
    )
    for n in order:
        if need.most <= 0 or need.is_met:
            break
        chosen[n] = need.take(available[n])
    return chosen if need.is_met else None
