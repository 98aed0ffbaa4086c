"""Predictors of a log's jobs: values by hand, what they learn from, and no leak from the future."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from small_jobs import make_jobs
from small_submissions import submissions

from bridge.base.errors import BridgeError
from bridge.prediction import predictors
from bridge.prediction.forest import ForestSettings
from bridge.prediction.predictors import History, Predictor, Trees, for_jobs, predictor
from bridge.prediction.quantiles import Quantiles
from bridge.prediction.submissions import MICRO, Submissions, of_jobs
from bridge.prediction.trees import Boosting, Fitted
from bridge.worlds.fast.episode import predict_from_history


def seconds(s: Submissions, how: Predictor) -> list[float]:
    return (how(s) / MICRO).tolist()


def test_history_believes_the_mean_of_the_user_s_last_two() -> None:
    jobs = submissions(
        [(0, 10, 100, 1), (20, 30, 100, 1), (60, 55, 100, 1), (200, 5, 30, 1), (201, 5, 90, 2)]
    )
    # The fourth: (30 + 55) / 2, but it asks for 30 only.
    assert seconds(jobs, History()) == [100.0, 100.0, 20.0, 30.0, 90.0]


def test_history_without_requests_believes_the_mean_of_all_and_at_first_an_hour() -> None:
    jobs = submissions([(0, 10, -1, 1), (10, 31, -1, 2), (41, 5, -1, -1), (41, 5, -1, 1)])
    assert seconds(jobs, History()) == [3600.0, 10.0, 20.5, 20.5]


def test_history_does_not_count_jobs_that_never_ran() -> None:
    rows = [(0, 10, 99, 1), (20, 30, 99, 1), (60, -1, 99, 1), (61, 0, 99, 1), (70, 1, 99, 1)]
    assert seconds(submissions(rows), History()) == [99.0, 99.0, 20.0, 20.0, 20.0]


def test_history_is_the_estimator_predicted() -> None:
    random = np.random.default_rng(0)
    table = random.integers([0, 1, 0], [2000, 99, 99], (60, 3)).tolist()
    rows = [(submit, run, run + more, 1) for submit, run, more in sorted(table)]
    jobs = make_jobs(rows, [4], users=random.integers(1, 4, 60).tolist())
    assert for_jobs(History())(jobs).tolist() == predict_from_history(jobs).tolist()


@pytest.fixture
def lessons(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Let `Trees` learn nothing but what it is shown; return the lengths of each lesson."""
    shown: list[list[float]] = []

    def fit(features: np.ndarray, lengths: np.ndarray, _: Boosting) -> Fitted:
        assert len(features) == len(lengths)
        shown.append(lengths.tolist())
        return lambda known: np.full(len(known), 12.6)

    monkeypatch.setattr(predictors, "fit", fit)
    return shown


def test_trees_learn_from_what_had_ended_when_the_first_of_a_block_came(lessons: list[list[float]]) -> None:
    # Ends: 10, 30, 25, 900, never, 60, …
    jobs = submissions(
        [(0, 10, 90, 1), (5, 25, 90, 1), (20, 5, 90, 1), (30, 870, 7, 1), (35, -1, 90, 1), (40, 20, 90, 2),
         (61, 3, 90, 2)]
    )  # fmt: skip
    found = seconds(jobs, Trees(every=2, memory=2, least=2))
    # Blocks begin at 0 (nothing had ended), 20 (one job), 35 (three, of which two are kept) and 61.
    assert lessons == [[5.0, 25.0], [25.0, 20.0]]
    assert found == [90.0, 90.0, 90.0, 7.0, 13.0, 13.0, 13.0]


def test_trees_believe_no_more_than_the_request_and_no_less_than_a_second(lessons: list[list[float]]) -> None:
    jobs = submissions([(0, 1, 9, 1), (1, 1, 9, 1), (2, 1, -1, 1), (2, 1, 0.25, 1)])
    assert seconds(jobs, Trees(every=1, least=1)) == [9.0, 9.0, 13.0, 1.0]
    assert len(lessons) == 3


def test_the_order_of_the_file_does_not_matter(lessons: list[list[float]]) -> None:
    rows = [(0, 10, 90, 1), (5, 25, 90, 1), (20, 5, 90, 1), (31, 2, 90, 1)]
    assert seconds(submissions(rows[::-1]), Trees(every=1, least=2)) == [13.0, 90.0, 90.0, 90.0]
    assert lessons == [[10.0, 5.0, 25.0]]


ROWS = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from([-1, 0, 1, 5, 20, 40]),
        st.sampled_from([-1, 10, 50]),
        st.integers(-1, 2),
    ),
    min_size=4,
    max_size=25,
)
HOWS = {
    "history": History(),
    "trees": Trees(every=4, memory=8, least=3, boosting=Boosting(rounds=3, least=1, rate=0.5)),
}


@pytest.mark.parametrize("name", HOWS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, data=st.data())
def test_nothing_leaks_from_the_future(
    name: str, rows: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    """What was believed until some job came stays the same however everything after that turns out."""
    if name == "trees":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    jobs = submissions(sorted(rows))
    n = len(jobs)
    j = data.draw(st.integers(0, n - 1), label="job")
    until = jobs.submit <= jobs.submit[j]
    unknown_yet = jobs.end > jobs.submit[j]
    longer = data.draw(st.lists(st.sampled_from([-1, 61, 77, 500]), min_size=n, max_size=n), label="runs")
    users = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n), label="users")
    changed = replace(
        jobs,
        run=np.where(unknown_yet, np.array(longer) * MICRO, jobs.run),
        user=np.where(until, jobs.user, users),
        request=np.where(until, jobs.request, 33 * MICRO),
    )
    before = HOWS[name](jobs)
    assert (before >= MICRO).all()
    assert before[until].tolist() == HOWS[name](changed)[until].tolist()
    assert before[until].tolist() == HOWS[name](jobs.take(slice(int(until.sum())))).tolist()


def test_real_trees_learn_what_tells_jobs_apart_and_repeat_themselves() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rows = [(100 * k, 50 if k % 3 else 9, 60, 1) for k in range(120)]
    jobs = submissions(rows, procs=[1 if k % 3 else 2 for k in range(120)])
    how = Trees(every=40, least=40)
    found = seconds(jobs, how)
    assert found[80:] == [run for _, run, _, _ in rows[80:]]
    assert found == seconds(jobs, how)
    done: list[int] = []
    how(jobs, done.append)
    assert done == [40, 80, 120]


def test_predictors_go_by_names() -> None:
    assert predictor("history") == History()
    assert predictor("trees", every=5, memory=9, seed=2) == Trees(
        5, 9, boosting=Boosting(seed=2, quantile=0.5)
    )
    assert predictor("forest", memory=9, seed=2) == Quantiles(2500, 9, growth=ForestSettings(seed=2))
    with pytest.raises(BridgeError, match="unknown predictor"):
        predictor("stars")
    with pytest.raises(BridgeError, match="every"):
        Trees(every=0)


def test_of_selected_jobs_groups_are_not_known() -> None:
    jobs = make_jobs([(3, 4, 5, 2)], [4], users=[7], queues=[1])
    found = of_jobs(jobs)
    assert (found.extra_columns, found.outcome) == ({}, {})
    named = {
        name: values.tolist()
        for name, values in vars(found).items()
        if name not in ("extra_columns", "outcome")
    }
    assert (named["submit"], named["run"], named["request"]) == ([3 * MICRO], [4 * MICRO], [5 * MICRO])
    assert (named["procs"], named["user"], named["queue"]) == ([2], [7], [1])
    assert found.group.tolist() == found.executable.tolist() == [-1]
