"""Which nodes a job gets: what it asks for as the kernels read it, and what they chose."""

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.slurm import choice_kernels as kernels
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.node_words import words_of
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import Site
from bridge.scheduler.slurm.usage import SlurmUsage

_choose_now = Quick(kernels.choose_now)
#: Node -> CPUs of the job there.
Chosen = dict[int, int]


def is_exclusive(job: SlurmJob, exclusive_part: bool) -> bool:
    """Tell whether a job has its nodes for itself."""
    return job.exclusive or exclusive_part


def default_memory(site: Site, job: SlurmJob, part_index: int) -> tuple[int, int]:
    """Return MiB a node and MiB a CPU of a job; (0, 0): it takes the whole node's."""
    if job.memory_node or job.memory_cpu:
        return job.memory_node, job.memory_cpu
    about = site.parts[part_index].about
    return about.default_memory_per_node or 0, about.default_memory_per_core or 0


def need_of(site: Site, job: SlurmJob, part_index: int, exclusive: bool) -> Ints:
    """Return what a job asks for in a partition, by the names of `choice_kernels`."""
    key = (part_index, exclusive)
    if key not in job.needs:
        per_node, per_cpu = default_memory(site, job, part_index)
        most = site.parts[part_index].about.max_cores_per_node
        row = (
            *(job.min_nodes, job.max_nodes, job.min_cpus, job.cpus_per_task, job.node_cpus, int(exclusive)),
            *(int(job.contiguous), per_node, per_cpu, int(job.memory_cpu > 0), -1 if most is None else most),
            int(site.cluster.scheduler.select == "least_loaded"),
            *(job.gres.get(kind, 0) for kind in site.gres),
        )
        if row not in site.needs:
            site.needs[row] = np.array(row, np.int64)
        job.needs[key] = site.needs[row]
    return job.needs[key]


def as_gres_row(site: Site, job: SlurmJob) -> Ints:
    """Return a job's generic resources on each node; those of a type are of the whole kind, too."""
    row = np.array([job.gres.get(kind, 0) for kind in site.gres], np.int64)
    if "gpu" in site.gres:
        row[site.gres.index("gpu")] += sum(n for kind, n in job.gres.items() if kind.startswith("gpu:"))
    return row


def choose(
    site: Site,
    job: SlurmJob,
    nodes: int,
    usage: SlurmUsage,
    part_index: int,
    weights: Ints,
    *,
    exclusive: bool,
) -> Chosen | None:
    """Return the nodes of a job among some, with its CPUs on each; None: it does not fit."""
    if job.required & ~nodes or any(kind not in site.gres for kind in job.gres):
        return None
    alternatives = [(one,) for one in job.features] if job.one_feature else [job.features]
    need = need_of(site, job, part_index, exclusive)
    required = words_of(job.required, site.n_words)
    for features in alternatives:
        there = nodes & site.with_features(features)
        if there.bit_count() < job.min_nodes:
            continue
        words = words_of(there, site.n_words)
        if _choose_now(usage.book, site.table, weights, need, words, required, *site.scratch):
            return chosen_of(site.scratch[0][1])
    return None


def chosen_of(taken: Ints) -> Chosen:
    """Return the nodes of which something was taken."""
    members = np.flatnonzero(taken)
    return dict(zip(members.tolist(), taken[members].tolist(), strict=True))
