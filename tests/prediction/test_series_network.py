"""The recurrent predictor: shapes, no look ahead, repeatability, what it learns, its file."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bridge.base.errors import BridgeError
from bridge.pool.synthetic import SyntheticJobs, synthetic
from bridge.prediction.series_network import (
    SeriesModel,
    SeriesSettings,
    _batches,
    _error,
    fit,
    load,
    predict_others,
)
from papers.rlschert.beliefs import folds, running_accuracy

SMALL = SeriesSettings(hidden=8, epochs=1, batch=16)


@pytest.fixture(scope="module")
def synthetic_jobs() -> SyntheticJobs:
    return synthetic(60, seed=1)


@pytest.fixture(scope="module")
def model(synthetic_jobs: SyntheticJobs) -> SeriesModel:
    return fit(synthetic_jobs.parameters, synthetic_jobs.series, synthetic_jobs.jobs.length, SMALL)


def test_every_step_of_every_job_has_a_total_beyond_it(
    synthetic_jobs: SyntheticJobs, model: SeriesModel
) -> None:
    totals = model.totals(synthetic_jobs.parameters, synthetic_jobs.series)
    assert totals.shape == synthetic_jobs.series.shape[:2]
    assert np.isfinite(totals).all()
    while_running = np.arange(totals.shape[1]) < synthetic_jobs.jobs.length[:, None]
    assert (totals > np.arange(totals.shape[1]))[while_running].all()


def test_nothing_is_believed_from_what_comes_later(synthetic_jobs: SyntheticJobs, model: SeriesModel) -> None:
    changed = synthetic_jobs.series.copy()
    changed[:, 4:] += 1.0
    before, after = (
        model.totals(synthetic_jobs.parameters, synthetic_jobs.series),
        model.totals(synthetic_jobs.parameters, changed),
    )
    assert (before[:, :5] == after[:, :5]).all()
    long = synthetic_jobs.jobs.length > 6
    assert (before[long, 5] != after[long, 5]).all()
    cut = synthetic_jobs.series.copy()
    cut[:, 4:] = np.nan  # as it is seen while the job runs: the last belief is held
    held = model.totals(synthetic_jobs.parameters, cut)
    assert (held[:, :5] == before[:, :5]).all()
    assert (held[long, 5:] == before[long, 4:5]).all()


def test_the_same_jobs_give_the_same_network_and_no_other_draw_is_touched(
    synthetic_jobs: SyntheticJobs,
) -> None:
    state = torch.get_rng_state()
    found = [
        fit(synthetic_jobs.parameters, synthetic_jobs.series, synthetic_jobs.jobs.length, SMALL)
        for _ in range(2)
    ]
    assert torch.equal(torch.get_rng_state(), state)
    totals = [one.totals(synthetic_jobs.parameters, synthetic_jobs.series).tobytes() for one in found]
    assert totals[0] == totals[1]


def test_no_job_is_predicted_from_its_own_length(synthetic_jobs: SyntheticJobs) -> None:
    parts = folds(60, 2, seed=1)
    length = synthetic_jobs.jobs.length
    before = predict_others(synthetic_jobs.parameters, synthetic_jobs.series, length, parts, SMALL)
    changed = length.copy()
    changed[parts[0]] = 1
    after = predict_others(synthetic_jobs.parameters, synthetic_jobs.series, changed, parts, SMALL)
    assert (before[parts[0]] == after[parts[0]]).all()
    assert (before[parts[1]] != after[parts[1]]).any()


def test_the_error_is_the_mean_over_jobs_of_logarithms_before_their_ends() -> None:
    believed = torch.tensor([[2.0, 8.0, 999.0], [6.0, 3.0, 1.5]])
    found = _error(believed, torch.tensor([2, 3]))
    first = (0.0 + np.log(4.0)) / 2
    second = (np.log(2.0) + 0.0 + np.log(2.0)) / 3
    assert float(found) == pytest.approx((first + second) / 2)


def test_batches_hold_each_job_once() -> None:
    torch.manual_seed(0)
    found = _batches(torch.arange(1, 51), 8)
    assert sorted(torch.cat(found).tolist()) == list(range(50))
    assert [len(batch) for batch in found].count(8) == 6
    assert max(int(batch.max() - batch.min()) for batch in found) < 10  # all 50 were put side by side


def test_the_series_teaches_what_parameters_cannot() -> None:
    """Jobs without parameters, whose residuals fall in a straight line: soon the end is in sight."""
    random = np.random.default_rng(0)
    length = random.integers(4, 40, 200)
    steps = np.arange(1, 41)
    series = np.where(steps <= length[:, None], -4.0 * steps / length[:, None], np.nan)[..., None]
    nothing = np.zeros((200, 1))
    parts = folds(200, 2)
    how = SeriesSettings(hidden=16, epochs=30, batch=16, learning_rate=0.02)
    errors = running_accuracy(length, predict_others(nothing, series, length, parts, how)).deciles
    assert errors[0] > 0.4
    assert errors[5] < 0.1


def test_a_network_is_kept_in_a_file(
    synthetic_jobs: SyntheticJobs, model: SeriesModel, tmp_path: Path
) -> None:
    model.save(tmp_path / "one.safetensors")
    model.save(tmp_path / "two.safetensors")
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "two.safetensors").read_bytes()
    again = load(tmp_path / "one.safetensors")
    totals = [
        one.totals(synthetic_jobs.parameters, synthetic_jobs.series).tobytes() for one in (model, again)
    ]
    assert totals[0] == totals[1]


def test_other_files_are_refused(tmp_path: Path) -> None:
    from bridge.learn.checkpoint import write_tensors

    path = tmp_path / "some.safetensors"
    for meta in (
        {},
        {"predictor": "{}"},
        {"predictor": '{"hidden": -1}'},
        {"predictor": "["},
        {"predictor": "3"},
    ):
        write_tensors(path, {"weight": torch.zeros(1)}, meta)
        with pytest.raises(BridgeError, match="no recurrent predictor"):
            load(path)
    write_tensors(path, {"x": torch.zeros(1)}, {"predictor": '{"parameters": 2, "series": 1, "hidden": 3}'})
    with pytest.raises(BridgeError, match="weights"):
        load(path)


def test_what_does_not_fit_is_refused(synthetic_jobs: SyntheticJobs, model: SeriesModel) -> None:
    with pytest.raises(BridgeError, match="shape"):
        model.totals(synthetic_jobs.parameters[:, :2], synthetic_jobs.series)
    with pytest.raises(BridgeError, match="finite"):
        model.totals(np.full_like(synthetic_jobs.parameters, np.nan), synthetic_jobs.series)
    with pytest.raises(BridgeError, match="lengths"):
        fit(synthetic_jobs.parameters, synthetic_jobs.series, synthetic_jobs.jobs.length * 100, SMALL)
    with pytest.raises(BridgeError, match="epochs"):
        SeriesSettings(epochs=0)
