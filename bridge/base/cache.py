"""Where files lie: those that come with bridge, and all that can be made or fetched again."""

import os
from pathlib import Path

import platformdirs

from bridge.base.files import is_there

#: The file that makes a folder an agent's: its recipe, and where it comes from.
AGENT = "agent.json"


def cache_root() -> Path:
    """Return ``$BRIDGE_CACHE``, or the user's cache folder for bridge."""
    chosen = os.environ.get("BRIDGE_CACHE")
    return (
        Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("bridge", appauthor=False))
    )


#: In a checkout links to the folders at its top; in an installed package the files themselves.
_DATA = Path(__file__).resolve().parents[1] / "data"


def bundled_files(kind: str, suffix: str) -> dict[str, Path]:
    """Return the files of a kind (``workloads``, ``platforms``) by their names without the suffix."""
    return {path.name.removesuffix(suffix): path for path in sorted((_DATA / kind).glob(f"*{suffix}"))}


def shipped_agents() -> dict[str, Path]:
    """Return the folders of the trained agents that come with bridge, by ``zoo/NAME``."""
    return {f"zoo/{path.parent.name}": path.parent for path in sorted((_DATA / "zoo").glob(f"*/{AGENT}"))}


def is_checkpoint(path: str | Path) -> bool:
    return is_there(Path(path) / AGENT, Path.is_file)
