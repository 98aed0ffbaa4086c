"""Encoders of many resources: what `[r]` stands for, sizes, and everything that is refused."""

from typing import Any

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.scheduler.order import compile_feature
from bridge.scheduler.score import Op
from bridge.scheduler.state import VIEWS

ANY = Encoder(
    "pick",
    {"share": "share[r]", "t": "t", "gain": "share[r]*goal[r]"},
    window=10,
    running={"left": "left", "share": "share[r]"},
    running_rows=(4,),
    machine={"used": "used[r]", "waiting": "waiting"},
    resources=0,
)


def test_an_expression_of_each_resource_is_as_many_columns() -> None:
    two = ANY.for_resources(2)
    assert two.resources == 2
    assert list(two.columns.items()) == [
        ("share[0]", "share[0]"),
        ("share[1]", "share[1]"),
        ("t", "t"),
        ("gain[0]", "share[0]*goal[0]"),
        ("gain[1]", "share[1]*goal[1]"),
    ]
    assert list(two.running_columns) == ["left", "share[0]", "share[1]"]
    assert list(two.machine_columns.values()) == ["used[0]", "used[1]", "waiting"]
    assert two.features == ANY.features  # they stay as they were written


@pytest.mark.parametrize("resources", [1, 2, 3])
def test_sizes(resources: int) -> None:
    encoder = ANY.for_resources(resources)
    width, running = 1 + 2 * resources, 1 + resources
    assert encoder.width == width
    assert encoder.size == 10 * width + 4 * running
    assert encoder.context == 4 * running + resources + 1
    assert (encoder.rows, encoder.actions) == (10, 10)
    programs = encoder.compile({}).programs
    expected = [width, running, resources + 1]
    assert [len(p.ends) for p in (programs.rows, programs.running, programs.machine)] == expected
    assert programs.empty_row.tolist() == [0] * running


def test_what_was_made_for_a_number_of_resources_keeps_it() -> None:
    two = ANY.for_resources(2)
    assert two.for_resources(3) is two


def test_without_a_number_of_resources_nothing_can_be_compiled() -> None:
    with pytest.raises(BridgeError, match="does not know yet how many resources"):
        ANY.compile({})


def test_units_are_counted_over_all_resources() -> None:
    encoder = Encoder(
        "pick",
        {"t": "t"},
        running={"a": "0", "left": "left"},
        running_rows=(6, 3),
        row_unit="unit",
        resources=2,
    )
    assert (encoder.context, encoder.size) == (18, 128 + 18)
    assert encoder.compile({}).programs.running_rows.tolist() == [6, 3]


def test_an_instruction_says_of_which_resource_it_is() -> None:
    program = compile_feature("share[2] + used[0]", {}, 3)
    assert program["op"].tolist() == [Op.SHARE, Op.USED, Op.ADD]
    assert program["arg"].tolist() == [2, 0, 0]


RUNNING: dict[str, Any] = {"running": {"left": "left", "n": "n"}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"running": {"left": "left"}}, "need features and at least one place"),
        ({"running_rows": (3,)}, "need features and at least one place"),
        ({**RUNNING, "running_rows": (0,)}, "need features and at least one place"),
        (
            {**RUNNING, "running_rows": (3, -1), "row_unit": "unit", "resources": 2},
            "need features and at least one",
        ),
        ({**RUNNING, "running_rows": (3, 4)}, "running jobs have one number of places"),
        ({**RUNNING, "running_rows": (3, 4), "row_unit": "unit"}, "units of 2 resources, and there are 1"),
        (
            {**RUNNING, "running_rows": (3,), "empty_row": (1.0,)},
            "the absent row has 1 values for 2",
        ),
        ({"padding": (1.0, 2.0)}, "the padding has 2 values for 1 features"),
        ({"features": {"s": "share[r]"}, "padding": (1.0,), "resources": 2}, "1 values for 2 features"),
        ({"decision": "pick+backfill", "stop": True}, "a pick[+]backfill decision has no stop row"),
    ],
)
def test_rows_that_do_not_agree_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        Encoder(**{"decision": "pick", "features": {"t": "t"}, **arguments})


@pytest.mark.parametrize(
    ("changes", "resources", "said"),
    [
        ({"features": {"s": "share[r]"}, "padding": (1.0,)}, 2, "the padding has 1 values for 2 features"),
        (
            {"running": {"s": "share[r]"}, "running_rows": (1,), "empty_row": (1.0,)},
            3,
            "the absent row has 1 values",
        ),
        ({**RUNNING, "running_rows": (4, 4), "row_unit": "unit"}, 1, "units of 2 resources, and there are 1"),
    ],
)
def test_rows_are_compared_once_the_resources_are_known(
    changes: dict[str, Any], resources: int, said: str
) -> None:
    encoder = Encoder(**{"decision": "pick", "features": {"t": "t"}, "resources": 0, **changes})
    with pytest.raises(BridgeError, match=said):
        encoder.for_resources(resources)


def refused(**arguments: Any) -> BridgeError:
    """Return the error of compiling an encoder of two resources."""
    with pytest.raises(BridgeError) as error:
        Encoder(**{"decision": "pick", "features": {"t": "t"}, "resources": 2, **arguments}).compile(
            {"c": 1.0}
        )
    return error.value


@pytest.mark.parametrize(
    ("text", "said", "where"),
    [
        ("share[2]", "there is no resource 2 among 2 at column 1", "feature 'share[2]'"),
        ("1 + used[7]", "there is no resource 7 among 2 at column 5", "feature '1 + used[7]'"),
        ("2*share", "share is of one resource (share[0]) at column 3", "feature '2*share'"),
        ("goal", "goal is of one resource (goal[0]) at column 1", "feature 'goal'"),
        ("share[-1]", "Subscript is not allowed at column 1", "feature 'share[-1]'"),
        ("share[1.0]", "Subscript is not allowed at column 1", "feature 'share[1.0]'"),
        ("share['nodes']", "Subscript is not allowed at column 1", "feature \"share['nodes']\""),
        ("share[n]", "Subscript is not allowed at column 1", "feature 'share[n]'"),
        ("share[0][0]", "Subscript is not allowed at column 1", "feature 'share[0][0]'"),
        ("t[0]", "Subscript is not allowed at column 1", "feature 't[0]'"),
        ("c[0]", "Subscript is not allowed at column 1", "feature 'c[0]'"),
        ("used(0)", "Call is not allowed at column 1", "feature 'used(0)'"),
    ],
)
def test_resources_that_are_not_there_are_refused(text: str, said: str, where: str) -> None:
    error = refused(features={"it": text})
    assert (error.what, error.where) == (said, where)
    assert "share[0], used[0], goal[0]" in error.remedy


@pytest.mark.parametrize("name", ["s", "t", "n", "w", "z", "l", "fairshare", "partition", "fits", "blocked"])
def test_a_number_of_the_machine_says_nothing_about_a_job(name: str) -> None:
    alone = refused(machine={"it": name})
    assert (alone.what, alone.where) == ("unknown feature", f"feature '{name}'")
    assert "goal[0]" in alone.remedy
    within = refused(machine={"it": f"waiting + {name}"})
    assert within.what == f"unknown variable '{name}' at column 11"
    for known in ("t_max, n_max", "free, gap", "load", "used[0], goal[0]"):
        assert known in within.remedy


@pytest.mark.parametrize("text", ["share[0]", "share[r]", "waiting*share[1]"])
def test_a_jobs_share_is_no_number_of_the_machine(text: str) -> None:
    assert "Subscript is not allowed" in refused(machine={"it": text}).what


def test_an_order_knows_no_resource_by_number() -> None:
    from bridge.scheduler.order import order

    with pytest.raises(BridgeError, match="Subscript is not allowed at column 2") as error:
        order("-share[0]")
    assert "share" not in error.value.remedy.replace("fairshare", "")


def test_too_many_variables_of_machine_and_pass_in_one_expression_are_refused() -> None:
    most = "+".join(["free"] * VIEWS)
    Encoder("pick", {"it": most}).compile({})
    Encoder("pick", {"it": most + "+n_max"}).compile({})  # an order's variables are not among them
    error = refused(features={"it": most + "+gap"})
    assert error.what == "the expression reads more than 16 variables of machine and pass"
    assert error.where.startswith("feature 'free+free")


def test_as_many_variables_as_allowed_are_all_read() -> None:
    from small_states import at_pick, observe

    text = "+".join(f"{10.0**k:.0f}*{'waiting' if k % 2 else 'running'}" for k in range(VIEWS))
    session = at_pick(10, [4], [(0, 20, 1)], [(10, 5, 1), (10, 5, 1)])
    rows, context = observe(session, Encoder("pick", {"it": text}, machine={"it": text}))
    expected = np.float32(sum((2 if k % 2 else 1) * 10.0**k for k in range(VIEWS)))
    assert rows[:, 0].tolist() == [expected] * 2
    assert context.tolist() == [expected]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"row_unit": "rack", "running": {"n": "n"}, "running_rows": (2,)}, "by job or by unit"),
        ({"resources": -1}, "at least one resource"),
        ({"features": {"x": "share[r]", "x[0]": "t"}, "resources": 2}, "two columns have one name"),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        Encoder(**{"decision": "pick", "features": {"t": "t"}, **arguments})


def test_a_truth_value_is_no_resource() -> None:
    with pytest.raises(BridgeError, match="there is no resource True"):
        compile_feature("share[True]", {}, 2)
