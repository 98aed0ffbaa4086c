"""Where the files that come with bridge lie: workloads, platforms and trained agents."""

from pathlib import Path

#: In a checkout links to the folders at its top; in an installed package the files themselves.
_DATA = Path(__file__).resolve().parent / "data"


def shipped(kind: str, suffix: str) -> dict[str, Path]:
    """Return the files of a kind (``workloads``, ``platforms``) by their names without the suffix."""
    return {path.name.removesuffix(suffix): path for path in sorted((_DATA / kind).glob(f"*{suffix}"))}


def shipped_agents() -> dict[str, Path]:
    """Return the folders of the trained agents that come with bridge, by ``zoo/NAME``."""
    return {f"zoo/{path.parent.name}": path.parent for path in sorted((_DATA / "zoo").glob("*/agent.json"))}
