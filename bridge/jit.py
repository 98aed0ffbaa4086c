"""How kernels are compiled: one Numba decorator, and a cache that can never be stale."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from bridge.cache import cache_root

F = TypeVar("F", bound=Callable[..., object])

_PACKAGE = Path(__file__).parent
#: Where kernels may stand. A kernel calls kernels of other files, which Numba's own staleness test misses.
_FOLDERS = ("scheduler", "fast", "judge", "encode", "env", "pool")
#: What the kernels' records look like.
_RECORDS = "state.py"


def _source_digest() -> str:
    digest = hashlib.sha256()
    files = [file for name in _FOLDERS for file in sorted((_PACKAGE / name).glob("*.py"))]
    for file in [Path(__file__), *files]:
        text = file.read_bytes()
        if b"from bridge.jit import" in text or file.name in (_RECORDS, Path(__file__).name):
            digest.update(text)
    return digest.hexdigest()[:16]


def kernel_cache() -> Path:
    """Return the folder of compiled kernels, named after the kernels' source text."""
    return cache_root() / f"kernels-{_source_digest()}"


CACHE = Path(os.environ.setdefault("NUMBA_CACHE_DIR", str(kernel_cache())))

import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when it is imported)

setattr(numba.config, "CACHE_DIR", str(CACHE))  # noqa: B010  (numba may have been imported before us)
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "nogil": True,
    "_nrt": False,  # kernels allocate nothing; counting references would cost ten times the simulation
}
_INNER = {"no_cpython_wrapper": True}
_kernel = numba.njit(**_OPTIONS)
_hot = numba.njit(**_OPTIONS, forceinline=True)
_inner = numba.njit(**_OPTIONS | _INNER)
_inline = numba.njit(**_OPTIONS | _INNER, forceinline=True)


def kernel(function: F) -> F:
    """Compile a function that Python calls; ``NUMBA_DISABLE_JIT=1`` leaves it plain Python."""
    return cast(F, _kernel(function))


def hot(function: F) -> F:
    """Compile a kernel that Python calls, and into the one kernel that calls it billions of times."""
    return cast(F, _hot(function))


def inner(function: F) -> F:
    """Compile a large function that only kernels call."""
    return cast(F, _inner(function))


def inline(function: F) -> F:
    """Compile a small function, or one with a single caller, into the kernels that call it."""
    return cast(F, _inline(function))


def forget_old_kernels(keep: int = 4) -> None:
    """Delete compiled kernels of older sources but the `keep` newest (each takes some 10 MB)."""
    folders = sorted(cache_root().glob("kernels-*"), key=lambda f: f.stat().st_mtime, reverse=True)
    for folder in folders[keep:]:
        if folder != CACHE:
            shutil.rmtree(folder, ignore_errors=True)


def is_compiled() -> bool:
    """Tell whether an earlier process has left compiled kernels of exactly this source."""
    return bool(getattr(numba.config, "DISABLE_JIT", 0)) or any(CACHE.glob("**/*.nbi"))
