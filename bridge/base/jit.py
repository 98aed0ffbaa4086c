"""How kernels are compiled: one Numba decorator, and a cache that can never be stale, nor anybody else's.

Numba's public interface, ``njit(cache=True)`` with a folder named after the digest, is not enough. Processor
time of `bridge replay bundled-128 --policy sjf+easy`, and jobs a second of its replay, on two busy cores:

=====================  ===========  ============  ================
way                    first start  second start  jobs a second
=====================  ===========  ============  ================
here                   37 s         2.0 s         709,000, 806,000
``njit(cache=True)``   over 156 s   3.2 s         612,000, 652,000
=====================  ===========  ============  ================
"""

import functools
import gc
import hashlib
import operator
import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from llvmlite.binding import PassBuilder, PipelineTuningOptions
from numba.core import (
    caching,
    codegen,
    compiler,
    cpu,
    event,
    typed_passes,
    types,
    untyped_passes,
)
from numba.core.serialize import dumps

from bridge.base import array_structs, kernel_files  # noqa: F401  (the first tells Numba of a type)
from bridge.base.cache import cache_root
from bridge.base.compile_notice import ANOTHER_PART, ELSEWHERE, FIRST_TIME, announce
from bridge.base.errors import BridgeError
from bridge.base.turns import Turn

F = TypeVar("F", bound=Callable[..., object])

#: The package, wherever in it this module is.
_TOP = __name__.partition(".")[0]
_PACKAGE = Path(str(sys.modules[_TOP].__file__)).parent
#: An import at the left margin: a module, and the names that come from it.
_IMPORT = re.compile(rb"^(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
#: What makes a function a kernel, and what is built into one.
_DECORATORS = frozenset({"hot", "inline", "inner", "kernel"})
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
#: What compiled code depends on beside its source; and the suffix of its files.
_VERSIONS = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
_SUFFIX = ".kernel"


def _imports(text: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield what a source text imports at its left margin: a module, and names that come from it."""
    for module, names, whole in _IMPORT.findall(text):
        words = re.sub(rb"#[^\n]*", b"", names).decode().strip("() \n").split(",")
        yield (module or whole).decode(), [word.split()[0] for word in words if word.split()]


def kernel_sources(package: Path = _PACKAGE, own: str = __name__) -> list[Path]:
    """Return the files that decide what the kernels of a package compile to, by following imports.

    A kernel calls kernels of other files, and has constants of other files built in; Numba's own staleness
    test misses both. So these are all files that make kernels, however deep they are, and whatever they take
    constants from. `own` is the import path of this module, wherever it is in the package.
    """
    top, (above, _, leaf) = f"{package.name}.", own.rpartition(".")

    def makes_kernels(text: bytes) -> bool:
        return leaf.encode() in text and any(
            (module == own and (not names or _DECORATORS & {*names})) or (module == above and leaf in names)
            for module, names in _imports(text)
        )

    this = package.parent.joinpath(*own.split(".")).with_suffix(".py")
    sources = {this: this.read_bytes()}
    for folder, _, files in os.walk(package, followlinks=True):  # what is linked is imported as well
        for path in (Path(folder, file) for file in files if file.endswith(".py")):
            if makes_kernels(text := path.read_bytes()):
                sources[path] = text
    todo = list(sources.values())
    while todo:
        for module, names in _imports(todo.pop()):
            if not f"{module}.".startswith(top):
                continue
            place = package.parent.joinpath(*module.split("."))
            taken = [place / f"{name}.py" for name in names]
            if not names or any(map(_CONSTANT.fullmatch, names)):
                taken += [place.with_suffix(".py"), place / "__init__.py"]
            for path in taken:
                if path not in sources and path.is_file():
                    sources[path] = path.read_bytes()
                    todo.append(sources[path])
    return sorted(sources)


def kernel_digest(package: Path = _PACKAGE, own: str = __name__) -> str:
    digest = hashlib.sha256()
    for path in kernel_sources(package, own):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(package)} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:16]


def kernel_cache() -> Path:
    how = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0" else ""
    return cache_root() / f"kernels-{kernel_digest()}{how}"


CACHE = kernel_cache()


@functools.cache
def _text_digest(file: str) -> str:
    """Return a digest of a source file; empty if there is none, as in a notebook."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


class _Cache(caching.FunctionCache):
    """The kept code of one kernel: in files that are trusted only if they are ours and whole.

    Whatever else there is, the kernel is compiled again; and a full disk is no reason to stop.
    """

    _warned = False

    def __init__(self, function: Callable[..., object]) -> None:
        """Numba's own looks for a place to write to, and reads pickles, whoever wrote them."""
        self._py_func = function
        self._source = _text_digest(function.__code__.co_filename)
        self._turns: dict[Path, Turn] = {}

    def _path(self, sig: Any, target: Any) -> Path:
        where = f"{self._py_func.__module__}.{self._py_func.__qualname__}"
        parts = (_VERSIONS, where, self._source, *self._index_key(sig, target))
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
        return CACHE / f"{re.sub(r'[^A-Za-z0-9_.]', '', where)[-100:]}-{key}{_SUFFIX}"

    @property
    def cache_path(self) -> str:
        return str(CACHE)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a kept kernel, or None. Numba's own first loads all it could compile, SciPy too: 0.3 s."""
        if not self._source:
            return None
        path = self._path(sig, target_context.codegen())
        code = _rebuilt(path, target_context)
        if code is None:
            turn = self._turns.setdefault(path, Turn(path))
            turn.wait(on_wait=lambda: announce(ELSEWHERE))
            code = _rebuilt(path, target_context)
            if code is not None:
                turn.end()
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._source:
            return
        path = self._path(sig, data.codegen)
        try:
            if not data.library.has_dynamic_globals and all(x.can_cache for x in data.lifted):
                kernel_files.write(path, dumps(data._reduce()))
        except BridgeError as error:
            if not _Cache._warned:
                why = getattr(error.__cause__, "strerror", None) or error.what
                print(
                    f"bridge: compiled code cannot be kept in {CACHE} ({why}), so every start compiles anew; "
                    "free some space, or set BRIDGE_CACHE to another folder",
                    file=sys.stderr,
                )
            _Cache._warned = True
        finally:
            if path in self._turns:
                self._turns[path].end()


def _rebuilt(path: Path, target_context: Any) -> Any:
    """Return the kernel that a file keeps; None if it has none that can be used."""
    kept = kernel_files.read(path)
    if kept is None:
        return None
    try:
        return compiler.CompileResult._rebuild(target_context, *pickle.loads(kept))
    except Exception:  # of another build of something below us: compile it again
        return None


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


class _Apart(_Part):
    """What kernels call where it stands, for it is too large to be compiled into each of them."""

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


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
        of = getattr(fn, "typing_key", fn)
        if of in (operator.getitem, operator.setitem) and isinstance(sig.args[0], types.Array):
            array, index, *value = sig.args
            fn, sig = of, sig.replace(args=(array, _unsigned(index), *value))
        return super().get_function(fn, sig, _firstcall)


class _KernelCompiler(compiler.Compiler):
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
        steps.passes = [
            (compiler_pass, words) for compiler_pass, words in steps.passes if compiler_pass not in _NEEDLESS
        ]
        steps.finalize()
        return [steps]


class _ScalarCompiler(_KernelCompiler):
    library = _Scalar


class _PartCompiler(_KernelCompiler):
    library = _Part


class _ApartCompiler(_KernelCompiler):
    library = _Apart


_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,  # nobody calls kernels from C
    "_nrt": False,  # kernels allocate nothing; counting references would cost ten times the simulation
}


def _compile(function: F, **options: Any) -> Any:
    options = {"pipeline_class": _KernelCompiler} | options
    compiled: Any = numba.njit(**_OPTIONS | options)(function)
    if compiled is not function:
        compiled._cache = _Cache(function)
    return compiled


def _part(function: F, **options: Any) -> Any:
    """Compile a function into kernels, once for all integers: not for each constant and each width."""
    options = {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler} | options
    compiled: Any = numba.njit(**_OPTIONS | options)(function)
    if compiled is not function:
        resolve = compiled.get_call_template
        compiled.get_call_template = lambda args, words: resolve(tuple(map(_wide, args)), words)
    return compiled


def kernel(function: F) -> F:
    """Compile a function that Python calls; ``NUMBA_DISABLE_JIT=1`` leaves it plain Python."""
    return cast(F, _compile(function))


def hot(function: F) -> F:
    """Compile a kernel that Python calls, and into the one kernel that calls it billions of times."""
    compiled = _compile(function, pipeline_class=_ScalarCompiler)
    part = _part(function, forceinline=True)
    if compiled is not function:
        compiled.get_call_template, compiled.get_overload = part.get_call_template, part.get_overload
    return cast(F, compiled)


def inner(function: F) -> F:
    """Compile a large function that only kernels call.

    Numba gives it what its first caller has, most often that it is copied to wherever it is called. So each
    loop is fast, but of a `Bundle` that is ``large`` the kernel would be so large that LLVM needs minutes.
    """
    copied, called = _part(function), _part(function, forceinline=False)
    if copied is function:
        return function
    return cast(F, _choose(lambda first: called if getattr(first, "large", False) else copied))


def inline(function: F) -> F:
    """Compile a small function, or one with a single caller, into the kernels that call it."""
    return cast(F, _part(function, forceinline=True))


def apart(function: F) -> F:
    """Return a kernel's function as one that other kernels call and never hold in themselves."""
    return cast(F, _part(getattr(function, "py_func", function), pipeline_class=_ApartCompiler))


def by_type(general: F, special: Callable[..., object], kind: type) -> F:
    """Return a function that is `special` where the first argument is a `kind`, else `general`.

    Both are `inline` or `inner`. Numba chooses by the argument's type: a kernel holds one of them only.
    """
    if not hasattr(general, "get_call_template"):  # NUMBA_DISABLE_JIT=1

        @functools.wraps(general)
        def choose(first: object, *others: object) -> object:
            return (special if isinstance(first, kind) else general)(first, *others)

        return cast(F, choose)
    return cast(
        F, _choose(lambda first: special if kind.__name__ in getattr(first, "kinds", ()) else general)
    )


def _choose(function_for: Callable[[Any], Any]) -> Any:
    """Return a function that is, in kernels, the one for the type of the first argument."""
    chosen: Any = numba.njit(**_OPTIONS)(_no_body)

    def get_call_template(args: Any, words: Any) -> Any:
        return function_for(args[0]).get_call_template(args, words)

    def get_overload(args: Any) -> Any:
        return function_for(args[0]).get_overload(args)

    chosen.get_call_template, chosen.get_overload = get_call_template, get_overload
    return chosen


def _no_body() -> None:
    """Stand for functions that are chosen by type."""


def entry(function: F, *first: object) -> F:
    """Return the machine code of a kernel that was compiled for one set of types only, else the kernel.

    `first`: the first arguments, by whose types one of several sets is chosen. For callers that always give
    the same types: Numba's own entry looks at every array's type at each call, which costs ten times as much
    as unpacking them.
    """
    kinds = tuple(map(numba.typeof, first))
    overloads = getattr(function, "overloads", {}).items()
    compiled = [code.entry_point for types_of, code in overloads if types_of[: len(kinds)] == kinds]
    return cast(F, compiled[0]) if len(compiled) == 1 else function


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


class _Notice(event.Listener):
    """Has it announced that a kernel of ours is compiled; one that is loaded from its file is no event."""

    def on_start(self, started: event.Event) -> None:
        if isinstance(getattr(started.data["dispatcher"], "_cache", None), _Cache):
            if is_compiled():
                announce(ANOTHER_PART)
            else:
                forget_old_kernels()
                announce(FIRST_TIME)

    def on_end(self, _event: event.Event) -> None:
        """Say nothing: what needed the kernel goes on."""


event.register("numba:compile", _NoGarbage())
event.register("numba:compile", _Notice())


def is_compiled() -> bool:
    """Tell whether an earlier process has left compiled kernels of exactly this source."""
    return bool(getattr(numba.config, "DISABLE_JIT", 0)) or any(
        kernel_files.read(path) is not None for path in CACHE.glob(f"*{_SUFFIX}")
    )
