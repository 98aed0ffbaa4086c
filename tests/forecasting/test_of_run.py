"""States of runs and forecasts along them: nothing is read that became known later."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from small_jobs import make_jobs, prepared

import bridge
from bridge.base.errors import BridgeError
from bridge.cli.main import cli
from bridge.forecasting.run_state import load_state, state_of_run
from bridge.forecasting.scoring import by_history, judge, score
from bridge.forecasting.statefile import document_of
from bridge.forecasting.timeline import ForecastCases, Timeline, list_cases, simulate
from bridge.judge.run import Run, write_run
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import SECOND
from bridge.worlds.fast.replay import replay


@pytest.fixture(scope="module")
def run() -> Run:
    """A short replay under fcfs+easy."""
    return bridge.replay("bundled-128", "fcfs+easy", first=700)


def middle(run: Run) -> float:
    """Return a time at which many jobs of it wait."""
    jobs = run.jobs
    longest = jobs["waiting_time"].idxmax()
    return float(jobs.loc[longest, "submission_time"] + jobs.loc[longest, "waiting_time"] / 2)


def test_the_state_of_a_run_is_that_of_its_replay(run: Run) -> None:
    time = middle(run)
    state = state_of_run(run, time, learn=False)
    jobs = run.jobs.set_index("job_id")
    started = jobs["starting_time"] <= time
    runs = jobs.index[started & (jobs["finish_time"] > time)]
    waits = jobs.index[(jobs["submission_time"] <= time) & ~started]
    assert {*state.id[: state.n_running]} == {*runs}
    assert {*state.id[state.n_running :]} == {*waits}
    assert len(waits) > 0
    assert state.free[0] == run.capacity["nodes"] - jobs.loc[runs, "requested_number_of_resources"].sum()
    assert state.settled


def test_what_comes_later_is_not_read(run: Run) -> None:
    time = middle(run)
    table = run.jobs.copy()
    later = table["starting_time"] > time
    table.loc[later, ["starting_time", "finish_time"]] += 12345.0
    unended = ~later & (table["finish_time"] > time)
    table.loc[unended, "finish_time"] += 777.0
    other = Run(run.config, run.capacity, table, run.metrics)
    one, same = (document_of(state_of_run(each, time)) for each in (run, other))
    assert one == same
    assert {*one["corrections"]} == {"0", "60", "3600", "21600"}


def test_runs_that_have_no_state(run: Run) -> None:
    with pytest.raises(BridgeError, match="nothing was submitted"):
        state_of_run(run, -5.0)
    for time in (np.nan, np.inf, -np.inf, 1e13, 1e300):
        with pytest.raises(BridgeError, match="is no time\n  Give seconds on the run's clock"):
            state_of_run(run, time)
    for changes, said in (
        ({"protocol": "cqsim"}, "standard protocol"),
        ({"estimator": "actual"}, "what its scheduler believed is not known"),
        ({"experiment": {"agent": "agents/mine"}}, "an agent decided"),
    ):
        other = Run(run.config | changes, run.capacity, run.jobs, run.metrics)
        with pytest.raises(BridgeError, match=said):
            state_of_run(other, middle(run))


# Four nodes. Job 2 waits from 10 to 100, job 3 from 20 to 150, job 4 starts at once.
ROWS = [(0, 100, 100, 4), (10, 50, 80, 4), (20, 10, 20, 4), (400, 5, 5, 4)]


def test_cases_and_forecasts_by_hand() -> None:
    work = prepared(make_jobs(ROWS, [4]), Policy("fcfs", "easy"))
    schedule = replay(work)
    what = list_cases(work.jobs.submit, schedule.start, (60, 120))
    assert what.job.tolist() == [1, 2, 2]
    assert (what.time / SECOND).tolist() == [70, 80, 140]
    assert what.after.tolist() == [30, 70, 10]
    raw = simulate(Timeline(work, schedule), what, futures=3)
    assert raw.reserved.tolist() == [30, 100, 40]  # job 2 requests 30 s more than it takes
    assert raw.quantiles.tolist() == [[30.0] * 5, [100.0] * 5, [40.0] * 5]
    scored = score(what, raw.quantiles, 60)
    assert (scored.jobs, scored.coverage90, scored.median_abs_error, scored.mean_width) == (2, 0.5, 15.0, 0.0)
    assert scored.winkler == 20 * 30 / 2
    assert score(what, np.full((3, 5), np.inf), 60).infinite == 1


def test_the_interval_of_a_share_begins_at_0() -> None:
    # 150 jobs are 5 blocks of 28 and more, 30: 1, 0.5, 0, 0, 0 of them are covered
    ones = np.ones(150, np.int64)
    quantiles = np.repeat(np.where(np.arange(150) < 45, 0.0, 1.0), 5).reshape(150, 5)
    found = score(ForecastCases(ones, ones, ones * 0, ones * 0), quantiles, 1)
    assert (found.coverage90, found.coverage90_low) == (0.3, 0.0)
    assert (found.coverage90_b, found.coverage90_kind) == (5, "t")
    half = 2.7764451051977934 * (0.2 / 5) ** 0.5  # t with 4 degrees of freedom; s² = 0.2
    assert found.coverage90_high == pytest.approx(0.3 + half)


def test_a_share_of_few_jobs_has_no_interval() -> None:
    ones = np.ones(10, np.int64)
    quantiles = np.repeat(np.where(np.arange(10) < 3, 0.0, 1.0), 5).reshape(10, 5)
    found = score(ForecastCases(ones, ones, ones * 0, ones * 0), quantiles, 1)
    assert (found.coverage90, found.coverage90_low, found.coverage90_high) == (0.3, None, None)
    assert (found.coverage90_b, found.coverage90_kind) == (2, None)


def test_history_is_of_waits_that_have_ended() -> None:
    work = prepared(make_jobs(ROWS, [4], users=[1, 1, 2, 1]), Policy("fcfs", "easy"))
    start = np.array([0, 100, 150, 700]) * SECOND
    what = list_cases(work.jobs.submit, start, (60,))
    assert by_history(what, work.jobs.user).tolist() == [60, 60, 30]


def test_judging_a_log() -> None:
    from bridge.forecasting.scoring import learn_estimates
    from bridge.workload.catalogue import read_log
    from bridge.worlds.fast.scheduler_config import SchedulerConfig

    setup = SchedulerConfig(first=400)
    work = setup.build_scenario(setup.select(read_log("bundled-128", "refuse")))
    timeline = learn_estimates(work, replay(work))
    found: Any = judge(timeline, futures=6)
    assert found == judge(timeline, futures=6)
    assert {*found} == {"horizons", "baselines"}
    assert {*found["baselines"]} == {"walltime reservation", "user history"}
    one = found["horizons"]["3600"]
    assert one["jobs"] > 20
    assert 0 < one["coverage50"] < one["coverage90"] <= 1
    assert one["infinite"] == 0


def test_the_commands(run: Run, tmp_path: Path) -> None:
    folder, file, picture = tmp_path / "run", tmp_path / "now.json", tmp_path / "now.svg"
    write_run(run, folder)
    time = str(middle(run))

    def call(*words: str) -> str:
        done = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "; nodes free: " in call("state", str(folder), "--at", time, "--out", str(file))
    direct = json.loads(call("forecast", str(folder), "--at", time, "--json"))
    stored = json.loads(call("forecast", str(file), "--json", "--submit", "4:1h"))
    assert json.loads(call("forecast", str(file), "--json")) == direct
    assert stored["submitted"][0]["job"] == "4:1h"
    first = direct["jobs"][0]
    assert first["low90"] <= first["low50"] <= first["median"] <= first["high50"] <= first["high90"]
    frame = bridge.forecast(file, job=first["job"])
    assert frame.loc[first["job"], "median"] == first["median"]
    assert "90 % within" in call("forecast", str(file), "--plot", str(picture))
    assert picture.read_text().startswith("<?xml")
    rules = ("--policy", "fcfs+easy", "--policy", "saf+easy")
    compared = json.loads(call("whatif", str(file), *rules, "--futures", "8", "--json"))
    assert [one["policy"] for one in compared["policies"]] == ["fcfs+easy", "saf+easy"]
    assert "difference" in call("whatif", str(file), "--drain", "4", "--futures", "4")
    with pytest.raises(BridgeError, match="Give --at"):
        load_state(folder)
    with pytest.raises(BridgeError, match="has its own time"):
        load_state(file, 5.0)
    with pytest.raises(BridgeError, match="no such file"):
        load_state(tmp_path / "nothing", 5.0)
