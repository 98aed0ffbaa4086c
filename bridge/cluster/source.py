"""The cluster that a name stands for: a file, in TOML or as slurm.conf, or one that comes with bridge."""

from functools import lru_cache
from pathlib import Path

from bridge.base import files
from bridge.base.cache import bundled_files
from bridge.base.errors import BridgeError
from bridge.cluster.check import require_consistent
from bridge.cluster.clusterfile import cluster_digest, read_cluster_toml
from bridge.cluster.description import Cluster


def cluster_file(name: str) -> Path:
    """Return the file of a cluster: a path, or the name of one that comes with bridge; else BridgeError."""
    path = Path(name)
    if files.is_there(path, Path.is_file):
        return path
    shipped = bundled_files("clusters", ".toml")
    if name in shipped:
        return shipped[name]
    what = "is neither a file nor the name of a cluster that comes with bridge"
    raise BridgeError(what, where=f"cluster {name!r}", remedy=f"There are: {', '.join(shipped)}.")


def read_cluster(name: str) -> Cluster:
    """Return a cluster that schedulers can use; BridgeError: it cannot be read, or contradicts itself."""
    path = cluster_file(name)
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


def digest_of_cluster(name: str) -> str:
    """Return the digest of a cluster's contents; errors as `read_cluster`."""
    return cluster_digest(read_cluster(name))


@lru_cache(maxsize=64)
def _read(path: Path, _changed: int, _size: int) -> Cluster:
    if path.suffix == ".toml":
        cluster = read_cluster_toml(path)
    else:
        from bridge.cluster.slurm_site import import_slurm

        cluster = import_slurm([path]).cluster
    require_consistent(cluster, str(path))
    return cluster
