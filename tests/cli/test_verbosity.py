"""`bridge -q`, `bridge -v`: notes, stacks and times on stderr; results stay as they are."""

import json
import shutil
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, start_bridge
from training_commands import TINY, write_config

REPLAY = ("replay", "bundled-128", "--policy", "sjf+easy", "--first", "40", "--json")


def test_quiet_prints_results_and_no_notes() -> None:
    loud, quiet = run_bridge(*REPLAY), run_bridge("-q", *REPLAY)
    assert "no scheduler uses" in loud.err
    assert quiet.err == ""
    assert quiet.out == loud.out
    assert quiet.status == 0


def test_quiet_still_prints_errors() -> None:
    run = run_bridge("-q", "replay", "no-such-log")
    assert run.status == 1
    assert "bridge: error: no-such-log" in run.err


def test_a_command_says_that_it_compiles_and_only_then(tiny: str, folder: Path) -> None:
    """`check` needs one small kernel, which a fresh cache does not have: kernels of others do not count."""
    run_ok("replay", tiny, "--out", "run")
    env = {"BRIDGE_CACHE": str(folder / "cache")}
    line = "bridge: compiling the scheduler, once on this machine (up to a minute)…\n"
    for words, err in ((["-q", "check", "run"], ""), (["check", "run"], line), (["check", "run"], "")):
        if err:
            shutil.rmtree(folder / "cache")
        process = start_bridge(*words, env=env)
        printed = process.communicate(timeout=300)
        assert printed == (b"valid: 5 jobs started; peak 4 of 4 nodes\n", err.encode())


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


@pytest.mark.parametrize("option", ["-q", "--verbose"])
def test_behind_a_command_the_error_says_where_they_stand(option: str) -> None:
    result = run_bridge(*REPLAY, option)
    assert result.status == 2
    expected = f"Error: No such option {option!r}. It stands before the command: bridge {option} …"
    assert result.err.splitlines()[-1] == expected
