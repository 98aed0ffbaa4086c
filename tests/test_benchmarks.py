"""Every benchmark can be imported: a module that moved, or a name that changed, is noticed here."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("script", BENCHMARKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    names = runpy.run_path(str(script), run_name="imported")
    assert "main" in names or script.name == "bench.py"  # which the others of its folder import
