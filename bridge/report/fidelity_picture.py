"""A picture of a replay beside the record: how waits are distributed, and why jobs waited in the record."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bridge.report.fidelity_tables import policies_of
from bridge.report.plots import COLOURS, LIMIT, new_figure, plain

#: Reasons of the record: key, label, colour.
_REASONS = (
    ("no_room", "no room", COLOURS[0]),
    ("partition_full", "partition full", COLOURS[4]),
    ("reserved", "reserved", COLOURS[2]),
    ("unexplained", "unexplained", COLOURS[5]),
)
_HOURS = 168


def fidelity_picture(document: Mapping[str, Any]) -> Figure:
    """Draw mean waits by size and by hour of the week, recorded and replayed, and the reasons of waiting."""
    policies = policies_of(document)
    figure = new_figure(10, 6.4)
    grid = figure.add_gridspec(2, 2, height_ratios=[3, 3], width_ratios=[3, 2])
    sizes, reasons, hours = (
        figure.add_subplot(grid[0, 0]),
        figure.add_subplot(grid[0, 1]),
        figure.add_subplot(grid[1, :]),
    )
    for k, (axes, kind) in enumerate(((sizes, "size"), (hours, "hour_of_week"))):
        groups = policies[0]["groups"][kind]
        names = [*groups]
        x = np.arange(len(names)) if kind == "size" else np.array([int(name) for name in names])
        recorded = [groups[name]["recorded_mean"] / 3600 for name in names]
        axes.plot(x, recorded, color=LIMIT, linewidth=2, label="recorded")
        for p, one in enumerate(policies):
            replayed = [one["groups"][kind][name]["replayed_mean"] / 3600 for name in names]
            axes.plot(x, replayed, color=COLOURS[p % len(COLOURS)], linewidth=1.4, label=one["name"])
        axes.set_ylabel("mean wait (h)")
        axes.set_ylim(0, None)
        plain(axes)
        if kind == "size":
            axes.set_xticks(x, names, rotation=45, fontsize=7)
            axes.set_xlabel("nodes")
        else:
            axes.set_xticks(range(0, _HOURS, 24), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
            axes.set_xlabel("submitted")
        if k == 0:
            axes.set_title(document["workload"], loc="left", fontweight="bold")
    left = 0.0
    for key, label, colour in _REASONS:
        share = 100 * (document["waiting"][key] or 0.0)
        if share:
            reasons.barh(0, share, left=left, color=colour, label=f"{label} {share:.0f} %")
        left += share
    reasons.set(yticks=[], xlim=(0, 100), ylim=(-0.5, 1.6), xlabel="recorded waiting (%)")
    reasons.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    plain(reasons, grid="x")
    handles, labels = hours.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    return figure
