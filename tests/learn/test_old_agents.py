"""Agents that were trained before the pool had its name: they are read, and go on bit for bit."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_training import bits

from bridge.learn.checkpoint import load, read_agent
from bridge.learn.folder import is_of_pool, scheduler_of
from bridge.learn.recipe import PoolRecipe

OLD = Path(__file__).parent / "data" / "old-pool"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_it_is_read(folder: Path) -> None:
    assert json.loads((folder / "agent.json").read_text())["scheduler"] == "slotted"
    assert (scheduler_of(folder), is_of_pool(folder)) == ("pool", True)
    agent = load(folder, PoolRecipe)
    assert (agent.recipe.name, agent.epoch, agent.mode) == ("tiny", 2, "greedy")


def test_it_goes_on_bit_for_bit(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "pool"))
    from tiny_pool import jobs

    from bridge.learn.learner import Assignment
    from bridge.learn.trainer import Trainer

    recipe, origin = read_agent(folder, PoolRecipe)
    again = Trainer(Assignment(recipe, jobs(), origin, folder))
    again.resume()
    assert again.epoch == 2
    assert set(again.history[0].more) == {"imitation_loss", "agreement", "kills"}
    again.run()
    (tmp_path / "whole").mkdir()
    whole = Trainer(Assignment(recipe, jobs(), origin, tmp_path / "whole"))
    whole.run()
    assert bits(folder) == bits(tmp_path / "whole")
