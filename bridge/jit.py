"""How kernels are compiled: one Numba decorator, and a cache that can never be stale."""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from bridge.cache import cache_root

F = TypeVar("F", bound=Callable[..., object])

_PACKAGE = Path(__file__).parent
#: An import of ours: the module, and the names that come from it; and what is built into a kernel.
_IMPORT = re.compile(rb"^from (bridge[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_MAKES_KERNELS = re.compile(rb"^from bridge\.jit import [^\n]*\b(hot|inline|inner|kernel)\b", re.MULTILINE)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")


def kernel_sources() -> list[Path]:
    """Return the files that decide what the kernels compile to, by following imports.

    A kernel calls kernels of other files, and has constants of other files built in; Numba's own staleness
    test misses both. So these are all files that make kernels, and whatever they take constants from.
    """
    found = {Path(__file__): b""}
    for path in _PACKAGE.glob("*/*.py"):
        if _MAKES_KERNELS.search(text := path.read_bytes()):
            found[path] = text
    todo = list(found.values())
    while todo:
        for package, words in _IMPORT.findall(todo.pop()):
            names = [word.split()[0] for word in words.decode().strip("()").split(",") if word.split()]
            folder = _PACKAGE.parent.joinpath(*package.decode().split("."))
            taken = [folder / f"{name}.py" for name in names]
            if any(map(_CONSTANT.fullmatch, names)):
                taken.append(folder.with_suffix(".py"))
            for path in taken:
                if path not in found and path.is_file():
                    found[path] = path.read_bytes()
                    todo.append(found[path])
    return sorted(found)


def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in kernel_sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def kernel_cache() -> Path:
    """Return the folder of compiled kernels, named after the kernels' source text."""
    return cache_root() / f"kernels-{_source_digest()}"


def _can_keep(folder: Path) -> bool:
    """Tell whether compiled code can be kept in a folder; say so if not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        _warn(error, folder)
        return False
    return True


def _warn(error: OSError, folder: Path) -> None:
    print(
        f"bridge: compiled code cannot be kept in {folder} ({error.strerror}), so every start compiles anew; "
        "free some space, or set BRIDGE_CACHE to another folder",
        file=sys.stderr,
    )


CACHE = Path(os.environ.setdefault("NUMBA_CACHE_DIR", str(kernel_cache())))

import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when it is imported)
from numba.core import caching  # noqa: E402

setattr(numba.config, "CACHE_DIR", str(CACHE))  # noqa: B010  (numba may have been imported before us)
_warned: set[str] = set()


class _Cache(caching.FunctionCache):
    """Numba's cache of one kernel, without what only compiling needs, and without an end on a full disk."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel. Numba's own first loads all it could compile, SciPy too: 0.3 s."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel; a full disk is no reason to stop."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            if not _warned:
                _warn(error, CACHE)
            _warned.add(str(error))


_KEPT = _can_keep(CACHE)
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,  # nobody calls kernels from C
    "_nrt": False,  # kernels allocate nothing; counting references would cost ten times the simulation
}
_INNER = {"no_cpython_wrapper": True}


def _compile(function: F, **options: Any) -> F:
    made = numba.njit(**_OPTIONS | options)(function)
    if _KEPT and made is not function:
        made._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(F, made)


def kernel(function: F) -> F:
    """Compile a function that Python calls; ``NUMBA_DISABLE_JIT=1`` leaves it plain Python."""
    return _compile(function)


def hot(function: F) -> F:
    """Compile a kernel that Python calls, and into the one kernel that calls it billions of times."""
    return _compile(function, forceinline=True)


def inner(function: F) -> F:
    """Compile a large function that only kernels call."""
    return _compile(function, **_INNER)


def inline(function: F) -> F:
    """Compile a small function, or one with a single caller, into the kernels that call it."""
    return _compile(function, **_INNER, forceinline=True)


def entry(function: F) -> F:
    """Return the machine code of a kernel that was compiled for one set of types only, else the kernel.

    For callers that always give the same types: Numba's own entry looks at every array's type at each call,
    which costs ten times as much as unpacking them.
    """
    compiled = list(getattr(function, "overloads", {}).values())
    return cast(F, compiled[0].entry_point) if len(compiled) == 1 else function


def forget_old_kernels(keep: int = 4) -> None:
    """Delete compiled kernels of older sources but the `keep` newest (each takes some 10 MB)."""
    folders = sorted(cache_root().glob("kernels-*"), key=lambda f: f.stat().st_mtime, reverse=True)
    for folder in folders[keep:]:
        if folder != CACHE:
            shutil.rmtree(folder, ignore_errors=True)


def is_compiled() -> bool:
    """Tell whether an earlier process has left compiled kernels of exactly this source."""
    return bool(getattr(numba.config, "DISABLE_JIT", 0)) or any(CACHE.glob("**/*.nbi"))
