"""Jobs for a site: the Lublin-Feitelson model, spread over partitions, with what jobs ask of nodes.

For tutorials and tests of a `cluster.toml`: the model's sizes, run times and arrivals, and users with their
requested times; partitions, accounts and QOS are drawn, amounts of shared nodes follow their size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.node_table import NodeTable, build_node_table, partitions_of
from bridge.workload import lublin
from bridge.workload.derive import add_note, require_positive
from bridge.workload.table import Workload

#: MiB for each core where neither partition nor node states memory in proportion.
_MEMORY_PER_CORE = 1024
#: Where nothing limits.
_MOST = np.iinfo(np.int64).max
#: Share of a shared partition's jobs that ask for GPUs where its nodes have some.
_WITH_GPUS = 0.5


@dataclass(frozen=True)
class _Place:
    partition: Partition
    nodes: int
    cores: int
    memory: int | None
    gpus: int

    @property
    def largest(self) -> int:
        """How many nodes a job may have, at most: half of them, so that jobs run side by side."""
        limits = (max(1, self.nodes // 2), self.partition.max_nodes)
        return max(self.partition.min_nodes, min(limit for limit in limits if limit is not None))


def generate_site(
    cluster: Cluster, jobs: int, seed: int, *, load: float = 0.8, users: int = 40, name: str = "site"
) -> Workload:
    """Draw jobs for a site; the same arguments give the same bits.

    A partition has jobs in proportion to its nodes. `load` is the share of all cores that the jobs would keep
    busy. Raises BridgeError: fewer than one job or user, or no partition takes jobs.
    """
    require_positive(load, "the load cannot be reached", f"--load {load:g}", "It takes a positive load.")
    table = build_node_table(cluster)
    places = [place for one in partitions_of(cluster) if (place := _place(cluster, table, one))]
    if not places:
        remedy = "Set the state of a partition and of its nodes to up."
        raise BridgeError("no partition takes jobs", where=cluster.name, remedy=remedy)
    model = lublin.lublin_1(max(4, *(place.largest for place in places)))
    log = lublin.add_estimates(lublin.generate(model, jobs, seed, name), seed, users)
    rng = np.random.default_rng([seed, 1])
    share = np.array([place.nodes for place in places], np.float64)
    which = rng.choice(len(places), jobs, p=share / share.sum())
    jobs_table = log.jobs.assign(
        **_columns(log.jobs, places, which, rng), **_names(cluster, places, which, rng)
    )
    jobs_table["user_name"] = [f"user{number}" for number in jobs_table["user"]]
    cores = jobs_table["nodes"] * jobs_table["cores_per_node"].where(
        jobs_table["cores_per_node"] > 0, np.array([place.cores for place in places])[which]
    )
    work = float((cores * jobs_table["run"]).sum())
    available = float(sum(cluster.nodes[group].cores for group in table.group))
    first, span = jobs_table["submit"].min(), max(1.0, float(np.ptp(jobs_table["submit"])))
    jobs_table["submit"] = (
        ((jobs_table["submit"] - first) * (work / (available * span * load))).round().astype(np.int64)
    )
    header = add_note(log.header, f"jobs for the site {cluster.name}, load {load:g}, seed {seed}")
    header |= dict.fromkeys(("MaxNodes", "MaxProcs"), str(len(table)))
    source = f"{cluster.name}, seed {seed}"
    return replace(log, jobs=jobs_table, capacity={"nodes": len(table)}, header=header, source=source)


def _place(cluster: Cluster, table: NodeTable, partition: Partition) -> _Place | None:
    groups = [cluster.nodes[group] for group in table.group[table.indices(partition.nodes)[0]]]
    usable = [group for group in groups if group.state == "up"]
    if not usable or partition.state in ("drain", "inactive"):
        return None
    memories = [group.memory for group in usable if group.memory is not None]
    return _Place(
        partition,
        len(usable),
        min(*(group.cores for group in usable), partition.max_cores_per_node or _MOST),
        min(memories) if len(memories) == len(usable) else None,
        min(sum(group.gpus.values()) for group in usable),
    )


def _columns(
    jobs: pd.DataFrame, places: Sequence[_Place], which: Ints, rng: np.random.Generator
) -> dict[str, Any]:
    """Return nodes, amounts of shared nodes, and times within the partition's limit."""
    largest = np.array([place.largest for place in places])[which]
    smallest = np.array([max(1, place.partition.min_nodes) for place in places])[which]
    nodes = np.clip(jobs["req_procs"].to_numpy(), smallest, largest)
    shared = np.array([not place.partition.exclusive for place in places])[which]
    cores = _powers_of_two(rng, np.array([place.cores for place in places])[which])
    gpus_of = np.array([place.gpus for place in places])[which]
    gpus = np.where(rng.random(len(jobs)) < _WITH_GPUS, _powers_of_two(rng, np.maximum(gpus_of, 1)), 0)
    limit = np.array([place.partition.max_time or _MOST for place in places])[which]
    requested = np.minimum(jobs["req_time"].to_numpy(), limit)
    return {
        "nodes": nodes,
        "procs": nodes,
        "req_procs": nodes,
        "cores_per_node": np.where(shared, cores, -1),
        "memory_per_node": np.where(shared, _memory(places, which, cores, shared), -1),
        "gpus_per_node": np.where(shared & (gpus_of > 0), gpus, -1),
        "req_time": requested,
        "run": np.minimum(jobs["run"].to_numpy(), requested),
    }


def _powers_of_two(rng: np.random.Generator, most: Ints) -> Ints:
    exponents = np.floor(np.log2(most)).astype(np.int64) + 1
    return np.left_shift(1, np.floor(rng.random(len(most)) * exponents).astype(np.int64))


def _memory(places: Sequence[_Place], which: Ints, cores: Ints, shared: Flags) -> Ints:
    """Return MiB on each node: the partition's for each core, at most the node's; -1: none is counted."""
    per_core = np.array([place.partition.default_memory_per_core or _MEMORY_PER_CORE for place in places])
    most = np.array(
        [min(place.memory or 0, place.partition.max_memory_per_node or _MOST) for place in places]
    )
    return np.where(shared & (most[which] > 0), np.minimum(cores * per_core[which], most[which]), -1)


def _names(
    cluster: Cluster, places: Sequence[_Place], which: Ints, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the names of partitions, accounts by their shares, and QOS that the partition admits."""
    columns: dict[str, Any] = {"partition_name": [places[p].partition.name for p in which]}
    if cluster.accounts:
        shares = np.array([max(account.shares or 1, 1) for account in cluster.accounts], np.float64)
        names = [account.name for account in cluster.accounts]
        columns["account"] = rng.choice(names, len(which), p=shares / shares.sum()).astype(str)
    if any(place.partition.allow_qos for place in places):
        draws = rng.random(len(which))
        admitted = [place.partition.allow_qos or ("",) for place in places]
        columns["qos_name"] = [
            admitted[p][int(u * len(admitted[p]))] for p, u in zip(which, draws, strict=True)
        ]
    return columns
