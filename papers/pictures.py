"""Pictures of the results: training curves, Kiviat charts, what agents choose; how all pictures are made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.report.plots import COLOURS, LINES, new_figure, plain, save
from bridge.study.headings import HEADS
from bridge.study.results import StudyResults
from bridge.study.spec import Study
from papers import curves as training
from papers import store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panels(
    width: float, height: float, titles: Sequence[str] = ("",), **more: Any
) -> "tuple[Figure, list[Axes]]":
    """Return a figure with a panel per title, side by side; its size in inches."""
    figure = new_figure(width, height)
    axes = list(figure.subplots(1, len(titles), squeeze=False, **more)[0])
    for one, title in zip(axes, titles, strict=True):
        if title:
            one.set_title(title, fontsize="medium")
        plain(one)
    return figure, axes


def legend(axes: "Axes", **more: Any) -> None:
    """Put a legend into a panel, if there is anything to tell apart."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small", **more)


def saved(figure: "Figure", name: str) -> Path:
    path = store.RESULTS / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path


#: Panels side by side, and where a panel's ticks are, from the finest on: a few are enough.
COLUMNS = 3
TICKS = (
    np.round(np.arange(0.8, 1.3, 0.02), 2),
    np.round(np.arange(0.4, 2.1, 0.1), 1),
    np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0]),
    np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]),
)


def grid(titles: Sequence[str], height: float) -> "tuple[Figure, list[Axes]]":
    """Return a figure with a panel of so many inches' height per title, in rows of up to `COLUMNS`."""
    rows = -(-len(titles) // COLUMNS)
    columns = -(-len(titles) // rows)
    figure = new_figure(max(4.5, 2.9 * columns), height * rows)
    axes = [figure.add_subplot(rows, columns, k + 1) for k in range(len(titles))]
    for one, title in zip(axes, titles, strict=True):
        one.set_title(title, fontsize="medium")
        plain(one)
    return figure, axes


def below(figure: "Figure", handles: Mapping[str, Any]) -> None:
    """Put a legend below all panels; the figure grows by it."""
    columns = max(1, int(figure.get_figwidth() / (0.8 + 0.075 * max(map(len, handles)))))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(handles) // columns))
    entries, names = list(handles.values()), list(handles)
    figure.legend(entries, names, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")


def curves(table: str) -> Path | None:
    """Draw how rows' agents did in validation while they learnt, a panel per log; None where none has.

    Over the base, mean of seeds; one that has ended earlier than others counts as it was at its end.
    """
    agents_by_row = {
        key: agents for key, agents in training.read(table).items() if any(a.validated for a in agents)
    }
    if not agents_by_row:
        return None
    rows, logs = (list(dict.fromkeys(names)) for names in zip(*agents_by_row, strict=True))
    seeds = {
        row: sorted({training.seeds_of(f) for (r, _), f in agents_by_row.items() if r == row}) for row in rows
    }
    figure, axes = grid(logs, 2.4)
    lines: dict[str, Any] = {}
    for (row, log), agents in agents_by_row.items():
        mean, k = training.together(agents, "validated", hold=True)["mean"], rows.index(row)
        style = LINES[k // len(COLOURS) % len(LINES)]
        (line,) = axes[logs.index(log)].plot(mean.index, mean, style, color=COLOURS[k % len(COLOURS)])
        few, many = seeds[row][0], seeds[row][-1]
        seeds_text = f"{few}–{many}" if few < many else few
        lines.setdefault(f"{row} ({seeds_text} seed{'s' * (many > 1)})", line)
    for one in axes:
        one.axhline(1.0, color="#333333", linewidth=0.8)
        one.set_yscale("log")
        low, high = one.get_ylim()
        wide = [ticks for ticks in TICKS if ticks[0] <= low and high <= ticks[-1]] or [TICKS[-1]]
        visible_ticks = [ticks[(ticks >= low) & (ticks <= high)] for ticks in wide]
        one.set_yticks(next((ticks for ticks in visible_ticks if len(ticks) <= 8), visible_ticks[-1]))
        one.yaxis.set_major_formatter("{x:g}")
        one.minorticks_off()
        one.set_xlabel("epoch", fontsize="small")
        one.set_ylabel("agent / base", fontsize="small")
    below(figure, lines)
    return saved(figure, f"{table}-curves")


def convergence(table: str) -> Path | None:
    """Draw the metric over the base's while agents learn: moving means, mean of seeds and their range."""
    lines = list(training.read(table).items())
    if not lines:
        return None
    figure, (axes,) = panels(7.0, 3.6)
    for ((row, log), agents), colour in zip(lines, COLOURS, strict=False):
        seeds, smooth = training.seeds_of(agents), training.together(agents, "learning")
        smooth = smooth[smooth["agents"] == seeds]
        axes.plot(smooth.index, smooth["mean"], color=colour, label=f"{row}, {log} ({seeds} seeds)")
        axes.fill_between(smooth.index, smooth["low"], smooth["high"], color=colour, alpha=0.2, linewidth=0)
    axes.axhline(1.0, color="#333333", linewidth=0.8)
    axes.set_xlabel("episode")
    axes.set_ylabel(f"wait / base's, {training.WINDOW} episodes")
    legend(axes)
    return saved(figure, f"{table}-convergence")


def boxes(study: Study, results: StudyResults, test: str, rows: Sequence[str]) -> Path | None:
    """Draw a box plot per log: a row's values on all sequences, seed by seed (SchedInspector, Figure 8)."""
    logs = list(dict.fromkeys(log for row, log in results.cells if row in rows))
    if not logs:
        return None
    figure, axes = grid(logs, 2.6)
    for one, log in zip(axes, logs, strict=True):
        values = {row: of_row.of.ravel() for row in rows if (of_row := results.values(row, log, test))}
        plot = one.boxplot(list(values.values()), widths=0.6, patch_artist=True, showfliers=False)
        for box, colour in zip(plot["boxes"], COLOURS, strict=False):
            box.set_facecolor(colour)
        for median in plot["medians"]:
            median.set_color("black")
        one.set_yscale("log")
        one.set_xticks(range(1, len(values) + 1), [""] * len(values))
        one.set_ylabel(HEADS[study.metric][0], fontsize="small")
    patches = dict(zip(values, plot["boxes"], strict=True))
    below(figure, patches)
    return saved(figure, f"{study.name}-boxes")


def kiviat(study: Study, results: StudyResults) -> Path | None:
    """Draw one Kiviat chart per workload: every metric over the best one's (MRSch, Figure 5)."""
    test, metrics = study.tests[0].name, [m for m in study.metrics if m != "bsld"]
    logs = list(dict.fromkeys(log for _, log in results.cells))[:5]
    if not logs:
        return None
    rows = -(-len(logs) // COLUMNS)
    columns = -(-len(logs) // rows)
    figure = new_figure(max(4.5, 3.0 * columns), 3.2 * rows)
    angles = np.linspace(0, 2 * np.pi, len(metrics), endpoint=False)
    names = [HEADS[m][0].split(",")[0].replace("mean ", "") for m in metrics]
    handles: dict[str, Any] = {}
    for k, log in enumerate(logs):
        axes: Any = figure.add_subplot(rows, columns, k + 1, projection="polar")
        for c, (name, share) in enumerate(_shares(study, results, log, test, metrics).items()):
            closed = np.append(angles, angles[0]), np.append(share, share[0])
            (one,) = axes.plot(*closed, color=COLOURS[c % len(COLOURS)], linewidth=1.3)
            handles.setdefault(name, one)
        axes.set_xticks(angles, names, fontsize=7)
        axes.tick_params(axis="x", pad=9)
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"], fontsize=6)
        axes.set_title(log, fontsize=9, pad=12)
    below(figure, handles)
    return saved(figure, f"{study.name}-kiviat")


def _shares(study: Study, results: StudyResults, log: str, test: str, metrics: list[str]) -> dict[str, Any]:
    """Return for everybody on one workload how near each metric comes to the best one's: 1 is the best."""
    goods = {}
    for row in (row for row in study.rows if (row.name, log) in results.cells):
        row_document = results.row(row.name, log, test)
        means = [
            row_document["mean"]["mean"] if m == study.metric else row_document["more"][m] for m in metrics
        ]
        if None not in means:
            pairs = zip(metrics, means, strict=True)
            goods[row.name] = np.array([v if m.startswith("utilisation") else 1 / v for m, v in pairs])
    best = np.max(np.stack(list(goods.values())), axis=0) if goods else 1.0
    return {name: good / best for name, good in goods.items()}


def explained(agent: Path) -> Path:
    """Draw what an agent of the zoo chooses; BridgeError: it cannot be explained, as it rejects nothing."""
    path = store.RESULTS / f"{agent.name}-explained.svg"
    store.bridge("explain", str(agent), "--no-save", "--out", str(path))
    return path
