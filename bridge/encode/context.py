"""Kernels that write a decision's context: rows of running jobs, and numbers of the machine."""

import math

from bridge.encode.encoder import Programs
from bridge.encode.rows import write
from bridge.jit import inner, kernel
from bridge.scheduler.state import Array, State

#: What floating point may add to a whole number of units.
_ROUNDING = 1e-9
_JOBS = 1  # the scratch row whose jobs `write` writes about


@inner
def _before(state: State, b: int, i: int, j: int) -> bool:
    """Tell whether running job `i` is shown before `j`: the larger, then who ends first, the lower id."""
    one, other = state.jobs[b, i], state.jobs[b, j]
    if one.n != other.n:
        return bool(one.n > other.n)
    if one.est_end != other.est_end:
        return bool(one.est_end < other.est_end)
    return bool(one.id < other.id)


@inner
def _largest(state: State, b: int, places: int) -> int:
    """List the largest running jobs, at most `places`, and return how many there are."""
    which = state.scratch[_JOBS]
    n = 0
    for i in range(state.env[b].n_running):
        j = state.run_job[b, i]
        k = n
        while k > 0 and _before(state, b, j, which[k - 1]):
            k -= 1
        if k == places:
            continue
        n = min(n + 1, places)
        for m in range(n - 1, k, -1):
            which[m] = which[m - 1]
        which[k] = j
    return n


@inner
def _by_unit(state: State, b: int, programs: Programs, context: Array) -> int:
    """Write a row per unit of each resource, and return how many numbers that is."""
    which = state.scratch[_JOBS]
    width = programs.absent.shape[0]
    at = 0
    for r in range(programs.places.shape[0]):
        units = programs.places[r]
        end = at + units * width
        for i in range(state.env[b].n_running):
            which[0] = state.run_job[b, i]
            share = state.demand[b, which[0], r] / max(state.capacity[r], 1)
            held = math.ceil(share * units - _ROUNDING)  # bytes times units overflow 64 bits
            first = at
            until = min(at + held * width, end)
            if at < until:
                row = context[at : at + width].reshape((1, width))
                write(state, b, programs.running.code, programs.running.ends, 1, row)
                at += width
            while at < until:
                context[at] = context[first]
                at += 1
                first += 1
        while at < end:
            for f in range(width):
                context[at + f] = programs.absent[f]
            at += width
    return at


@kernel
def write_context(state: State, b: int, programs: Programs, context: Array) -> None:
    """Write the context of the waiting decision, float32 [C]; overwrites what `list_rows` has listed."""
    which = state.scratch[_JOBS]
    at = 0
    if programs.places.shape[0] > 0:
        if programs.by_unit[0]:
            at = _by_unit(state, b, programs, context)
        else:
            width = programs.absent.shape[0]
            at = programs.places[0] * width
            n = _largest(state, b, programs.places[0])
            rows = context[:at].reshape((programs.places[0], width))
            write(state, b, programs.running.code, programs.running.ends, n, rows)
            for k in range(n, programs.places[0]):
                for f in range(width):
                    rows[k, f] = programs.absent[f]
    if programs.machine.ends.shape[0] > 0:
        which[0] = 0  # whoever that is: the programs read the machine only
        rows = context[at:].reshape((1, programs.machine.ends.shape[0]))
        write(state, b, programs.machine.code, programs.machine.ends, 1, rows)
