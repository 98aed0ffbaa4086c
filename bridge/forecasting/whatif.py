"""What if: the same futures under several rules or of a changed machine, compared future by future.

Changed: a further job is submitted, or nodes are drained or added.
"""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.node_groups import format_nodes
from bridge.forecasting.site_fork import open_fork
from bridge.forecasting.starts import FUTURES, draw
from bridge.forecasting.state import LENGTHS, MOST, MachineState
from bridge.judge.metrics import bounded_slowdown
from bridge.judge.stats import ConfidenceInterval, mean_ci, paired_difference
from bridge.platform.units import TIME, parse_quantity
from bridge.policy_name import refuse_twice
from bridge.scheduler.state import NEVER, SECOND

#: Name of a job that might be submitted.
NEW = "new"


def with_job(
    state: MachineState, nodes: int, walltime: float, user: str = "", name: str = NEW
) -> MachineState:
    """Return the state with a job submitted now, its last, to which the scheduler has not yet answered.

    Its run time is believed to be as large a part of the request (`walltime`, s) as that of the user's jobs
    in the state, or where there is none of all jobs in it, or all of it. Where another job has its name, ' is
    put behind it. BridgeError: it asks for more than the machine has, or its request is not positive.
    """
    while name in state.id:
        name += "'"
    if state.own is not None:
        return state.own.on_submitted(nodes, walltime, user, name)
    if state.site is not None and state.site.on_submitted is not None:
        return state.site.on_submitted(nodes, walltime, user, name)
    state.refuse_site("a job that was not submitted")
    request = np.array([round(walltime * SECOND)], np.int64)
    demand = np.zeros((1, len(state.resources)), np.int64)
    demand[0, 0] = nodes
    own = np.array([one == user for one in state.user], np.bool_) & (user != "")
    alike = own if own.any() else np.ones(len(state), np.bool_)
    part = state.quantiles[alike] / (state.request[alike] / SECOND)[:, None]
    share = part.mean(axis=0) if len(part) else np.ones(len(state.levels))
    now = np.array([state.now])
    column: dict[str, Any] = {"submit": now, "start": now, "request": request, "demand": demand}
    column |= {"partition": np.zeros(1), "quantiles": np.maximum(share * walltime, 1e-6)[None]}
    columns: dict[str, Any] = {key: np.concatenate((getattr(state, key), one)) for key, one in column.items()}
    believed: dict[str, Any] = {
        key: np.concatenate((getattr(state.lengths, key), request)) for key in LENGTHS
    }
    return replace(
        state,
        **columns,
        id=(*state.id, name),
        lengths=replace(state.lengths, **believed),
        user=(*state.user, user),
        settled=False,
    )


def change_site(state: MachineState, drain: str, add: str) -> MachineState:
    """Return the state of a cluster with nodes drained (``n[1-4]``), or N like those of a group added.

    Of a live site `drain` may be a number: idle nodes are drained first.
    """
    from bridge.forecasting.site_change import add_nodes, drain_nodes

    assert state.site is not None
    if drain.isdigit() and state.site.nodes:
        if not 0 < int(drain) <= len(state.site.nodes):
            what = f"{drain} nodes cannot be drained: there are {len(state.site.nodes)}"
            raise BridgeError(what, where="state of a cluster")
        drain = format_nodes(state.site.nodes[: int(drain)])
    if state.site.on_changed_cluster is None:
        raise BridgeError("only that of a run's folder can change", where="state of a cluster")
    return state.site.on_changed_cluster(drain_nodes(state, drain) if drain else add_nodes(state, add))


def with_nodes(state: MachineState, more: int) -> MachineState:
    """Return the state with nodes added, or (`more` < 0) drained: at once, or as their jobs end.

    BridgeError: more are drained than are in service, or there would be more than 2^62.
    """
    state.refuse_site("a number of nodes without names")
    in_service = int(state.free[0] + state.demand[: state.n_running, 0].sum())
    if in_service + more < 0:
        raise BridgeError(
            f"{counted(-more, 'node')} cannot be drained: {counted(in_service, 'is', 'are')} in service",
            where="state",
        )
    if (room := MOST - int(state.capacity[0])) < more:
        raise BridgeError(
            f"{counted(more, 'node')} cannot be added", where="state", remedy=f"Add at most {room}."
        )
    change = np.zeros(len(state.resources), np.int64)
    change[0] = more
    return replace(
        state, capacity=state.capacity + np.maximum(change, 0), free=state.free + change, settled=False
    )


def change_state(state: MachineState, *, nodes: int = 0, submits: Sequence[str] = ()) -> MachineState:
    """Return the state with nodes added or drained (negative), and with jobs submitted, see `parse_job`."""
    changed_state = with_nodes(state, nodes) if nodes or state.site is None else state
    for k, text in enumerate(submits, 1):
        wanted, walltime, user = parse_job(text)
        changed_state = with_job(changed_state, wanted, walltime, user, f"{NEW} {k}")
    return changed_state


def parse_job(text: str) -> tuple[int, float, str]:
    """Return (nodes, walltime in s, user) of ``64:2h`` or ``64:2h:alice``; BridgeError: it is no job."""
    match = re.fullmatch(r"([0-9]{1,18}):([^:]+)(?::([^:]*))?", text)
    try:
        walltime = parse_quantity(match[2], TIME) if match else 0.0
    except ValueError:
        walltime = 0.0
    if not match or int(match[1]) == 0 or not 0 < walltime < 1e12:
        remedy = "Write NODES:WALLTIME or NODES:WALLTIME:USER, such as 64:2h."
        raise BridgeError("is no job", where=repr(text), remedy=remedy)
    return int(match[1]), walltime, match[3] or ""


#: What is compared: mean wait and bounded slowdown of the jobs that wait now, and how long until the last of
#: them has started.
METRICS = ("wait", "bsld", "drained")
_THREADS = 2


@dataclass(frozen=True)
class WhatIfResult:
    """The futures under one rule. Times in seconds.

    Attributes:
        values: metric to its mean over the futures, with a 95 % interval.
        differences: metric to the mean of the differences to the first rule, future by future, with a 95 %
            interval; of the first rule itself empty.
        better: share of the futures in which jobs wait for less than under the first rule; 0 of itself.
        never: jobs that can never start.
        waiting: jobs that wait now.
        compared: those of them that start in every future under every rule: values are of them alone.
    """

    policy: str
    values: dict[str, ConfidenceInterval]
    differences: dict[str, ConfidenceInterval]
    better: float
    never: int
    waiting: int
    compared: int


def whatif(
    states: Sequence[MachineState], policies: Sequence[str], *, futures: int = FUTURES, seed: int = 0
) -> list[WhatIfResult]:
    """Play the same futures of a state under several rules, or of several states under as many rules.

    `states`: the present; or one present for each rule, with the jobs of the first, in its order, and perhaps
    more behind them, the same in all. Judged are the waiting jobs of the first. The first of `policies` is
    the base; an empty one is the state's own, or that of a Slurm's own schedulers. Returns an outcome per
    rule. Raises BridgeError: no job waits, a rule is not known or named twice, or there are fewer than two
    futures.
    """
    presents = [*states] * len(policies) if len(states) == 1 else [*states]
    names = [policy or state.decider for policy, state in zip(policies, presents, strict=True)]
    if len(states) == 1:
        refuse_twice(names)
    if not len(presents[0].waiting):
        remedy = "Name a time or a state in which jobs wait, or submit a job."
        raise BridgeError("no job waits: nothing can differ", where=_when(presents[0]), remedy=remedy)
    if futures < 2:
        raise BridgeError("an interval needs two futures at least", where="what if")
    runs = draw(presents[-1], futures, seed, first=len(presents[0]))
    starts = _played(presents, policies, runs)
    n = len(presents[0])
    can = np.all([(one[:, :n] != NEVER).all(axis=0) for one in starts], axis=0)
    judged = np.array([j for j in presents[0].waiting if can[j]], np.int64)
    if not len(judged):
        what, remedy = "none of the waiting jobs can start under every rule", "Drain fewer nodes."
        raise BridgeError(what, where=_when(presents[0]), remedy=remedy)
    results = [_values(presents[0], runs, one, judged) for one in starts]
    base = results[0]
    return [
        WhatIfResult(
            name,
            {metric: mean_ci(values[metric]) for metric in METRICS},
            {metric: paired_difference(values[metric], base[metric]) for metric in METRICS} if k else {},
            float((values["wait"] < base["wait"]).mean()) if k else 0.0,
            int((starts[k][:, presents[0].waiting] == NEVER).any(axis=0).sum()),
            len(presents[0].waiting),
            len(judged),
        )
        for k, (name, values) in enumerate(zip(names, results, strict=True))
    ]


def _when(state: MachineState) -> str:
    return f"what if, at {state.now / SECOND:g} s"


def _played(presents: Sequence[MachineState], policies: Sequence[str], runs: Ints) -> list[Ints]:
    """Return the starts [F, n] under each rule, whose futures are shared out: some rules take longer."""
    parts = np.array_split(runs, _THREADS)

    def play(task: tuple[MachineState, str, Ints]) -> Ints:
        state, name, some = task
        return open_fork(state, name).simulate_futures(some[:, : len(state)])

    tasks = [(state, name, part) for state, name in zip(presents, policies, strict=True) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:  # kernels do not hold the interpreter's lock
        played = list(pool.map(play, tasks))
    return [np.concatenate(played[k : k + len(parts)]) for k in range(0, len(tasks), len(parts))]


def _values(state: MachineState, runs: Ints, starts: Ints, judged: Ints) -> dict[str, Floats]:
    """Return each metric's value in each future [F], of the jobs judged."""
    wait = (starts[:, judged] - state.submit[judged]) / SECOND
    slow = bounded_slowdown(wait, runs[:, judged] / SECOND)
    last = (starts[:, judged].max(axis=1) - state.now) / SECOND
    return {"wait": wait.mean(axis=1), "bsld": slow.mean(axis=1), "drained": last}
