"""`cqsim` and `schedgym` from records to starts, against simulators that know nothing of bridge."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from log_simulators import SCHEDGYM_SCORES, Record, simulate_records

from bridge.base.errors import BridgeError
from bridge.scheduler.state import SECOND
from bridge.workload.rules import PRESETS
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig

SDSC = "SDSC-SP2-1998-4.2-cln"

Case = dict[str, str]

CQSIM_ORDERS = ("w", "-t", "(w/t)**3*n", "n", "-t*n", "0", "w/z - t/l", "w*w*w*n", "s % 3", "-(w//4)")
CQSIM_CASES: list[Case] = [
    {"protocol": "cqsim", "order": order, "backfill": backfill, "estimator": estimator}
    for order in CQSIM_ORDERS
    for backfill in ("none", "easy", "conservative")
    for estimator in ("cqsim", "requested", "actual")
]
SCHEDGYM_CASES: list[Case] = [
    {
        "protocol": "schedgym",
        "order": order,
        "backfill": backfill,
        "estimator": estimator,
        "preset": preset,
    }
    for preset in PRESETS
    for order in SCHEDGYM_SCORES
    if preset != "schedinspector" or order not in ("wfp3", "unicep")  # they divide by lengths of 0 s
    for backfill in ("none", "easy")
    for estimator in ("requested", "actual")
]
CASES = {"cqsim": CQSIM_CASES, "schedgym": SCHEDGYM_CASES}


@dataclass(frozen=True)
class Log:
    records: list[Record]
    capacity: tuple[int, ...]

    def workload(self) -> Workload:
        table = pd.DataFrame({name: np.full(len(self.records), -1) for name in SWF_COLUMNS})
        for name in ("job_id", "submit", "run", "procs", "req_procs", "req_time"):
            table[name] = [getattr(record, name) for record in self.records]
        names = ("nodes", "burst_buffer", "power")[: len(self.capacity)]
        for r, name in enumerate(names[1:]):
            table[name] = [record.others[r] for record in self.records]
        return Workload("random", table, dict(zip(names, self.capacity, strict=True)))


def random_log(rng: random.Random) -> Log:
    """Return a log of up to 40 records: ties, overruns, runs of 0 s, whole machines, fields that are missing.

    Only a few of the logs have each of these, so that others come through.
    """
    capacity = (rng.choice((1, 2, 3, 5, 8, 12)), *rng.choice(((), (), (), (3,), (2, 6))))
    n = rng.randint(1, 40)
    span, longest = rng.choice((0, 3, 10, 40)), rng.choice((1, 4, 20))
    origin = rng.choice((0, 0, 1, 1000))
    is_sorted, has_gaps, has_overruns = rng.random() < 0.8, rng.random() < 0.3, rng.random() < 0.4
    submits = [origin + rng.randint(0, span) for _ in range(n)]
    ids = list(range(1, n + 1))
    if is_sorted:
        submits.sort()
    elif rng.random() < 0.5:
        rng.shuffle(ids)

    def wide(limit: int) -> int:
        return limit if rng.random() < 0.15 else rng.randint(1, rng.choice((1, max(limit // 2, 1), limit)))

    def gap(value: int, *gaps: int) -> int:
        return rng.choice(gaps) if has_gaps and rng.random() < 0.15 else value

    records = []
    for job_id, submit in zip(ids, submits, strict=True):
        run = rng.randint(1, longest)
        request = run + rng.choice((0, 0, 1, rng.randint(0, longest), -rng.randint(0, run) * has_overruns))
        nodes = wide(capacity[0])
        records.append(
            Record(
                job_id=gap(job_id, job_id, 1000 + job_id),
                submit=gap(submit, submit, submit, -1),
                run=gap(run, 0, -1),
                procs=gap(nodes, -1, 0, wide(capacity[0]), capacity[0] + 1),
                req_procs=gap(nodes, -1, 0, wide(capacity[0]), capacity[0] + 1),
                req_time=gap(request, -1, 0),
                others=tuple(rng.choice((0, wide(limit))) for limit in capacity[1:]),
            )
        )
    return Log(records, capacity)


def replayed(workload: Workload, case: Case, first: int | None = None) -> list[tuple[int, int, int]]:
    """Return (job id, start, end) of the jobs that bridge keeps, by job id; [] if none is left."""
    setup = SchedulerConfig(**case, first=first)  # type: ignore[arg-type]
    try:
        jobs = setup.select(workload)
    except BridgeError as error:
        assert "no job is left" in error.what
        return []
    schedule = replay(setup.build_scenario(jobs))
    assert not (schedule.start % SECOND).any()
    times = ((schedule.start // SECOND).tolist(), (schedule.end // SECOND).tolist())
    return sorted(zip(map(int, jobs.id), *times, strict=True))


def differences(protocol: str, seeds: range) -> Iterator[tuple[int, Case]]:
    cases = CASES[protocol]
    for seed in seeds:
        rng = random.Random(f"{protocol} {seed}")
        log, case = random_log(rng), cases[(seed * 7 + rng.randrange(len(cases))) % len(cases)]
        if replayed(log.workload(), case) != simulate_records(
            records=log.records, capacity=log.capacity, **case
        ):
            yield seed, case


@pytest.mark.parametrize("protocol", CASES)
def test_random_logs(protocol: str) -> None:
    assert list(differences(protocol, range(200))) == []


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
@pytest.mark.parametrize("protocol", CASES)
def test_five_thousand_random_logs(protocol: str, chunk: int) -> None:
    assert list(differences(protocol, range(1000 + 500 * chunk, 1500 + 500 * chunk))) == []


def test_random_logs_hold_what_is_hard() -> None:
    logs = [random_log(random.Random(f"cqsim {seed}")) for seed in range(300)]
    records = [record for log in logs for record in log.records]
    assert sum(record.run > record.req_time > 0 for record in records) > 100
    assert sum(record.run == 0 for record in records) > 30
    assert sum(record.req_procs == log.capacity[0] for log in logs for record in log.records) > 500
    assert sum(len({r.submit for r in log.records}) < len(log.records) for log in logs) > 200
    assert sum(len(log.capacity) > 1 for log in logs) > 50


@pytest.mark.parametrize(
    ("file", "name", "order", "backfill"),
    [
        ("sdsc_wfp_easy", SDSC, "(w/t)**3*n", "easy"),
        ("hpc2n_sjf_easy", "HPC2N-2002-2.2-cln", "-t", "easy"),
        pytest.param("sdsc_fcfs_none", SDSC, "w", "none", marks=pytest.mark.slow),
        pytest.param("sdsc_fcfs_easy", SDSC, "w", "easy", marks=pytest.mark.slow),
        pytest.param("sdsc_fcfs_cons", SDSC, "w", "conservative", marks=pytest.mark.slow),
        pytest.param("theta_fcfs_easy", "theta_2022", "w", "easy", marks=pytest.mark.slow),
    ],
)
def test_the_simulator_of_cqsim_starts_every_job_when_cqsim_does(
    file: str, name: str, order: str, backfill: str, log: Callable[[str], Workload], golden: Path
) -> None:
    workload = log(name)
    expected = pd.read_csv(golden / "cqsim" / f"{file}.csv.gz")
    fields = ("job_id", "submit", "run", "procs", "req_procs", "req_time")
    rows = zip(*(workload.jobs[field].astype(int).tolist() for field in fields), strict=True)
    last = expected.job_id.max()
    records = [Record(*row) for row in rows if row[0] <= last]
    times = simulate_records("cqsim", records, (workload.capacity["nodes"],), order, backfill, "cqsim")
    expected = expected.sort_values("job_id")
    assert times == list(zip(expected.job_id, expected.start, expected.end, strict=True))
