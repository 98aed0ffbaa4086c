"""Policies of the user's own in an agent's place: a rule as EASY has it, and a model of stable-baselines3."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_commands import run_ok, run_refused

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed
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
MODEL = """
import numpy as np
from sb3_contrib import MaskablePPO
from dataclasses import replace
from bridge.env.env_config import ENCODERS
from bridge.env.environment import SchedulingEnv
from bridge.env.env_config import build_env_config
from bridge.learn.user_policy import UserPolicy

OPTIONS = {"length": 64, "encoder": replace(ENCODERS["backfill"], window=8), "guard": "mask"}

def policy():
    model = MaskablePPO.load("model.zip")
    def predict(seen, mask):
        return int(model.predict(seen, action_masks=mask, deterministic=True)[0])
    return UserPolicy(build_env_config("backfill", **OPTIONS), predict, "maskable ppo")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_registered", {})
    (tmp_path / "own_easy.py").write_text(EASY)
    (tmp_path / "own_model.py").write_text(MODEL)
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


def test_a_model_of_stable_baselines() -> None:
    sb3 = pytest.importorskip("sb3_contrib")
    import own_model

    env = own_model.SchedulingEnv("backfill", **own_model.OPTIONS)
    model = sb3.MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=1)
    model.save("model.zip")
    found = evaluated("--policy", "own_model:policy", "--sequences", "3", "--seed", "4")
    for k, start in enumerate(found["starts"]):
        seen, _ = env.reset(options={"start": start})
        over = False
        while not over:
            action, _ = model.predict(seen, action_masks=env.action_masks(), deterministic=True)
            seen, _, over, _, info = env.step(action)
        assert info["metric"] == found["policies"][1]["values"][k]


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
