"""Times that no 64 bits of microseconds hold are refused by job and field, wherever they come from."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.errors import BridgeError
from bridge.scheduler.estimators import estimate
from bridge.scheduler.protocol import Policy
from bridge.workload.derive import resample, scale_arrivals
from bridge.workload.formats import read
from bridge.workload.lublin import add_estimates
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import LONGEST, SWF_COLUMNS, TIME_COLUMNS, Workload

#: Just too long, as a whole number and with a fraction, and far too long.
TOO_LONG = (LONGEST + 1, 1e13 + 0.5, 1e300, -(LONGEST + 1))


def workload(**fields: float) -> Workload:
    """Return three jobs, the second with these fields."""
    plain = {"submit": 0, "run": 50, "req_time": 100, "procs": 4, "req_procs": 4}
    rows = [{**dict.fromkeys(SWF_COLUMNS, -1), **plain, "job_id": n} for n in (7, 8, 9)]
    rows[1] |= fields
    return Workload("handmade", pd.DataFrame(rows, columns=list(SWF_COLUMNS)), {"nodes": 16})


def refused(what: str, where: str, act: Callable[[], object]) -> None:
    with pytest.raises(BridgeError) as caught:
        act()
    assert what in caught.value.what
    assert where in caught.value.where


@pytest.mark.parametrize("field", TIME_COLUMNS)
@pytest.mark.parametrize("value", TOO_LONG)
def test_a_table_of_jobs_holds_no_longer_times(field: str, value: float) -> None:
    refused(f"its {field} is ", "handmade, job 8", lambda: workload(**{field: value}))


@pytest.mark.parametrize("value", TOO_LONG)
def test_readers_name_file_job_and_field(tmp_path: Path, value: float) -> None:
    rest = " -1" * 9
    for ending, text in {
        "swf": f"; MaxProcs: 16\n7 0 -1 50 4 -1 -1 4 100{rest}\n8 0 -1 50 4 -1 -1 4 {value}{rest}\n",
        "csv": f"job_id,submit,run,procs,req_time\n7,0,50,4,100\n8,0,50,4,{value}\n",
        "json": '{"nb_res": 16, "jobs": [{"id": "8", "subtime": 0, "res": 4, "profile": "d", '
        f'"walltime": {value}}}], "profiles": {{"d": {{"type": "delay", "delay": 50}}}}}}',
    }.items():
        path = tmp_path / f"log.{ending}"
        path.write_text(text)
        refused("its req_time is ", f"{path}, job 8", lambda path=path: read(path))  # type: ignore[misc]
    path = tmp_path / "log.parquet"
    pd.DataFrame({"job_id": [8], "submit": [0], "run": [50], "procs": [4], "req_time": [value]}).to_parquet(
        path
    )
    refused("its req_time is ", f"{path}, job 8", lambda: read(path))


def test_whole_numbers_beyond_64_bits_are_refused_not_wrapped(tmp_path: Path) -> None:
    for number in ("18446744073709551615", "1e30", "9" * 40):
        path = tmp_path / "log.csv"
        path.write_text(f"job_id,submit,run,procs\n1,0,50,{number}\n")
        with pytest.raises(BridgeError, match="procs does not fit 64 bits"):
            read(path)


def test_scaling_cannot_lead_beyond() -> None:
    apart = workload(submit=10**6)
    refused("its submit is ", "job 8", lambda: scale_arrivals(apart, 1e9))
    refused("its submit is ", "job 8", lambda: scale_arrivals(workload(submit=1e6 + 0.5), 1e9))
    assert scale_arrivals(apart, 1e6).jobs["submit"].tolist() == [0, 10**12, 0]
    refused("its submit is ", "job 1", lambda: resample(apart, 3, seed=1, gap=1e15))
    refused("its req_time is ", "job 8", lambda: add_estimates(workload(run=LONGEST), seed=1))


def test_sums_of_times_cannot_lead_beyond() -> None:
    rule = replace(LOAD_RULES["standard"], kill=False)
    long = 4_500_000_000_000
    refused("with its run of 4.5e+12 s", "job 8", lambda: select(workload(submit=2e11, run=long), rule))
    refused("with its wait of 4.5e+12 s", "job 8", lambda: select(workload(submit=2e11, wait=long), rule))
    assert len(select(workload(submit=1e10, run=long), rule)) == 3


def test_believed_lengths_cannot_lead_beyond() -> None:
    jobs = make_jobs([(0, 50, 100, 4), (10, 50, 9.2e12, 4)], [16])
    refused("believed length of 9.2e+12 s", "job 2", lambda: prepared(jobs, Policy()))
    run = np.array([10**6, 10**17])
    refused("a believed length of ", "noisy(1000)", lambda: estimate("noisy(1000)", run, run))
    for text in ("predicted(p)", "predicted(p, requested)"):
        columns = {"p": np.array([1.0, 1e13])}  # seconds
        refused(
            "of 1e+13 s", text, lambda text=text, columns=columns: estimate(text, run, run, columns=columns)
        )
