"""The parser of orders: what it refuses, and that it computes what Python computes."""

import math
import os

import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.scheduler.names import ORDERS
from bridge.scheduler.order import order
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import SECOND

#: id, submit, length (s), nodes, partition share
WAITING = [(11, 0.0, 100.0, 4, 0.25), (12, 3.0, 7.5, 1, 0.75), (13, 3.5, 86400.0, 129, 0.25)]
NOW, T_MAX, N_MAX = 40.25, 172800.0, 256


def scores(expression: str, rules: str = "standard", now: float = NOW) -> list[float]:
    """Return the scores that the compiled program gives to the jobs of `WAITING`."""
    # an agent picks, so the whole queue is sorted: without one, scores that only grow are not all computed
    policy = Policy(expression, "none", agent=frozenset({"pick"}))
    session = Session([N_MAX], policy, protocol(rules), longest=T_MAX)
    session.set_out_of_service([N_MAX])  # nobody fits: all keep waiting
    for job_id, submit, length, nodes, share in WAITING:
        session.now = round(submit * SECOND)
        session.submit(job_id, [nodes], JobEstimates.same(round(length * SECOND)), partition=share)
    session.now = round(now * SECOND)
    session.begin()
    session.advance()
    return [float(x) for x in session.state.jobs.score[0, : len(WAITING)]]


def names(now: float = NOW) -> list[dict[str, float]]:
    """Return what the variables stand for, per job, as Python floats."""
    return [
        {
            "s": submit,
            "t": length,
            "n": float(nodes),
            "w": now - submit,
            "z": max(now - other[1] for other in WAITING) or 1.0,
            "l": min(other[2] for other in WAITING),
            "fairshare": 1.0,
            "partition": share,
            "t_max": T_MAX,
            "n_max": float(N_MAX),
        }
        for _, submit, length, nodes, share in WAITING
    ]


FUNCTIONS = {
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "exp": math.exp,
    "abs": abs,
    "min": min,
    "max": max,
}


def python(expression: str) -> list[float]:
    """Let Python compute the scores (of text that this test wrote)."""
    code = compile(expression, "order", "eval")
    return [eval(code, {"__builtins__": {}}, {**FUNCTIONS, **values}) for values in names()]


@pytest.mark.parametrize("name", list(ORDERS))
def test_named_orders_are_pythons_arithmetic_bit_for_bit(name: str) -> None:
    assert scores(name) == python(ORDERS[name])


@pytest.mark.parametrize("name", [n for n in ORDERS if n != "slurm"])
def test_named_orders_are_the_references(name: str) -> None:
    jobs = [
        reference.Job(k, round(s * SECOND), 1, round(t * SECOND), 1, 1, (n,))
        for k, (_, s, t, n, _) in enumerate(WAITING)
    ]
    cluster = reference.Cluster([N_MAX], jobs, now=round(NOW * SECOND), waiting=jobs)
    assert scores(name) == [reference.ORDERS[name](job, cluster) for job in jobs]


@pytest.mark.parametrize(
    "expression",
    [
        "(w/t)**3*n",
        "w*w*w",
        "w**3.0",
        "-t ** 2.0",
        "2.0 ** 3.0 ** 2.0",
        "s // 0.1",
        "-7.5 // t",
        "(0.0 - w) % 7.0",
        "7.0 % (0.0 - 0.3)",
        "s - t - n",
        "s / 3.0 / 7.0",
        "min(s, t, n) + max(w, 1.0, t)",
        "abs(-s) + exp(n / 100.0) + log(t) + log2(n + 1.0) + sqrt(w)",
        "z + l * fairshare - partition * t_max + n_max",
        "+s",
    ],
)
def test_expressions_are_pythons_arithmetic_bit_for_bit(expression: str) -> None:
    assert scores(expression) == python(expression)


LEAVES = st.sampled_from([*names()[0], "0.5", "2.0", "3.0", "10.0", "0.1"])


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
        lambda p: f"({p[0]} {p[1]} {p[2]})"
    )
    call = st.tuples(st.sampled_from([f for f in FUNCTIONS if f not in ("min", "max")]), inner).map(
        lambda p: f"{p[0]}({p[1]})"
    )
    fold = st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})")
    return st.one_of(binary, binary, call, fold, inner.map(lambda x: f"-{x}"))


@given(st.recursive(LEAVES, grow, max_leaves=8))
def test_random_expressions_are_pythons_arithmetic_bit_for_bit(expression: str) -> None:
    try:
        expected = python(expression)
    except (ArithmeticError, ValueError, TypeError):
        assume(False)
    assume(all(isinstance(x, float) and math.isfinite(x) for x in expected))
    assert scores(expression) == expected


def test_cqsim_sees_whole_seconds_of_waiting() -> None:
    assert scores("w", "cqsim") == [40.0, 37.0, 36.0]


def test_nobody_has_waited_yet_counts_as_one_second() -> None:
    session = Session([4], Policy("z", "none"), protocol("standard"))
    session.set_out_of_service([4])
    session.submit(1, [1], JobEstimates.same(SECOND))
    session.begin()
    session.advance()
    assert session.state.jobs.score[0, 0] == 1.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__import__('os').system('x')", "Call is not allowed at column 1"),
        ("().__class__.__bases__", "Attribute is not allowed at column 1"),
        ("s.real", "Attribute is not allowed"),
        ("lambda: s", "Lambda is not allowed"),
        ("[s for s in (1, 2)]", "ListComp is not allowed"),
        ("(x := s)", "NamedExpr is not allowed"),
        ("s if t else n", "IfExp is not allowed"),
        ("s < t", "Compare is not allowed"),
        ("s and t", "BoolOp is not allowed"),
        ("not s", "UnaryOp is not allowed"),
        ("~s", "UnaryOp is not allowed"),
        ("s @ t", "BinOp is not allowed"),
        ("s << 3", "BinOp is not allowed"),
        ("s[0]", "Subscript is not allowed"),
        ("'s'", "Constant is not allowed"),
        ("f'{s}'", "JoinedStr is not allowed"),
        ("1j", "Constant is not allowed"),
        ("...", "Constant is not allowed"),
        ("True + s", "truth value is not a number at column 1"),
        ("s, t", "Tuple is not allowed"),
        ("eval(s)", "Call is not allowed"),
        ("pow(s, t)", "Call is not allowed"),
        ("sqrt(s, t)", "Call is not allowed"),
        ("sqrt()", "Call is not allowed"),
        ("min(s)", "Call is not allowed"),
        ("max(s, *t)", "Starred is not allowed"),
        ("max(s, key=t)", "Call is not allowed"),
        ("s + nan", "unknown variable 'nan' at column 5"),
        ("sjf + 1", "unknown variable 'sjf' at column 1"),
        ("fifo", "unknown order"),
        ("", "neither a named order nor an expression"),
        ("s +", "neither a named order nor an expression"),
        ("s; t", "neither a named order nor an expression"),
        ("s = t", "neither a named order nor an expression"),
        ("s\x00", "neither a named order nor an expression"),
        ("import os", "neither a named order nor an expression"),
        ("1e999", "number is too large"),
        ("1" + "0" * 400, "number is too large"),
        ("(" * 300 + "s" + ")" * 300, "neither a named order nor an expression"),
        ("s**" * 40 + "s", "more than 16 stacked values"),
        ("s+" * 1000 + "s", "longer than 1000 characters"),
    ],
)
def test_whatever_is_not_arithmetic_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(BridgeError, match="order ") as caught:
        order(text)
    assert says in str(caught.value)


def test_nesting_too_deep_for_pythons_parser_or_ours_is_refused_or_computed() -> None:
    text = "-" * 998 + "s"
    try:
        compiled = order(text)
    except BridgeError as error:
        assert "nested too deeply" in str(error) or "neither a named order" in str(error)
    else:
        assert len(compiled.program) == 999


def test_names_ignore_case_and_blanks() -> None:
    assert order("  WFP3 ").name == "wfp3"
    assert order("  WFP3 ").expression == ORDERS["wfp3"]


def test_which_orders_change_while_jobs_wait() -> None:
    dynamic = {name for name in ORDERS if order(name).dynamic}
    assert dynamic == {"wfp3", "unicep", "slurm"}
    expected = [True, True, True, True, False]
    assert [
        order(x).dynamic for x in ("w", "z", "l", "fairshare", "s*t*n/n_max + t_max - partition")
    ] == expected


@pytest.mark.parametrize(
    ("expression", "bad"),
    [
        ("1/(s - 3)", 12),
        ("log(n - 1)", 12),
        ("(3 - s)**0.5", 13),
        ("10**t", 13),
        ("w/(t - 100)", 11),
        ("s % 0", 11),
    ],
)
@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0",
    reason="Python's own math raises before the score is seen",
)
def test_a_score_that_is_no_finite_number_names_the_job(expression: str, bad: int) -> None:
    with pytest.raises(BridgeError, match=rf"score of job {bad} is not a finite number") as caught:
        scores(expression)
    assert repr(expression) in str(caught.value)
