"""The kernels' cache follows what kernels are made of, and no disk is needed for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import jit

PACKAGE = Path(jit.__file__).parent


def sources() -> set[str]:
    return {str(path.relative_to(PACKAGE)) for path in jit.kernel_sources()}


def test_every_file_that_makes_kernels_and_what_they_have_built_in_count() -> None:
    found = sources()
    assert {"jit.py", "scheduler/machine.py", "fast/world.py", "judge/hosts.py", "encode/rows.py"} <= found
    assert {"scheduler/state.py", "scheduler/names.py", "pool/state.py"} <= found  # constants alone
    assert {"bundles.py", "arrays.py"} <= found  # what kernels are given
    assert not {"errors.py", "files.py", "cli/main.py", "scheduler/order.py"} & found


def test_constants_are_followed_through_files(tmp_path: Path, monkeypatch: object) -> None:
    package = tmp_path / "bridge"
    for name, text in {
        "jit": "",
        "a/kernels": "from bridge.jit import inline, kernel\n"
        "from bridge.b.numbers import (\n    FIRST,\n    other,\n)\n",
        "b/numbers": "from bridge.b import deep\nfrom bridge.b.more import SECOND as _S\nFIRST = _S\n",
        "b/deep": "from bridge.b.words import text\n",
        "b/more": "SECOND = 2\n",
        "b/words": "text = ''\n",
        "b/other": "from bridge.jit import is_compiled\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).with_suffix(".py").write_text(text)
    monkeypatch.setattr(jit, "_PACKAGE", package)  # type: ignore[attr-defined]
    monkeypatch.setattr(jit, "__file__", str(package / "jit.py"))  # type: ignore[attr-defined]
    assert sources_in(package) == {"jit.py", "a/kernels.py", "b/numbers.py", "b/deep.py", "b/more.py"}


def sources_in(package: Path) -> set[str]:
    return {str(path.relative_to(package)) for path in jit.kernel_sources()}


COMPILE = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from bridge.jit import kernel
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
from bridge.jit import follow_compiling, hot, inline, kernel
told = []
follow_compiling(lambda done, over: told.append((done, over)))
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
    assert (done.stdout, done.stderr) == (f"3 2 {[*within, (3, False), (4, True)]}\n", "")


def test_with_room_nothing_is_said(tmp_path: Path) -> None:
    done = compiled(tmp_path / "cache", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42 3.0\n", "")


INDICES = """
import numpy as np
from bridge.jit import inner, kernel
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
