"""Progress series of running jobs: grids, what a file may hold, beliefs from nothing that comes later."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the network needs PyTorch")

from small_submissions import submissions

from bridge.base.errors import BridgeError
from bridge.prediction.progress import (
    ProgressSeries,
    SeriesPredictor,
    read_series,
    series_of,
    synthetic_series,
)
from bridge.prediction.submissions import MICRO, Submissions
from bridge.workload.running_beliefs import RunningBeliefs

SMALL = SeriesPredictor(step=10.0, width=32, every=20, memory=60, least=10, epochs=2)


def test_a_value_stands_until_the_next_one_comes() -> None:
    series = ProgressSeries(["a", "a", "b"], np.array([5.0, 20.0, 0.0]), np.array([[1.0], [2.0], [7.0]]))
    grid = series.on_grid(["b", "a", "x"], np.array([1, 3, 2]), 10.0, 4)
    nan = np.nan
    expected = [
        [[7, 1], [nan, nan], [nan, nan], [nan, nan]],
        [[1, 1], [2, 1], [2, 1], [nan, nan]],
        [[0, 0], [0, 0], [nan, nan], [nan, nan]],
    ]
    np.testing.assert_array_equal(grid, np.array(expected, float))


def test_a_file_is_read_in_order_of_jobs_and_times(tmp_path: Path) -> None:
    table = pd.DataFrame({"job": [2, 1, 2], "time": [9.0, 1.0, 3.0], "value": [0.1, 0.2, 0.3]})
    table.to_parquet(tmp_path / "series.parquet")
    series = read_series(tmp_path / "series.parquet")
    assert series.job == ["1", "2", "2"]
    assert series.time.tolist() == [1.0, 3.0, 9.0]
    assert series.numbers.tolist() == [[0.2], [0.3], [0.1]]
    assert not series.synthetic


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"job": [1], "value": [1.0]}, "has no column 'time'"),
        ({"job": [1], "time": [1.0]}, "has no column 'value'"),
        ({"job": [1, 7], "time": [1.0, -1.0], "value": [1.0, 1.0]}, "record 2 of job 7"),
        ({"job": [1], "time": [1.0], "value": ["much"]}, "record 1 of job 1"),
    ],
)
def test_other_tables_are_refused(table: dict[str, list[object]], says: str) -> None:
    with pytest.raises(BridgeError, match=says):
        series_of(pd.DataFrame(table), "a test")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("job,time,value\n")
    for name in ("x.parquet", "none.parquet"):
        with pytest.raises(BridgeError, match="cannot be read as Parquet"):
            read_series(tmp_path / name)


def jobs_of(n: int) -> tuple[Submissions, list[str]]:
    """Return jobs that are done before the next is submitted."""
    rng = np.random.default_rng(4)
    run = rng.integers(15, 200, n)
    rows = [(300 * k, int(run[k]), 400, int(k % 3)) for k in range(n)]
    return submissions(rows, wait=0), [str(k) for k in range(n)]


def lines(beliefs: RunningBeliefs, j: int) -> tuple[list[int], list[int]]:
    part = slice(int(beliefs.first[j]), int(beliefs.first[j + 1]))
    return (beliefs.after[part] // MICRO).tolist(), beliefs.total[part].tolist()


def test_beliefs_follow_from_nothing_that_comes_later() -> None:
    s, ids = jobs_of(40)
    series = synthetic_series(ids, s.run / MICRO, seed=1)
    before = SMALL(s, ids, series)
    assert len(before) == 40
    assert before.synthetic
    # what comes later: the runs of the last jobs, and the last part of a series
    run = s.run.copy()
    run[35:] = 60 * MICRO
    changed = SMALL(replace(s, run=run), ids, series)
    assert [lines(changed, j) for j in range(35)] == [lines(before, j) for j in range(35)]
    long = max(range(20, 40), key=lambda j: int(s.run[j]))
    late = [job == ids[long] and time > 50 for job, time in zip(series.job, series.time, strict=True)]
    other = replace(series, numbers=np.where(np.array(late)[:, None], 9.0, series.numbers))
    (after, total), (after_2, total_2) = lines(before, long), lines(SMALL(s, ids, other), long)
    early = sum(one <= 50 for one in after)
    assert early > 1
    assert (after[:early], total[:early]) == (after_2[:early], total_2[:early])
    assert total != total_2


def test_beliefs_lie_between_what_has_run_and_the_request() -> None:
    s, ids = jobs_of(40)
    beliefs = SMALL(s, ids, synthetic_series(ids, s.run / MICRO))
    assert (beliefs.total > beliefs.after).all()
    assert (beliefs.total <= 400 * MICRO).all()
    assert (beliefs.after[beliefs.first[:-1]] == 0).all()
    assert (np.diff(beliefs.first)[:10] == 1).all(), "before enough have ended nothing changes"
    assert (np.diff(beliefs.first)[20:] > 1).any()


def test_a_running_job_is_looked_at_as_far_as_its_series() -> None:
    s, ids = jobs_of(40)
    run = s.run.copy()
    run[39] = -1  # it still runs
    table = pd.DataFrame({"job": ["39"] * 3, "time": [10.0, 20.0, 35.0], "value": [0.5, 0.4, 0.3]})
    after, _ = lines(SMALL(replace(s, run=run), ids, series_of(table, "a test")), 39)
    assert after[0] == 0
    assert after[-1] <= 30


def test_the_same_input_gives_the_same_beliefs() -> None:
    s, ids = jobs_of(30)
    series = synthetic_series(ids, s.run / MICRO)
    one, two = SMALL(s, ids, series), SMALL(s, ids, series)
    assert one.total.tobytes() == two.total.tobytes()
    assert one.after.tobytes() == two.after.tobytes()
