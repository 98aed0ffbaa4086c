"""`python -m papers` says its own name."""

import pytest

from bridge.cli.main import main
from papers.__main__ import cli


def test_usage_names_the_command_that_was_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nobody"], run=cli.main, name="python -m papers") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Usage: python -m papers report [OPTIONS]" in said
    assert "'nobody' is not one of 'rlbackfilling'" in said
    assert "Try 'python -m papers report --help' for help." in said
