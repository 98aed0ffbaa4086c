"""Statistics of MRSch's workloads: loads and goal by hand, and theta_2022 as the settings load it."""

from pathlib import Path

import pytest
from workload_strategies import small

from bridge.workload.mrsch import TB, StatisticRow, generate_mrsch, goal, offered_loads, statistics
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs, select
from bridge.workload.swf import read_swf


def jobs_of(*rows: tuple[int, int, int, int, int], buffers: list[int]) -> Jobs:
    """Return jobs of (id, submit, run, nodes, request) rows on Theta with burst buffers in TB."""
    workload = small(*rows, nodes=4360)
    workload.jobs["burst_buffer"] = buffers
    workload.capacity["burst_buffer"] = 1260
    return select(workload, LOAD_RULES["standard"])


def test_the_goal_of_equation_1() -> None:
    # .25·3600 + .1·7200 + .5·1800 = 2520 s of nodes; .1·3600 + .2·1800 = 720 s of burst buffer.
    jobs = jobs_of(
        (1, 0, 60, 1090, 3600), (2, 0, 60, 436, 7200), (3, 0, 60, 2180, 1800), buffers=[126, 0, 252]
    )
    assert goal(jobs) == pytest.approx({"nodes": 2520 / 3240, "burst_buffer": 720 / 3240})


def test_offered_loads() -> None:
    # .25·1000 + .5·600 = 550 s of nodes and .1·1000 + .2·600 = 220 s of burst buffer in 1000 s
    jobs = jobs_of((1, 0, 1000, 1090, 3600), (2, 1000, 600, 2180, 3600), buffers=[126, 252])
    assert offered_loads(jobs) == pytest.approx({"nodes": 0.55, "burst_buffer": 0.22})
    at_once = offered_loads(jobs_of((1, 0, 10, 1, 10), buffers=[0]))
    assert at_once == pytest.approx({"nodes": float("nan"), "burst_buffer": float("nan")}, nan_ok=True)


def test_every_statistic_by_hand() -> None:
    made = generate_mrsch(small(*[(n, 100 * n, 50, 436, 100) for n in range(1, 5)], nodes=4360), "S10", 1)
    made.jobs["burst_buffer"] = [126 * TB, 63 * TB, 0, 252 * TB]
    made.jobs["node_power"] = [100, 110, 120, 210]
    made.jobs["power"] = 23_840  # a tenth of the budget above idle
    rows = statistics(made, "S10")
    assert [row.what for row in rows] == [
        "jobs",
        "mean time between arrivals, s",
        "mean nodes",
        "jobs with burst buffer, %",
        "least request, TB",
        "mean request, TB",
        "largest request, TB",
        "least power per node, W",
        "mean power per node, W",
        "largest power per node, W",
        "offered load: nodes",
        "offered load: burst_buffer",
        "offered load: power",
        "goal: burst_buffer (Eq. 1 over all jobs)",
    ]
    # Arrivals are 80 s apart: 240 s in all. Loads: 4·.05·50/240, .35·50/240, 4·.1·50/240.
    values = [4, 80, 218, 75, 63, 147, 252, 100, 135, 210, 1 / 24, 17.5 / 240, 1 / 12, 0.35 / 0.95]
    assert [row.here for row in rows] == pytest.approx(values)
    stated = {row.what: row.paper for row in rows if row.paper != "not stated"}
    assert stated == {
        "mean nodes": "halved",
        "jobs with burst buffer, %": "75",
        "least request, TB": "20",
        "largest request, TB": "285",
        "least power per node, W": "100",
        "largest power per node, W": "215",
    }


def test_the_goal_of_s5_stands_beside_the_papers() -> None:
    made = generate_mrsch(small((1, 0, 50, 8, 100), (2, 9, 50, 8, 100), nodes=8), "S5", 1)
    assert statistics(made, "S5")[-1].paper == "0.6 to 0.9"
    assert statistics(made, "S4")[-1].paper == "not stated"


def test_nobody_asks_for_burst_buffer() -> None:
    made = generate_mrsch(small((1, 0, 50, 8, 100), (2, 9, 50, 8, 100), nodes=8), "S1", 1)
    made.jobs["burst_buffer"] = 0
    rows = statistics(made, "S1")
    assert rows[3] == StatisticRow("jobs with burst buffer, %", 0.0, "50")
    assert rows[4].what == "offered load: nodes"


def test_loads_of_theta_grow_and_cross(traces: Path) -> None:
    theta = read_swf(traces / "theta_2022.swf.gz")
    found: list[tuple[float, float, float]] = []
    for setting in ("C1", "C2", "C3", "C4", "C5"):
        made = generate_mrsch(theta, setting, 1)
        assert made.capacity["burst_buffer"] == 510 * TB
        jobs = select(made, LOAD_RULES["standard"])
        loads = offered_loads(jobs)
        found.append((loads["nodes"], loads["burst_buffer"], goal(jobs)["burst_buffer"]))
    expected = [
        (0.5377, 0.3336, 0.3249),
        (0.5377, 0.5084, 0.4230),
        (0.5377, 0.5364, 0.4501),
        (0.5377, 0.8119, 0.5533),
        (0.2895, 0.8744, 0.7124),
    ]
    assert found == [pytest.approx(row, abs=5e-5) for row in expected]
    nodes, buffers, goals = zip(*found, strict=True)
    assert list(buffers) == sorted(buffers)
    assert list(goals) == sorted(goals)
    assert [buffer > node for node, buffer in zip(nodes, buffers, strict=True)] == [False] * 3 + [True] * 2
    assert buffers[2] == pytest.approx(nodes[2], rel=0.01)  # C3 is balanced
    assert 0.6 < goals[4] < 0.9  # the paper's Figure 8, of S5


@pytest.mark.parametrize(
    ("setting", "nodes", "goal_of_buffer"), [("S4", 0.941, 0.43), ("S5", 0.471, 0.60), ("S6", 0.502, 0.15)]
)
def test_theta(traces: Path, setting: str, nodes: float, goal_of_buffer: float) -> None:
    theta = read_swf(traces / "theta_2022.swf.gz")
    rows = {row.what: row.here for row in statistics(generate_mrsch(theta, setting, 1), setting)}
    assert rows["jobs"] == 23_911
    assert rows["offered load: nodes"] == pytest.approx(nodes, abs=0.0005)
    assert rows["goal: burst_buffer (Eq. 1 over all jobs)"] == pytest.approx(goal_of_buffer, abs=0.01)
