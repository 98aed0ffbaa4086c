"""What a machine drew: Batsim's own table, budgets kept and exceeded, what the budget does not count."""

from pathlib import Path

import pandas as pd
import pytest
from schedules import schedule

from bridge.base.errors import BridgeError
from bridge.judge.check import check_schedule
from bridge.judge.energy import audit, read_power_trace, recheck, record

CASES = Path(__file__).parents[1] / "worlds" / "simgrid" / "cases"
HEAD = "time,energy,event_type,wattmin,epower\n"


def table(folder: Path, *rows: tuple[float, float, str]) -> Path:
    """Write a table of (time s, energy J, mean power since the last row)."""
    path = folder / "out_consumed_energy.csv"
    path.write_text(HEAD + "".join(f"{t:f},{e:f},p,0.000000,{p}\n" for t, e, p in rows))
    return path


def test_power_per_job_as_batsim_measured_it() -> None:
    """Two nodes at 100 W from 0 to 100, two at 215 W from 10 to 60, idle ones at 60 W."""
    drawn = read_power_trace(CASES / "power_per_job_pstates" / "_consumed_energy.csv")
    assert drawn.start.tolist() == [0, 10, 60] and drawn.end.tolist() == [10, 60, 100]
    assert drawn.power.tolist() == [320, 630, 320]
    assert (drawn.energy, drawn.span) == (47500, 100)
    found = audit(drawn, 630.0)
    assert (found.peak, found.peak_time, found.mean) == (630, 10, 475)
    assert (found.over, found.finding) == (0, "")
    found = audit(drawn, 629.0)
    assert (found.over, found.first_over) == (50, 10)
    assert found.finding == (
        "the machine drew up to 630 W (from 10.000000 s on), its budget is 629 W; "
        "it drew more for 50.000000 s, first from 10.000000 s on"
    )


def test_only_the_nodes_of_jobs() -> None:
    """Less 60 W for each node without a job: 200 W, 630 W, 200 W."""
    drawn = read_power_trace(CASES / "power_per_job_pstates" / "_consumed_energy.csv")
    jobs = schedule([("1", 0, 0, 100, 2), ("2", 10, 10, 50, 2)])
    found = audit(drawn, 630.0, uncounted=60.0, nodes=4, jobs=jobs)
    assert (found.peak, found.mean) == (630, (200 * 50 + 630 * 50) / 100)
    assert found.energy == 47500  # all that the compute hosts consumed


def test_storage_does_not_count(tmp_path: Path) -> None:
    drawn = read_power_trace(table(tmp_path, (0, 0, "NA"), (10, 5000, "500.0"), (20, 12000, "700.0")))
    found = audit(drawn, 450.0, storage=250.0)
    assert (found.peak, found.peak_time, found.mean, found.energy) == (450, 10, 350, 7000)
    assert found.first_over is None


def test_rounding_is_no_finding_but_a_watt_is(tmp_path: Path) -> None:
    """After half a year at 500 kW, a millisecond is known to 28 W, and a second to 28 mW."""
    late = 16_000_000.0
    energy = late * 500_000
    rows = [(0.0, 0.0, "NA"), (late, energy, "500000.0"), (late + 0.001, energy + 500.02, "500020.0")]
    assert audit(read_power_trace(table(tmp_path, *rows)), 500_000.0).finding == ""
    rows.append((late + 1.001, energy + 500.02 + 500_001, "500001.0"))
    found = audit(read_power_trace(table(tmp_path, *rows)), 500_000.0)
    assert found.first_over == pytest.approx(late + 0.001)
    assert found.over == pytest.approx(1.0)


def test_what_lasts_less_than_the_table_tells_is_left_out(tmp_path: Path) -> None:
    drawn = read_power_trace(table(tmp_path, (5, 1000, "200.0"), (5, 1000, "9000000.0"), (5, 1000, "NA")))
    assert drawn.power.tolist() == [200]  # from time 0 on
    nothing = audit(read_power_trace(table(tmp_path)), 5.0)
    assert (nothing.peak, nothing.energy, nothing.finding) == (None, 0, "")


def test_files_that_are_no_table(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="cannot be read"):
        read_power_trace(tmp_path / "none.csv")
    for text in ("", "a,b\n1,2\n", HEAD + "0,x,p,0,1\n"):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(BridgeError, match="no table of consumed energy"):
            read_power_trace(tmp_path / "t.csv")


def test_a_run_is_audited_again(tmp_path: Path) -> None:
    jobs = schedule([("1", 0, 0, 100, 2)])
    path = table(tmp_path, (0, 0, "NA"), (100, 50_000, "500.0"))
    found = audit(read_power_trace(path), 400.0)
    config = {"detailed": {"power": record(found, path.name, storage=0.0, uncounted=0.0)}}
    assert recheck(tmp_path, config, jobs, 4) == found
    assert recheck(tmp_path, {"detailed": {}}, jobs, 4) is None
    assert recheck(tmp_path, {}, jobs, 4) is None
    for damage in ({"storage": "x"}, {"budget": []}):
        broken = {"detailed": {"power": config["detailed"]["power"] | damage}}
        with pytest.raises(BridgeError, match="damaged"):
            recheck(tmp_path, broken, jobs, 4)
    outside = {"detailed": {"power": config["detailed"]["power"] | {"table": "../x.csv"}}}
    with pytest.raises(BridgeError, match="outside its folder"):
        recheck(tmp_path, outside, jobs, 4)


def test_the_check_of_a_schedule_has_it_as_a_violation(tmp_path: Path) -> None:
    jobs: pd.DataFrame = schedule([("1", 0, 0, 100, 2)])
    drawn = read_power_trace(table(tmp_path, (0, 0, "NA"), (100, 50_000, "500.0")))
    assert check_schedule(jobs, {"nodes": 4}, power=audit(drawn, 500.0)).ok
    verdict = check_schedule(jobs, {"nodes": 4}, power=audit(drawn, 499.0))
    assert verdict.kinds == {"power-budget": 1} and not verdict.ok
    assert verdict.first is not None and verdict.first.text.startswith("the machine drew up to 500 W")
    assert check_schedule(jobs, {"nodes": 4}, power=audit(drawn, 499.0), ignore=["power-budget"]).ok
