"""Rules of one's own on the command line: typed as module:ATTR, named in no file, in both worlds."""

from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, run_refused

from bridge.base import plugins

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def in_the_folder_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    monkeypatch.chdir(EXAMPLES)


def starts(run: Path) -> str:
    import pandas as pd

    return str(pd.read_parquet(run / "jobs.parquet")[["job_id", "starting_time"]].to_csv())


def test_replay(tmp_path: Path) -> None:
    few = ["bundled-128", "--first", "400", "--out"]
    run_ok("replay", *few, tmp_path / "saf", "--order", "saf")
    run_ok("replay", *few, tmp_path / "own", "--order", "own_rules:smallest_first")
    assert "0 differ" not in starts(tmp_path / "own")
    run_ok(
        "replay", *few, tmp_path / "both", "--policy", "own_rules:smallest_first+own_rules:longest_that_fits"
    )
    words = ["--order", "own_rules:smallest_first", "--backfill", "own_rules:longest_that_fits"]
    run_ok("replay", *few, tmp_path / "short", *words)
    assert starts(tmp_path / "both") == starts(tmp_path / "short") != starts(tmp_path / "own")
    assert "valid: " in run_ok("check", tmp_path / "both")
    record = (tmp_path / "short" / "run.toml").read_text()
    assert "--backfill own_rules:longest_that_fits" in record
    run_ok("replay", *few, tmp_path / "half", "--estimator", "own_rules:half_the_request")


def test_evaluate() -> None:
    policies = ["--policy", "saf+easy", "--policy", "saf+own_rules:longest_that_fits"]
    out = run_ok("evaluate", "bundled-128", *policies, "--sequences", 4, "--length", 64, "--json")
    assert "saf+own_rules:longest_that_fits" in out


def test_both_worlds_agree(tmp_path: Path) -> None:
    policy = "own_rules:smallest_first+own_rules:longest_that_fits"
    words = ["--workload", "bundled-128", "--platform", "exact-128", "--first", 150, "--out", tmp_path / "v"]
    told = run_bridge("validate", policy, *words)
    if "SimGrid" in told.err:
        pytest.skip("SimGrid is not installed")
    assert told.status == 0, told.err
    assert "0 of 150 jobs start at another time" in told.out, told.out


@pytest.mark.parametrize("option", ["--order", "--backfill", "--estimator", "--policy"])
def test_what_cannot_be_loaded(option: str) -> None:
    value = "sjf+own_rules:nothing" if option == "--policy" else "own_rules:nothing"
    assert run_refused("replay", "bundled-128", option, value).startswith(
        "own_rules:nothing: cannot be loaded: AttributeError"
    )


def test_a_file_never_makes_code_load(tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text("raise SystemExit('loaded')\n")
    for name in ("order", "backfill", "estimator"):
        file = tmp_path / f"{name}.toml"
        file.write_text(f'workload = "bundled-128"\n[setup]\n{name} = "trap:rule"\n')
        said = run_refused("run", file, "--on", "fast", "--out", tmp_path / "run")
        assert "trap:rule" in said
        assert "loaded" not in said.replace("is loaded only", "")
