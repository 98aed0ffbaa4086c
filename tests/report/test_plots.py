"""What the pictures hold: bars, steps, curves, units; and that saving is whole or not at all."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.patches import StepPatch
from schedules import EXAMPLE, example, schedule
from subprocess_python import run_python

from bridge.base.errors import BridgeError
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run
from bridge.report.plots import (
    COLUMNS,
    bin_step_function,
    distributions,
    explanation,
    gantt,
    save,
    shares,
    time_unit,
    timeline,
)


def run_of(jobs: pd.DataFrame, nodes: int = 4) -> Run:
    return Run({}, {"nodes": nodes}, jobs, compute_metrics(jobs, {"nodes": nodes}), name="example")


def test_binned_means_and_maxima() -> None:
    # 2 over [0, 10), 6 over [10, 20), 0 after
    mean, most = bin_step_function(np.array([0.0, 10, 20]), np.array([2.0, 6, 0]), np.array([0.0, 5, 15, 25]))
    assert mean.tolist() == [2.0, 4.0, 3.0]
    assert most.tolist() == [2.0, 6.0, 6.0]


def test_binned_sees_a_short_peak_and_the_time_before_the_first_step() -> None:
    mean, most = bin_step_function(np.array([4.0, 5, 6]), np.array([1.0, 9, 0]), np.array([0.0, 10, 20]))
    assert mean.tolist() == [1.0, 0.0]
    assert most.tolist() == [9.0, 0.0]


def test_timeline_of_a_small_run_is_exact() -> None:
    figure = timeline(run_of(example()))
    above, below = figure.axes[:2]
    running, waiting = (next(p for p in axes.patches if isinstance(p, StepPatch)) for axes in (above, below))
    assert running.get_data()[0].tolist() == [2, 3, 2, 4, 1, 0]
    assert running.get_data().edges.tolist() == [0, 2, 6, 10, 15, 115, 115]
    assert waiting.get_data()[0].tolist() == [4, 4, 5, 1, 0]
    assert below.get_xlabel() == "time (s)"
    assert above.lines[0].get_ydata() == [4, 4]
    assert above.get_title("left") == "example: 4 jobs, utilisation 31.3 %"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["in use", "capacity, 4 nodes", "requested by waiting jobs"]


def test_a_job_that_was_killed_waits_once() -> None:
    # job 1 runs in vain from 2 to 10 and again from 20 on; job 2 runs between
    made = schedule((("1#1", 0, 2, 8, 2), ("1", 0, 20, 5, 2), ("2", 0, 10, 10, 4)))
    made.loc[0, "final_state"] = "COMPLETED_KILLED"
    figure = timeline(run_of(made))
    running, waiting = (next(p for p in axes.patches if isinstance(p, StepPatch)) for axes in figure.axes[:2])
    assert running.get_data()[0].tolist()[-4:] == [2, 4, 2, 0]
    steps = dict(zip(waiting.get_data().edges.tolist(), waiting.get_data()[0].tolist(), strict=False))
    assert (steps[0.0], steps[10.0]) == (6, 2)
    left = distributions([run_of(made)], ["a"]).axes[0]
    assert left.lines[0].get_ydata()[-1] == 100.0
    assert sorted(set(left.lines[0].get_ydata())) == [0.0, 50.0, 100.0]  # two jobs wait 10 and 20 s


def test_timeline_of_a_large_run_says_that_it_shows_means() -> None:
    jobs = schedule([(k, 60 * k, 60 * k + 30, 30, 1 + k % 4) for k in range(1000)])
    figure = timeline(replace(run_of(jobs), oracle=True))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == "in use, mean over 1.67 min"
    assert "peak in that span" in labels
    assert figure.axes[1].get_xlabel() == "time (h)"
    assert figure.axes[0].get_title("left").endswith("(oracle)")


def test_gantt_has_one_bar_per_interval() -> None:
    jobs = example()
    jobs["allocated_resources"] = ["0 2", "0-3", "1", "3", ""]
    axes = gantt(run_of(jobs)).axes[0]
    bars = next(c for c in axes.collections if isinstance(c, PolyCollection))
    boxes = [path.get_extents().extents.tolist() for path in bars.get_paths()]
    assert boxes == [[0, 0, 10, 1], [0, 2, 10, 3], [10, 0, 15, 4], [2, 1, 6, 2], [15, 3, 115, 4]]
    colours = [tuple(c) for c in bars.get_facecolors()]
    assert colours[0] == colours[1] == colours[3]  # user 1
    assert colours[2] == colours[4] != colours[0]  # user 2
    assert axes.get_xlabel() == "time (s)"
    assert [t.get_text() for t in axes.figure.legends[0].get_texts()] == ["user 1", "user 2"]


def test_gantt_places_jobs_that_have_no_hosts_and_labels_them() -> None:
    figure = gantt(run_of(schedule(EXAMPLE)))
    axes = figure.axes[0]
    assert axes.get_title("left") == "example: 4 jobs on 4 hosts (placed first-fit)"
    assert [t.get_text() for t in axes.texts] == ["A", "B", "C", "D"]
    assert figure.legends == []


def test_gantt_of_a_site_is_coloured_by_partition() -> None:
    jobs = example()
    jobs["allocated_resources"] = ["0 2", "0-3", "1", "3", ""]
    jobs["partition"] = ["batch", "gpu", "gpu", "batch", "batch"]
    jobs["shares_nodes"] = [False, True, True, False, False]
    axes = gantt(run_of(jobs)).axes[0]
    bars = next(c for c in axes.collections if isinstance(c, PolyCollection))
    colours = [tuple(c) for c in bars.get_facecolors()]  # of jobs A (two bars), B, C, D
    assert [c[3] for c in colours] == [1.0, 1.0, 0.5, 0.5, 1.0]
    assert colours[0] == colours[1] == colours[4] and colours[2] == colours[3]
    assert [t.get_text() for t in axes.figure.legends[0].get_texts()] == ["partition batch", "partition gpu"]
    with pytest.raises(BridgeError, match="no partitions to colour by"):
        gantt(run_of(schedule(EXAMPLE)), colour_by="partition")


def test_gantt_refuses() -> None:
    many = schedule([(k, k, k, 1, 1) for k in range(2001)])
    with pytest.raises(BridgeError, match="at most 2,000 jobs, the run has 2,001"):
        gantt(run_of(many))
    with pytest.raises(BridgeError, match="no users to colour by"):
        gantt(run_of(schedule(EXAMPLE)), colour_by="user")
    broken = example()
    broken["allocated_resources"] = ["0-1", "x", "2", "0", ""]
    with pytest.raises(BridgeError, match="host ids of job B"):
        gantt(run_of(broken))


@pytest.mark.parametrize("draw", [timeline, gantt, lambda run: distributions([run], ["a"])])
def test_nothing_started(draw: object) -> None:
    with pytest.raises(BridgeError, match="no job started"):
        draw(run_of(schedule([("r", 0, None, 1, 9)])))  # type: ignore[operator]


def test_shares() -> None:
    assert shares(np.array([3.0, 1, 1, 2]), np.array([0.5, 1, 2.5, 3])).tolist() == [0, 0.5, 0.75, 1]


def test_distributions() -> None:
    figure = distributions([run_of(example()), replace(run_of(example()), oracle=True)], ["a", "b"])
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == ["a", "b *"]
    assert left.lines[0].get_ydata()[0] == 50.0  # half of the jobs wait for a second or less
    assert left.lines[0].get_ydata()[-1] == 100.0
    assert right.lines[0].get_ydata()[0] == 50.0
    assert (left.get_xscale(), left.get_xlabel(), right.get_xlabel()) == ("log", "wait", "bounded slowdown")
    with pytest.raises(BridgeError, match="told apart"):
        distributions([], [])


@pytest.mark.parametrize(
    ("span", "unit"), [(600, "s"), (601, "min"), (10_801, "h"), (259_200, "h"), (259_201, "days")]
)
def test_time_unit(span: float, unit: str) -> None:
    assert time_unit(span)[1] == unit


def test_saving(tmp_path: Path) -> None:
    figure = timeline(run_of(example()))
    save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
    save(timeline(run_of(example())), tmp_path / "a.svg")
    first = (tmp_path / "a.svg").read_bytes()
    assert b"nodes in use" in first
    save(timeline(run_of(example())), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == first
    with pytest.raises(BridgeError, match=r"saved as \.png or \.svg"):
        save(figure, tmp_path / "a.jpg")
    with pytest.raises(BridgeError, match="cannot write"):
        save(figure, tmp_path / "gone" / "a.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "a.svg"]


def test_no_picture_uses_pyplot() -> None:
    code = "import bridge.report.plots, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert run_python(code).returncode == 0


CURVE = (np.array([0.0, 1.0, 3.0]), np.array([0.25, 0.5, 1.0]))
OTHER = (np.array([2.0]), np.array([1.0]))


def test_each_feature_has_a_plot_with_both_curves() -> None:
    names = ["wait", "nodes", "gap", "free", "safe"]
    figure = explanation([(n, 0.5 / (k + 1), CURVE, OTHER) for k, n in enumerate(names)], "rejected", "all")
    shown = [axes for axes in figure.axes if axes.get_visible()]
    expected = ["wait  0.50", "nodes  0.25", "gap  0.17", "free  0.12", "safe  0.10"]
    assert [axes.get_title(loc="left") for axes in shown] == expected
    assert len(figure.axes) == 2 * COLUMNS
    everything, chosen = shown[0].lines
    assert (everything.get_label(), chosen.get_label()) == ("all", "rejected")
    assert chosen.get_xdata().tolist() == [0, 0, 1, 3]
    assert chosen.get_ydata().tolist() == [0, 25, 50, 100]
    assert everything.get_xdata().tolist() == [2, 2]


def test_one_feature() -> None:
    figure = explanation([("wait", 0.5, CURVE, CURVE)], "chosen", "all")
    assert len(figure.axes) == 1
