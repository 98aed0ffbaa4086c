"""How kernels are compiled: one Numba decorator, and a cache that can never be stale."""

import gc
import hashlib
import operator
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
    found = {Path(__file__): Path(__file__).read_bytes()}
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
    how = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0" else ""
    return cache_root() / f"kernels-{_source_digest()}{how}"


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
from llvmlite.binding import PassBuilder, PipelineTuningOptions  # noqa: E402
from numba.core import (  # noqa: E402
    caching,
    codegen,
    compiler,
    cpu,
    event,
    typed_passes,
    types,
    untyped_passes,
)

from bridge import bundles  # noqa: E402, F401  (tells Numba of a type)

setattr(numba.config, "CACHE_DIR", str(CACHE))  # noqa: B010  (numba may have been imported before us)
_warned: set[str] = set()


class _Cache(caching.FunctionCache):
    """Numba's cache of one kernel, without what only compiling needs, and without an end on a full disk."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel. Numba's own first loads all it could compile, SciPy too: 0.3 s."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel; a full disk is no reason to stop."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            if not _warned:
                _warn(error, CACHE)
            _warned.add(str(error))


class _Part(codegen.JITCodeLibrary):
    """What kernels call: optimised and made machine code with each of them, not before for itself as well."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """Return that there is no such function in memory."""
        return 0

    @property
    def codegen(self) -> Any:
        """Who would set the function's environment, which nothing in it reads."""
        return self

    def set_env(self, _name: str, _env: object) -> None:
        """Set nothing: the environment's place is in the kernels."""


class _Kernel(codegen.JITCodeLibrary):
    """What Python calls. Loops are not unrolled: they branch, and it would be twice the code and slower."""

    vectors = True

    def _optimize_final_module(self) -> None:
        tuning = PipelineTuningOptions(3)
        tuning.loop_unrolling = tuning.loop_interleaving = tuning.slp_vectorization = False
        tuning.loop_vectorization = self.vectors
        passes = PassBuilder(self._codegen._tm, tuning)
        passes.getModulePassManager().run(self._final_module, passes)


class _Scalar(_Kernel):
    """A kernel that walks from case to case: vectors would be a fifth of its compiling, and win nothing."""

    vectors = False


#: Of closures and comprehensions, and of whole-array expressions: no kernel has any.
_NEEDLESS = (untyped_passes.InlineClosureLikes, typed_passes.NopythonRewrites)


def _wide(kind: Any) -> Any:
    kind = getattr(kind, "literal_type", kind)
    return types.int64 if kind in types.signed_domain else kind


def _unsigned(index: Any) -> Any:
    """Return the type of an index that is read as it stands: a signed one may count from the end."""
    if parts := getattr(index, "types", None):
        return types.BaseTuple.from_types([_unsigned(part) for part in parts])
    return types.uintp if _wide(index) in types.signed_domain else index


class _Target(cpu.CPUContext):
    """Numba's target, but that no index counts from an array's end: to ask that took an eighth of the time.

    A negative one is a mistake as any other beyond an array: with ``NUMBA_BOUNDSCHECK=1`` all are refused.
    """

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """Return what makes code of a function."""
        of = getattr(fn, "typing_key", fn)
        if of in (operator.getitem, operator.setitem) and isinstance(sig.args[0], types.Array):
            array, index, *value = sig.args
            fn, sig = of, sig.replace(args=(array, _unsigned(index), *value))
        return super().get_function(fn, sig, _firstcall)


class _KernelCompiler(compiler.Compiler):
    """Numba's compiler, for a `_Kernel`."""

    library: type[codegen.JITCodeLibrary] = _Kernel

    def __init__(self, typing: Any, target: Any, _library: None, *rest: Any) -> None:
        library = self.library(target.codegen(), "bridge")
        library.enable_object_caching()
        target = target.subtarget()
        target.__class__ = _Target
        super().__init__(typing, target, library, *rest)

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes but for those that rewrite what no kernel has."""
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [(made, words) for made, words in steps.passes if made not in _NEEDLESS]
        steps.finalize()
        return [steps]


class _ScalarCompiler(_KernelCompiler):
    """Numba's compiler, for a `_Scalar`."""

    library = _Scalar


class _PartCompiler(_KernelCompiler):
    """Numba's compiler, for a `_Part`."""

    library = _Part


_KEPT = _can_keep(CACHE)
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,  # nobody calls kernels from C
    "_nrt": False,  # kernels allocate nothing; counting references would cost ten times the simulation
}


def _compile(function: F, **options: Any) -> Any:
    options = {"pipeline_class": _KernelCompiler} | options
    made: Any = numba.njit(**_OPTIONS | options)(function)
    if _KEPT and made is not function:
        made._cache = _Cache(function)
    return made


def _part(function: F, **options: Any) -> Any:
    """Compile a function into kernels, once for all integers: not for each constant and each width."""
    options |= {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
    made: Any = numba.njit(**_OPTIONS | options)(function)
    if made is not function:
        resolve = made.get_call_template
        made.get_call_template = lambda args, words: resolve(tuple(map(_wide, args)), words)
    return made


def kernel(function: F) -> F:
    """Compile a function that Python calls; ``NUMBA_DISABLE_JIT=1`` leaves it plain Python."""
    return cast(F, _compile(function))


def hot(function: F) -> F:
    """Compile a kernel that Python calls, and into the one kernel that calls it billions of times."""
    made = _compile(function, pipeline_class=_ScalarCompiler)
    part = _part(function, forceinline=True)
    if made is not function:
        made.get_call_template, made.get_overload = part.get_call_template, part.get_overload
    return cast(F, made)


def inner(function: F) -> F:
    """Compile a large function that only kernels call."""
    return cast(F, _part(function))


def inline(function: F) -> F:
    """Compile a small function, or one with a single caller, into the kernels that call it."""
    return cast(F, _part(function, forceinline=True))


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


class _NoGarbage(event.Listener):
    """Looks for no garbage while kernels compile: that is a tenth of the time, for a few megabytes."""

    def __init__(self) -> None:
        self._open, self._looks = 0, True

    def on_start(self, _event: event.Event) -> None:
        if not self._open:
            self._looks = gc.isenabled()
            gc.disable()
        self._open += 1

    def on_end(self, _event: event.Event) -> None:
        self._open -= 1
        if not self._open and self._looks:
            gc.enable()


event.register("numba:compile", _NoGarbage())


class _Count(event.Listener):
    def __init__(self, tell: Callable[[int, bool], None]) -> None:
        self._tell, self._open, self._done = tell, 0, 0

    def on_start(self, _event: event.Event) -> None:
        self._open += 1
        self._tell(self._done, False)

    def on_end(self, _event: event.Event) -> None:
        self._open -= 1  # of functions within each other
        self._done += 1
        self._tell(self._done, not self._open)


def follow_compiling(tell: Callable[[int, bool], None]) -> None:
    """Tell from now on how many functions were compiled, and whether the kernel is done that needed them."""
    event.register("numba:compile", _Count(tell))


def is_compiled() -> bool:
    """Tell whether an earlier process has left compiled kernels of exactly this source."""
    return bool(getattr(numba.config, "DISABLE_JIT", 0)) or any(CACHE.glob("**/*.nbi"))
