"""What all charts share: colours that follow the page, compact numbers, axes; and rows with intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bridge.config import read_toml
from bridge.report.html import label, render
from bridge.report.plots import WAITS
from bridge.report.style import COLOURS as COLOURS

if TYPE_CHECKING:
    from bridge.judge.stats import Estimate

#: CSS variables of page.css; page.js puts their values in when it draws, and when the system turns dark.
INK, MUTED = "var(--ink)", "var(--muted)"
#: What plotly is told of every chart, by its part.
LOOKS: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("charts.toml"))
#: Dashes tell lines apart where colours alone do not.
DASHES = ("solid", "dash", "dot", "dashdot")
#: Symbols that tell series of points apart without their colours.
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "triangle-down", "star")
#: An axis is logarithmic if the largest value is so many times the smallest.
WIDE = 30
#: Heights in px: of a row that has a name, of such a row among many, of what is around the rows.
ROW, DENSE_ROW, AROUND = 56, 44, 92
#: More rows than this are many.
MANY = 8


def colour(k: int) -> str:
    """Return the colour of the k-th series: ``COLOURS``, as page.css holds them for light and dark."""
    return f"var(--c{k % len(COLOURS)})"


def dash(k: int) -> str:
    """Return the dash of the k-th line."""
    return DASHES[k // len(COLOURS) % len(DASHES)]


def fixed(values: ArrayLike, decimals: int) -> list[float | None]:
    """Return values rounded to a number of decimals, None for NaN: short in JSON."""
    x = np.asarray(values, np.float64)
    rounded = np.round(x, decimals).tolist()
    return [None if v != v else int(v) if v == int(v) else v for v in rounded]


def significant(values: ArrayLike, digits: int = 5) -> list[float | None]:
    """Return values rounded to significant digits, None for what is not finite: short in JSON."""
    made: list[float | None] = []
    for v in np.asarray(values, np.float64).tolist():
        if not np.isfinite(v):
            made.append(None)
            continue
        rounded = float(f"{v:.{digits}g}")
        made.append(int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded)
    return made


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis in the page's colours."""
    return LOOKS["axis"] | {"title": LOOKS["axis_title"] | {"text": title}} | more


def waits_axis(title: str, longest: float) -> dict[str, Any]:
    """Return a logarithmic axis of waits from 1 s to ``longest`` s, ticks at common lengths of time."""
    ticks = [(at, said) for at, said in WAITS if at <= longest * 1.2]
    end = float(np.log10(max(longest, 60.0) * 1.3))
    return axis(
        title,
        type="log",
        range=[-0.12, round(end, 3)],
        tickvals=[at for at, _ in ticks],
        ticktext=[said for _, said in ticks],
    )


def figure(traces: Sequence[dict[str, Any]], height: int, **layout: Any) -> Any:
    """Return a plotly figure; plotly checks the name and value of everything in it.

    Args:
        traces: each with its ``type``.
        height: px; the width is that of the page.
        layout: plotly's, over the page's own.
    """
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    plain = LOOKS["layout"] | {"height": height, "xaxis": axis(), "yaxis": axis()}
    return go.Figure(data=list(traces), layout=plain | layout)


def row_names(names: Iterable[str], shift: int = 17) -> list[dict[str, Any]]:
    """Return names written above rows 0, 1, …: unlike tick labels they leave narrow pages their width."""
    return [
        LOOKS["row_name"] | {"text": label(name), "y": k, "yshift": shift} for k, name in enumerate(names)
    ]


def rows_axis(count: int) -> dict[str, Any]:
    """Return the vertical axis of ``count`` named rows, first on top."""
    return axis(range=[count - 0.55, -0.75], **LOOKS["rows_axis"])


def points(
    x: ArrayLike, y: ArrayLike, name: str, k: int, *, size: int = 6, digits: int = 5, **more: Any
) -> dict[str, Any]:
    """Return a trace of points in the colour and the symbol of the k-th series.

    Args:
        x, y: coordinates.
        name: of the series.
        k: its number.
        size: px.
        digits: of the coordinates.
        more: plotly's; ``opacity`` is the points' own.
    """
    marker = {"color": colour(k), "symbol": SYMBOLS[k % len(SYMBOLS)], "size": size}
    marker |= {"opacity": more.pop("opacity")} if "opacity" in more else {}
    place = {"x": significant(x, digits), "y": significant(y, digits)}
    trace = {"type": "scatter", "mode": "markers", "name": label(name), "showlegend": True, "marker": marker}
    return trace | place | more


def curve(x: Sequence[Any], y: Sequence[Any], name: str, line: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a trace of a line; coordinates are as they shall stand in the page."""
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": line} | more


def forest(
    names: Sequence[str],
    found: "Sequence[Estimate | None]",
    title: str,
    *,
    unit: float = 1.0,
    line: float | None = None,
    from_zero: bool = False,
    groups: Sequence[int] | None = None,
) -> Any:
    """Return rows of means with their intervals.

    Args:
        names, found: one per row; None and bounds of NaN show nothing.
        title: of the horizontal axis.
        unit: what values are divided by.
        line: where to draw a line to compare with.
        from_zero: let the axis begin at 0, so that lengths compare.
        groups: colour of each row.
    """
    traces, known = [], []
    for k, one in enumerate(found):
        if one is None:
            continue
        mean, low, high = one.mean / unit, one.low / unit, one.high / unit
        shade = colour(k if groups is None else groups[k])
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "markers",
            "x": significant([mean]),
            "y": [k],
            "marker": {"size": 10, "color": shade},
            "showlegend": False,
            "name": label(names[k]),
            "hovertemplate": "%{fullData.name}<br>%{x:,}<extra></extra>",
        }
        known.append(mean)
        if not np.isnan(low):
            known += [low, high]
            whiskers = {"array": significant([high - mean]), "arrayminus": significant([mean - low])}
            looks = {"type": "data", "symmetric": False, "color": shade, "thickness": 2, "width": 5}
            trace["error_x"] = whiskers | looks
            trace["customdata"] = [significant([low, high])]
            trace["hovertemplate"] = (
                "%{fullData.name}<br>%{x:,}, 95 %: %{customdata[0]:,} … %{customdata[1]:,}<extra></extra>"
            )
        traces.append(trace)
    known += [0.0] if from_zero else [] if line is None else [line]
    return figure(
        traces,
        AROUND + (ROW if len(names) <= MANY else DENSE_ROW) * len(names),
        xaxis=axis(title, range=padded(known, from_zero=from_zero), zeroline=False),
        yaxis=rows_axis(len(names)),
        annotations=row_names(names),
        shapes=[] if line is None else [vertical(line)],
    )


def padded(values: Sequence[float], *, from_zero: bool = False) -> list[float | None]:
    """Return a range that shows all of ``values`` with some room around them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    pad = 0.07 * (high - low) or 0.5
    return significant([low if from_zero and low == 0 else low - pad, high + pad])


def vertical(at: float) -> dict[str, Any]:
    """Return a dashed vertical line at ``at``."""
    return LOOKS["vertical"] | {"x0": at, "x1": at}


def diagonal(low: float, high: float) -> dict[str, Any]:
    """Return the line on which both axes are equal."""
    ends = significant([low, high])
    looks = {"color": MUTED, "width": 1, "dash": "dash"}
    return curve(ends, ends, "equal", looks, hoverinfo="skip", showlegend=False)


@dataclass(frozen=True)
class Chart:
    """The place where a chart will be drawn: its number from 1 on, what it shows, its height in px."""

    number: int
    caption: str
    height: int
    wide: bool

    def __html__(self) -> str:
        return render("chart.html.j2", **asdict(self))


@dataclass
class Sheet:
    """The charts of a page, in order."""

    figures: list[Any] = field(default_factory=list)

    def add(self, drawn: Any, caption: str, *, wide: bool = False) -> Chart:
        """Keep a figure for the page's script, and return the place where it will be drawn."""
        self.figures.append(drawn)
        return Chart(len(self.figures), caption, int(drawn.layout.height), wide)

    def data(self) -> list[str]:
        """Return every figure as JSON that may stand in a script."""
        import plotly.io as pio  # type: ignore[import-untyped]

        # one engine, whatever is installed, so that the bytes are the same everywhere
        written = [pio.to_json(one, validate=False, pretty=False, engine="json") for one in self.figures]
        escaped = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}
        return [str(document).translate(escaped) for document in written]
