"""RLSchert's figures and smaller tables: what is kept of schedules, and what is said of made-up numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_schedule import pool_schedule

pytest.importorskip("torch", reason="agents need PyTorch")

from bridge.pool.evaluate import PoolEvaluation
from bridge.pool.jobset import read_vasp
from bridge.pool.schedule import PoolSchedule
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.pool.state import KILL
from bridge.pool.study_rows import digest_of
from bridge.pool.synthetic import synthetic
from papers import curves, store
from papers.curves import Curve
from papers.pages import block
from papers.rlschert import figures, measures, sweeps
from papers.rlschert import synthetic as predictors
from papers.rlschert.page import TEMPLATE


def _schedule() -> PoolSchedule:
    """Return three jobs on 4 units; the last one was killed after a step, believed to take 1."""
    attempts = np.array([(2, 2, 3, 3, 9)], KILL).view(np.recarray)
    return replace(pool_schedule(), length=np.array([3, 2, 9]), end=np.array([4, 6, 14]), attempts=attempts)


def _evaluation() -> PoolEvaluation:
    options = EvaluationOptions(sequences=2, steps=4, settings=PoolConfig(units=4))
    two = (_schedule(), _schedule())
    return PoolEvaluation("saf", "rule", "handmade", False, False, options, two)


def test_holes_are_kept_as_sums_and_histograms() -> None:
    kept = measures.holes(_evaluation(), synthetic(1).jobs)
    # steps 1, 3 and 4 have 1, 1 and 2 idle units beside 1, 2 and 1 waiting jobs, step 2 none
    np.testing.assert_array_equal(kept["holes"], [4, 4])
    np.testing.assert_array_equal(kept["steps"], [4, 4])
    np.testing.assert_array_equal(kept["early_holes"], [2, 2])
    np.testing.assert_array_equal(kept["early_steps"], [3, 3])
    np.testing.assert_array_equal(kept["queue_holes"], [8, 0, 0])
    np.testing.assert_array_equal(kept["queue_steps"], [8, 0, 0])
    np.testing.assert_array_equal(kept["by_step"], [0, 2, 0, 2, 4] + [0] * 9)
    np.testing.assert_array_equal(kept["waits"], [2, 0, 0, 4])
    np.testing.assert_array_equal(kept["wait"], [6, 6])
    np.testing.assert_array_equal(kept["short_jobs"], [2, 2])
    np.testing.assert_array_equal(kept["short_wait"], [3, 3])


def test_quantiles_are_waits_that_so_many_do_not_exceed() -> None:
    histogram = np.array([50.0, 25.0, 15.0, 9.0, 0.0, 1.0])
    assert figures.quantiles(histogram) == [0, 0, 1, 2, 3, 5]


def test_killed_attempts_are_compared_with_what_was_believed() -> None:
    jobs = _schedule()
    wrong = PoolSchedule(
        id=np.array([1]),
        submit=np.array([1]),
        units=np.array([2]),
        length=np.array([6]),
        start=np.array([5]),
        end=np.array([11]),
        kills=np.array([1]),
        lost=np.array([3]),
        attempts=np.array([(0, 2, 5, 5, 6)], KILL).view(np.recarray),
        n_rejected=0,
    )
    kept = measures.summary((jobs, wrong), [np.array([3, 4, 3]), np.array([5])])
    assert {k: v for k, v in kept.items() if not k.endswith("ratios")} == {
        "kills": 2,
        "lost": 4,
        "over_2": 1,
        "over_1_5": 1,
        "within_1_2": 1,  # 9 / 3 and 6 / 5
        "killed_jobs": 2,
        "killed_length": 15,
        "killed_units": 3,
        "killed_wait": 7,
        "killed_believed": 8,
        "all_jobs": 4,
        "all_length": 20,
        "all_units": 8,
        "all_wait": 10,
        "all_believed": 15,
    }
    edges = measures.EDGES
    assert [edges[k] for k in np.flatnonzero(kept["killed_ratios"])] == pytest.approx([1.0, 2.0**1.5])
    assert [edges[k] for k in np.flatnonzero(kept["all_ratios"])] == pytest.approx([0.5, 1.0, 2.0**1.5])


EPOCHS = np.arange(5, 35, 5)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        ([1.2, 1.1, 0.9, 1.0, 0.9, 0.8], (15, 25)),
        ([1.2, 1.1, 0.9, 0.8, 0.8, 1.0], (15, -1)),
        ([0.9, 0.9, 0.9, 0.9, 0.9, 0.9], (5, 5)),
        ([1.2, 1.1, 1.0, 1.1, 1.1, 1.1], (-1, -1)),
    ],
)
def test_the_epoch_at_which_saf_is_passed(ratio: list[float], expected: tuple[int, int]) -> None:
    assert figures.passes(EPOCHS, np.array(ratio)) == expected


def test_converged_is_within_a_percent_of_the_best() -> None:
    assert figures.converged(EPOCHS, np.array([1.2, 0.9, 0.81, 0.808, 0.8, 0.85])) == 20


# Text.


def _row(row: str, seed: int, **more: object) -> dict[str, object]:
    return {"row": row, "test": "the test set", "label": "honest", "seed": seed, **more}


def _swept(row: str, at: str, mean: float, **more: object) -> dict[str, object]:
    interval = {"low": mean - 1, "mean": mean, "high": mean + 1}
    told = {"row": row, "log": "jobs", "test": at, "seeds": 1, "learnt": False, "mean": interval}
    return told | {"unit": "steps", **more}


def _document() -> dict[str, object]:
    agent = "RLSchert, learned kill"
    nothing = {"row": f"{agent}, oracle clamp", "log": "jobs", "seeds": 0, "learnt": True}
    return {
        "metric": "slowdown",
        "rows": [
            *(_swept("SAF", f"rate {rate}", 4 * rate) for rate in (0.5, 0.7)),
            *(_swept("SJF", f"rate {rate}", 5 * rate) for rate in (0.5, 0.7)),
            _swept("SAF", "rate 0.9", 3.6),
            _swept(agent, "rate 0.5", 1.5, learnt=True, seeds=3),
            _swept(agent, "rate 0.7", 2.5, learnt=True, seeds=2),
            _swept(agent, "rate 0.9", 3.5, learnt=True, seeds=1),
            *({**nothing, "test": f"rate {rate}"} for rate in (0.5, 0.7, 0.9)),
        ],
        "comparisons": [
            {"row": "SAF", "base": "FCFS", "log": "jobs", "test": "rate 0.5", "verdict": "better"},
            {"row": agent, "base": "SAF", "log": "jobs", "test": "rate 0.5", "verdict": "better"},
            {
                "row": agent,
                "base": "SAF",
                "log": "jobs",
                "test": "rate 0.7",
                "verdict": "not distinguishable",
            },
        ],
    }


def test_a_sweep_has_a_line_for_each_agent_and_its_base() -> None:
    made = sweeps.table(_document())
    assert made.headings == ["mean slowdown", "seeds", "rate 0.5", "rate 0.7", "rate 0.9"]
    assert made.rows == [
        ["SAF", "–", "2.00", "2.80", "3.60"],
        ["RLSchert, learned kill", "1–3", "1.50 better", "2.50 ≈", "3.50"],
        ["RLSchert, learned kill, oracle clamp", "0", "not run", "not run", "not run"],
    ]


def test_a_sweep_is_drawn_where_it_was_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    text = sweeps.draw(_document(), "swept").read_text()
    assert "RLSchert, learned kill" in text
    assert "SJF" not in text  # neither an agent nor a base


def test_figures_12_and_13_say_what_is_there() -> None:
    twice = measures.holes(_evaluation(), synthetic(1).jobs)
    kept = {name: np.tile(value, 10) if np.shape(value) == (2,) else value for name, value in twice.items()}
    more = {**kept, "holes": np.full(20, 8)}  # few sequences have no interval
    rows = [_row("SAF", 0, **kept), _row("DeepRM", 1, **more), _row("DeepRM", 2, **more)]
    rows.append(_row("RLSchert, rule kill", 1, **kept))
    text = block(TEMPLATE, "holes", holes=figures.holes(pd.DataFrame(rows)))
    assert "| SAF | – | 1.00 [1.00, 1.00] |  | 0.67 | 1.00 | 0.00 | 0.00 |" in text
    assert "| DeepRM | 2 | 2.00 [2.00, 2.00] | +1.00 [+1.00, +1.00] | 0.67 | 1.00 | 0.00 | 0.00 |" in text
    assert "| RLSchert | 0 | not run |  |  |  |  |  |" in text
    assert "| SAF | 2.0 | 0 | 3 | 3 | 3 | 3 | 3 | 1.5 | 3.0 |" in text
    assert (
        "- DeepRM: worse than SAF in holes (+1.00 [+1.00, +1.00]); short jobs wait 1.5 steps, long ones 3.0."
        in text
    )
    assert (
        "- RLSchert, rule kill: not distinguishable from SAF in holes (+0.00 [+0.00, +0.00]), better than "
        "DeepRM (-1.00 [-1.00, -1.00]), while jobs arrive not distinguishable from it (+0.00 [+0.00, +0.00]);"
        " short jobs wait 1.5 steps" in text
    )
    killed = measures.summary((_schedule(),), [np.array([3, 4, 3])])
    data = pd.DataFrame([_row("SAF, rule kill", 0, **killed)])
    text = block(TEMPLATE, "killed", killed=figures.killed(data))
    cells = "1 | 33.3 % | 100.0 % | 100.0 % | 0.0 % | 1.0 | 9.0 / 4.7 | 3.0 / 3.3 | 1.0 / 2.0 | 3.0 / 1.5"
    assert f"| SAF, rule kill | – | {cells} |" in text
    assert (
        "- SAF, rule kill: 1 kills, 100 % of them of jobs more than twice as long as estimated and 0 % of "
        "jobs that were estimated well; each loses 1.0 steps." in text
    )


def test_convergence_is_told_by_the_curves_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    seen = tuple(zip(EPOCHS.tolist(), [1.2, 0.9, 0.8, 0.8, 0.8, 0.8], strict=True))
    made = [Curve("DeepRM", "jobs", ("a",), seen), Curve("DeepRM", "jobs", ("b",), seen[:3])]
    made += [
        Curve("DeepRM, learnt for the slowdown", "jobs", ("c",), seen),
        Curve("last", "jobs", ("d",), ()),
    ]
    curves.write(store.path_of("rlschert-8-curves", ".jsonl"), made)
    text = block(TEMPLATE, "convergence", near=figures.NEAR, convergence=figures.convergence())
    assert (
        "- DeepRM (completion, 2 seeds): passes SAF at epoch 10; at best 0.800 of SAF's (mean over seeds); "
        "converged at epoch 15.\n" in text
    )
    assert "learnt for" not in text
    assert "last" not in text.partition("</summary>")[2]
    none = block(TEMPLATE, "convergence", near=figures.NEAR, convergence=figures.convergence({}))
    assert "No agent has been trained here" in none


def test_of_other_applications_only_the_users_history_is_known() -> None:
    made = synthetic(50, seed=3)
    jobs = predictors.mixed(made)
    user = predictors.users(made)
    other = predictors.others(made)
    assert other.sum() == 25
    np.testing.assert_array_equal(jobs.believed[~other], made.jobs.believed[~other])
    np.testing.assert_array_equal(jobs.beliefs[~other], made.jobs.beliefs[~other])
    checked = 0
    for j in np.flatnonzero(other):
        before = np.flatnonzero(user[:j] == user[j])
        if len(before) >= 2:  # as long as the mean of the last two, now and while it runs
            expected = np.rint(made.jobs.length[before[-2:]].mean())
            assert jobs.believed[j] == expected
            assert (jobs.beliefs[j] == expected).all()
            checked += 1
    assert checked == 5
    assert jobs.name == "synthetic-50-3-mixed"
    assert digest_of(jobs) != digest_of(predictors.mixed(synthetic(50, seed=4)))


def test_the_study_reads_the_mixed_jobs_as_they_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictors, "MIXED_JOBS", tmp_path / "workloads" / "vasp-mixed.csv.gz")
    monkeypatch.setattr(predictors, "synthetic", lambda: synthetic(50, seed=3))
    path = predictors.write_mixed()
    made, read = predictors.mixed(synthetic(50, seed=3)), read_vasp(path)
    for name in ("id", "units", "length", "believed", "beliefs"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name), err_msg=name)
    written = path.stat().st_mtime_ns
    assert predictors.write_mixed().stat().st_mtime_ns == written
