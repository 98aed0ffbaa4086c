"""The picture of a study: every row's difference to its base, with its interval."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.report.plots import COLOURS, LIMIT, new_figure, plain, save
from bridge.study.headings import heading, is_share

#: Letters of a row's name that leave little of a picture's width.
_LONG_NAME = 60


def draw(document: Mapping[str, Any], test: str, path: Path) -> Path | None:
    """Draw differences to the base, in percent, a share's in points, by log and row; None: there are none."""
    learnt = {(row["row"], row["log"]) for row in document["rows"] if row["learnt"]}
    rows = [
        one
        for one in document["comparisons"]
        if one["test"] == test and one.get("percent") is not None
        if not learnt or (one["row"], one["log"]) in learnt
    ]
    if not rows:
        return None
    logs = list(dict.fromkeys(one["log"] for one in rows))
    share = is_share(document["metric"])
    figure = new_figure(7.5, 1.2 + 0.24 * len(rows))
    axes = figure.subplots()
    plain(axes, grid="x")
    for place, one in enumerate(rows):
        difference = one["difference"]
        unit = 100 if share else 100 / one["base_mean"]
        colour = COLOURS[logs.index(one["log"]) % len(COLOURS)]
        axes.plot(difference["mean"] * unit, place, "o", color=colour, markersize=4)
        if difference["low"] is not None:
            ends = (difference["low"] * unit, difference["high"] * unit)
            axes.plot(ends, (place, place), color=colour, linewidth=1.6)
    bases: dict[str, set[str]] = {}
    for one in rows:
        bases.setdefault(one["row"], set()).add(one["base"])
    names = [
        one["row"]
        + (f", to {one['base']}" if len(bases[one["row"]]) > 1 else "")
        + (f", {one['log']}" if len(logs) > 1 and one["log"] not in one["row"] else "")
        for one in rows
    ]
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.axvline(0, color=LIMIT, linewidth=0.8)
    reach = max(abs(one["percent"]) for one in rows)
    if reach > 200 and not share:
        axes.set_xscale("symlog", linthresh=50)
    of = (
        f"points of {heading(document['metric']).removesuffix(', %')}"
        if share
        else f"% of its {document['metric']}"
    )
    is_narrow = max(map(len, names)) > _LONG_NAME  # the words would leave the picture on the right
    side: Any = "right" if is_narrow else "center"
    axes.set_xlabel(f"difference to the base, {of}; 95 % intervals", loc=side)
    save(figure, path)
    return path
