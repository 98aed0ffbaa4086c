"""How near replays come to the record of sites, on one pool and on their cluster; and the order multifactor.

python -m papers.site_fidelity FOLDER [NAME …]    # public tables in FOLDER; measures these anew
"""

import gzip
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.cluster.clusterfile import read_cluster_toml, write_cluster_toml
from bridge.cluster.description import Cluster, NodeGroup, Partition, PriorityConfig
from bridge.cluster.source import read_cluster
from bridge.commands.fidelity import TEXTBOOK
from bridge.workload.formats import read, write
from bridge.workload.mapped import read_mapped
from bridge.workload.select import machine_capacity
from bridge.workload.table import Workload
from papers import fidelity, logs, store
from papers.fidelity import MULTIFACTOR
from papers.sites.thetagpu import sort_into_queues

#: The order, with untuned weights: a point for each day of age, up to 2 for size, up to 10 for fair share.
PRIORITY = PriorityConfig(age=60_000, max_age=60 * 86_400, job_size=2_000, fairshare=10_000, fair_tree=False)
#: Where logs and clusters of sites are written.
_WORK = store.WORK / "workloads"
#: Cores of a node of Cirrus.
_CIRRUS = 36


@dataclass(frozen=True)
class SiteLogs:
    """A site's log on one pool, of as many `nodes` as it uses, and on its cluster; None: it has none."""

    nodes: int
    pool: Workload
    on_cluster: Workload
    cluster: Cluster | None


def most_in_use(workload: Workload, amount: NDArray[Any]) -> int:
    """Return the most of an amount [n] of jobs that was in use at one time in the record."""
    table = workload.jobs
    ran = ((table["wait"] >= 0) & (table["run"] > 0)).to_numpy()
    start = (table["submit"] + table["wait"]).to_numpy()[ran]
    end, of = start + table["run"].to_numpy()[ran], np.asarray(amount)[ran]
    changes = np.concatenate((-of, of))
    order = np.lexsort((changes, np.concatenate((end, start))))
    return int(np.cumsum(changes[order]).max(initial=0))


def _pozidriv(folder: Path) -> SiteLogs:
    """The sample of XDMoD: cores on one pool; then the cluster that its lists of nodes say."""
    text = _WORK / "pozidriv.log"
    text.write_bytes(gzip.decompress((folder / "pozidriv.log.gz").read_bytes()))
    bare, site, on_site = (_WORK / f"pozidriv{end}" for end in (".parquet", ".toml", "-on.parquet"))
    imports = ("workload", "import", "sacct", str(text), "--columns", "xdmod", "--force")
    store.bridge(*imports, "--out", str(bare))
    store.bridge("cluster", "infer", str(bare), "--windows", "0", "--force", "--out", str(site))
    store.bridge(*imports, "--cluster", str(site), "--out", str(on_site))
    log = read(bare)
    cores = log.jobs["cores"].to_numpy(np.int64)
    pool = replace(log, jobs=log.jobs.drop(columns="cores").assign(procs=cores, req_procs=cores))
    return SiteLogs(most_in_use(log, cores), pool, read(on_site), read_cluster_toml(site))


def _thetagpu(folder: Path) -> SiteLogs:
    """GPUs on one pool; then whole nodes and single GPUs of the shipped cluster."""
    log = read_mapped(folder / "thetagpu-2023.csv.gz", "thetagpu")
    return SiteLogs(192, log, sort_into_queues(log), read_cluster("thetagpu-2023"))


def _philly(folder: Path) -> SiteLogs:
    """GPUs on one pool: the table names neither nodes nor queues nor users."""
    log = read_mapped(folder / "philly-2017.csv.gz", "philly")
    return SiteLogs(most_in_use(log, log.jobs["procs"].to_numpy()), log, log, None)


def _cirrus(folder: Path) -> SiteLogs:
    """Nodes on one pool; then nodes that jobs share by their cores, as many as the most cores in use fill."""
    log = read_mapped(folder / "cirrus-2024-q1-sacct-subset.csv.gz", "cirrus")
    cores = np.minimum(log.jobs["cores_per_node"].to_numpy(np.int64), _CIRRUS)  # two jobs count threads
    nodes = log.jobs["nodes"].to_numpy(np.int64)
    plain = log.jobs.drop(columns=["nodes", "cores_per_node"])
    count = -(-most_in_use(log, nodes * cores) // _CIRRUS)
    cluster = Cluster(
        name="cirrus",
        nodes=(NodeGroup(name="n", count=count, cores=_CIRRUS),),
        partitions=(Partition(name="all", default=True, exclusive=False),),
    )
    shared = replace(log, jobs=log.jobs.assign(cores_per_node=cores))
    return SiteLogs(most_in_use(log, nodes), replace(log, jobs=plain), shared, cluster)


SITES: Mapping[str, Callable[[Path], SiteLogs]] = {
    "pozidriv": _pozidriv, "ThetaGPU": _thetagpu, "Cirrus": _cirrus, "Philly": _philly,
}  # fmt: skip


def site(name: str, folder: Path) -> dict[str, Any]:
    """Return how near all rules come to a site's record on one pool, and on its cluster."""
    _WORK.mkdir(parents=True, exist_ok=True)
    of = SITES[name](folder)
    pool, path = _WORK / f"{name}-pool.parquet", _WORK / f"{name}-cluster.parquet"
    write(of.pool, pool)
    document = fidelity.distances(pool, TEXTBOOK, nodes=of.nodes)
    has_users = bool((of.pool.jobs["user"] >= 0).any())  # else there are no shares to be fair about
    if has_users:
        one_pool = Cluster(name=name, nodes=(NodeGroup(name="n", count=of.nodes),))
        document["policies"] |= multifactor(pool, one_pool)
    documents = {"nodes": of.nodes, "pool": document}
    if of.cluster is not None:
        write(of.on_cluster, path)
        weighted = _written(replace(of.cluster, priority=PRIORITY))
        rules = (*TEXTBOOK, *((MULTIFACTOR,) if has_users else ()))
        documents["cluster"] = fidelity.distances(path, rules, cluster=str(weighted))
    return documents


def multifactor(path: Path, cluster: Cluster) -> dict[str, Any]:
    """Return how near the order with untuned weights comes to a log's record."""
    weighted = _written(replace(cluster, priority=PRIORITY))
    policies: dict[str, Any] = fidelity.distances(path, (MULTIFACTOR,), cluster=str(weighted))["policies"]
    return policies


def of_log(name: str) -> dict[str, Any]:
    """Return what `multifactor` does of a log on one pool."""
    path = logs.trace_file(name)
    nodes = machine_capacity(read(path))["nodes"]
    return multifactor(path, Cluster(name=name, nodes=(NodeGroup(name="n", count=nodes),)))


def _written(cluster: Cluster) -> Path:
    _WORK.mkdir(parents=True, exist_ok=True)
    path = _WORK / f"{cluster.name}-weighted.toml"
    write_cluster_toml(cluster, path)
    return path


def main(words: list[str]) -> None:
    folder, names = Path(words[0]), words[1:] or [*SITES, *fidelity.LOGS]
    sites, others = ([one for one in names if (one in SITES) is is_site] for is_site in (True, False))
    for kept, every, measure, wanted in (
        ("fidelity-sites", tuple(SITES), lambda one: site(one, folder), sites),
        ("fidelity-multifactor", fidelity.LOGS, of_log, others),
    ):
        if wanted:
            for name, _ in store.measure_logs(kept, every, measure, wanted, indent=1):
                print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
