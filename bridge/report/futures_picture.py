"""A picture of the present and its futures: until when running jobs run, and when waiting ones start."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.forecasting.starts import Forecast, run_times
from bridge.forecasting.state import MachineState
from bridge.report.plots import LIMIT, RUNNING, WAITING, new_figure, plain, time_unit

#: Jobs that are shown, running and waiting each: the largest that run, the first that wait.
MOST_JOBS = 30
#: Probabilities of still running at which a bar's shade changes.
_SHADES = (0.95, 0.8, 0.6, 0.4, 0.2, 0.05)


def futures_picture(state: MachineState, forecast: Forecast) -> Figure:
    """Draw running jobs, darker the likelier they still run, and intervals of waiting jobs' starts."""
    if not forecast.id:
        raise BridgeError("no job waits: there is nothing to draw", where="picture of futures")
    now = state.now / 1e6
    running = np.argsort(-state.demand[: state.n_running, 0], kind="stable")[:MOST_JOBS]
    running = running[np.argsort(state.start[running], kind="stable")]
    waiting = range(min(len(forecast.id), MOST_JOBS))
    rows = len(running) + len(waiting)
    ended = 1.0 - np.repeat(np.array(_SHADES)[:, None], len(state), axis=1)
    ends = (state.start + run_times(state, ended)) / 1e6
    finite = [one for one in forecast.quantiles[: len(waiting), -1].tolist() if np.isfinite(one)]
    last = max([*finite, *ends[-2, running].tolist(), now + 60])
    first = max(float((state.start[running] / 1e6).min(initial=now)), now - 0.35 * (last - now))
    unit, unit_name = time_unit(last - first)
    figure = new_figure(9, 1.4 + 0.19 * rows)
    axes = figure.add_subplot()

    def bar(y: int, begin: float, end: float, colour: str, alpha: float = 1.0) -> None:
        axes.barh(y, (end - begin) / unit, left=(begin - now) / unit, color=colour, alpha=alpha, height=0.8)

    for y, j in enumerate(running.tolist()):
        bar(y, max(state.start[j] / 1e6, first), now, RUNNING)
        for k, level in enumerate(_SHADES):
            bar(y, now if k == 0 else float(ends[k - 1, j]), float(ends[k, j]), RUNNING, 0.75 * level)
    for y, k in enumerate(waiting, len(running)):
        low, half_low, middle, half_high, high = np.minimum(forecast.quantiles[k], last).tolist()
        bar(y, low, high, WAITING, 0.3)
        bar(y, half_low, half_high, WAITING, 0.75)
        axes.plot([(middle - now) / unit] * 2, [y - 0.45, y + 0.45], color=LIMIT, linewidth=1.6)
    axes.axvline(0.0, color=LIMIT, linewidth=1)
    jobs = [*running.tolist(), *(state.index(name) for name in forecast.id[: len(waiting)])]
    names = [f"{state.id[j][:14]}, {state.demand[j, 0]:,} n." for j in jobs]
    axes.set_yticks(range(rows), names, fontsize=7)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_xlim((first - now) / unit, (last - now) / unit)
    axes.set_xlabel(f"time from now ({unit_name})")
    plain(axes, grid="x")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    rows_text = "" if rows == len(state) else f", {rows} shown"
    title = (
        f"{counted(state.n_running, 'job runs', 'jobs run')}, "
        f"{counted(len(state) - state.n_running, 'waits', 'wait')}{rows_text} ({state.policy})"
    )
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def _legend() -> list[Patch | Line2D]:
    return [
        Patch(color=RUNNING, label="runs: darker = likelier"),
        Patch(color=WAITING, alpha=0.75, label="starts within: 50 %"),
        Patch(color=WAITING, alpha=0.3, label="90 %"),
        Line2D([], [], color=LIMIT, label="median start"),
    ]
