"""Policies of the user's own in an agent's place: a rule as EASY has it, and a model of stable-baselines3."""

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_commands import run_ok, run_refused

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed
from bridge.env.environment import SchedulingEnv
from bridge.learn.user_policy import load_user_policy

EXAMPLES = Path(__file__).parents[2] / "examples"
#: What EASY does: the first candidate that delays nobody.
EASY = """
import numpy as np
from bridge.env.env_config import build_env_config
from bridge.learn.user_policy import UserPolicy

TASK = build_env_config("backfill", order="fcfs", guard="mask")
POLICY = UserPolicy(TASK, lambda seen, mask: int(np.argmax(mask)), "mine")
WRONG = 3
order = lambda queue: -queue.nodes
WITH_CONTEXT = UserPolicy(build_env_config("inspect"), lambda seen, mask: 0)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_registered", {})
    (tmp_path / "own_easy.py").write_text(EASY)
    return tmp_path


def evaluated(*words: str) -> dict[str, Any]:
    """Evaluate policies on the same sequences of the bundled workload."""
    found: dict[str, Any] = json.loads(run_ok("evaluate", "bundled-128", *words, "--length", 64, "--json"))
    return found


def values_of(*words: str) -> dict[str, list[float]]:
    return {one["name"]: one["values"] for one in evaluated(*words)["policies"]}


def test_the_first_candidate_is_what_easy_takes() -> None:
    values = values_of("--policy", "fcfs+easy", "--policy", "own_easy:POLICY", "--sequences", "12")
    assert values["mine"] == values["fcfs+easy"]


def test_the_example_is_better_than_easy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    values = values_of("--policy", "own_policy:POLICY", "--sequences", "20")
    assert [*values] == ["fcfs+easy", "shortest first"]  # behind its own order without it
    assert np.mean(values["shortest first"]) < np.mean(values["fcfs+easy"])


def test_a_model_of_stable_baselines(folder: Path) -> None:
    """The example trains, saves and loads it; commands then judge it as the environment does."""
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed (pip install sb3-contrib)")
    shutil.copy(EXAMPLES / "sb3_policy.py", folder)
    absent = run_refused("evaluate", "bundled-128", "--policy", "sb3_policy:policy", "--sequences", "3")
    assert absent.startswith("sb3_policy:policy: makes no policy: FileNotFoundError: ")
    assert "(sb3_policy.py:" in absent
    sb3_policy = importlib.import_module("sb3_policy")
    sb3_policy.train(64)
    result = evaluated("--policy", "sb3_policy:policy", "--sequences", "3", "--seed", "4")
    assert [one["name"] for one in result["policies"]] == ["fcfs+easy", "MaskablePPO"]
    env = SchedulingEnv("backfill", length=64, **sb3_policy.OPTIONS)
    model = sb3_policy.MaskablePPO.load("sb3_model.zip")
    for k, start in enumerate(result["starts"]):
        observation, _ = env.reset(options={"start": start})
        terminated = False
        while not terminated:
            action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
            observation, _, terminated, _, info = env.step(action)
        assert info["metric"] == result["policies"][1]["values"][k]
    assert "MaskablePPO" in run_ok("replay", "bundled-128", "--policy", "sb3_policy:policy", "--first", "60")


def test_a_module_without_a_name_gets_a_hint() -> None:
    for text in ("own_easy", "own_easy.py"):
        error = run_refused("replay", "bundled-128", "--policy", text)
        assert "own_easy.py is a module: write own_easy:NAME" in error
    assert "module:NAME" in run_refused("replay", "bundled-128", "--policy", "nosuch_policy")


def test_a_module_that_fails_says_where(folder: Path) -> None:
    (folder / "failing.py").write_text("import json\n\ntable = open('weights.npz')\nPOLICY = 1\n")
    assert run_refused("replay", "bundled-128", "--policy", "failing:POLICY") == (
        "failing:POLICY: cannot be loaded: FileNotFoundError: [Errno 2] No such file or directory: "
        "'weights.npz' (failing.py:3)\n  The module fails when it is imported: mend it.\n"
    )
    (folder / "needing.py").write_text("import no_such_package\n")
    assert run_refused("replay", "bundled-128", "--policy", "needing:POLICY") == (
        "needing:POLICY: cannot be loaded: ModuleNotFoundError: No module named 'no_such_package' "
        "(needing.py:1)\n  The module fails when it is imported: mend it.\n"
    )
    assert run_refused("replay", "bundled-128", "--policy", "own_easy:POLCY") == (
        "own_easy:POLCY: cannot be loaded: AttributeError: module 'own_easy' has no attribute 'POLCY'\n"
        "  Did you mean POLICY? It is written module:ATTR, as in `from module import ATTR`.\n"
    )


def test_what_is_no_policy() -> None:
    with pytest.raises(BridgeError, match="is a int, not a policy"):
        load_user_policy(Typed("own_easy:WRONG"))
    with pytest.raises(BridgeError, match="cannot be loaded"):
        load_user_policy(Typed("own_easy:NONE"))
    with pytest.raises(BridgeError, match="makes no policy: TypeError") as error:
        load_user_policy(Typed("own_easy:order"))  # it is an order
    assert "own_easy:order+easy" in (error.value.remedy or "")
    assert load_user_policy(Typed("own_easy:WITH_CONTEXT")).recipe.decision == "inspect"
    assert "own_easy:order+easy" in run_refused("replay", "bundled-128", "--policy", "own_easy:order")


def replayed(*words: str) -> Any:
    """Replay the first jobs of the bundled workload."""
    return json.loads(run_ok("replay", "bundled-128", "--first", 200, "--json", *words))


@pytest.mark.parametrize("option", ["--policy", "--agent"])
def test_it_replays_a_log_as_easy_does(option: str) -> None:
    assert replayed(option, "own_easy:POLICY") == replayed("--policy", "fcfs+easy")


def test_it_decides_in_both_worlds(tmp_path: Path) -> None:
    words = ["--workload", "bundled-128", "--platform", "sp2-128", "--first", 60]
    said = run_ok(
        "validate", *words, "--policy", "own_easy:POLICY", "--policy", "fcfs+easy", "--tolerance", "0"
    )
    assert said.count("0 of 60 jobs start at another time on the platform") == 2
    run_ok("run", *words, "--on", "simgrid", "--policy", "own_easy:POLICY", "--out", "run")
    jobs = pd.read_parquet(tmp_path / "run" / "jobs.parquet")
    assert len(jobs) == 60 and jobs["start_kind"].ne("").all()


def test_a_file_never_makes_it_load(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('workload = "bundled-128"\nagent = "own_easy:POLICY"\n')
    assert "--policy own_easy:POLICY" in run_refused("run", "run.toml")
    assert "bsld" in run_ok("run", "run.toml", "--policy", "own_easy:POLICY", "--json")
