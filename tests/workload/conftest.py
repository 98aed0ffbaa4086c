"""Files that a test reads, and commands that it types."""

import json
from pathlib import Path

import pytest
from workload_strategies import Written


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where logs are fetched to. Kernels stay where they are kept: else each file would compile them anew."""
    monkeypatch.setattr("bridge.workload.catalogue.cache_root", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """What writes a text, or a value as JSON, to a file of this name and returns its path."""

    def write(content: object, name: str = "") -> Path:
        path = tmp_path / (name or ("a.swf" if isinstance(content, str) else "a.json"))
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write
