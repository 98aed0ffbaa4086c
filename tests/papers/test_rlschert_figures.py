"""RLSchert's figures and smaller tables: what is kept of schedules, and what is said of made-up numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from handmade_schedule import handmade

pytest.importorskip("torch", reason="agents need PyTorch")

from bridge.pool.evaluate import Evaluation
from bridge.pool.schedule import Schedule
from bridge.pool.settings import Options, Settings
from bridge.pool.state import KILL
from bridge.pool.synthetic import synthetic
from papers.pages import block, render
from papers.rlschert import figures, measures, tables
from papers.rlschert import synthetic as mixed
from papers.rlschert.measures import LEARNING
from papers.rlschert.page import TEMPLATE
from papers.rlschert.study import CLAMP, HELD_OUT, HONEST, SHARES, TEST, PaperTable, Sample


def _schedule() -> Schedule:
    """Return three jobs on 4 units; the last one was killed after a step, believed to take 1."""
    attempts = np.array([(2, 2, 3, 3, 9)], KILL).view(np.recarray)
    return replace(handmade(), length=np.array([3, 2, 9]), end=np.array([4, 6, 14]), attempts=attempts)


def _evaluation() -> Evaluation:
    options = Options(sequences=2, steps=4, settings=Settings(units=4))
    two = (_schedule(), _schedule())
    return Evaluation("saf", "rule", "handmade", False, False, options, two)


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
    wrong = Schedule(
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


def test_a_curve_is_relative_to_saf_on_the_same_sequences() -> None:
    nan = float("nan")
    progress = pd.DataFrame(
        {
            "epoch": [1, 2, 3, 4],
            "train_mean": [8.0, 6.0, 5.0, 4.0],
            "base_mean": [4.0, 4.0, 5.0, 5.0],
            "valid_mean": [nan, 12.0, nan, 9.0],
            "valid_base": [nan, 10.0, nan, 10.0],
        }
    )
    kept = measures.curve(progress)
    np.testing.assert_allclose(np.asarray(kept["train"]), [2.0, 1.5, 1.0, 0.8])
    np.testing.assert_array_equal(np.asarray(kept["epochs"]), [2, 4])
    np.testing.assert_allclose(np.asarray(kept["valid"]), [1.2, 0.9])
    assert kept["base"] == 10.0


# Text.


def _row(row: str, sample: Sample, label: str, seed: int, **more: object) -> dict[str, object]:
    kind = "agent" if seed else "heuristic"
    return {
        "row": row,
        "test": sample.name,
        "label": label,
        "seed": seed,
        "kind": kind,
        "smoke": 0,
        "jobs": np.array([4, 6]),
        "kills": 0,
        "lost_steps": 0,
        "train_seconds": 60.0,
        **more,
    }


def _sums(*values: float) -> dict[str, object]:
    return {"slowdown": np.array(values), "completion": 2 * np.array(values)}


def test_held_out_sequences_say_better_or_worse_honest_and_with_the_clamp() -> None:
    data = pd.DataFrame(
        [
            *(_row("SAF", HELD_OUT, label, 0, **_sums(40.0, 60.0)) for label in (CLAMP, HONEST)),
            _row("SJF", HELD_OUT, CLAMP, 0, **_sums(44.0, 66.0)),
            _row("SJF", HELD_OUT, HONEST, 0, **_sums(44.0, 66.0)),
            _row("RLSchert (slowdown)", HELD_OUT, HONEST, 1, **_sums(36.0, 54.0)),
            _row("RLSchert (slowdown)", HELD_OUT, HONEST, 2, **_sums(28.0, 42.0)),
        ]
    )
    text = render(
        "rlschert/held_out.md",
        of=tables.held_out_table(
            PaperTable(0, HELD_OUT, "slowdown", "mean slowdown"), data, "### Here", "do it"
        ),
    )
    assert "| RLSchert | none | 0–2 | 8.00 [8.00, 8.00] | -2.00 [-2.00, -2.00] | not run |  |" in text
    assert (
        "- RLSchert: 8.00 honest, better than SAF (-2.00 [-2.00, -2.00]); by seed 9.00, 7.00. "
        'Not run (oracle clamp); `do it --row "RLSchert"`.' in text
    )
    assert (
        "- SJF: 11.00 honest, worse than SAF (+1.00 [+1.00, +1.00]); the same with the oracle clamp." in text
    )
    assert '- DeepRM: not run (oracle clamp and honest); `do it --row "DeepRM"`.' in text
    nothing = tables.held_out_table(
        PaperTable(0, HELD_OUT, "completion", "mean completion time in steps"),
        pd.DataFrame(),
        "### Here",
        "do it",
    )
    assert nothing["title"] == "### Here"
    assert render("rlschert/held_out.md", of=nothing) == "Not run; `do it`.\n"


def test_table_9_has_the_printed_row_and_differences_to_all_predictions() -> None:
    killer = "RLSchert, learned kill (slowdown)"
    data = pd.DataFrame(
        [
            _row(killer, sample, CLAMP, 1, **_sums(4 * mean, 6 * mean))
            for sample, mean in zip(SHARES, (9.0, 8.5, 8.2, 8.0), strict=True)
        ]
        + [_row("DeepRM (slowdown)", SHARES[0], CLAMP, 1, **_sums(36.0, 54.0))]
    )
    text = block(TEMPLATE, "table_9", table_9=tables.table_9(data))
    assert "| RLSchert, learned kill | paper |  | 9.63 | 8.55 | 8.36 | 8.32 |" in text
    assert "| RLSchert, learned kill | oracle clamp | 1 | 9.00 | 8.50 | 8.20 | 8.00 |" in text
    assert "| DeepRM | oracle clamp | 1 | 9.00 | – | – | – |" in text
    assert "| RLSchert, learned kill | honest | 0 | not run | – | – | – |" in text
    assert "with 50 % worse than with all (+0.50 [+0.50, +0.50])" in text
    assert "with 0 % not distinguishable from DeepRM (+0.00 [+0.00, +0.00])" in text


def test_figures_12_and_13_and_convergence_say_what_is_there() -> None:
    kept = measures.holes(_evaluation(), synthetic(1).jobs)
    more = {**kept, "holes": np.array([8, 8])}
    rows = [_row("SAF", TEST, HONEST, 0, **kept)]
    rows += [_row("DeepRM (slowdown)", TEST, HONEST, 1, **more)]
    text = block(TEMPLATE, "holes", holes=figures.holes(pd.DataFrame(rows)))
    assert "| SAF | none needed | 1.00 [1.00, 1.00] |  | 0.67 | 1.00 | 0.00 | 0.00 |" in text
    assert "| SAF | 2.0 | 0 | 3 | 3 | 3 | 3 | 3 | 1.5 | 3.0 |" in text
    assert (
        "- DeepRM: worse than SAF in holes (+1.00 [+1.00, +1.00]); short jobs wait 1.5 steps, long ones 3.0."
        in text
    )
    killed = measures.summary((_schedule(),), [np.array([3, 4, 3])])
    text = block(
        TEMPLATE,
        "killed",
        killed=figures.killed(pd.DataFrame([_row("SAF, rule kill", TEST, HONEST, 0, **killed)])),
    )
    cells = "1 | 33.3 % | 100.0 % | 100.0 % | 0.0 % | 1.0 | 9.0 / 4.7 | 3.0 / 3.3 | 1.0 / 2.0 | 3.0 / 1.5"
    assert f"| SAF, rule kill | none needed | {cells} |" in text
    curve = {"epochs": EPOCHS, "valid": np.array([1.2, 0.9, 0.8, 0.8, 0.8, 0.8]), "base": 10.0}
    row = _row("DeepRM (completion)", LEARNING, HONEST, 1, **curve)
    assert (
        "- DeepRM (completion, honest, 1 seed): passes SAF at epoch 10; best 8.00 beside SAF's 10.00 (means "
        "over seeds); converged at epoch 15."
        in block(TEMPLATE, "convergence", convergence=figures.convergence(pd.DataFrame([row])))
    )


def test_of_other_applications_only_the_users_history_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "path", sys.path[:])  # the program puts its own folder in front
    made = synthetic(50, seed=3)
    data = mixed.data_of(made)
    user = mixed.users(made)
    other = mixed.others(made)
    assert other.sum() == 25
    np.testing.assert_array_equal(data.jobs.believed[~other], made.jobs.believed[~other])
    np.testing.assert_array_equal(data.jobs.beliefs[~other], made.jobs.beliefs[~other])
    checked = 0
    for j in np.flatnonzero(other):
        before = np.flatnonzero(user[:j] == user[j])
        if len(before) >= 2:  # as long as the mean of the last two, now and while it runs
            expected = np.rint(made.jobs.length[before[-2:]].mean())
            assert data.jobs.believed[j] == expected
            assert (data.jobs.beliefs[j] == expected).all()
            checked += 1
    assert checked == 5
    assert (data.jobs.name, data.word, len(data.sha256)) == ("synthetic-50-3-mixed", "synthetic", 64)
    assert data.sha256 != mixed.data_of(synthetic(50, seed=4)).sha256
