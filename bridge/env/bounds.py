"""Bounds of what a network sees: the range of each feature, by interval arithmetic."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from bridge.base.arrays import Floats32, Records
from bridge.env.encoder import CompiledEncoder, FeatureProgram
from bridge.scheduler.score import LAST_VARIABLE, Op
from bridge.scheduler.state import SECOND
from bridge.worlds.fast.episode import Scenario

#: The least and the largest value; infinite where there is none.
Interval = tuple[float, float]
ANY: Interval = (-math.inf, math.inf)
_SHARE: Interval = (0.0, 1.0)
#: Finite features only are shown, as float32.
_LARGEST = float(np.finfo(np.float32).max)
_TICK = 1.0 / SECOND


@dataclass(frozen=True)
class VariableBounds:
    scenario: Scenario
    length: int

    def of(self, op: int, resource: int) -> Interval:
        """Return the bounds of a variable; `resource`: of which, if there is one of each resource."""
        jobs, estimate, n = self.scenario.jobs, self.scenario.estimate, self.length
        shortest, longest = _span(estimate.order / SECOND)
        largest = longest
        if self.scenario.permits is not None:  # what is left of a job that was stopped
            shortest, longest = 0.0, math.inf
        nodes = float(jobs.capacity[0])
        rejects = float(self.scenario.compiled.rules["max_rejects"][0])
        bounds: dict[int, Callable[[], Interval]] = {
            Op.S: lambda: _span(jobs.submit / SECOND),
            Op.T: lambda: (shortest, longest),
            Op.N: lambda: _span(jobs.demand[:, 0]),
            Op.W: lambda: (0.0, math.inf),
            Op.Z: lambda: (_TICK, math.inf),
            Op.L: lambda: (shortest, longest),
            Op.FAIRSHARE: lambda: _SHARE,
            Op.PARTITION: lambda: _span(self.scenario.partition),
            Op.T_MAX: lambda: (largest, largest),
            Op.N_MAX: lambda: (nodes, nodes),
            Op.FREE: lambda: (0.0, nodes),
            Op.EXTRA: lambda: (0.0, nodes),
            Op.REJECTS: lambda: (0.0, rejects),
            Op.COST: lambda: (0.0, n / max(shortest, 10.0)),
            Op.HEAD_W: lambda: (0.0, math.inf),
            Op.HEAD_T: lambda: (0.0, longest),
            Op.HEAD_N: lambda: (0.0, _span(jobs.demand[:, 0])[1]),
            Op.SERVED: lambda: (0.0, math.inf),
            Op.REST: lambda: (0.0, longest),
            Op.RULE: lambda: (-1.0, 1.0),
            Op.HEAD_SERVED: lambda: (0.0, math.inf),
            Op.SHARE: lambda: self._demand(resource),
        }
        bounds |= dict.fromkeys((Op.FITS, Op.BLOCKED, Op.SAFE, Op.USED, Op.GOAL), lambda: _SHARE)
        bounds |= dict.fromkeys((Op.WAITING, Op.RUNNING, Op.BACKFILLABLE, Op.LOAD), lambda: (0.0, float(n)))
        return bounds.get(op, lambda: ANY)()  # no bounds: GAP and LEFT, a job may run longer than estimated

    def _demand(self, resource: int) -> Interval:
        jobs = self.scenario.jobs
        capacity = float(jobs.capacity[resource])
        return _span(jobs.demand[:, resource] / capacity) if capacity > 0 else (0.0, 0.0)


def compute_bounds(program: Records, variable: Callable[[int, int], Interval]) -> Interval:
    """Return bounds of a program's value; `variable`: operation and resource → bounds of that variable."""
    stack: list[Interval] = []
    for op, arg, value in program.tolist():
        if op == Op.CONSTANT:
            stack.append((value, value))
        elif op <= LAST_VARIABLE:
            stack.append(variable(op, arg))
        elif op in _BINARY:
            second, first = stack.pop(), stack.pop()
            stack.append(_whole(_BINARY[op](first, second)))
        else:
            stack.append(_whole(_UNARY[op](stack.pop())))
    return stack.pop()


def observation_bounds(compiled: CompiledEncoder, variables: VariableBounds) -> tuple[Floats32, Floats32]:
    """Return the least and the largest values of an observation's rows, [2, F], and its context, [2, C]."""
    encoder, programs = compiled.encoder, compiled.programs

    def columns(program: FeatureProgram, names: int, absent: tuple[float, ...] = ()) -> Floats32:
        """Return [2, names]: also the values where there is no job."""
        ends = program.ends.tolist()
        rows = [
            compute_bounds(program.code[begin:end], variables.of)
            for begin, end in zip([0, *ends], ends, strict=False)
        ][:names]
        bounds = np.clip(np.array(rows, np.float64).reshape(-1, 2).T, -_LARGEST, _LARGEST)
        other = np.array(absent or (0.0,) * names)
        return np.stack([np.minimum(bounds[0], other), np.maximum(bounds[1], other)]).astype(np.float32)

    running = columns(programs.running, len(encoder.running_columns), encoder.empty_row)
    parts = (
        *[running] * sum(encoder.running_rows),
        *[columns(programs.queued, len(encoder.queued_columns))] * encoder.queued_rows,
        columns(programs.machine, len(encoder.machine_columns)),
    )
    rows = columns(programs.rows, encoder.width, encoder.padding)
    # an episode's end is shown as a context of zeros
    context = np.concatenate(parts, axis=1)
    return rows, np.stack([np.minimum(context[0], 0), np.maximum(context[1], 0)])


def _span(values: object) -> Interval:
    array = np.asarray(values, np.float64)
    return (float(array.min()), float(array.max())) if len(array) else ANY


def _whole(bounds: Interval) -> Interval:
    """Return bounds; an end that is no number is without bound."""
    low, high = bounds
    return (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


def _corners(of: Callable[[float, float], float], x: Interval, y: Interval) -> Interval:
    """Return the bounds of a function that grows or falls steadily in each argument."""
    values = [of(a, b) for a, b in product(x, y)]
    return min(values), max(values)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _ratio(a: float, b: float) -> float:
    return 0.0 if a == 0 or math.isinf(b) else a / b


def _divide(x: Interval, y: Interval) -> Interval:
    if y[0] > 0 or y[1] < 0:
        return _corners(_ratio, x, y)
    return ANY  # by zero, which is refused when it happens


def _floor_divide(x: Interval, y: Interval) -> Interval:
    low, high = _divide(x, y)
    return (low if math.isinf(low) else math.floor(low) - 1.0), (
        high if math.isinf(high) else math.floor(high) + 1.0
    )


def _modulo(_: Interval, y: Interval) -> Interval:
    if y[0] > 0:
        return 0.0, y[1]
    return (y[0], 0.0) if y[1] < 0 else ANY


def _power(x: Interval, y: Interval) -> Interval:
    if x[0] >= 0 and not (x[0] == 0 and y[0] < 0):
        return _loose(_corners(_raise, x, y))
    whole = y[0] == y[1] and y[0] >= 0 and y[0] == math.floor(y[0])
    if not whole:
        return ANY
    low, high = _corners(_raise, x, y)
    return _loose((0.0 if y[0] % 2 == 0 and x[0] <= 0 <= x[1] else low, high))


def _raise(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.copysign(math.inf, a) if b % 2 else math.inf


def _logarithm(of: Callable[[float], float]) -> Callable[[Interval], Interval]:
    def bounds(x: Interval) -> Interval:
        return _loose((of(x[0]) if x[0] > 0 else -math.inf, of(x[1]) if x[1] > 0 else math.inf))

    return bounds


def _exponential(x: Interval) -> Interval:
    def of(a: float) -> float:
        try:
            return math.exp(a)
        except OverflowError:
            return math.inf

    return _loose((of(x[0]), of(x[1])))


def _loose(bounds: Interval) -> Interval:
    """Return bounds that hold for a function whose last bit differs between libraries."""
    low, high = bounds
    return (
        low if low in (0.0, 1.0) else math.nextafter(math.nextafter(low, -math.inf), -math.inf),
        high if high in (0.0, 1.0) else math.nextafter(math.nextafter(high, math.inf), math.inf),
    )


def _absolute(x: Interval) -> Interval:
    largest = max(abs(x[0]), abs(x[1]))
    return (0.0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))), largest


_BINARY: dict[int, Callable[[Interval, Interval], Interval]] = {
    Op.ADD: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    Op.SUB: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    Op.MULT: lambda x, y: _corners(_times, x, y),
    Op.DIV: _divide,
    Op.FLOORDIV: _floor_divide,
    Op.MOD: _modulo,
    Op.POW: _power,
    Op.MIN: lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    Op.MAX: lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
}
_UNARY: dict[int, Callable[[Interval], Interval]] = {
    Op.NEG: lambda x: (-x[1], -x[0]),
    Op.SQRT: lambda x: (math.sqrt(max(x[0], 0.0)), math.sqrt(max(x[1], 0.0))),
    Op.LOG: _logarithm(math.log),
    Op.LOG2: _logarithm(math.log2),
    Op.LOG10: _logarithm(math.log10),
    Op.EXP: _exponential,
    Op.ABS: _absolute,
}
