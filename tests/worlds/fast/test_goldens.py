"""Schedules that CQSim and Batsim made and numbers that papers published, to the last job and digit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from bridge.judge.sequences import SAMPLERS, sample
from bridge.scheduler import core
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.core import DECLINE
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs, select
from bridge.workload.table import Workload
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.episode import Scenario, prepare, with_preset
from bridge.worlds.fast.replay import replay, replay_sequences

Log = Callable[[str], Workload]

SDSC, HPC2N, CTC = "SDSC-SP2-1998-4.2-cln", "HPC2N-2002-2.2-cln", "CTC-SP2-1996-3.1-cln"
THETA, LUBLIN_1, LUBLIN_2 = "theta_2022", "lublin_256", "lublin_256_new2"


@pytest.mark.parametrize(
    ("file", "name", "first", "order", "backfill"),
    [
        ("sdsc_fcfs_none", SDSC, 10_000, "fcfs", "none"),
        ("sdsc_fcfs_easy", SDSC, 10_000, "fcfs", "easy"),
        ("sdsc_fcfs_cons", SDSC, 10_000, "fcfs", "conservative"),
        ("sdsc_sjf_easy", SDSC, 10_000, "sjf", "easy"),
        ("sdsc_wfp_easy", SDSC, 10_000, "(w/t)**3*n", "easy"),
        ("sdsc_full_fcfs_easy", SDSC, None, "w", "easy"),
        ("theta_fcfs_easy", THETA, 10_000, "fcfs", "easy"),
        ("theta_wfp_cons", THETA, 10_000, "wfp3", "conservative"),
        ("hpc2n_sjf_easy", HPC2N, 10_000, "-t", "easy"),
    ],
)
def test_cqsim_starts_and_ends_every_job_at_the_same_time(
    file: str, name: str, first: int | None, order: str, backfill: str, log: Log, golden: Path
) -> None:
    rule = LOAD_RULES["cqsim"]
    jobs = select(log(name), rule, first=first)
    schedule = replay(prepare(jobs, protocol("cqsim"), Policy(order, backfill), "cqsim", rule))
    ours = pd.DataFrame(
        {"job_id": jobs.id, "submit": jobs.submit, "start": schedule.start, "end": schedule.end}
    ).set_index("job_id")
    theirs = pd.read_csv(golden / "cqsim" / f"{file}.csv.gz").set_index("job_id") * SECOND
    pd.testing.assert_frame_equal(ours.sort_index(), theirs.sort_index(), check_dtype=False, check_exact=True)


@pytest.mark.parametrize(
    ("file", "name", "first"),
    [("sdsc_fcfs_easy_20000", SDSC, 20_000), ("theta_fcfs_easy_10000", THETA, 10_000)],
)
def test_batsim_starts_every_job_at_the_same_time(
    file: str, name: str, first: int, log: Log, golden: Path
) -> None:
    rule = LOAD_RULES["standard"]
    jobs = select(log(name), rule, first=first)
    schedule = replay(prepare(jobs, protocol("standard"), Policy("fcfs", "easy"), "requested", rule))
    ours = pd.Series(schedule.start, jobs.id)
    theirs = pd.read_csv(golden / "batsim-replay" / f"{file}.csv.gz").set_index("job_id").start * SECOND
    pd.testing.assert_series_equal(
        ours.sort_index(), theirs.sort_index(), check_dtype=False, check_names=False, check_exact=True
    )


def sequences_of(p: Scenario, preset: str, seed: int, sequences: int | None) -> tuple[np.ndarray, int]:
    sampler = SAMPLERS[preset]
    return sample(sampler, len(p.jobs), sequences or sampler.sequences, sampler.length, seed), sampler.length


def mean_bsld(
    workload: Workload,
    order: str,
    backfill: str,
    preset: str,
    seed: int,
    *,
    rules: str = "schedgym",
    estimator: str = "requested",
    candidate_order: str = "",
    cancelled: Literal["drop", "keep"] | None = None,
    sequences: int | None = None,
) -> float:
    """Return the mean bounded slowdown over a preset's test sequences, computed here from starts alone."""
    of_preset, rule = with_preset(protocol(rules), preset)
    jobs = select(workload, rule, cancelled=cancelled)
    rules_of = of_preset if rules == "schedgym" else protocol(rules)
    p = prepare(jobs, rules_of, Policy(order, backfill, candidate_order), estimator, rule)
    drawn, length = sequences_of(p, preset, seed, sequences)
    played = zip(drawn, replay_sequences(p, drawn, length), strict=True)
    return float(np.mean([bsld(schedule.start, jobs, first) for first, schedule in played]))


def bsld(start: np.ndarray, jobs: Jobs, first: int) -> float:
    """Return the mean bounded slowdown of a sequence by its starts."""
    part = slice(first, first + len(start))
    wait, run = (start - jobs.submit[part]) / SECOND, jobs.run[part] / SECOND
    return float(np.maximum(1.0, (wait + run) / np.maximum(run, 10.0)).mean())


def printed(value: float, like: str) -> str:
    """Return a value with as many decimals as a published one."""
    return f"{value:.{len(like.partition('.')[2])}f}"


FOUR = ("fcfs", "wfp3", "sjf", "f1")
#: log, backfill, preset, seed, published means for FCFS / WFP3 / SJF / F1. Sources: RLBackfilling (2023)
#: Table 4, and RLScheduler (SC 2020) Tables 5 and 6, with what their public code gives for other seeds.
LUBLIN_TABLES = [
    (LUBLIN_1, "easy", "rlbackfilling", 40, "192.89 138.89 55.62 50.90"),
    (LUBLIN_2, "easy", "rlbackfilling", 17, "163.06 248.02 85.63 129.83"),
    (LUBLIN_1, "easy", "rlbackfilling", 1, "273.31 126.64 71.84 59.86"),
    (LUBLIN_2, "easy", "rlbackfilling", 1, "135.05 246.52 66.62 118.96"),
    (LUBLIN_1, "none", "rlscheduler", 1, "7273.77 19753.53 277.35 258.37"),
    (LUBLIN_1, "easy", "rlscheduler", 1, "235.82 133.87 73.31 75.07"),
    (LUBLIN_2, "none", "rlscheduler", 1, "7842.47 9523.18 787.89 698.34"),
    (LUBLIN_2, "easy", "rlscheduler", 1, "247.61 318.35 91.99 148.25"),
]


@pytest.mark.parametrize(("name", "backfill", "preset", "seed", "published"), LUBLIN_TABLES)
def test_published_means_on_the_lublin_logs(
    name: str, backfill: str, preset: str, seed: int, published: str, log: Log
) -> None:
    for order, value in zip(FOUR, published.split(), strict=True):
        assert (order, printed(mean_bsld(log(name), order, backfill, preset, seed), value)) == (order, value)


#: RLBackfilling (2023) Table 4: FCFS, FCFS with true run times, SJF, SJF with true run times, WFP3, F1.
@pytest.mark.parametrize(
    ("name", "seed", "published"),
    [
        (SDSC, 29, "292.82 169.24 187.61 103.43 228.30 162.33"),
        (HPC2N, 15, "28.16 18.87 11.67 3.73 15.16 10.46"),
    ],
)
def test_published_means_on_real_logs(name: str, seed: int, published: str, log: Log) -> None:
    orders = ("fcfs", "fcfs", "sjf", "sjf", "wfp3", "f1")
    estimators = ("requested", "actual", "requested", "actual", "requested", "requested")
    for order, estimator, value in zip(orders, estimators, published.split(), strict=True):
        measured = mean_bsld(log(name), order, "easy", "rlbackfilling", seed, estimator=estimator)
        assert (order, estimator, printed(measured, value)) == (order, estimator, value)


@pytest.mark.parametrize(
    ("name", "published"), [(LUBLIN_1, "333.1956"), (SDSC, "149.5003"), (CTC, "13.3604"), (HPC2N, "8.2631")]
)
def test_schedinspectors_base_column(name: str, published: str, log: Log) -> None:
    """SchedInspector (HPDC 2022) Table 4, SJF without inspection: 333.19, 149.50, 13.36, 8.26."""
    assert printed(mean_bsld(log(name), "sjf", "none", "schedinspector", 1), published) == published


#: The same sequences under textbook EASY, from an independent implementation: FCFS, SJF, WFP3, F1.
TEXTBOOK = {
    "fcfs": {
        (SDSC, 29): "235.0 112.1 179.3 107.7",
        (HPC2N, 15): "16.0 10.0 11.2 9.8",
        (LUBLIN_1, 40): "245.6 40.1 71.3 31.9",
        (LUBLIN_2, 17): "151.0 64.7 105.1 102.0",
    },
    "sjf": {
        (SDSC, 29): "238.3 102.1 138.1 107.7",
        (HPC2N, 15): "13.6 10.0 12.0 9.8",
        (LUBLIN_1, 40): "122.0 42.2 78.3 32.4",
    },
}


@pytest.mark.parametrize(
    ("candidates", "name", "seed", "expected"),
    [(c, name, seed, text) for c, row in TEXTBOOK.items() for (name, seed), text in row.items()],
)
def test_textbook_easy_on_the_papers_sequences(
    candidates: str, name: str, seed: int, expected: str, log: Log
) -> None:
    for order, value in zip(("fcfs", "sjf", "wfp3", "f1"), expected.split(), strict=True):
        measured = mean_bsld(
            log(name), order, "easy", "rlbackfilling", seed, rules="standard", candidate_order=candidates
        )
        assert (order, printed(measured, value)) == (order, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "cancelled", "expected"),
    [
        ("schedgym", None, "396 321 457 351"),
        ("standard", None, "326 233 221 277"),
        ("schedgym", "drop", "66.4 45.7 69.7 37.4"),
        ("standard", "drop", "65.1 27.3 40.0 28.2"),
    ],
)
def test_two_thousand_sequences_with_and_without_cancelled_jobs(
    rules: str, cancelled: Literal["drop"] | None, expected: str, log: Log
) -> None:
    for order, value in zip(("fcfs", "sjf", "wfp3", "f1"), expected.split(), strict=True):
        measured = mean_bsld(
            log(SDSC),
            order,
            "easy",
            "rlbackfilling",
            12345,
            rules=rules,
            candidate_order="fcfs",
            cancelled=cancelled,
            sequences=2000,
        )
        assert (order, printed(measured, value)) == (order, value)


@pytest.mark.parametrize(
    ("order", "expected"), [("sjf", "109.28"), pytest.param("f1", "117.99", marks=pytest.mark.slow)]
)
def test_an_inspector_that_rejects_whoever_is_blocked(order: str, expected: str, log: Log) -> None:
    rules_of, rule = with_preset(protocol("schedgym"), "schedinspector")
    jobs = select(log(LUBLIN_1), rule)
    p = prepare(jobs, rules_of, Policy(order, "none", agent=frozenset({"inspect"})), "requested", rule)
    drawn, length = sequences_of(p, "schedinspector", 1, None)
    state = scheduler_state.allocate(1, length, 1, window=1, users=len(p.share))
    state = episode.configure(state, p)
    memory = world.allocate(1, length)
    values = []
    for first in drawn:
        episode.load_episode(state, memory, 0, p, int(first), int(first) + length)
        while world.run_until_decision(state, memory, 0, 1 << 60) > 0:
            blocked = state.demand[0, state.scalars.head[0], 0] > state.free[0, 0]
            core.apply_choice(state, 0, DECLINE if blocked else 0)
        values.append(bsld(state.jobs.start[0], jobs, first))
    assert printed(float(np.mean(values)), expected) == expected


def test_a_switch_of_the_protocol_shows_in_the_numbers(log: Log) -> None:
    """The head picked afresh and the reservation refreshed at every event: Lublin-1, FCFS and SJF."""
    rules_of, rule = with_preset(protocol("schedgym"), "rlbackfilling")
    rules_of = replace(rules_of, head_locked=False, reserve_once=False, skip_next=False)
    jobs = select(log(LUBLIN_1), rule)
    means = []
    for order in ("fcfs", "sjf"):
        p = prepare(jobs, rules_of, Policy(order, "easy"), "requested", rule)
        drawn, length = sequences_of(p, "rlbackfilling", 40, None)
        played = zip(drawn, replay_sequences(p, drawn, length), strict=True)
        means.append(f"{np.mean([bsld(s.start, jobs, first) for first, s in played]):.1f}")
    assert means == ["199.8", "37.4"]
