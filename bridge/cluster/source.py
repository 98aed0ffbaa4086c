"""The cluster that a name stands for: a file, in TOML or as slurm.conf, or one that comes with bridge.

Settings name clusters, so that this imports nothing heavy before a cluster is read.
"""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.base import files
from bridge.base.cache import bundled_files
from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean_file

if TYPE_CHECKING:
    from bridge.cluster.description import Cluster
    from bridge.cluster.imported import ImportedCluster


def cluster_file(name: str) -> Path:
    """Return the file of a cluster: a path, or the name of one that comes with bridge; else BridgeError."""
    path = Path(name)
    if files.is_there(path, Path.is_file):
        return path
    shipped = bundled_files("clusters", ".toml")
    if name in shipped:
        return shipped[name]
    what = "is neither a file nor the name of a cluster that comes with bridge"
    hint = did_you_mean_file(path, shipped)
    raise BridgeError(what, where=f"cluster {name!r}", remedy=f"{hint}There are: {', '.join(shipped)}.")


def read_cluster(name: str) -> "Cluster":
    """Return a cluster that schedulers can use; BridgeError: it cannot be read, or contradicts itself."""
    path = cluster_file(name)
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


def digest_of_cluster(name: str) -> str:
    from bridge.cluster.clusterfile import cluster_digest

    return cluster_digest(read_cluster(name))


@lru_cache(maxsize=64)
def _read(path: Path, _changed: int, _size: int) -> "Cluster":
    from bridge.cluster.check import require_consistent

    imported = open_cluster(path)
    require_consistent(imported.cluster, imported.place)
    return imported.cluster


def open_cluster(path: Path) -> "ImportedCluster":
    """Return the cluster of a TOML file or a slurm.conf, whatever is wrong with it, with places of fields."""
    if path.suffix == ".toml":
        from bridge.cluster.clusterfile import read_with_lines
        from bridge.cluster.imported import ImportedCluster

        cluster, lines = read_with_lines(path)
        places = {field: f"{lines.where}:{line}" for field, line in lines.lines.items()}
        return ImportedCluster(cluster, places=places, where=lines.where)
    from bridge.cluster.slurm_site import import_slurm

    return import_slurm(path)
