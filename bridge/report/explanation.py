"""Which rows an agent chooses: per feature, the distribution of chosen rows beside that of all rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.report.style import COLOURS, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
#: (values, shares of the sample at or below each), ascending.
Curve = tuple[Floats, Floats]

COLUMNS = 4


def explanation(
    features: Sequence[tuple[str, float, Curve, Curve]], chosen: str, everything: str
) -> "Figure":
    """Draw one small picture per feature.

    Args:
        features: (name, Kolmogorov–Smirnov distance, curve of the chosen rows, curve of all rows).
        chosen, everything: what the two curves are called.
    """
    columns = min(COLUMNS, len(features))
    lines = -(-len(features) // columns)
    figure = new_figure(2.7 * columns, 2.1 * lines + 0.5)
    grid = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axes in grid.flat[len(features) :]:
        axes.set_visible(False)
    for axes, (name, distance, own, rest) in zip(grid.flat, features, strict=False):
        for (values, shares), colour, label in ((rest, COLOURS[6], everything), (own, COLOURS[0], chosen)):
            at, share = np.append(values[:1], values), np.append(0.0, 100 * shares)
            axes.step(at, share, where="post", color=colour, linewidth=1.6, label=label)
        axes.set_title(f"{name}  {distance:.2f}", fontsize="small", loc="left")
        axes.tick_params(labelsize="small")
        axes.set_ylim(0, 102)
        plain(axes, grid="both")
    for line in grid[:, 0]:
        line.set_ylabel("rows ≤ value (%)", fontsize="small")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=2, frameon=False)
    return figure
