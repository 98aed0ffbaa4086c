"""MRSch's S1–S10: Table III to the letter, hand-computed caps and demands, and what holds for any log."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_strategies import small

from bridge.base.errors import BridgeError
from bridge.wire.wattages import Accounting
from bridge.workload.derive import add_note
from bridge.workload.formats import read, write
from bridge.workload.mrsch import (
    GB,
    SETTINGS,
    TB,
    MrschMachine,
    Sizes,
    _heavy_tailed,
    _ranks,
    generate_mrsch,
)
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.swf import read_swf
from bridge.workload.table import Workload


def log(*sizes: int, nodes: int = 4360) -> Workload:
    """Return one job of an hour per size, submitted 10 s apart."""
    rows = [(n + 1, 10 * n, 3600, size, 7200) for n, size in enumerate(sizes)]
    return small(*rows, nodes=nodes)


def test_the_settings_are_the_papers() -> None:
    table = [(s.name, s.share, s.least, s.most, s.halved, s.power, s.arrivals) for s in SETTINGS.values()]
    assert table == [
        ("S1", 0.50, 5, 285, False, False, 0.8),
        ("S2", 0.75, 5, 285, False, False, 0.8),
        ("S3", 0.50, 20, 285, False, False, 0.8),
        ("S4", 0.75, 20, 285, False, False, 0.8),
        ("S5", 0.75, 20, 285, True, False, 0.8),
        ("S6", 0.50, 5, 285, False, True, 1.5),
        ("S7", 0.75, 5, 285, False, True, 1.5),
        ("S8", 0.50, 20, 285, False, True, 1.5),
        ("S9", 0.75, 20, 285, False, True, 1.5),
        ("S10", 0.75, 20, 285, True, True, 0.8),
        ("C1", 0.50, 5, 285, False, False, 1.4),
        ("C2", 0.75, 5, 285, False, False, 1.4),
        ("C3", 0.50, 20, 285, False, False, 1.4),
        ("C4", 0.75, 20, 285, False, False, 1.4),
        ("C5", 0.75, 20, 285, True, False, 1.3),
    ]
    stand_in = {name: (s.sizes, s.burst_buffer) for name, s in SETTINGS.items()}
    assert {stand_in[f"S{n}"] for n in range(1, 11)} == {("uniform", 0)}
    assert {stand_in[f"C{n}"] for n in range(1, 6)} == {("heavy-tailed", 510 * TB)}


@pytest.mark.parametrize(
    ("machine", "highest"),
    [
        # (500000 − 60·312)/4048 = 118.9; (500000 − 0)/4360 = 114.7; (500000 − 60·4232)/128 = 1922.5
        (MrschMachine(), [118, 114, 1922, 238_460]),
        (MrschMachine(step=5), [115, 110, 1920, 238_460]),
        # 500000/4048 = 123.5; 500000/4360 = 114.7; 500000/128 = 3906.25
        (MrschMachine(accounting="jobs"), [123, 114, 3906, 500_000]),
        # 10000/4048 = 2.5 W above idle, below the least of 100 W, and no whole step of 5 W
        (MrschMachine(budget=271_600), [62, 62, 138, 10_060]),
        (MrschMachine(budget=271_600, step=5), [60, 60, 135, 10_060]),
    ],
)
def test_the_highest_power_at_which_a_job_can_run_alone(machine: MrschMachine, highest: list[int]) -> None:
    assert machine.feasible(np.array([4048, 4360, 128, 1]), 4360).tolist() == highest


def test_power_is_counted_above_idle_or_in_full() -> None:
    base = log(128, 256, 4048, 512)
    above = generate_mrsch(base, "S6", 1)
    assert above.capacity == {"nodes": 4360, "burst_buffer": 1260 * TB, "power": 238_400}
    watts, sizes = above.jobs["node_power"], above.jobs["procs"]
    assert above.jobs["power"].tolist() == (sizes * (watts - 60)).tolist()
    full = generate_mrsch(base, "S6", 1, machine=MrschMachine(accounting="jobs"))
    assert full.capacity["power"] == 500_000
    assert (above.header["IdlePower"], full.header["IdlePower"]) == ("60", "0")
    assert "IdlePower" not in generate_mrsch(base, "S1", 1).header
    assert full.jobs["power"].tolist() == (sizes * full.jobs["node_power"]).tolist()


def test_capped_jobs_are_counted_in_the_header() -> None:
    made = generate_mrsch(log(*[4360] * 400), "S6", 7)
    assert made.jobs["node_power"].max() == 114
    drawn = generate_mrsch(log(*[1] * 400), "S6", 7).jobs["node_power"]
    capped = int((drawn > 114).sum())
    assert made.jobs["node_power"].tolist() == drawn.clip(upper=114).tolist()
    assert made.header["Note"].splitlines() == [
        "time between arrivals multiplied by 1.5",
        "S6 of MRSch on small, seed 7: 50% of jobs with 5-285 TB of burst buffer (uniform), "
        f"100-215 W per node in steps of 1 W, counted above 60 W, {capped} jobs capped to fit 500000 W alone",
    ]


def test_arrivals_are_scaled_as_the_setting_says_or_as_told() -> None:
    base = log(1, 1, 1, 1)
    assert generate_mrsch(base, "S1", 0).jobs["submit"].tolist() == [0, 8, 16, 24]
    assert generate_mrsch(base, "S9", 0).jobs["submit"].tolist() == [0, 15, 30, 45]
    assert generate_mrsch(base, "S9", 0, arrivals=0.5).jobs["submit"].tolist() == [0, 5, 10, 15]
    assert generate_mrsch(base, "S9", 0, arrivals=1).jobs["submit"].tolist() == [0, 10, 20, 30]


def test_half_of_the_nodes_is_rounded_up_and_unknown_stays_unknown() -> None:
    base = log(1, 2, 5, 4048)
    base.jobs["procs"] = [-1, 0, 6, 7]
    made = generate_mrsch(base, "S5", 3)
    assert made.jobs["req_procs"].tolist() == [1, 1, 3, 2024]
    assert made.jobs["procs"].tolist() == [-1, 0, 3, 4]
    halved = generate_mrsch(log(1, 2, 5, 4048), "S10", 3).jobs
    assert halved["power"].tolist() == (np.array([1, 1, 3, 2024]) * (halved["node_power"] - 60)).tolist()


def test_settings_compare_job_by_job() -> None:
    base = log(*range(1, 201))
    made = {name: generate_mrsch(base, name, 5).jobs for name in SETTINGS}
    asks = {name: set(np.flatnonzero(jobs["burst_buffer"])) for name, jobs in made.items()}
    assert asks["S1"] < asks["S2"]
    assert asks["S1"] == asks["S3"] == asks["S6"] == asks["S8"]
    assert asks["S2"] == asks["S4"] == asks["S5"] == asks["S7"] == asks["S9"] == asks["S10"]
    both = made["S1"]["burst_buffer"] > 0
    for one, other in (("S1", "S2"), ("S3", "S4"), ("S4", "S5"), ("S1", "S6"), ("S4", "S9"), ("S5", "S10")):
        assert (made[one]["burst_buffer"][both] == made[other]["burst_buffer"][both]).all()
    assert asks["S1"] == asks["C1"] == asks["C3"]
    assert asks["S2"] == asks["C2"] == asks["C4"] == asks["C5"]
    assert made["C4"]["burst_buffer"].tolist() == made["C5"]["burst_buffer"].tolist()
    assert (made["C3"]["burst_buffer"][both] == made["C4"]["burst_buffer"][both]).all()
    assert made["S6"]["node_power"].tolist() == made["S9"]["node_power"].tolist()


def test_heavy_tailed_sizes_have_the_ranks_of_their_jobs() -> None:
    setting = SETTINGS["C3"]
    # ends of the range, and the median: (2 / (1/√20 + 1/√285))² TB
    assert _heavy_tailed(setting, np.array([0.0, 1.0])) == pytest.approx([20.0, 285.0])
    assert _heavy_tailed(setting, np.array([0.5])) == pytest.approx([(2 / (20**-0.5 + 285**-0.5)) ** 2])
    places = (np.arange(1_000_000) + 0.5) / 1_000_000
    assert _heavy_tailed(setting, places).mean() == pytest.approx((20 * 285) ** 0.5, rel=1e-4)
    assert _ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [0.625, 0.125, 0.875, 0.375]


def test_jobs_that_run_longer_rather_have_larger_requests() -> None:
    base = log(*[1] * 2_000)
    base.jobs["run"] = np.random.default_rng(3).permutation(2_000) + 1
    made = generate_mrsch(base, "C2", 2).jobs
    assert made["burst_buffer"].gt(0).sum() == 1_500
    asked = made[made["burst_buffer"] > 0]
    ranks = asked[["run", "burst_buffer"]].rank().corr().iloc[0, 1]
    assert ranks == pytest.approx(0.7071, abs=0.03)  # of the sum of two uniform numbers and one of them
    plain = generate_mrsch(base, "S2", 2).jobs
    assert abs(plain[plain["burst_buffer"] > 0][["run", "burst_buffer"]].rank().corr().iloc[0, 1]) < 0.06


@pytest.mark.parametrize(("sizes", "low"), [("uniform", 5), ("uniform", 20), ("log-uniform", 20)])
def test_sizes_have_the_distribution_asked_for(sizes: Sizes, low: int) -> None:
    from scipy.stats import kstest

    name = {5: "S2", 20: "S4"}[low]
    drawn = generate_mrsch(log(*[1] * 20_000), name, 2, sizes=sizes).jobs["burst_buffer"] / TB
    asked = drawn[drawn > 0].to_numpy()
    assert len(asked) == 15_000
    place = {"uniform": (asked - low) / (285 - low), "log-uniform": np.log(asked / low) / np.log(285 / low)}
    assert kstest(place[sizes], "uniform").pvalue > 0.01


def test_power_per_node_is_uniform_over_its_steps() -> None:
    watts = generate_mrsch(log(*[1] * 24_000), "S6", 4, machine=MrschMachine(step=5)).jobs["node_power"]
    counts = watts.value_counts()
    assert sorted(counts.index) == list(range(100, 216, 5))
    assert counts.between(1000 - 150, 1000 + 150).all()  # 24 values, sd 31


@given(
    st.lists(st.integers(-1, 4360), min_size=1, max_size=40),
    st.sampled_from(list(SETTINGS)),
    st.integers(0, 2**40),
    st.sampled_from(["uniform", "log-uniform", "heavy-tailed"]),
    st.sampled_from(["above-idle", "jobs"]),
    st.sampled_from([1, 5, 23]),
)
def test_of_any_log(
    procs: list[int], name: str, seed: int, sizes: Sizes, accounting: Accounting, step: int
) -> None:
    base = log(*procs)
    before = base.jobs.copy()
    machine = MrschMachine(accounting=accounting, step=step)
    made = generate_mrsch(base, name, seed, sizes=sizes, machine=machine)
    again = generate_mrsch(base, name, seed, sizes=sizes, machine=machine)
    pd.testing.assert_frame_equal(made.jobs, again.jobs)
    pd.testing.assert_frame_equal(base.jobs, before)
    assert (base.capacity, base.header) == ({"nodes": 4360}, {})

    setting, jobs = SETTINGS[name], made.jobs
    asked = jobs["burst_buffer"][jobs["burst_buffer"] > 0]
    assert len(asked) == int(setting.share * len(procs) + 0.5)
    assert asked.between(setting.least * TB, setting.most * TB).all()
    assert (asked % GB == 0).all()
    if setting.power:
        assert (jobs["power"] >= 0).all()
        assert (jobs["power"] <= made.capacity["power"]).all()
        assert ((jobs["node_power"] - 100) % step == 0).all()
        assert (jobs["node_power"] <= 215).all()
    else:
        assert "power" not in jobs.columns
    touched = ["submit", *(["procs", "req_procs"] if setting.halved else [])]
    kept = [name for name in base.jobs.columns if name not in touched]
    pd.testing.assert_frame_equal(jobs[kept], base.jobs[kept])


@pytest.mark.parametrize("ending", ["swf", "swf.gz", "csv", "csv.gz", "parquet", "json"])
def test_every_format_keeps_the_demands(tmp_path: Path, ending: str) -> None:
    made = generate_mrsch(log(128, 256, 4048, 512, 1), "S9", 1)
    write(made, tmp_path / f"s9.{ending}")
    again = read(tmp_path / f"s9.{ending}")
    pd.testing.assert_frame_equal(again.jobs, made.jobs)
    assert list(again.capacity.items()) == list(made.capacity.items())
    assert again.header["Note"] == made.header["Note"]
    jobs = select(again, LOAD_RULES["standard"])
    assert jobs.resources == ("nodes", "burst_buffer", "power")
    assert jobs.demand.tolist() == made.jobs[["req_procs", "burst_buffer", "power"]].to_numpy().tolist()
    assert jobs.tally == {}
    assert jobs.idle_power == 60


def with_column(name: str) -> Workload:
    made = log(1)
    made.jobs[name] = 0
    return made


@pytest.mark.parametrize(
    ("base", "setting", "machine", "what"),
    [
        (log(1), "S11", MrschMachine(), "unknown setting 'S11'"),
        (log(1, nodes=0), "S1", MrschMachine(), "does not say how many processors"),
        (with_column("burst_buffer"), "S1", MrschMachine(), "already has 'burst_buffer'"),
        (with_column("power"), "S6", MrschMachine(), "already has 'power'"),
        (log(1), "S6", MrschMachine(step=7), "steps of 7 W do not lead from 100 W to 215 W"),
        (log(1), "S6", MrschMachine(step=0), "steps of 0 W"),
        (log(1), "S6", MrschMachine(budget=261_600), "4360 idle nodes at 60 W leave nothing of 261600 W"),
    ],
)
def test_what_cannot_be_is_refused(base: Workload, setting: str, machine: MrschMachine, what: str) -> None:
    with pytest.raises(BridgeError, match=what) as caught:
        generate_mrsch(base, setting, 0, machine=machine)
    assert caught.value.remedy


def test_a_factor_of_zero_is_refused() -> None:
    with pytest.raises(BridgeError, match="is not positive"):
        generate_mrsch(log(1), "S1", 0, arrivals=0)


def test_notes_of_the_log_stay() -> None:
    base = log(1, 1)
    base.header.update(add_note({}, "by hand"))
    assert generate_mrsch(base, "S1", 0).header["Note"].splitlines()[0] == "by hand"


def test_theta(traces: Path) -> None:
    made = generate_mrsch(read_swf(traces / "theta_2022.swf.gz"), "S9", 1)
    jobs = select(made, LOAD_RULES["standard"])
    assert len(jobs) == 23_911  # nobody is too large, for any resource
    assert int((jobs.demand[:, 1] > 0).sum()) == 17_933
    assert jobs.capacity.tolist() == [4360, 1260 * TB, 238_400]
    largest = int(np.argmax(jobs.demand[:, 0]))
    assert jobs.demand[largest, 0] == 4048
    assert jobs.extra["node_power"][largest] <= 118
