"""Versions of everything that can change a result, for the record of a run."""

import platform
from importlib.metadata import PackageNotFoundError, version

import bridge


def versions() -> dict[str, str]:
    """Return name → version of bridge, Python and the libraries that compute."""
    found = {"bridge": bridge.__version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "pandas"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
