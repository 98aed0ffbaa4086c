"""What a simulated machine drew, read from the table of consumed energy, against what it may draw.

A platform with energy (Batsim's ``-E``) writes a row whenever a job starts or ends or a host changes its
power state: the energy consumed so far and, in the column ``epower``, the mean power since the row before.
Where hosts draw the same whatever they do in a power state, as with power per job, that mean is the power at
every instant in between; elsewhere it is a mean only, and a peak within an interval does not show.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.config.fields import record_of
from bridge.judge.jobs import started
from bridge.judge.run import AGAIN

#: Times in the table are rounded to 1 µs: an interval that shows as shorter cannot be told from none.
_SHORTEST = 1e-6
#: Relative rounding errors: of a power, and of an energy that thousands of hosts add up to.
_POWER_ERROR, _ENERGY_ERROR = 1e-9, 2.0**-48


@dataclass(frozen=True)
class PowerTrace:
    """The power of all machines together over time, in intervals.

    Attributes:
        start, end: [n] s; an interval without length is left out.
        power: [n] mean power within the interval, W.
        error: [n] how far rounding may have put that power off, W.
        energy: consumed from time 0 to the last row, J.
    """

    start: Floats
    end: Floats
    power: Floats
    error: Floats
    energy: float

    @property
    def span(self) -> float:
        return float(self.end[-1]) if len(self.end) else 0.0


def read_power_trace(path: Path | str) -> PowerTrace:
    """Read ``_consumed_energy.csv`` of Batsim or the embedded platform model; BridgeError: it is none."""
    try:
        table = pd.read_csv(path, usecols=["time", "energy", "epower"], dtype=np.float64, na_values=["NA"])
    except OSError as error:
        message, remedy = f"cannot be read ({error.strerror})", "Simulate with energy (-E)."
        raise BridgeError(message, where=str(path), remedy=remedy) from error
    except ValueError as error:
        message = f"is no table of consumed energy: {str(error).splitlines()[0]}"
        raise BridgeError(message, where=str(path)) from error
    time, energy, power = (table[name].to_numpy(np.float64) for name in ("time", "energy", "epower"))
    before = np.append(0.0, time[:-1])[: len(time)]
    length = time - before
    is_visible = np.flatnonzero((length > _SHORTEST) & np.isfinite(power))
    noise = power * _POWER_ERROR + energy * _ENERGY_ERROR / np.maximum(length, _SHORTEST)
    total = float(energy[-1]) if len(energy) else 0.0
    return PowerTrace(before[is_visible], time[is_visible], power[is_visible], noise[is_visible], total)


@dataclass(frozen=True)
class PowerAudit:
    """Power drawn against the budget. Powers are of the hosts and hours that the budget counts.

    Attributes:
        budget: W, None if there is none.
        peak: the most that was drawn at once, W; None if nothing was simulated.
        peak_time: when that began, s.
        mean: W.
        energy: J, of all compute hosts.
        over: how long more than the budget was drawn, s.
        first_over: when that began first, s, None if it never was.
    """

    budget: float | None
    peak: float | None
    peak_time: float
    mean: float | None
    energy: float
    over: float = 0.0
    first_over: float | None = None

    @property
    def finding(self) -> str:
        if self.first_over is None:
            return ""
        return (
            f"the machine drew up to {self.peak:,.6g} W (from {self.peak_time:.6f} s on), its budget is "
            f"{self.budget:,.6g} W; it drew more for {self.over:.6f} s, first from {self.first_over:.6f} s on"
        )


def audit(
    trace: PowerTrace,
    budget: float | None,
    *,
    storage: float = 0.0,
    uncounted: float = 0.0,
    nodes: int = 0,
    jobs: pd.DataFrame | None = None,
) -> PowerAudit:
    """Compare a machine's power (all hosts but the master) with the budget of its compute hosts, W.

    `storage`: what storage hosts draw all the time, W, which the budget does not count. `uncounted`: what
    each of the `nodes` without a job of `jobs` draws, W, where the budget counts the nodes of jobs only.
    """
    power = trace.power - storage
    energy = trace.energy - storage * trace.span
    if not len(power):
        return PowerAudit(budget, None, 0.0, None, max(energy, 0.0))
    if uncounted and jobs is not None:
        power = power - uncounted * (nodes - _busy(jobs, (trace.start + trace.end) / 2))
    lengths = trace.end - trace.start
    top = int(power.argmax())
    mean = float(power @ lengths / lengths.sum())
    over = np.flatnonzero(power > (np.inf if budget is None else budget) + trace.error)
    first = float(trace.start[over[0]]) if len(over) else None
    peak, since = float(power[top]), float(trace.start[top])
    return PowerAudit(budget, peak, since, mean, energy, float(lengths[over].sum()), first)


def _busy(jobs: pd.DataFrame, times: Floats) -> Floats:
    """Return how many nodes have a job at each time: [n]."""
    done = started(jobs)
    busy_time = np.zeros(len(times))
    for at, sign in ((done.start, 1.0), (done.end, -1.0)):
        order = np.argsort(at, kind="stable")
        total = np.concatenate(([0.0], np.cumsum(done.nodes[order])))
        busy_time += sign * total[np.searchsorted(at[order], times, side="right")]
    return busy_time


#: What `run.toml` says of an audit, in the table of the detailed world; `recheck` reads it.
RECORD = "power"


def record(power_audit: PowerAudit, table: str, *, storage: float, uncounted: float) -> dict[str, Any]:
    """Return the record of an audit in a run: its result, and its inputs (`audit`).

    The table of consumed energy is named by its path in the run's folder.
    """
    kept = {name: value for name, value in record_of(power_audit).items() if name != "first_over"}
    return {"table": table, "storage": storage, "uncounted": uncounted} | kept


def recheck(folder: Path, config: dict[str, Any], jobs: pd.DataFrame, nodes: int) -> PowerAudit | None:
    """Audit a run's folder again from its table of consumed energy; None if it simulated no power."""
    detailed = config.get("detailed", {})
    kept = detailed.get(RECORD) if isinstance(detailed, dict) else None
    if kept is None:
        return None
    try:
        table, storage, uncounted = str(kept["table"]), float(kept["storage"]), float(kept["uncounted"])
        budget = None if kept.get("budget") is None else float(kept["budget"])
    except (KeyError, TypeError, ValueError):
        what, remedy = "what it says of the power that was drawn is damaged", AGAIN
        raise BridgeError(what, where=str(folder / "run.toml"), remedy=remedy) from None
    if not (folder / table).resolve().is_relative_to(folder.resolve()):
        raise BridgeError("names a table outside its folder", where=str(folder / "run.toml"))
    return audit(
        read_power_trace(folder / table), budget, storage=storage, uncounted=uncounted, nodes=nodes, jobs=jobs
    )
