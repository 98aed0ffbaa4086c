"""Errors quote inputs, but only so much of them; names that no file can have are names of no file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.errors import MOST, BridgeError, placed
from bridge.experiment.spec import platform_file, read_document
from bridge.files import is_there
from bridge.judge.jobs import read_jobs
from bridge.judge.run import read_run
from bridge.learn import folder
from bridge.platform.author import platform_xml
from bridge.platform.spec import read_spec
from bridge.policy_name import parse_policy
from bridge.workload.catalogue import read_log

LONG = "1" * 5000


def test_an_error_says_no_more_than_can_be_read() -> None:
    error = BridgeError(f"begin {LONG} end", where=LONG, remedy=f"Do {LONG}.")
    assert error.what.startswith("begin 1") and error.what.endswith("1 end") and "[…]" in error.what
    assert 1500 < len(str(error)) <= MOST
    assert str(BridgeError("w" * 900, where="f" * 400)) == "f" * 400 + ": " + "w" * 900
    with pytest.raises(BridgeError) as placed_error, placed(LONG):
        raise error
    assert len(str(placed_error.value)) <= MOST


@pytest.mark.parametrize("line", ['speed = "{}Gf"', 'count = "{}"'])
def test_a_long_value_of_a_platform_is_quoted_in_part(tmp_path: Path, line: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f'name = "p"\n[nodes]\n{line.format(LONG)}\n')
    with pytest.raises(BridgeError) as refusal:
        platform_xml(read_spec(path), source="p.toml")
    assert len(str(refusal.value)) <= MOST


@pytest.mark.parametrize(
    "read", [read_log, parse_policy, platform_file, read_jobs, read_run, folder.read_document]
)
@pytest.mark.parametrize("name", ["a" * 300, "a" * 5000, "a/" * 2500])
def test_names_that_no_file_can_have_are_refused_like_others(
    read: Callable[[str], object], name: str
) -> None:
    with pytest.raises(BridgeError) as refusal:
        read(name)
    assert len(str(refusal.value)) <= MOST


def test_an_experiment_may_name_what_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f'workload = "{LONG}"\n[detailed]\nplatform = "{LONG}"\n')
    assert read_document(path)["workload"] == LONG


def test_is_there(tmp_path: Path) -> None:
    assert is_there(tmp_path) and is_there(tmp_path, Path.is_dir) and not is_there(tmp_path, Path.is_file)
    assert not is_there(tmp_path / LONG) and not is_there(tmp_path / "a")
