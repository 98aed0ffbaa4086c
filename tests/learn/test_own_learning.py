"""Algorithms and policies that others bring: by an entry point, or as module:ATTR, never from a file."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_commands import run_ok, run_refused
from torch import nn

from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed
from bridge.learn import algorithms
from bridge.learn.checkpoint import load
from bridge.learn.learner import EpochResult, Learner, Mode
from bridge.learn.registry import find_recipe

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = """\
[training]
trajectories = 3
length = 64
validate_every = 1
"""
TRAIN = ("train", "own_learning:FRUGAL", "--threads", "1", "--config", "tiny.toml")
CLIMB = ("--algorithm", "own_learning:HillClimbing")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(EXAMPLES / "own_learning.py", tmp_path)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "own_learning", raising=False)
    return tmp_path


def test_a_policy_and_an_algorithm_of_ones_own() -> None:
    run_ok(*TRAIN, *CLIMB, "--epochs", "4", "--out", "whole")
    run_ok(*TRAIN, *CLIMB, "--epochs", "2", "--out", "a")
    run_ok("train", "--resume", *CLIMB, "--epochs", "4", "--out", "a")
    assert Path("a/weights.safetensors").read_bytes() == Path("whole/weights.safetensors").read_bytes()
    progress = pq.read_table("a/progress.parquet")
    assert progress["epoch"].to_pylist() == [1, 2, 3, 4]
    assert progress.column_names[-1] == "kept"
    agent = load("a")
    assert (agent.recipe.name, agent.recipe.algorithm) == ("frugal", "own_learning:HillClimbing")
    assert agent.recipe.options == {"step": 0.3}
    run_ok("evaluate", "a", "--sequences", "3", "--length", "64")  # needs neither of the two


def test_a_file_loads_no_code() -> None:
    run_ok(*TRAIN, *CLIMB, "--epochs", "1", "--out", "a")
    sys.modules.pop("own_learning")
    said = run_refused("train", "--resume", "--epochs", "2", "--out", "a")
    assert "Name it on the command line: --algorithm own_learning:HillClimbing" in said
    Path("tiny.toml").write_text('algorithm = "own_learning:HillClimbing"\n' + CONFIG)
    run_refused("train", "--config", "tiny.toml", "--out", "b")
    document = json.loads(Path("a/agent.json").read_text())
    Path("a/agent.json").write_text(json.dumps(document | {"name": "own_learning:FRUGAL"}))
    document["recipe"]["name"] = "own_learning:FRUGAL"
    Path("a/agent.json").write_text(json.dumps(document))
    run_refused("train", "--resume", "--setting", "default", "--out", "a")
    assert "own_learning" not in sys.modules
    assert not Path("b").exists()
    with pytest.raises(BridgeError, match="unknown policy\n  Code is loaded only where it is typed"):
        find_recipe("own_learning:FRUGAL")


def test_what_cannot_be_loaded_is_one_error() -> None:
    for name, said in (
        ("nosuch:X", "cannot be loaded: ModuleNotFoundError"),
        ("own_learning:Nosuch", "cannot be loaded: AttributeError"),
        ("own_learning:FRUGAL", "is no subclass"),
    ):
        with pytest.raises(BridgeError, match=said):
            algorithms.find(Typed(name))
    with pytest.raises(BridgeError, match="unknown algorithm") as error:
        algorithms.find("nosuch")
    assert "ppo, gradient, prediction, evolution, pool" in error.value.remedy
    with pytest.raises(BridgeError, match="is no mapping of settings to recipes"):
        find_recipe(Typed("own_learning:HillClimbing"))


def test_a_package_provides_an_algorithm(folder: Path) -> None:
    info = folder / "climbing-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: climbing\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[bridge.algorithms]\nclimbing = own_learning:HillClimbing\n")
    found = algorithms.find("climbing")
    assert isinstance(found, type)
    assert issubclass(found, Learner)


def test_optimizers_have_their_former_name_for_one_release() -> None:
    class Nothing(Learner):
        def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
            raise NotImplementedError

        def validate(self, actor: nn.Module, mode: Mode) -> float:
            raise NotImplementedError

    learner = Nothing()
    with pytest.warns(DeprecationWarning, match="Learner.adams is now Learner.optimizers"):
        learner.adams = {}
    assert learner.optimizers == {} and learner.tensors() == {}
    with pytest.warns(DeprecationWarning, match="Learner.adams is now"):
        assert learner.adams is learner.optimizers
