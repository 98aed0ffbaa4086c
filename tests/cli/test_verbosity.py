"""`bridge -q`, `bridge -v`: notes, stacks and times on stderr; results stay as they are."""

import json
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok
from training_commands import TINY, write_config

REPLAY = ("replay", "bundled-128", "--policy", "sjf+easy", "--first", "40", "--json")


def test_quiet_prints_results_and_no_notes() -> None:
    loud, quiet = run_bridge(*REPLAY), run_bridge("-q", *REPLAY)
    assert "no scheduler looks at" in loud.err
    assert quiet.err == ""
    assert quiet.out == loud.out
    assert quiet.status == 0


def test_quiet_still_prints_errors() -> None:
    run = run_bridge("-q", "replay", "no-such-log")
    assert run.status == 1
    assert "bridge: error: no-such-log" in run.err


def test_verbose_prints_the_time_and_the_stack_of_an_error() -> None:
    assert "bridge: it took " in run_bridge("-v", *REPLAY).err
    run = run_bridge("-v", "replay", "no-such-log")
    assert run.status == 1
    assert "Traceback" in run.err
    assert "bridge: error: no-such-log" in run.err
    assert "Traceback" not in run_bridge("replay", "no-such-log").err


def test_quiet_and_verbose_contradict_each_other() -> None:
    run = run_bridge("-q", "-v", "doctor")
    assert run.status == 2
    assert "contradict each other" in run.err


def test_training_and_report_print_json(folder: Path) -> None:
    pytest.importorskip("torch")
    write_config(folder)
    words = ("train", "--fast", *TINY, "--epochs", "1", "--out", "mine", "--json")
    document = json.loads(run_ok("-q", *words))
    assert document["folder"] == "mine"
    assert document["metric"] == "bsld"
    assert document["epochs"] == document["training"]["epoch"] == 1
    assert document["training"]["agent"] > 0
    run_ok("replay", "bundled-128", "--first", "40", "--out", "run")
    page = json.loads(run_ok("report", "run", "--html", "page.html", "--json"))
    assert page == {"page": "page.html", "inputs": ["run"], "bytes": (folder / "page.html").stat().st_size}
