"""What commands print fits on 80 columns, and is plain where colours are not wanted."""

import os
import re
import shlex
from pathlib import Path

import pytest
from cli_commands import read_until, run_ok, start_bridge

COMMANDS = (
    "replay bundled-128 --first 300 --by user",
    "evaluate bundled-128 --policy fcfs+easy --policy sjf+easy --policy wfp3+none --sequences 40 --length 16",
    "evaluate --scheduler pool --policy saf+rule --policy sjf --sequences 2 --steps 20",
    "workload info bundled-128",
    "workload list",
    "doctor",
    "policies",
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("line", COMMANDS)
def test_tables_fit_80_columns(line: str) -> None:
    wide = [text for text in run_ok(*shlex.split(line)).splitlines() if len(text) > 80 and "│" in text]
    assert wide == []


def test_the_verdict_is_whole() -> None:
    out = run_ok(*shlex.split(COMMANDS[1]))
    assert re.search(r"│ (better|worse|distinguishable) +│", out), out


@pytest.mark.parametrize("colours", [True, False])
def test_colours_are_as_the_user_wants_them(colours: bool, screen: tuple[int, int], folder: Path) -> None:
    ours, theirs = screen
    env = {"TERM": "xterm-256color", "NO_COLOR": "" if colours else "1", "COLUMNS": "80"}
    process = start_bridge("doctor", stdout=theirs, env=env)
    os.close(theirs)
    shown = read_until(ours)
    process.communicate(timeout=60)
    assert b"Python" in shown and folder.exists()
    assert not re.search(rb"\x1b\[(3|4|9|10)\d", shown)  # no colour at all where it is not wanted
