"""What the terminal tables say, cell by cell."""

from dataclasses import replace

import pytest
from schedules import EXAMPLE, example, schedule

from bridge.judge.compare import compare_runs
from bridge.judge.metrics import breakdown, compute_metrics
from bridge.judge.run import Run
from bridge.report.table import Table
from bridge.report.tables import (
    breakdown_table,
    comparison_table,
    difference,
    duration,
    format_metric,
    metrics_table,
    overview_table,
)


def run() -> Run:
    return Run({}, {"nodes": 4}, example(), compute_metrics(example(), {"nodes": 4}), name="example")


def lines(table: Table) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (89.5, "89.50 s"),
        (90, "1.50 min"),
        (5400, "1.50 h"),
        (172_800, "2 d"),
        (-3600.0, "-60 min"),
        (86_400_000, "1,000 d"),
        (0.0125, "0.0125 s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("wait.mean", 5.0, "5 s"),
        ("size.3-4.wait.mean", 600.0, "10 min"),
        ("bsld.mean", 1234.5, "1,234"),
        ("bsld.mean", 234.56, "234.6"),
        ("utilisation.nodes", 0.83376, "83.38 %"),
        ("energy.joules", 7.2e6, "2 kWh"),
        ("energy.machine.joules", 2.2e13, "6,111 MWh"),
        ("power.mean", 433_512.0, "433.5 kW"),
        ("power.max", 590.0, "590 W"),
        ("over_budget.seconds", 600.0, "10 min"),
        ("fairness.jain", 0.983271, "0.9833"),
        ("users.count", None, "–"),
    ],
)
def test_show(key: str, value: float | None, text: str) -> None:
    assert format_metric(key, value) == text


FIRST = {
    "jobs": "5",
    "rejected": "1",
    "makespan": "1.92 min",
    "utilisation, nodes": "31.30 %",
    "loss of capacity": "3.48 %",
    "Jain fairness, users": "0.9833",
}


def test_metrics_table() -> None:
    rows = {row[0]: row[1:] for row in lines(metrics_table(run()))}
    assert rows["wait"] == ["5 s", "5 s", "10 s", "10 s", "10 s"]
    assert rows["bounded slowdown"] == ["1.15", "1.05", "1.44", "1.49", "1.50"]
    assert rows["queue, nodes"] == ["0.4348", "", "", "", "5"]
    assert {name: rows[name][0] for name in FIRST} == FIRST
    assert not [label for label in rows if "energy" in label or "power" in label]
    assert not metrics_table(run()).caption
    assert "oracle" in metrics_table(replace(run(), oracle=True)).caption


def test_metrics_table_of_a_machine_with_a_power_budget() -> None:
    jobs = schedule([("a", 0, 0, 20, 2), ("b", 0, 10, 10, 1)], power=[300, 50], burst_buffer=[3, 4])
    capacity = {"nodes": 4, "burst_buffer": 10, "power": 400}
    metrics = compute_metrics(jobs.assign(consumed_energy=[3.6e6, 3.6e6]), capacity, idle_power=60)
    rows = {row[0]: row[1:] for row in lines(metrics_table(Run({}, capacity, jobs, metrics)))}
    assert rows["power of the machine"] == ["565 W", "", "", "", "590 W"]
    assert rows["utilisation, burst_buffer"][0] == "50.00 %"
    assert rows["utilisation, power"][0] == "81.25 %"
    assert rows["power budget"][0] == "640 W"
    assert rows["of it idle nodes"][0] == "240 W"
    assert rows["energy, jobs"][0] == "2 kWh"
    assert rows["energy, machine"][0] == "0.0031 kWh"


def test_metrics_table_of_a_run_in_which_nothing_started() -> None:
    jobs = schedule([("r", 0, None, 1, 9)])
    table = metrics_table(Run({}, {"nodes": 4}, jobs, compute_metrics(jobs, {"nodes": 4})))
    rows = {row[0]: row[1:] for row in lines(table)}
    assert rows["wait"] == ["–"] * 5


def test_comparison_table() -> None:
    rows = [*EXAMPLE]
    rows[3] = ("D", 5, 20, 100, 1)
    other = schedule(rows)
    found = compare_runs(
        [run(), replace(run(), jobs=other, metrics=compute_metrics(other, {"nodes": 4}), oracle=True)],
        ["a", "b"],
    )
    table = comparison_table(found)
    cells = {row[0]: row[1:] for row in lines(table)}
    assert cells["wait.mean"] == ["5 s", "6.25 s", "+1.25 s (+25.0 %)"]
    assert cells["wait.median"] == ["5 s", "5 s", "="]
    assert cells["fairness.jain"] == ["0.9833", "–", "–"]
    assert cells["utilisation.nodes"] == ["31.30 %", "30.00 %", "−1.30 %"]
    assert table.headings == ["", "a", "b *", "difference"]
    assert "oracle" in table.caption


def test_overview_table() -> None:
    found = compare_runs([run()] * 4, ["a", "b", "c", "d"])
    table = overview_table(replace(found, oracle=(False, False, False, True)))
    assert table.rows[0] == ["a", "5 s", "10 s", "10 s", "1.15", "1.44", "31.30 %"]
    assert table.rows[3][0] == "d *"
    assert "oracle" in table.caption


def test_difference() -> None:
    assert difference("bsld.mean", 4.0, -1.0) == "−1 (−25.0 %)"
    assert difference("wait.mean", 0.0, 3.0) == "+3 s"
    assert difference("wait.mean", None, None) == "–"


def test_breakdown_table() -> None:
    table = breakdown_table(breakdown(example(), "user"), rows=1)
    assert table.rows[0] == ["2", "2", "0.0333", "10 s", "10 s", "10 s", "1.30", "1.50"]
    assert table.caption == "and 1 more"
