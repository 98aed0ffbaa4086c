"""Bounds: the best rules are the best, and who knows more wins more where it can be seen by hand."""

import json

import numpy as np
import pytest
from cli_commands import run_ok
from small_jobs import make_jobs

from bridge.forecasting.bound import ARRIVALS, BELIEVED, RULES, RUN_TIMES, bound
from bridge.judge.sequences import values_of
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Two nodes, requests of 100 s. 1 takes both for 50 s, 2 one for 60 s, 3 comes a second later: one for 50 s.
ROWS = [(0, 50, 100, 2), (0, 60, 100, 1), (1, 50, 100, 1)]


def test_by_hand() -> None:
    # Rules that put the short or early first: 1, then 2 and 3 at 50: bsld 1, 110/60, 99/50.
    first = (1 + 110 / 60 + 99 / 50) / 3
    # 2 first, beside it 3; 1 at 60: bsld 110/50, 1, 1.
    beside = (110 / 50 + 1 + 1) / 3
    # Believing 100 s of all, orders by area (saf) take 2 first, and 3 is backfilled beside it.
    found = bound(make_jobs(ROWS, [2]), SchedulerConfig(), np.array([0]), 3)
    assert found.rules[BELIEVED]["fcfs"] == pytest.approx(first)
    assert found.rules[BELIEVED]["saf"] == pytest.approx(beside)
    assert found.rules[RUN_TIMES]["sjf"] == pytest.approx(first)
    assert found.rules[RUN_TIMES]["saf"] == pytest.approx(beside)
    assert [row.estimates for row in found.rows] == [BELIEVED, BELIEVED, RUN_TIMES, RUN_TIMES, ARRIVALS]
    assert found.rows[0].values[0] == pytest.approx(beside)
    assert found.rows[-1].values[0] == pytest.approx(beside)


def test_the_command_prints_what_the_function_finds() -> None:
    told = " ".join(run_ok("bound", "--help").split())
    assert "Number of sequences. [default: 200]" in told and "jobs in each sequence. [default: 256]" in told
    words = ["bound", "bundled-128", "--first", "600", "--sequences", "4", "--length", "100", "--json"]
    found = json.loads(run_ok(*words))
    assert found["sequences"] == 4
    from bridge.workload.catalogue import resolve
    from bridge.workload.formats import read

    setup = SchedulerConfig(first=600)
    jobs = setup.select(read(resolve("bundled-128")))
    starts = np.array(found["starts"])
    for known, estimator in ((BELIEVED, ""), (RUN_TIMES, "actual")):
        means = found["rules"][known]
        assert list(means) == list(RULES)
        saf = values_of(SchedulerConfig("saf", estimator=estimator).build_scenario(jobs), starts, 100, "bsld")
        assert means["saf"] == pytest.approx(saf.mean())
        best = next(row for row in found["rows"] if row["known"] == known)
        assert best["mean"] == pytest.approx(min(means.values()))
    base = found["rows"][0]
    assert (base["difference"], base["oracle"]) == (None, False)
    for row in found["rows"][1:]:
        assert row["difference"]["mean"] == pytest.approx(row["mean"] - base["mean"])
        assert row["difference_percent"]["mean"] == pytest.approx(100 * (row["mean"] / base["mean"] - 1))
    assert "run times and arrivals" in " ".join(run_ok(*words[:-1]).split())
