"""The platform model's interpreter has nothing of ours but the source tree: it can import all of the wire."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wire_needs_the_standard_library_alone() -> None:
    modules = sorted(f"bridge.wire.{path.stem}" for path in (ROOT / "bridge/wire").glob("[a-z]*.py"))
    code = f"import sys; sys.path.append({str(ROOT)!r}); import bridge.base.errors, {', '.join(modules)}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
