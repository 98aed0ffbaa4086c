"""Fixtures of the tests of commands: each test works in an empty folder that holds the small log."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_commands import LINES, ODD, TINY


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, on a screen of 120 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def screen() -> Iterator[tuple[int, int]]:
    """Open a terminal: where its output can be read, and where a command writes it."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


@pytest.fixture
def tiny(folder: Path) -> str:
    (folder / "tiny.swf").write_text(TINY)
    return "tiny.swf"


@pytest.fixture
def odd(folder: Path) -> str:
    """Write the small log, a cancelled job and one larger than the machine as ``odd.swf``."""
    (folder / "odd.swf").write_text("; MaxProcs: 4\n" + "".join([*LINES, *ODD]))
    return "odd.swf"
