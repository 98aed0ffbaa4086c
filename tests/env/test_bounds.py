"""Bounds of observations: no value of an expression is outside, and of the default features all are close."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

import small_jobs  # noqa: E402

from bridge.env.bounds import ANY, compute_bounds  # noqa: E402
from bridge.env.environment import SchedulingEnv  # noqa: E402
from bridge.scheduler.order import compile_feature  # noqa: E402
from bridge.scheduler.score import Op  # noqa: E402

#: Functions of Python for those of expressions; none of them is the kernel's.
FUNCTIONS = {name: getattr(math, name) for name in ("sqrt", "log", "log2", "log10", "exp")} | {
    "abs": abs,
    "min": min,
    "max": max,
}
VARIABLES = {"w": Op.W, "t": Op.T, "gap": Op.GAP}


def bounds_of(text: str, **variables: tuple[float, float]) -> tuple[float, float]:
    named = {VARIABLES[name]: bounds for name, bounds in variables.items()}
    return compute_bounds(compile_feature(text, {}), lambda op, _: named.get(Op(op), ANY))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3.0, 3.0)),
        ("w", (0.0, math.inf)),
        ("min(log10(1 + w)/7, 1)", (0.0, 1.0)),
        ("max(-1, min(1, (t - gap)/max(t, 1)))", (-1.0, 1.0)),
        ("t - 2*t", (-6.0, 0.0)),  # each t may be another one: 2 - 8 ... 4 - 4
        ("-abs(gap)", (-math.inf, 0.0)),
        ("1/t", (0.25, 0.5)),
        ("t/gap", (-math.inf, math.inf)),
        ("(t - 3)**2", (0.0, 1.0)),
        ("sqrt(t)", (math.sqrt(2.0), 2.0)),
        ("t % 3", (0.0, 3.0)),
        ("exp(w)", (1.0, math.inf)),
        ("log(w)", (-math.inf, math.inf)),
        ("w*0", (0.0, 0.0)),
        ("w - w", (-math.inf, math.inf)),
        ("t**gap", (0.0, math.inf)),
    ],
)
def test_bounds_by_hand(text: str, expected: tuple[float, float]) -> None:
    assert bounds_of(text, w=(0.0, math.inf), t=(2.0, 4.0)) == pytest.approx(expected, rel=1e-12)


NUMBERS = st.floats(-20, 20, allow_nan=False).map(lambda x: round(x, 2)) | st.sampled_from(
    [0.0, 1.0, 2.0, 3.0]
)
LEAVES = st.sampled_from(sorted(VARIABLES)) | NUMBERS.map(lambda x: f"({x})")
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda e: f"({e[0]} {e[1]} {e[2]})"
        ),
        st.tuples(inner, st.integers(0, 3)).map(lambda e: f"({e[0]}**{e[1]})"),
        st.tuples(inner, inner).map(lambda e: f"({e[0]}**{e[1]})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS.keys() - {"min", "max"})), inner).map(
            lambda e: f"{e[0]}({e[1]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda e: f"{e[0]}({e[1]}, {e[2]})"),
        inner.map(lambda e: f"(-{e})"),
    ),
    max_leaves=6,
)
POINTS = st.tuples(st.floats(-30, 30), st.floats(0, 20), st.floats(0, 1))


@given(text=EXPRESSIONS, points=st.tuples(POINTS, POINTS, POINTS))
def test_no_value_of_an_expression_is_outside(text: str, points: tuple[tuple[float, ...], ...]) -> None:
    ranges = {name: (low, low + size) for name, (low, size, _) in zip(VARIABLES, points, strict=True)}
    values = {
        name: min(low + share * size, low + size)
        for name, (low, size, share) in zip(VARIABLES, points, strict=True)
    }
    try:
        value = eval(text, {**FUNCTIONS, **values})  # by Python, not by our kernel
    except (ArithmeticError, ValueError, TypeError):  # TypeError: a root of a negative number is complex
        return  # an observation with it is refused
    if isinstance(value, complex) or not math.isfinite(value):
        return
    low, high = bounds_of(text, **ranges)
    assert low <= value <= high


ROWS = [(0, 100, 100, 8), (10, 50, 60, 8), (20, 30, 90, 2), (25, 30, 40, 4), (30, 5, 10, 1), (31, 5, 20, 8)]


@pytest.mark.parametrize("decision", ["pick", "backfill", "pick+backfill", "inspect"])
def test_default_features_are_bounded_by_one(decision: Any) -> None:
    env = SchedulingEnv(decision, workload=small_jobs.make_jobs(ROWS, [8]), length=6)
    box = env.observation_space
    names = list(env.task.encoder.columns)
    assert box.low.min() == (-1.0 if "past gap" in names else 0.0)
    assert box.high.max() == 1.0
    row = dict(zip(names, zip(box.low[0].tolist(), box.high[0].tolist(), strict=True), strict=True))
    assert row["nodes"] == (0.0, 1.0)
    assert row["wait"] == (0.0, 1.0)
    assert row["length"][1] == pytest.approx(math.log10(101) / 7)
    assert row["waiting"][1] == pytest.approx(math.log2(7) / 16)
    assert row["pressure"][1] == pytest.approx(math.log10(1 + 10 * 6 / 10) / 4)


def test_a_feature_without_bounds_has_those_of_its_type() -> None:
    from bridge.env.encoder import Encoder

    encoder = Encoder("pick", {"left over": "gap", "wait": "w"}, padding=(0.0, -2.0))
    box = SchedulingEnv(
        "pick", workload=small_jobs.make_jobs(ROWS, [8]), length=6, encoder=encoder
    ).observation_space
    largest = np.finfo(np.float32).max
    assert box.low[0].tolist() == [-largest, -2.0]
    assert box.high[0].tolist() == [largest, largest]
