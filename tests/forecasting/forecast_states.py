"""Small states for tests."""

from collections.abc import Sequence

import numpy as np

from bridge.forecasting.state import MachineState
from bridge.scheduler.estimators import RunTimeEstimates
from bridge.scheduler.state import SECOND


def make_state(
    running: Sequence[Sequence[float]],
    waiting: Sequence[Sequence[float]],
    nodes: int,
    *,
    now: float = 100,
    levels: Sequence[float] = (),
    quantiles: Sequence[Sequence[float]] = (),
    policy: str = "fcfs+easy",
) -> MachineState:
    """Return a state of jobs r1, r2, … (start, request, nodes) and w1, w2, … (submit, request, nodes)."""
    rows = [*running, *waiting]
    n = len(rows)
    table = np.array(rows, np.float64).reshape(n, 3)
    request = np.rint(table[:, 1] * SECOND).astype(np.int64)
    demand = table[:, 2:].astype(np.int64)
    submit = np.rint(table[:, 0] * SECOND).astype(np.int64)
    used = int(demand[: len(running)].sum())
    names = [f"r{k}" for k, _ in enumerate(running, 1)] + [f"w{k}" for k, _ in enumerate(waiting, 1)]
    return MachineState(
        now=round(now * SECOND),
        resources=("nodes",),
        capacity=np.array([nodes]),
        free=np.array([nodes - used]),
        id=tuple(names),
        submit=submit,
        start=submit,
        request=request,
        demand=demand,
        lengths=RunTimeEstimates(request, request, request, False),
        n_running=len(running),
        user=("",) * n,
        partition=np.zeros(n),
        levels=np.array(levels, np.float64),
        quantiles=np.array(quantiles, np.float64).reshape(n, len(levels)),
        policy=policy,
    )
