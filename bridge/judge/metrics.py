"""Every metric of a schedule, in one place: docs/metrics.md has the definitions and formulas in prose.

Averages are over jobs that started; rejected jobs are counted, never averaged in. Times are seconds.
Attempts that were killed so that a job could run again use the machine, but are no jobs of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bridge.base import renamed
from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.judge.jobs import (
    FINAL_STATES,
    Started,
    demand_column,
    drop_killed_attempts,
    is_killed_attempt,
    started,
)

#: A piece holds the submissions, starts and ends of about so many jobs; fewer jobs are one piece.
PIECE = 1 << 19


def sweep(
    submit: Floats,
    start: Floats,
    end: Floats,
    waiting: Sequence[NDArray[Any]],
    running: Sequence[NDArray[Any]],
) -> Iterator[tuple[Floats, list[Floats]]]:
    """Yield the steps from one submission, start or end to the next, in pieces of m steps.

    Changes of one instant are steps of length 0, in that order. `submit`, `start`, `end`: s, [n]. `waiting`,
    `running`: amounts, [n] each, that a job adds to a sum while it waits, or runs. Each piece is (lengths, s
    [m]; each sum during them [m], those of what waits first).
    """
    events = (submit, start, end)
    orders = [np.argsort(times, kind="stable").astype(np.int32) for times in events]
    # Pieces begin where an instant does, so that no instant is split.
    begins = np.unique(np.concatenate([t[o[PIECE::PIECE]] for t, o in zip(events, orders, strict=True)]))
    cuts = [[0, *np.searchsorted(t[o], begins), len(o)] for t, o in zip(events, orders, strict=True)]
    last = np.zeros(0)
    levels = [0.0] * (len(waiting) + len(running))
    for k in range(len(begins) + 1):
        rows = [o[cut[k] : cut[k + 1]] for o, cut in zip(orders, cuts, strict=True)]
        times = np.concatenate([t[which] for t, which in zip(events, rows, strict=True)])
        order = np.argsort(times, kind="stable")
        times = times[order]
        sums = []
        for j, amount in enumerate((*waiting, *running)):
            changes = [np.zeros(len(which)) for which in rows]
            up = 0 if j < len(waiting) else 1
            changes[up] += amount[rows[up]]
            changes[up + 1] -= amount[rows[up + 1]]
            steps = np.cumsum(np.append(levels[j], np.concatenate(changes)[order]))
            levels[j] = float(steps[-1])
            sums.append(steps[1 - len(last) : -1])
        lengths = np.diff(times, prepend=last)
        last = times[-1:]
        yield lengths, sums


Value = float | int | None
#: Run time below which bounded slowdown stops growing, in s (Feitelson and Rudolph, JSSPP 1998).
BSLD_THRESHOLD = 10.0
#: Quantiles of the submit times between which the trimmed utilisation is taken.
TRIM = (0.05, 0.95)


def slowdown(wait: ArrayLike, run: ArrayLike) -> Floats:
    """Return (wait + run) / run; NaN where run = 0, for which it is not defined."""
    w, r = np.asarray(wait, np.float64), np.asarray(run, np.float64)
    slow: Floats = np.divide(w + r, r, out=np.full(w.shape, np.nan), where=r > 0)
    return slow


def bounded_slowdown(wait: ArrayLike, run: ArrayLike, threshold: float = BSLD_THRESHOLD) -> Floats:
    """Return max(1, (wait + run) / max(run, threshold)).

    All in seconds, the threshold above 0. Source: D. Feitelson, L. Rudolph, "Metrics and benchmarking for
    parallel job scheduling", JSSPP 1998.
    """
    if not threshold > 0:
        raise BridgeError("the threshold of bounded slowdown must be above 0 s", where=f"{threshold:g}")
    w, r = np.asarray(wait, np.float64), np.asarray(run, np.float64)
    return np.maximum(1.0, (w + r) / np.maximum(r, threshold))


def jain(values: ArrayLike) -> float | None:
    """Return Jain's fairness index (Σx)² / (n Σx²), 1/n … 1, of values ≥ 0; None if there are none.

    Source: R. Jain, D. Chiu, W. Hawe, DEC Research Report TR-301, 1984.
    """
    x = np.asarray(values, np.float64)
    squares = float(np.sum(x * x))
    if len(x) == 0:
        return None
    return float(np.sum(x)) ** 2 / (len(x) * squares) if squares > 0 else 1.0


def step_function(times: ArrayLike, changes: ArrayLike) -> tuple[Floats, Floats]:
    """Return the steps of a quantity that changes by ``changes`` at ``times``.

    Changes of one instant count together, so what comes and goes within an instant never shows. Returns
    (instants, values): distinct times ascending and the value from each instant on, shape (steps,).
    """
    t, d = np.asarray(times, np.float64), np.asarray(changes, np.float64)
    order = np.argsort(t, kind="stable")
    t = t[order]
    last = np.flatnonzero(np.append(t[1:] != t[:-1], True)) if len(t) else np.zeros(0, np.int64)
    return t[last], np.cumsum(d[order])[last]


def job_energy(jobs: pd.DataFrame, idle_power: float) -> Floats:
    """Return what each job's nodes draw while it runs, J: [n], NaN for a job that did not start.

    As Batsim accounts it (``consumed_energy``): the nodes' idle power (W each) is included, to which the
    column ``power`` (W per job) comes.
    """
    columns = ("requested_number_of_resources", "power", "execution_time")
    nodes, watts, seconds = (jobs[name].to_numpy(np.float64) for name in columns)
    joules: Floats = (watts + idle_power * nodes) * seconds
    return joules


def compute_metrics(
    jobs: pd.DataFrame,
    capacity: dict[str, int],
    *,
    bsld_threshold: float = BSLD_THRESHOLD,
    idle_power: float = 0.0,
) -> dict[str, Value]:
    """Return all metrics of a schedule as one flat dict, keys as in docs/metrics.md; None: not defined.

    ``waiting_time`` and ``execution_time`` of `jobs` are used as they stand; a resource of `capacity` but
    ``nodes`` whose demand column is missing gives None. `bsld_threshold`: s. `idle_power`: W that a node
    draws with or without a job, which no demand for ``power`` holds.
    """
    jobs_once, held = drop_killed_attempts(jobs), started(jobs)
    done = held if jobs_once is jobs else started(jobs, killed=False)
    states = jobs_once["final_state"].value_counts()
    values: dict[str, Value] = {"jobs.total": len(jobs_once), "jobs.started": len(done)}
    values["jobs.rejected"] = int(states.get("REJECTED", 0))
    values |= {f"jobs.state.{state}": int(states.get(state, 0)) for state in FINAL_STATES}
    bsld = bounded_slowdown(done.wait, done.run, bsld_threshold)
    plain = slowdown(done.wait, done.run)
    values["bsld.threshold"] = bsld_threshold
    values |= _spread("wait", done.wait)
    if "eligible_time" in done.jobs:  # on a cluster a job waits for resources and limits since it is eligible
        values |= _spread("turnaround", done.end - done.submit)
        values |= _spread("hold", done.jobs["eligible_time"].to_numpy(np.float64) - done.submit)
    else:
        values |= _spread("turnaround", done.wait + done.run)
    values |= _spread("slowdown", plain[~np.isnan(plain)])
    del plain  # of a long log it takes as much as a column
    values |= _spread("bsld", bsld)
    values |= _machine(held, capacity, idle_power)
    values |= _classes(done, bsld)
    values |= _users(done.jobs, bsld)
    energy = held.jobs["consumed_energy"].to_numpy(np.float64)
    values["energy.joules"] = float(energy.sum()) if len(energy) and (energy >= 0).all() else None
    return values


def _spread(name: str, values: Floats) -> dict[str, Value]:
    """Mean, median, 95th and 99th percentile (linear interpolation) and maximum."""
    keys = [f"{name}.{statistic}" for statistic in ("mean", "median", "p95", "p99", "max")]
    if len(values) == 0:
        return dict.fromkeys(keys)
    quantiles = np.quantile(values, [0.5, 0.95, 0.99, 1.0])
    return dict(zip(keys, [float(values.mean()), *quantiles.tolist()], strict=True))


def _machine(held: Started, capacity: dict[str, int], idle_power: float) -> dict[str, Value]:
    """Makespan, queue length, loss of capacity, utilisation per resource, and the machine's power."""
    keys = ["makespan", "queue.jobs.mean", "queue.jobs.max", "queue.nodes.mean", "queue.nodes.max"]
    keys += ["loss_of_capacity", "loss_of_capacity.demand"]
    keys += [f"utilisation.{resource}{kind}" for resource in capacity for kind in ("", ".trimmed")]
    values: dict[str, Value] = dict.fromkeys(keys)
    idle_watts = idle_power * capacity.get("nodes", 0)
    if "power" in capacity:
        values |= {"power.idle": idle_watts, "power.budget": idle_watts + capacity["power"]}
        values |= dict.fromkeys(("power.mean", "power.max", "energy.machine.joules"))
    if len(held) == 0:
        return values
    submit, start, end, nodes = held.submit, held.start, held.end, held.nodes
    whole = ~is_killed_attempt(held.jobs)
    first, final = float(submit.min()), float(end.max())
    values["makespan"] = span = final - first
    if span <= 0:
        return values
    for resource, amount in capacity.items():
        if amount > 0 and demand_column(resource) in held.jobs:
            taken = held.jobs[demand_column(resource)].to_numpy(np.float64)
            # one division, at the end: a full machine has exactly 1
            values[f"utilisation.{resource}"] = float(taken @ (end - start)) / (amount * span)
            low, high = np.quantile(submit[whole], TRIM)
            inside = np.clip(np.minimum(end, high) - np.maximum(start, low), 0.0, None)
            if high > low:
                values[f"utilisation.{resource}.trimmed"] = float(taken @ inside) / (
                    amount * float(high - low)
                )

    # One sweep over submits, starts and ends for everything that is a function of time.
    demanded = nodes if whole.all() else nodes * whole
    power = [held.jobs["power"].to_numpy(np.float64)] if "power" in capacity and "power" in held.jobs else []
    there = capacity.get("nodes", 0)
    total: dict[str, float] = defaultdict(float)
    most: dict[str, float] = defaultdict(float)
    for lengths, (jobs, wanted, used, *watts) in sweep(
        submit, start, end, (whole, demanded), (nodes, *power)
    ):
        idle = np.maximum(there - used, 0.0)
        total["lost"] += float((idle * (jobs > 0)) @ lengths)
        total["lost.demand"] += float(np.minimum(idle, wanted) @ lengths)
        real = lengths > 0  # steps of length 0 weigh nothing, and are left out of the maxima
        levels = {"jobs": jobs, "nodes": wanted}
        if watts:
            levels["power"] = idle_watts + watts[0]
        for key, steps in levels.items():
            total[key] += float(steps @ lengths)
            most[key] = max(most[key], float(steps[real].max(initial=0.0)))
    for key in ("jobs", "nodes"):
        values[f"queue.{key}.mean"], values[f"queue.{key}.max"] = total[key] / span, int(most[key])
    if there > 0:
        values["loss_of_capacity"] = total["lost"] / (there * span)
        values["loss_of_capacity.demand"] = total["lost.demand"] / (there * span)
    if power:
        values["energy.machine.joules"] = total["power"]
        values["power.mean"], values["power.max"] = total["power"] / span, most["power"]
    return values


def size_class(nodes: ArrayLike) -> Ints:
    """Return the size class k of each job: 2^(k−1) < nodes ≤ 2^k, so class 0 is 1 node, class 2 is 3–4."""
    return np.ceil(np.log2(np.maximum(np.asarray(nodes, np.float64), 1.0))).astype(np.int64)


def size_label(k: int) -> str:
    """Return the name of size class ``k``: ``1``, ``2``, ``3-4``, ``5-8``, …"""
    return str(2**k) if k < 2 else f"{2 ** (k - 1) + 1}-{2**k}"


def _classes(done: Started, bsld: Floats) -> dict[str, Value]:
    kinds = size_class(done.nodes)
    counts, waits, slows = np.bincount(kinds), np.bincount(kinds, done.wait), np.bincount(kinds, bsld)
    values: dict[str, Value] = {}
    for k in np.flatnonzero(counts):
        name = f"size.{size_label(int(k))}"
        values[f"{name}.jobs"] = int(counts[k])
        values[f"{name}.wait.mean"] = float(waits[k] / counts[k])
        values[f"{name}.bsld.mean"] = float(slows[k] / counts[k])
    return values


def _users(done: pd.DataFrame, bsld: Floats) -> dict[str, Value]:
    keys = ("users.count", "users.bsld.max", "fairness.jain")
    users = done["user"].to_numpy() if "user" in done.columns else np.zeros(0)
    if len(users) == 0 or (users.dtype.kind in "if" and (users < 0).all()):  # -1: the log does not know them
        return dict.fromkeys(keys)
    inverse = np.searchsorted(np.unique(users), users)
    means = np.bincount(inverse, bsld) / np.bincount(inverse)
    return dict(zip(keys, (len(means), float(means.max()), jain(means)), strict=True))


#: Waits below this are none to a reader (s).
_NO_WAIT = 1.0


def note_without_waits(longest: Iterable[float | int | None]) -> str:
    """Return a line for runs in which no job waits, by their longest waits (s); empty if one does."""
    values = [value for value in longest if value is not None]
    if not values or max(values) >= _NO_WAIT:
        return ""
    return f"no job waits here (at most {max(values):.2g} s): no policy can start a job earlier"


def breakdown(jobs: pd.DataFrame, by: str, *, bsld_threshold: float = BSLD_THRESHOLD) -> pd.DataFrame:
    """Return one row per group of started jobs: jobs, node_seconds, wait and bsld (mean, median, max).

    `by` is ``size`` (power-of-two classes, ascending) or a column (largest node_seconds first; BridgeError if
    there is none); `bsld_threshold` is in s.
    """
    if by != "size" and by not in jobs.columns:
        remedy = "Use size; user, queue and partition are there if the workload has them."
        raise BridgeError(f"the jobs table has no column {by!r} to break down by", remedy=remedy)
    done = started(jobs, killed=False)
    group = pd.Series(size_class(done.nodes) if by == "size" else done.jobs[by].to_numpy(), name=by)
    bsld = bounded_slowdown(done.wait, done.run, bsld_threshold)
    frame = pd.DataFrame({"node_seconds": done.nodes * done.run, "wait": done.wait, "bsld": bsld})
    statistics = {f"{c}.{how}": (c, how) for c in ("wait", "bsld") for how in ("mean", "median", "max")}
    sums = {"jobs": ("wait", "size"), "node_seconds": ("node_seconds", "sum")}
    table: pd.DataFrame = frame.groupby(group, sort=True).agg(**sums, **statistics)
    if by == "size":
        table.index = pd.Index([size_label(int(k)) for k in table.index], name="size")
        return table
    return table.sort_values("node_seconds", ascending=False, kind="stable")


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
