"""The kernels' cache follows what kernels are made of, and no disk is needed for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.base import jit, kernel_files

PACKAGE = Path(jit.__file__).parents[1]


def sources() -> set[str]:
    return {str(path.relative_to(PACKAGE)) for path in jit.kernel_sources()}


def test_every_file_that_makes_kernels_and_what_they_have_built_in_count() -> None:
    found = sources()
    assert {
        "base/jit.py",
        "scheduler/core.py",
        "worlds/fast/world.py",
        "judge/hosts.py",
        "env/rows.py",
    } <= found
    assert {"scheduler/state.py", "scheduler/names.py", "pool/state.py"} <= found  # constants alone
    assert {"base/arrays.py", "base/array_structs.py"} <= found  # what kernels are given
    assert not {"base/errors.py", "base/files.py", "cli/main.py", "scheduler/order.py"} & found


def a_package(folder: Path, own: str, **more: str) -> Path:
    """Write a package whose kernels are made by `own`, with constants that lie in further files."""
    package, jit_of = folder / own.partition(".")[0], f"from {own} import"
    for name, text in {
        "/".join(own.split(".")[1:]): "",
        "a/kernels": f"{jit_of} inline, kernel\n"
        "from bridge.b.numbers import (\n    FIRST,  # a, b\n    other,\n)\n",
        "b/numbers": "from bridge.b import deep\nfrom bridge.b.more import SECOND as _S\nFIRST = _S\n",
        "b/deep": "from bridge.b.words import text\n",
        "b/more": "SECOND = 2\n",
        "b/words": "text = ''\n",
        "b/other": f"{jit_of} is_compiled\n",
        "b/text": f"'{jit_of} kernel'\n",
        **more,
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).with_suffix(".py").write_text(text)
    return package


def sources_in(package: Path, own: str) -> set[str]:
    return {str(path.relative_to(package)) for path in jit.kernel_sources(package, own)}


FOLLOWED = {"a/kernels.py", "b/numbers.py", "b/deep.py", "b/more.py"}


@pytest.mark.parametrize("own", ["bridge.base.jit", "bridge.base.compiling.jit"])
def test_constants_are_followed_through_files(tmp_path: Path, own: str) -> None:
    """Wherever the module is that makes kernels."""
    package = a_package(tmp_path, own)
    assert sources_in(package, own) == FOLLOWED | {own.partition(".")[2].replace(".", "/") + ".py"}


@pytest.mark.parametrize(
    "text",
    [
        "from bridge.base.jit import kernel",
        "from bridge.base.jit import (\n    entry,\n    kernel as _k,\n)",
        "from bridge.base import errors, jit",
        "import bridge.base.jit",
    ],
)
@pytest.mark.parametrize("place", ["nested", "worlds/nested", "worlds/fast/much/deeper/nested"])
def test_a_kernel_at_any_depth_counts(tmp_path: Path, text: str, place: str) -> None:
    package = a_package(tmp_path, "bridge.base.jit", **{place: f"{text}\nNUMBER = 1\n"})
    assert sources_in(package, "bridge.base.jit") == FOLLOWED | {"base/jit.py", f"{place}.py"}
    before = jit.kernel_digest(package, "bridge.base.jit")
    (package / place).with_suffix(".py").write_text(f"{text}\nNUMBER = 2\n")
    assert jit.kernel_digest(package, "bridge.base.jit") != before


def test_what_makes_no_kernels_changes_no_digest(tmp_path: Path) -> None:
    one = a_package(tmp_path / "one", "bridge.base.jit")
    two = a_package(tmp_path / "two", "bridge.base.jit", new="TEXT = 1\n")
    assert jit.kernel_digest(one, "bridge.base.jit") == jit.kernel_digest(two, "bridge.base.jit")


def test_a_kernel_that_is_linked_into_the_package_counts(tmp_path: Path) -> None:
    package = a_package(tmp_path, "bridge.base.jit")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "mine.py").write_text("from bridge.base.jit import kernel\n")
    (package / "policies").symlink_to(tmp_path / "policies")
    assert sources_in(package, "bridge.base.jit") == FOLLOWED | {"base/jit.py", "policies/mine.py"}


def test_constants_of_a_package_itself_count(tmp_path: Path) -> None:
    text = "from bridge.base.jit import kernel\nfrom bridge.c import MOST\n"
    package = a_package(tmp_path, "bridge.base.jit", **{"a/more": text, "c/__init__": "MOST = 1\n"})
    assert sources_in(package, "bridge.base.jit") == FOLLOWED | {"base/jit.py", "a/more.py", "c/__init__.py"}


COMPILE = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from bridge.base.jit import kernel
@kernel
def double(x):
    return 2 * x
print(double(21), double(1.5))
"""


def compiled(
    cache: Path, tmp_path: Path, *words: str, text: str = COMPILE
) -> "subprocess.CompletedProcess[str]":
    script = tmp_path / "compile.py"
    script.write_text(text)
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"BRIDGE_CACHE": str(cache), "PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(
        [sys.executable, str(script), *words], env=env, capture_output=True, text=True, check=False
    )


def test_a_full_disk_is_told_once_and_the_work_goes_on(tmp_path: Path) -> None:
    done = compiled(tmp_path / "cache", tmp_path, "200")
    assert (done.returncode, done.stdout) == (0, "42 3.0\n"), done.stderr
    assert done.stderr.count("compiled code cannot be kept in") == 1
    assert "set BRIDGE_CACHE to another folder" in done.stderr


def test_a_folder_that_cannot_be_made_is_told_and_the_work_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = compiled(tmp_path / "file" / "cache", tmp_path)
    assert (done.returncode, done.stdout) == (0, "42 3.0\n"), done.stderr
    assert done.stderr.count("compiled code cannot be kept in") == 1


NESTED = """
from bridge.base.compile_notice import on_compile_progress
from bridge.base.jit import hot, inline, kernel
told = []
on_compile_progress(lambda done, over: told.append((done, over)))
@inline
def same(x):
    return x
@hot
def double(x):
    return same(x) + same(2 * x) - same(x)
@kernel
def triple(x):
    return double(x) + x
print(triple(1), double(1), told)
"""


def test_one_hears_of_each_function_that_is_compiled(tmp_path: Path) -> None:
    """Functions are compiled once for kernels, whatever constants they get; hot ones for Python as well."""
    done = compiled(tmp_path / "cache", tmp_path, text=NESTED)
    within = [(0, False)] * 3 + [(1, False), (2, False), (3, True)]  # triple, in it double, in it same
    assert (done.stdout, done.stderr) == (f"3 2 {[*within, (3, False), (4, True)]}\n", FIRST_TIME)


FIRST_TIME, ANOTHER_PART = (
    f"bridge: compiling {what}, once on this machine (up to a minute)…\n"
    for what in ("the scheduler", "another part of the scheduler")
)


def test_one_line_says_that_kernels_are_compiled_and_none_that_they_are_loaded(tmp_path: Path) -> None:
    """Two kernels are compiled at first, of whole numbers and of others; then two of another source."""
    other = COMPILE.replace("2 * x", "4 * x")
    for text, out, err in (
        (COMPILE, "42 3.0\n", FIRST_TIME),
        (COMPILE, "42 3.0\n", ""),
        (other, "84 6.0\n", ANOTHER_PART),
        (other, "84 6.0\n", ""),
    ):
        done = compiled(tmp_path / "cache", tmp_path, text=text)
        assert (done.returncode, done.stdout, done.stderr) == (0, out, err)


def test_the_users_own_functions_are_not_the_scheduler(tmp_path: Path) -> None:
    text = "import numba\nfrom bridge.base import jit\nprint(numba.njit(lambda x: 2 * x)(21))\n"
    done = compiled(tmp_path / "cache", tmp_path, text=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


PLANTED = """
import os, pickle, sys
class Planted:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1],)
sys.stdout.buffer.write(pickle.dumps(Planted()))
"""


def test_what_is_damaged_or_planted_is_compiled_again(tmp_path: Path) -> None:
    """An empty file, half a file, a pickle that runs: none of them is loaded, and each is replaced."""
    cache, sprung = tmp_path / "cache", tmp_path / "sprung"
    compiled(cache, tmp_path)
    files = sorted(cache.glob("kernels-*/*.kernel"))
    assert len(files) == 2  # of whole numbers, and of others
    right = [file.read_bytes() for file in files]
    pickled = subprocess.run([sys.executable, "-c", PLANTED, str(sprung)], capture_output=True, check=True)
    half, bomb = right[0][: len(right[0]) // 2], pickled.stdout
    for texts in ((b"", bomb), (half, right[1][:32] + bomb)):
        for file, text in zip(files, texts, strict=True):
            file.write_bytes(text)
        done = compiled(cache, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "42 3.0\n", FIRST_TIME)
        assert not sprung.exists()
        assert all(kernel_files.read(file) for file in files)
        assert sorted(cache.glob("kernels-*/*")) == files


def test_a_kernel_is_loaded_that_was_kept(tmp_path: Path) -> None:
    text = COMPILE + "print(sum(double.stats.cache_hits.values()), sum(double.stats.cache_misses.values()))\n"
    assert compiled(tmp_path / "cache", tmp_path, text=text).stdout == "42 3.0\n0 2\n"
    assert compiled(tmp_path / "cache", tmp_path, text=text).stdout == "42 3.0\n2 0\n"
    other = text.replace("2 * x", "4 * x")
    assert compiled(tmp_path / "cache", tmp_path, text=other).stdout == "84 6.0\n0 2\n"


INDICES = """
import numpy as np
from bridge.base.jit import inner, kernel
@inner
def read(x, i, k):
    return x[i, k]
@kernel
def swap(x, i):
    first, x[1, i] = read(x, 1, i), 9
    return first
print(swap(np.arange(6).reshape(2, 3), -1))
print(swap(np.arange(6).reshape(2, 3), 3))
"""


def test_no_index_counts_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row before is what stands there; where indices are checked it is an error, as is one too large."""
    text = INDICES.rpartition("print")[0]
    assert compiled(tmp_path / "cache", tmp_path, text=text).stdout == "2\n"
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    for refused in (text, INDICES.replace("print(swap(np.arange(6).reshape(2, 3), -1))\n", "")):
        done = compiled(tmp_path / "cache", tmp_path, text=refused)
        assert done.stderr.endswith("IndexError: index is out of bounds\n")
