"""What might be: a state with a further job, with nodes drained, or with nodes added."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.errors import BridgeError
from bridge.futures.state import LENGTHS, MOST, State
from bridge.platform.units import TIME, parse
from bridge.scheduler.state import SECOND

#: Name of a job that might be submitted.
NEW = "new"


def with_job(state: State, nodes: int, walltime: float, user: str = "", name: str = NEW) -> State:
    """Return the state with a job submitted now, to which the scheduler has not yet answered.

    Its run time is believed to be as large a part of the request as that of the user's jobs in the state, or
    where there is none of all jobs in it, or all of it.

    Args:
        state: the present.
        nodes: that it asks for.
        walltime: its request, seconds.
        user: whose it is.
        name: its id; where another job has it, with ' behind it. The new job is the state's last.

    Raises:
        BridgeError: it asks for more than the machine has, or its request is not positive.
    """
    while name in state.id:
        name += "'"
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


def with_nodes(state: State, more: int) -> State:
    """Return the state with nodes added, or drained: out of service at once, or as their jobs end.

    Args:
        state: the present.
        more: nodes added; negative: drained.

    Raises:
        BridgeError: more are drained than are in service, or there would be more than 2^62.
    """
    in_service = int(state.free[0] + state.demand[: state.n_running, 0].sum())
    if in_service + more < 0:
        raise BridgeError(f"{-more} nodes cannot be drained: {in_service} are in service", where="state")
    if (room := MOST - int(state.capacity[0])) < more:
        raise BridgeError(f"{more} nodes cannot be added", where="state", remedy=f"Add at most {room}.")
    change = np.zeros(len(state.resources), np.int64)
    change[0] = more
    return replace(
        state, capacity=state.capacity + np.maximum(change, 0), free=state.free + change, settled=False
    )


def changed(state: State, *, nodes: int = 0, submits: Sequence[str] = ()) -> State:
    """Return the state with nodes added or drained (negative), and with jobs submitted, see `parse_job`.

    Raises:
        BridgeError: a job is none or does not fit the machine, or too many nodes are drained.
    """
    found = with_nodes(state, nodes)
    for k, text in enumerate(submits, 1):
        wanted, walltime, user = parse_job(text)
        found = with_job(found, wanted, walltime, user, f"{NEW} {k}")
    return found


def parse_job(text: str) -> tuple[int, float, str]:
    """Return (nodes, walltime in seconds, user) of a job such as ``64:2h`` or ``64:2h:alice``.

    Raises:
        BridgeError: it is none.
    """
    found = re.fullmatch(r"([0-9]{1,18}):([^:]+)(?::([^:]*))?", text)
    try:
        walltime = parse(found[2], TIME) if found else 0.0
    except ValueError:
        walltime = 0.0
    if not found or int(found[1]) == 0 or not 0 < walltime < 1e12:
        remedy = "Write NODES:WALLTIME or NODES:WALLTIME:USER, such as 64:2h."
        raise BridgeError("is no job", where=repr(text), remedy=remedy)
    return int(found[1]), walltime, found[3] or ""
