"""Agents that were trained before the pool had its name: they are read, and go on bit for bit."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_training import bits

from bridge.learn.checkpoint import load, read_agent, read_tensors, write_tensors
from bridge.learn.checkpoint_files import RESUME, is_of_pool, scheduler_of
from bridge.pool.recipe import PoolRecipe

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

    from bridge.learn.learner import TrainingContext
    from bridge.learn.trainer import Trainer

    recipe, origin = read_agent(folder, PoolRecipe)
    again = Trainer(TrainingContext(recipe, jobs(), origin, folder))
    again.resume()
    assert again.epoch == 2
    assert set(again.history[0].more) == {"imitation_loss", "agreement", "kills"}
    again.run()
    assert again.epoch == 4

    (tmp_path / "whole").mkdir()
    whole = Trainer(TrainingContext(recipe, jobs(), origin, tmp_path / "whole"))
    whole.step()
    whole.step()
    # The old one comes from a machine that rounds differently: all is as here but for the last digits.
    old, (tensors, texts) = read_tensors(OLD / RESUME), read_tensors(tmp_path / "whole" / RESUME)
    assert old[0].keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert old[0][name].dtype == tensor.dtype
        np.testing.assert_allclose(old[0][name].numpy(), tensor.numpy(), rtol=1e-3, atol=1e-5, err_msg=name)
    assert old[1].keys() == texts.keys() and old[1]["epoch"] == texts["epoch"]
    write_tensors(folder / RESUME, tensors, texts)
    again = Trainer(TrainingContext(recipe, jobs(), origin, folder))
    again.resume()
    again.run()
    whole.run()
    assert bits(folder) == bits(tmp_path / "whole")
