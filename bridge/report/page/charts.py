"""What all charts share: colours that follow the page, short names and numbers, axes; rows with intervals."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go  # type: ignore[import-untyped]
import plotly.io as pio  # type: ignore[import-untyped]
from numpy.typing import ArrayLike

from bridge.config import read_toml
from bridge.judge.stats import ConfidenceInterval
from bridge.report.plots import COLOURS as COLOURS
from bridge.report.plots import WAITS
from bridge.report.table import Table, render

#: What plotly is told of every chart, by its part.
LOOKS: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("charts.toml"))
#: Title and lead of every section, and the charts of training.
SECTIONS: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("sections.toml"))
#: Longest name inside a chart; tables have the whole.
LONGEST = 44
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
    return DASHES[k // len(COLOURS) % len(DASHES)]


def label(value: object, longest: int = LONGEST) -> str:
    """Return a name for a chart: shortened in the middle, without plotly.js markup."""
    return html.escape(shortened(value, longest), quote=False)


def shortened(value: object, longest: int) -> str:
    """Return a text of at most ``longest`` characters, shortened in the middle."""
    name, half = str(value), (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"


def fixed(values: ArrayLike, decimals: int) -> list[float | None]:
    """Return values rounded to a number of decimals, None for NaN: short in JSON."""
    x = np.asarray(values, np.float64)
    rounded = np.round(x, decimals).tolist()
    return [None if v != v else int(v) if v == int(v) else v for v in rounded]


def significant(values: ArrayLike, digits: int = 5) -> list[float | None]:
    """Return values rounded to significant digits, None if not finite: short in JSON."""
    x = np.asarray(values, np.float64)
    rounded = [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in x.tolist()]
    return [int(v) if v is not None and v == int(v) and abs(v) < 1e15 else v for v in rounded]


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    return LOOKS["axis"] | {"title": LOOKS["axis_title"] | {"text": title}} | more


def waits_axis(title: str, longest: float) -> dict[str, Any]:
    """Return a logarithmic axis of waits from 1 s to ``longest`` s, ticks at common lengths of time."""
    at, labels = zip(*((at, labels) for at, labels in WAITS if at <= longest * 1.2), strict=True)
    end = round(float(np.log10(max(longest, 60.0) * 1.3)), 3)
    return axis(title, type="log", range=[-0.12, end], tickvals=list(at), ticktext=list(labels))


def figure(traces: Sequence[dict[str, Any]], height: int, **layout: Any) -> Any:
    """Return a plotly figure, ``height`` px high, ``layout`` over the page's own; plotly checks all of it."""
    plain = LOOKS["layout"] | {"height": height, "xaxis": axis(), "yaxis": axis()}
    return go.Figure(data=list(traces), layout=plain | layout)


def row_names(names: Iterable[str], shift: int = 17) -> list[dict[str, Any]]:
    """Return names written above rows 0, 1, …: unlike tick labels they leave narrow pages their width."""
    looks = LOOKS["row_name"] | {"yshift": shift}
    return [looks | {"text": label(name), "y": k} for k, name in enumerate(names)]


def rows_axis(count: int) -> dict[str, Any]:
    """Return the vertical axis of ``count`` named rows, first on top."""
    return axis(range=[count - 0.55, -0.75], **LOOKS["rows_axis"])


def points(
    x: ArrayLike, y: ArrayLike, name: str, k: int, *, size: int = 6, opacity: float = 1, **more: Any
) -> dict[str, Any]:
    """Return a trace of points in the colour and the symbol of the k-th series; ``size`` in px."""
    marker = {"color": colour(k), "symbol": SYMBOLS[k % len(SYMBOLS)], "size": size, "opacity": opacity}
    place = {"x": significant(x), "y": significant(y), "name": label(name), "marker": marker}
    return LOOKS["points"] | {"showlegend": True} | place | more


def curve(x: Sequence[Any], y: Sequence[Any], name: str, line: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a trace of a line; coordinates are as they shall stand in the page."""
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": line} | more


def forest(
    names: Sequence[str],
    intervals: Sequence[ConfidenceInterval | None],
    title: str,
    *,
    unit: float = 1.0,
    line: float | None = None,
    from_zero: bool = False,
    groups: Sequence[int] | None = None,
) -> Any:
    """Return rows of means with their intervals; None and bounds of NaN show nothing.

    Values are divided by `unit`; `line`: where to draw a line to compare with; `from_zero`: let the axis
    begin at 0, so that lengths compare; `groups`: colour of each row.
    """
    traces, values = [], []
    for k, one in enumerate(intervals):
        if one is None:
            continue
        mean, low, high = one.mean / unit, one.low / unit, one.high / unit
        shade = colour(k if groups is None else groups[k])
        trace = LOOKS["points"] | LOOKS["mean"]
        trace |= {"x": significant([mean]), "y": [k], "name": label(names[k])}
        trace["marker"] = {"size": 10, "color": shade}
        values.append(mean)
        if not np.isnan(low):
            values += [low, high]
            whiskers = {"array": significant([high - mean]), "arrayminus": significant([mean - low])}
            trace |= LOOKS["interval"] | {"customdata": [significant([low, high])]}
            trace["error_x"] = LOOKS["whiskers"] | whiskers | {"color": shade}
        traces.append(trace)
    values += [0.0] if from_zero else [] if line is None else [line]
    return figure(
        traces,
        AROUND + (ROW if len(names) <= MANY else DENSE_ROW) * len(names),
        xaxis=axis(title, range=significant(padded(values, from_zero=from_zero)), zeroline=False),
        yaxis=rows_axis(len(names)),
        annotations=row_names(names),
        shapes=[] if line is None else [vertical(line)],
    )


def padded(values: Sequence[float], share: float = 0.07, *, from_zero: bool = False) -> tuple[float, float]:
    """Return a range that shows all of ``values`` with some room around them, a share of the range or 0.5."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    pad = share * (high - low) or 0.5
    return low if from_zero and low == 0 else low - pad, high + pad


def vertical(at: float) -> dict[str, Any]:
    return LOOKS["vertical"] | {"x0": at, "x1": at}


def diagonal(low: float, high: float) -> dict[str, Any]:
    ends = significant([low, high])
    return LOOKS["diagonal"] | {"x": ends, "y": ends}


@dataclass(frozen=True)
class Chart:
    """Place of a chart on the page: its number from 1 on, its title, its height in px."""

    number: int
    caption: str
    height: int
    wide: bool

    def __html__(self) -> str:
        return render("chart.html.j2", **asdict(self))


#: What stands in a section: text (a paragraph), HTML, or charts side by side, as many as there is room for.
Block = str | Table | Sequence[Chart]


@dataclass
class Sheet:
    """The charts of a page, in order."""

    figures: list[Any] = field(default_factory=list)

    def add(self, figure: Any, caption: str, *, wide: bool = False) -> Chart:
        """Keep a figure for the page's script, and return the place where it will be drawn."""
        self.figures.append(figure)
        return Chart(len(self.figures), caption, int(figure.layout.height), wide)

    def data(self) -> list[str]:
        """Return every figure as JSON that may stand in a script."""
        # one engine, whatever is installed, so that the bytes are the same everywhere
        written = [pio.to_json(one, validate=False, pretty=False, engine="json") for one in self.figures]
        escaped = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}
        return [str(document).translate(escaped) for document in written]
