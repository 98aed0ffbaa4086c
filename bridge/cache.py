"""Where everything that can be made or fetched again is kept."""

import os
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """Return ``$BRIDGE_CACHE``, or the user's cache folder for bridge."""
    chosen = os.environ.get("BRIDGE_CACHE")
    return (
        Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("bridge", appauthor=False))
    )
