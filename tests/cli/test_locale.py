"""Under LC_ALL=C every command prints, and every file is read and written as UTF-8."""

import os
from pathlib import Path

import pytest
from cli_commands import TINY
from subprocess_python import run_python

ROOT = Path(__file__).parents[2]
ASCII = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONWARNDEFAULTENCODING": "1"}
CODE = """
import sys
from bridge.cli.main import main

for words in sys.argv[1:]:
    status = main(words.split())
    assert status == 0, (words, status)
"""
COMMANDS = (
    "workload info t.swf",
    "replay t.swf --policy sjf+easy --out sjf",
    "replay t.swf --policy fcfs+easy --out fcfs --by user",
    "compare fcfs sjf",
    "evaluate t.swf --policy fcfs+easy --policy sjf+easy --sequences 3 --length 2 --metric wait",
    "report fcfs --html page.html --title Rechner",
    "policies",
    "workload list",
    "platform check sp2-128",
)


@pytest.fixture(autouse=True)
def log(folder: Path) -> None:
    """Write the small log of a machine whose name is not ASCII."""
    (folder / "t.swf").write_text(f"; Computer: Größenwahn ×2\n{TINY}", encoding="utf-8")


def test_commands_print_and_write_utf8_whatever_the_locale(folder: Path) -> None:
    done = run_python(
        f"import warnings; warnings.simplefilter('default', EncodingWarning)\n{CODE}",
        *COMMANDS,
        env=ASCII,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "Größenwahn ×2" in done.stdout
    assert "− base, s" in done.stdout
    unspecified = [
        line
        for line in done.stderr.splitlines()
        if "EncodingWarning" in line and str(ROOT / "bridge") in line
    ]
    assert unspecified == []
    assert "<h1>" in (folder / "page.html").read_text(encoding="utf-8")


def test_an_error_that_is_not_ascii_is_printed() -> None:
    done = run_python(
        CODE.replace("assert", "#"), "replay t.swf --policy 'ß+easy'", env=ASCII, encoding="utf-8"
    )
    assert "UnicodeEncodeError" not in done.stderr
    assert "bridge: error: " in done.stderr or "Error: " in done.stderr


def test_a_name_that_the_locale_cannot_have_is_refused_with_a_remedy() -> None:
    code = "import sys; from bridge.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = run_python(code, "replay", "größe.swf", env=ASCII, encoding="utf-8")
    assert done.returncode == 2
    assert "cannot be named in this locale; set LC_ALL=C.UTF-8, or PYTHONUTF8=1" in done.stderr
