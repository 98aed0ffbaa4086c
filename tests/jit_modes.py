"""Runs tests once more: with Numba's compiler switched off, or with every index of a kernel checked."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def passes_without_the_compiler(*tests: str, marked: str = "not slow") -> None:
    """Run these tests, by their paths in this folder, as plain Python. AssertionError: one fails.

    `marked`: which of them, by markers.
    """
    _passes(tests, marked, NUMBA_DISABLE_JIT="1")


def passes_with_checked_indices(*tests: str) -> None:
    """Run these tests with kernels that refuse an index that is negative or beyond; errors as above."""
    _passes(tests, "not slow", NUMBA_BOUNDSCHECK="1")


def _passes(tests: tuple[str, ...], marked: str, **how: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", marked]
    done = subprocess.run(
        [*command, *(str(TESTS / t) for t in tests)],
        cwd=TESTS.parent,
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | how,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
