"""Power per job: which level a job gets, what is booked for it, and which jobs no host can serve."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.workload.columns import complete_columns
from bridge.workload.job_power import PowerLevels, round_power_demands
from bridge.workload.table import Workload

ABOVE_IDLE = PowerLevels(tuple(range(60, 216, 5)), 60)
IN_FULL = PowerLevels(tuple(range(60, 216, 5)))


def log(**columns: list[int]) -> Workload:
    n = len(next(iter(columns.values())))
    base = {"job_id": range(1, n + 1), "submit": [0] * n, "run": [10] * n, "req_procs": [2] * n}
    table, _ = complete_columns(pd.DataFrame(base | columns), str, "log")
    return Workload("log", table, {"nodes": 4, "power": 400})


@pytest.mark.parametrize(
    ("nodes", "power", "expected"),
    [
        (2, 0, (0, 0)),  # 60 W each
        (2, 1, (1, 10)),  # 60.5 W, so 65 W each
        (2, 10, (1, 10)),
        (2, 11, (2, 20)),
        (3, 465, (31, 465)),  # 215 W each
        (3, 466, None),
        (1, 70, (14, 70)),
    ],
)
def test_above_idle_nodes(nodes: int, power: int, expected: tuple[int, int] | None) -> None:
    assert ABOVE_IDLE.round_up(nodes, power) == expected


@pytest.mark.parametrize(
    ("nodes", "power", "expected"),
    [(2, 0, (0, 120)), (2, 120, (0, 120)), (2, 121, (1, 130)), (4, 860, (31, 860)), (4, 861, None)],
)
def test_all_that_nodes_draw(nodes: int, power: int, expected: tuple[int, int] | None) -> None:
    assert IN_FULL.round_up(nodes, power) == expected


@given(st.sampled_from([ABOVE_IDLE, IN_FULL]), st.integers(1, 4360), st.integers(0, 1_000_000))
def test_the_lowest_level_that_is_not_below(levels: PowerLevels, nodes: int, power: int) -> None:
    found = levels.round_up(nodes, power)
    least = nodes * (levels.watts[-1] - levels.uncharged)
    assert (found is None) == (power > least)
    if found is not None:
        level, booked = found
        assert booked >= power
        assert level == 0 or nodes * (levels.watts[level - 1] - levels.uncharged) < power
        assert levels.round_up(nodes, booked) == found  # rounding twice changes nothing
        array = levels.of(np.array([nodes]), np.array([power]))
        assert array.tolist() == [level]
        assert levels.booked(np.array([nodes]), array).tolist() == [booked]


def test_a_log_is_rounded() -> None:
    made = round_power_demands(log(power=[70, 311, -1, 310]), ABOVE_IDLE)
    assert made.jobs["job_id"].tolist() == [1, 3, 4]
    assert made.jobs["power"].tolist() == [70, 0, 310]
    assert made.jobs["node_power"].tolist() == [95, 60, 215]
    assert {why: (r.kind, r.count) for why, r in made.tally.items()} == {
        "needs more than the 215 W that a host can draw": ("dropped", 1)
    }
    made = round_power_demands(log(power=[71, 70, 0, 1]), ABOVE_IDLE)
    assert made.jobs["power"].tolist() == [80, 70, 0, 10]
    [(why, reason)] = made.tally.items()
    assert why.startswith("power rounded up") and (reason.kind, reason.examples) == ("noted", (1, 4))
    assert round_power_demands(made, ABOVE_IDLE).jobs.equals(made.jobs)


def test_watts_per_node_alone_will_do() -> None:
    assert round_power_demands(log(node_power=[101, 60]), ABOVE_IDLE).jobs["power"].tolist() == [90, 0]
    assert round_power_demands(log(node_power=[101, 60]), IN_FULL).jobs["power"].tolist() == [210, 120]


def test_a_log_without_power() -> None:
    with pytest.raises(BridgeError, match="its jobs have no power"):
        round_power_demands(log(burst_buffer=[1]), ABOVE_IDLE)
