"""The compiled choice of nodes against a second implementation with sets and lists."""

import random
from dataclasses import replace

import pytest

from bridge.cluster.description import Cluster, NodeGroup, Partition, SchedulerParameters
from bridge.scheduler.slurm.choice import choose
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.masks import bits, mask_of
from bridge.scheduler.slurm.settings import Settings
from bridge.scheduler.slurm.site import Site


def usable(slurm: Controller, job: SlurmJob, n: int, exclusive: bool) -> int:
    """Return the CPUs that a job could use on a node."""
    node = slurm.site.nodes[n]
    cpus, memory, jobs = (int(slurm.usage.book[n, k]) for k in range(3))
    if exclusive:
        cpus = 0 if jobs else node.cpus
    if job.memory_node:
        cpus = cpus if memory >= job.memory_node else 0
    elif job.memory_cpu:
        cpus = min(cpus, memory // job.memory_cpu)
    elif memory < node.memory:
        cpus = 0
    if job.node_cpus:
        return (cpus if exclusive else job.node_cpus) if cpus >= job.node_cpus else 0
    return cpus if exclusive and cpus >= job.cpus_per_task else cpus - cpus % job.cpus_per_task


def brute(slurm: Controller, job: SlurmJob, nodes: set[int], exclusive: bool) -> dict[int, int] | None:
    """Return the nodes of a job, with its CPUs on each."""
    there = {n: usable(slurm, job, n, exclusive) for n in sorted(nodes)}
    there = {n: cpus for n, cpus in there.items() if cpus}
    required = set(bits(job.required))
    if required - there.keys():
        return None
    previous = there
    for least in sorted({0, *(cpus for n, cpus in there.items() if n not in required)}):
        left = {n: cpus for n, cpus in there.items() if cpus > least or n in required}
        if len(left) < job.min_nodes or (least and job.max_nodes >= len(previous)):
            return None
        chosen = by_runs(slurm, job, left, required, exclusive)
        if chosen is not None:
            if exclusive:
                return {n: slurm.site.nodes[n].cpus for n in sorted(chosen)}
            return {n: chosen[n] + chosen[n] % slurm.site.nodes[n].threads for n in sorted(chosen)}
        previous = left
    return None


def by_runs(
    slurm: Controller, job: SlurmJob, there: dict[int, int], required: set[int], exclusive: bool
) -> dict[int, int] | None:
    chosen: dict[int, int] = {}

    def missing() -> tuple[int, int]:
        return job.min_cpus - sum(chosen.values()), job.min_nodes - len(chosen)

    def take(n: int) -> None:
        cpus, count = missing()
        rest = cpus - max(count - 1, 0)
        chosen[n] = there[n] if exclusive or there[n] <= rest else min(there[n], max(rest, job.cpus_per_task))

    def is_met() -> bool:
        return max(missing()) <= 0

    for n in sorted(required):
        take(n)
    if required and is_met():
        return chosen
    runs: list[list[int]] = []
    for n in sorted(there):
        before = runs[-1][-1] if runs else -9
        if before == n - 1 and slurm.weights[before] == slurm.weights[n]:
            runs[-1].append(n)
        else:
            runs.append([n])
    runs = [run for run in runs if set(run) - required]
    while runs and len(chosen) < job.max_nodes:
        cpus, count = missing()

        def key(run: list[int]) -> tuple[object, ...]:
            own = sum(there[n] for n in run if n not in required)
            suffices = own >= cpus and sum(n not in chosen for n in run) >= count  # noqa: B023
            has = bool(required & set(run))
            return not has, int(slurm.weights[run[0]]), not suffices, own if suffices else -own

        allowed = [run for run in runs if not (job.contiguous and required and not required & set(run))]
        if not allowed:
            return None
        best = min(allowed, key=key)
        suffices = not key(best)[2]
        if job.contiguous and not suffices:
            return None
        first = min((n for n in best if n in required), default=-1)
        singles = [n for n in best if there[n] >= cpus]
        if first < 0 and suffices and count <= 1 and singles:
            # of nodes that give equally many CPUs by --ntasks-per-node, the fullest
            free = {n: int(slurm.usage.book[n, 0]) if job.node_cpus else 0 for n in singles}
            take(min(singles, key=lambda n: (there[n], free[n])))
        else:
            order = [n for n in best if n >= first] + [n for n in reversed(best) if n < first]
            for n in order:
                if len(chosen) >= job.max_nodes or is_met():
                    break
                if n not in chosen:
                    take(n)
        if is_met():
            return chosen
        if job.contiguous:
            return None
        runs.remove(best)
    return chosen if is_met() else None


def state(seed: int) -> tuple[Controller, SlurmJob, set[int], bool]:
    """Return a site with jobs on it, and one to be placed on some of its nodes."""
    draw = random.Random(seed)
    threads = draw.choice((1, 2))
    groups = tuple(
        NodeGroup(name=f"g{k}", nodes=f"n{k}", cores=draw.choice((4, 8, 8, 16)), threads=threads,
                  memory=draw.choice((4000, 8000)), weight=draw.choice((1, 1, 1, 2)))
        for k in range(draw.randint(1, 9))
    )  # fmt: skip
    part = Partition(name="p", exclusive=False)
    cluster = Cluster(nodes=groups, partitions=(part,), scheduler=SchedulerParameters())
    site = Site(cluster, Settings(limits=False))
    slurm = Controller(site)
    count = len(groups)
    base = SlurmJob(id=1, key=1, user="u", assoc=site.user_of("u", "a"), qos="normal",
                    parts=(site.parts[0],), min_nodes=1, max_nodes=1, tasks=1)  # fmt: skip
    for k in range(draw.randint(0, 6)):
        size = draw.randint(1, 6)
        job = replace(base, key=2 + k, id=2 + k, min_nodes=1, max_nodes=size, min_cpus=size, memory_cpu=500,
                      needs={}, could={}, kept_out={})  # fmt: skip
        slurm.submit(job, 100)
        slurm.try_start(job, site.parts[0], site.all_nodes, 100, "main")
    nodes = {n for n in range(count) if draw.random() < 0.8}
    least = draw.randint(1, 4)
    each = draw.choice((1, 1, 2, 3))
    job = replace(
        base,
        min_nodes=least,
        max_nodes=least + draw.choice((0, 0, 1, 5)),
        cpus_per_task=each,
        min_cpus=max(each * draw.randint(1, 12), least),
        node_cpus=draw.choice((0, 0, 0, 4)),
        memory_cpu=draw.choice((0, 300, 900)),
        memory_node=draw.choice((0, 0, 2000)),
        contiguous=draw.random() < 0.2,
        required=mask_of(n for n in nodes if draw.random() < 0.12),
        needs={},
        could={},
        kept_out={},
    )
    return slurm, job, nodes, draw.random() < 0.3


@pytest.mark.parametrize("first", [0, 1000])
def test_the_nodes_are_those_of_the_second_implementation(first: int) -> None:
    placed = 0
    for seed in range(first, first + 1000):
        slurm, job, nodes, exclusive = state(seed)
        mine = choose(slurm.site, job, mask_of(nodes), slurm.usage, 0, slurm.weights, exclusive=exclusive)
        assert mine == brute(slurm, job, nodes, exclusive), seed
        placed += mine is not None
    assert 200 < placed < 900
