"""Rewards against values worked out by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.env.reward import (
    EpisodeOutcome,
    OwnReward,
    Reward,
    accrued_cost,
    compute_final_reward,
    compute_rewards,
)

#: Three jobs: submitted at 0, 10, 20; run 20, 5, 40 s; start at 0, 30, 60.
#: Waits 0, 20, 40. Bounded slowdowns 1, (20 + 5)/10 = 2.5, (40 + 40)/40 = 2.
#: They ask for 1, 2 and 3 of 4 nodes, 150 s of node time in all.
EPISODE = EpisodeOutcome(
    np.array([0.0, 10.0, 20.0]),
    np.array([20.0, 5.0, 40.0]),
    np.array([0.0, 30.0, 60.0]),
    np.array([[1], [2], [3]]),
    np.array([4]),
)
NOT_LATE = np.zeros(2, np.bool_)


@pytest.mark.parametrize(
    ("metric", "value"), [("bsld", 5.5 / 3), ("wait", 20.0), ("bsld.max", 2.5), ("wait.max", 40.0)]
)
def test_metrics(metric: str, value: float) -> None:
    assert EPISODE.value(metric) == pytest.approx(value)


@pytest.mark.parametrize(
    ("form", "base", "value", "reward"),
    [
        ("native", 10.0, 4.0, 6.0),
        ("percentage", 10.0, 4.0, 0.6),
        ("percentage", 10.0, 25.0, -1.5),
        ("percentage", 0.0, 3.0, -3.0),
        ("percentage", 0.0, 0.0, 0.0),
        ("relative", 10.0, 40.0, -0.75),
        ("relative", 10.0, 4.0, 0.6),
        ("relative", 0.5, 0.25, 0.25),
        ("winloss", 10.0, 4.0, 1.0),
        ("winloss", 10.0, 10.0, 0.0),
        ("winloss", 4.0, 10.0, -1.0),
        ("plain", 10.0, 4.0, -4.0),
    ],
)
def test_forms(form: str, base: float, value: float, reward: float) -> None:
    assert compute_final_reward(Reward(form=form), base, value) == pytest.approx(reward)  # type: ignore[arg-type]


def test_at_the_end_the_last_decision_gets_everything() -> None:
    times = np.array([10_000_000, 30_000_000])
    given_ = compute_rewards(Reward("wait", "percentage", "end"), EPISODE, 40.0, times, NOT_LATE)
    assert given_ == pytest.approx([0.0, 0.5])


def test_over_time_each_decision_gets_what_accrues_until_the_next() -> None:
    # waits: job 2 from 10 to 30, job 3 from 20 to 60; per job (a third each), over the base's 40
    times = np.array([10_000_000, 25_000_000])
    given_ = compute_rewards(Reward("wait", "percentage", "time"), EPISODE, 40.0, times, NOT_LATE)
    # until 25: 15 + 5 s of waiting; until the last start: 5 + 35
    assert given_ == pytest.approx([-20 / 3 / 40, -40 / 3 / 40])


def test_over_time_slowdowns_accrue_at_a_rate_of_one_over_the_bounded_run() -> None:
    times = np.array([0, 30_000_000])
    given_ = compute_rewards(Reward("bsld", "native", "time"), EPISODE, 7.0, times, NOT_LATE)
    # job 2 (bounded run 10): 20 s; job 3 (run 40): 10 s until 30 s, then 30 s
    assert given_ == pytest.approx([-(20 / 10 + 10 / 40) / 3, -(30 / 40) / 3])


def test_a_late_backfill_costs_the_penalty() -> None:
    reward = Reward("wait", "native", "end", penalty=0.25)
    late = np.array([True, False])
    assert compute_rewards(reward, EPISODE, 21.0, np.array([0, 5]), late) == pytest.approx([-0.25, 1.0])


def test_without_decisions_there_is_nothing_to_give() -> None:
    none = np.zeros(0, np.int64)
    assert compute_rewards(Reward(), EPISODE, 1.0, none, none.astype(np.bool_)).tolist() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": "utilisation"},
            "reward: metric cannot be 'utilisation'\n  Write one of 'bsld', 'wait', 'bsld.max', 'wait.max'.",
        ),
        (
            {"form": "percent"},
            "reward: form cannot be 'percent'\n"
            "  Write one of 'native', 'percentage', 'relative', 'winloss', 'plain'.",
        ),
        ({"spread": "sideways"}, "reward: spread cannot be 'sideways'\n  Write one of 'end', 'time'."),
        ({"penalty": "much"}, "reward: penalty cannot be 'much'\n  Write a number."),
        ({"idle": -1.0}, "reward: idle cannot be -1.0\n  Write a number at least 0."),
        (
            {"metric": lambda _: 1.0},
            "reward: metric cannot be a function\n  A function is an environment's whole `reward`.",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_reward_of_other_values_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BridgeError) as refused:
        Reward(**options)
    assert str(refused.value) == message


def test_an_unknown_metric_of_an_episode_is_refused() -> None:
    with pytest.raises(BridgeError, match="'utilisation': unknown metric of an episode"):
        EPISODE.value("utilisation")


def test_a_function_is_the_reward_of_the_last_decision() -> None:
    reward = OwnReward(function=lambda episode: float(episode.start.sum()))  # 0 + 30 + 60
    given_ = compute_rewards(reward, EPISODE, 7.0, np.array([0, 5]), NOT_LATE)
    assert given_.tolist() == [0.0, 90.0]


@pytest.mark.parametrize("value", ["much", None, float("nan"), [1.0, 2.0]])
def test_a_function_that_returns_no_number_is_refused(value: object) -> None:
    with pytest.raises(BridgeError, match=r"the reward cannot be .*\n.*one finite number"):
        OwnReward(function=lambda _: value).cost(EPISODE)  # type: ignore[arg-type,return-value]


@given(
    st.lists(st.tuples(*[st.integers(0, 1000)] * 3), min_size=1, max_size=12),
    st.lists(st.integers(0, 3000), max_size=6),
    st.sampled_from(["bsld", "wait"]),
)
def test_what_accrues_adds_up_to_the_metric(
    rows: list[tuple[int, int, int]], times: list[int], metric: str
) -> None:
    submit, wait, run = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    run = run + 10.0  # above the threshold the sum of weights is the metric but for the 1 of each job
    episode = EpisodeOutcome(
        submit, run, submit + wait, np.ones((len(run), 1), np.int64), np.array([len(run)])
    )
    moments = np.array([submit.min(), *sorted(times), 5000.0])
    total = accrued_cost(episode, metric, moments)
    assert (np.diff(np.sort(total)) >= 0).all()
    assert total[-1] + (metric == "bsld") == pytest.approx(episode.value(metric))


def test_idle_nodes_cost_their_price() -> None:
    # the second job fits while it waits: 3 nodes idle from 10 to 20, 4 from 20 to 30; the third one 2 from 30
    # to 35 (not, it wants 3), 4 from 35 to 60: 30 + 40 + 0 + 100 of 150
    assert EPISODE.idle(np.array([0.0, 15.0, 30.0, 35.0, 60.0])) * 150 == pytest.approx([0, 15, 70, 70, 170])
    reward = Reward("wait", "percentage", "end", idle=15.0)
    assert reward.cost(EPISODE) == pytest.approx(20 + 15 * 170 / 150)
    times = np.array([10_000_000, 30_000_000])
    assert compute_rewards(reward, EPISODE, 74.0, times, NOT_LATE) == pytest.approx([0.0, 0.5])
    in_time = compute_rewards(Reward("wait", "native", "time", idle=15.0), EPISODE, 1.0, times, NOT_LATE)
    assert in_time == pytest.approx([-(20 + 10) / 3 - 15 * 70 / 150, -30 / 3 - 15 * 100 / 150])


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(1, 90)), min_size=1, max_size=9)
)
def test_what_idle_nodes_cost_in_time_adds_up(rows: list[tuple[int, int, int]]) -> None:
    submit, wait, run = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    demand = 1 + np.arange(len(rows))[:, None] % 3
    episode = EpisodeOutcome(submit, run, submit + wait, demand, np.array([3 * len(rows)]))
    reward = Reward("wait", "native", "time", idle=7.0)
    first, last = submit.min() * 1e6, episode.start.max() * 1e6
    times = np.linspace(first, last, 4).astype(np.int64)
    given_ = compute_rewards(reward, episode, 0.0, times, np.zeros(4, np.bool_))
    assert (given_ <= 1e-9).all()
    assert given_.sum() == pytest.approx(-reward.cost(episode))


@pytest.mark.parametrize(
    ("metric", "form", "said"), [("bsld.max", "native", "reward.metric"), ("bsld", "winloss", "reward.form")]
)
def test_what_cannot_be_spread_over_time_is_refused(metric: str, form: str, said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        Reward(metric, form, "time").check()  # type: ignore[arg-type]
