"""The picture of an explanation: one small plot per feature, both curves from 0 to 100 %."""

import numpy as np

from bridge.report.explanation import COLUMNS, explanation

CURVE = (np.array([0.0, 1.0, 3.0]), np.array([0.25, 0.5, 1.0]))
OTHER = (np.array([2.0]), np.array([1.0]))


def test_each_feature_has_a_plot_with_both_curves() -> None:
    names = ["wait", "nodes", "gap", "free", "safe"]
    figure = explanation([(n, 0.5 / (k + 1), CURVE, OTHER) for k, n in enumerate(names)], "rejected", "all")
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == [
        "wait  0.50",
        "nodes  0.25",
        "gap  0.17",
        "free  0.12",
        "safe  0.10",
    ]
    assert len(figure.axes) == 2 * COLUMNS
    everything, chosen = shown[0].lines
    assert (everything.get_label(), chosen.get_label()) == ("all", "rejected")
    assert chosen.get_xdata().tolist() == [0, 0, 1, 3]
    assert chosen.get_ydata().tolist() == [0, 25, 50, 100]
    assert everything.get_xdata().tolist() == [2, 2]


def test_one_feature() -> None:
    figure = explanation([("wait", 0.5, CURVE, CURVE)], "chosen", "all")
    assert len(figure.axes) == 1
