"""Files of clusters: read and written as TOML, and the digest of what they say."""

import hashlib
import json
from pathlib import Path
from typing import Any

from bridge.base import files
from bridge.cluster.description import Cluster
from bridge.config import from_tables, parse_toml
from bridge.config.convert import sparse_tables
from bridge.config.toml_lines import TomlLines


def read_cluster_toml(path: str | Path) -> Cluster:
    """Return the cluster of a TOML file; BridgeError names file and line of a mistake."""
    return read_with_lines(path)[0]


def read_with_lines(path: str | Path) -> tuple[Cluster, TomlLines]:
    """Return the cluster of a TOML file, and where its fields stand."""
    path = Path(path)
    text = files.read_text(path)
    document = parse_toml(text.encode(), str(path))
    lines = TomlLines.of_text(text, str(path))
    return from_tables(Cluster, document, lines), lines


def cluster_tables(cluster: Cluster) -> dict[str, Any]:
    tables: dict[str, Any] = sparse_tables(cluster)
    return tables


def write_cluster_toml(cluster: Cluster, path: str | Path, comment: str = "") -> None:
    """Write a cluster as TOML, whole or not at all; `comment` stands above it."""
    import tomli_w

    head = "".join(f"# {line}\n" if line else "#\n" for line in comment.splitlines())
    text = tomli_w.dumps(cluster_tables(cluster))
    with files.open_write(Path(path)) as file:
        file.write(f"{head}\n{text}".encode() if head else text.encode())


def cluster_digest(cluster: Cluster) -> str:
    """Return the SHA-256 of a cluster's contents, whatever its file or form."""
    text = json.dumps(cluster_tables(cluster), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
