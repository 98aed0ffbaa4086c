"""Validation on jobs that no training episode has: where they lie, and what is played of them."""

from pathlib import Path

import numpy as np
import pytest
from tiny_training import TINY, some_jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.env.reward import Reward, base_costs
from bridge.learn.algorithms.log_learner import LogLearner
from bridge.learn.recipe import TrainingConfig, from_dict
from bridge.learn.trainer import Trainer
from bridge.policies import dras, sem
from bridge.study.cells import cells_of
from bridge.study.reading import read_studies
from papers import studies

#: The recipe's part and validation are the first 360 of 600 jobs; the last 100 of these are unseen.
UNSEEN = {"validation_jobs": 100, "validate_every": 1, "epochs": 2}


def learner_of(training: Trainer) -> LogLearner:
    assert isinstance(training.learner, LogLearner)
    return training.learner


def test_one_sequence_of_jobs_that_no_episode_has(tmp_path: Path) -> None:
    learner = learner_of(trainer(tmp_path / "a", tiny(**UNSEEN)))
    source = learner.source
    assert (source.part, source.valid, source.valid_length) == ((0, 260), (0, 360), 100)
    assert learner.valid_starts.tolist() == [260]
    starts = np.concatenate([source.draw(epoch, np.random.default_rng(epoch)).starts for epoch in range(200)])
    assert starts.max() + 64 <= 260
    assert starts.max() + 64 > 250
    base = base_costs(TINY.setup.build_scenario(some_jobs()), np.array([260]), 100, Reward())
    assert learner.base == base.mean()


def test_by_default_validation_sequences_lie_over_its_part(tmp_path: Path) -> None:
    learner = learner_of(trainer(tmp_path / "a"))
    assert (learner.source.part, learner.source.valid, learner.source.valid_length) == (
        (0, 360),
        (0, 360),
        64,
    )
    expected = np.unique(np.linspace(0, 360 - 64, 100).astype(np.int64))
    assert learner.valid_starts.tolist() == expected.tolist()


def test_it_is_validated_after_every_episode(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", tiny(**UNSEEN))
    training.run()
    assert [entry.valid_mean == entry.valid_mean for entry in training.history] == [True, True]
    assert {entry.valid_base for entry in training.history} == {learner_of(training).base}


def test_an_agent_s_own_training_part_stays_where_it_ends_before(tmp_path: Path) -> None:
    learner = learner_of(trainer(tmp_path / "a", tiny(**UNSEEN, part=(0.0, 0.3))))
    assert learner.source.part == (0, 180)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="the validation of 360 jobs holds no episode of 400"):
        trainer(tmp_path / "a", tiny(validation_jobs=400, part=(0.0, 0.3)))
    with pytest.raises(BridgeError, match="the part of 10 jobs holds no episode of 64"):
        trainer(tmp_path / "b", tiny(validation_jobs=350))
    with pytest.raises(BridgeError, match=r"training.validation_jobs cannot be 5"):
        from_dict({"training": {"validation": [0.5, 0.5], "validation_jobs": 5}}, "a test", TINY)


@pytest.mark.parametrize(
    ("table", "log"), [("sem-theta-unseen", "Theta"), ("sem-datastar-unseen", "DataStar")]
)
def test_the_paper_s_validation_is_a_table(table: str, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.study.cells.sha256_of", lambda name: f"digest of {name}")
    study = next(
        one for one in read_studies(studies.file_of("sem").with_name("unseen.toml")) if one.name == table
    )
    assert study.metrics == ("wait", "utilisation", "slowdown", "bsld", "wait.max")
    agents = [cell for cell in cells_of(study) if cell.recipe is not None]
    assert {cell.recipe.name for cell in agents if cell.recipe} == {"dras", "sem"}
    for cell in agents:
        assert cell.recipe is not None
        training = cell.recipe.training
        assert isinstance(training, TrainingConfig)
        assert (training.validation_jobs, training.validate_every, training.epochs) == (1200, 1, 100)
    assert {cell.log for cell in cells_of(study)} == {log}


def test_settings_validate_as_before() -> None:
    for recipe in (*dras.SETTINGS.values(), *sem.SETTINGS.values()):
        assert (recipe.training.validation_jobs, recipe.training.validate_every) == (0, 20)
