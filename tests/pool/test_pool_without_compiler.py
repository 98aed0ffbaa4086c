"""The slotted pool is plain Python: its tests pass with Numba's compiler switched off."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_the_pool_runs_without_the_compiler() -> None:
    tests = [
        str(HERE / f"test_pool_{name}.py") for name in ("machine", "rules", "encode", "pools", "outlook")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=HERE.parents[1],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
