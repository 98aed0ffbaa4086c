"""Runs tests once more with Numba's compiler switched off."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def passes_without_the_compiler(*tests: str) -> None:
    """Run these tests, by their paths in this folder, as plain Python.

    Raises:
        AssertionError: one fails, or there is none.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *(str(TESTS / t) for t in tests),
        ],
        cwd=TESTS.parent,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
