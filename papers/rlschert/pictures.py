"""Pictures of RLSchert's page: slowdown against load and size, without kills and with (Figures 10, 11)."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bridge.report.style import COLOURS, new_figure, plain, save
from papers import store
from papers.rlschert.numbers import estimate, results
from papers.rlschert.play import row_of
from papers.rlschert.rows import HONEST, METHODS, Sample

_OF_NAME = dict(zip(dict.fromkeys(method.name for method in METHODS), COLOURS, strict=False))

_TICKS = (1, 2, 3, 5, 10, 20, 30)


def draw(data: pd.DataFrame, number: int, label: str, samples: Sequence[Sample], at: Sequence[float]) -> Path:
    """Draw honest mean slowdowns, left without kills and right with; smoke rows are left out.

    Args:
        data: results of the sweeps.
        number: of the figure.
        label: of the axis.
        samples: what was played, and
        at: where on the axis.
    """
    figure = new_figure(9.0, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, title in zip(panels, ("without kills", "with kills"), strict=True):
        for method in METHODS:
            if (method.kill == "none") != (title == "without kills"):
                continue
            row = row_of(method, "slowdown")
            found = {x: results(data, row, s, HONEST) for x, s in zip(at, samples, strict=True)}
            points = {x: estimate(f, "slowdown") for x, f in found.items() if len(f) and not f["smoke"].any()}
            if points:
                axes.errorbar(
                    list(points),
                    [e.mean for e in points.values()],
                    [e.high - e.mean for e in points.values()],
                    fmt="o--" if method.kill == "learned" else "o-",
                    markersize=3,
                    linewidth=1,
                    capsize=2,
                    color=_OF_NAME[method.name],
                    label=method.row,
                )
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel(label)
        axes.set_yscale("log")
        axes.set_yticks(_TICKS, [f"{tick}" for tick in _TICKS])
        axes.minorticks_off()
        plain(axes)
        if axes.has_data():
            axes.legend(frameon=False, fontsize="small")
    panels[0].set_ylabel("mean slowdown")
    path = store.RESULTS / f"rlschert-figure-{number}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path
