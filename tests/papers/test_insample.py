"""What an agent reaches on the windows that it learns on, as its page says it."""

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridge.judge.sequences import compute_sequence_metric
from bridge.learn.agent import play_sequences
from bridge.learn.checkpoint import load, write_agent
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import Recipe, with_training
from bridge.learn.registry import find_recipe
from bridge.learn.trainer import Trainer
from bridge.learn.training import TrainingData
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.replay import replay_sequences
from papers import insample, store

STARTS = np.array([3, 500, 900])


def test_it_learns_and_is_validated_on_the_windows_alone(tmp_path: Path) -> None:
    made = find_recipe("rlbackfilling", "paper")
    small = {"epochs": 2, "validate_every": 1, "trajectories": 5, "length": 64, "iterations": 2}
    recipe = replace(with_training(made, small), deploy="greedy")
    assert isinstance(recipe, Recipe)
    material = TrainingData.of(recipe, read_log("bundled-128"), "")
    given = TrainingContext(material.recipe, material.jobs, material.origin("bundled-128", 1), tmp_path)
    training = Trainer(given, functools.partial(insample.Memorising, starts=STARTS))
    drawn = training.learner.source.draw(1, np.random.default_rng(1))
    assert drawn.starts.tolist() == [3, 500, 900, 3, 500]
    training.run()
    write_agent(tmp_path, recipe, given.origin)
    ready, agent = recipe.setup.build_scenario(material.jobs, recipe.policy()), load(tmp_path)
    base = recipe.setup.build_scenario(material.jobs)
    own, others = (
        np.mean(
            [
                compute_sequence_metric(of, schedule, int(first), "bsld")
                for schedule, first in zip(played, STARTS, strict=True)
            ]
        )
        for of, played in (
            (ready, play_sequences(agent, ready, STARTS, 64)),
            (base, replay_sequences(base, STARTS, 64)),
        )
    )
    kept = training.history[agent.epoch - 1]
    assert (kept.valid_mean, kept.valid_base) == (pytest.approx(own), pytest.approx(others))
    assert kept.base_mean == pytest.approx(np.mean(drawn.base))


def test_the_page_says_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (store.RESULTS / f"{insample.TABLE}.md").read_text(encoding="utf-8")
    assert "\n\n".join(insample.section()) in page, "run `python -m papers report rlbackfilling`"
    for row, logs in insample.ROWS.items():
        for log in logs:
            seeds = insample.read_results()[row][log]
            assert list(seeds) == [str(seed) for seed in range(1, insample.SEEDS + 1)]
            assert all(0 < epoch <= insample.EPOCHS for _, epoch, _ in seeds.values())
    monkeypatch.setattr(insample, "read_results", dict)
    assert insample.section() == []


def test_the_bound_in_the_environment_of_the_code_has_cells_and_a_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = list(insample._cells(["HPC2N"], insample.CODE))
    assert [(cell.row, cell.seed) for cell in cells] == [("FCFS, as the public code", k) for k in (1, 2, 3)]
    assert all(
        isinstance(cell.recipe, Recipe) and cell.recipe.setup.protocol == "schedgym-code" for cell in cells
    )
    found = {"HPC2N": {"1": [13.0, 4, cells[0].shortest.key]}}
    monkeypatch.setattr(insample, "read_results", lambda: {"FCFS, as the public code": found})
    assert insample.is_known(cells[0])
    assert insample.section() == []
    _, table = insample.section(insample.CODE)
    assert "| FCFS, as the public code | HPC2N | 13.16 | 13.0 | -1% |" in table


def test_what_is_there_is_of_todays_cells_and_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> list[int]:
        return [cell.seed for cell in insample._cells(["HPC2N"]) if not insample.is_known(cell)]

    assert all(map(insample.is_known, insample._cells([])))
    key = next(cell.shortest.key for cell in insample._cells(["HPC2N"]) if cell.seed == 2)
    found = {"2": [13.0, 4, key], "3": [13.0, 4, "another recipe's"]}
    monkeypatch.setattr(
        insample, "read_results", lambda: {"four of the code's differences": {"HPC2N": found}}
    )
    assert missing() == [1, 3]
    with pytest.raises(SystemExit, match="no log 'HPC3N'; choose SDSC-SP2, Lublin-2, HPC2N, Lublin-1"):
        insample.main(["HPC3N"])
