"""Where the files that come with bridge lie: workloads and platforms."""

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def _folders(kind: str) -> Iterator[Path]:
    """Yield the folders that may hold the files of a kind, the best first."""
    # In a checkout (also an editable installation) they lie beside the package ...
    yield Path(__file__).resolve().parents[1] / kind
    # ... and an installation puts them into the environment's share folder.
    schemes = {sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")}
    prefixes = [sysconfig.get_path("data", scheme) for scheme in sorted(schemes)]
    for prefix in dict.fromkeys([*prefixes, sys.prefix]):
        yield Path(prefix) / "share" / "hpc-bridge" / kind


def shipped(kind: str, suffix: str) -> dict[str, Path]:
    """Return the files of a kind (``workloads``, ``platforms``) by their names without the suffix."""
    found: dict[str, Path] = {}
    for folder in _folders(kind):
        for path in sorted(folder.glob(f"*{suffix}")):
            found.setdefault(path.name.removesuffix(suffix), path)
    return found
