"""How much of something is in use at every instant of a schedule, and where that is more than there is."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.judge.checked_schedule import CheckedSchedule

#: How many running jobs a violation of the capacity names.
NAMED = 8


def check_use(
    schedule: CheckedSchedule, kind: str, demand: npt.NDArray[Any], amount: int, limit: float, unit: str
) -> float:
    """Count each start at which more than `limit` is in use as a violation; return the most in use.

    `demand`: of each row [n]. `amount`, `unit`: what there is, for the sentence.
    """
    # A start may be early by the tolerance. A job without length uses nothing.
    pieces = schedule.pieces
    release = pieces.end - schedule.tolerance - schedule.inexact[pieces.row]
    kept = schedule.timed[pieces.row] & (release > pieces.start) & (demand[pieces.row] > 0)
    rows, start, release = pieces.row[kept], pieces.start[kept], release[kept]
    count = len(rows)
    if count == 0:
        return 0.0
    times = np.concatenate((start, release))
    order = np.lexsort((np.repeat([1, 0], count), times))
    used = np.cumsum(np.concatenate((demand[rows], -demand[rows]))[order])
    over = np.flatnonzero((used > limit) & (order < count))

    def describe(k: int) -> tuple[list[str], str]:
        before = order[: over[k]]
        row, now = rows[order[over[k]]], times[order[over[k]]]
        earlier = before[before < count]
        others = rows[earlier[release[earlier] > now]]
        others = others[np.argsort(-demand[others], kind="stable")]
        named = ", ".join(f"{schedule.ids[r]} ({demand[r]:.15g})" for r in others[:NAMED])
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        text = f"{used[over[k]]:.15g} of {amount} {unit} in use"
        text += f" when job {schedule.ids[row]} ({demand[row]:.15g}) starts"
        return [schedule.ids[r] for r in (row, *others)], text + (
            f"; running: {named}{more}" if named else ""
        )

    schedule.add(kind, times[order[over]], describe)
    return float(used.max())
