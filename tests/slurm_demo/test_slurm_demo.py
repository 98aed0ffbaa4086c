"""Trials: what slurmctld's log tells, which jobs are submitted, and what came of them as runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.judge.run import read_run, write_run
from bridge.serve.observer import RunTimeModel
from bridge.slurm_demo import cluster, monitor
from bridge.slurm_demo.demo_jobs import DemoJob, history, window
from bridge.slurm_demo.outcome import ControllerLog, DemoResult, apart
from bridge.workload.catalogue import read_log
from bridge.worlds.slurm.client import SlurmUnreachableError

LOG = """\
[2026-11-22T10:00:00.000] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=0 usec=300
[2026-11-22T10:00:00.100] _release_job_rec: release hold on JobId=1 by uid 0
[2026-11-22T10:00:00.130] sched: Allocate JobId=1 NodeList=n[0-2] #CPUs=24 Partition=agent
[2026-11-22T10:00:01.000] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=0 usec=300
[2026-11-22T10:00:01.050] _slurm_rpc_submit_batch_job: JobId=3 InitPrio=0 usec=300
a line of another kind, of JobId=3
[2026-11-22T10:00:02.130] _job_complete: JobId=1 done
[2026-11-22T10:00:02.150] _release_job_rec: release hold on JobId=2 by uid 0
[2026-11-22T10:00:02.200] sched: Allocate JobId=2 NodeList=n[0-3] #CPUs=32 Partition=agent
[2026-11-22T10:00:05.200] _job_complete: JobId=2 done
[2026-11-22T10:00:09.000] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=0 usec=300
[2026-11-22T10:00:09.500] sched: Allocate JobId=1 NodeList=n3 #CPUs=8 Partition=agent
[2026-11-22T10:00:10.500] _job_complete: JobId=1 done
"""
ASKED = {
    "1#1": DemoJob(0.0, 3, 2.0, 60.0),
    "2#1": DemoJob(1.0, 4, 3.0, 60.0),
    "3#1": DemoJob(1.0, 1, 1.0, 60.0),
}


@pytest.fixture(name="log")
def written(tmp_path: Path) -> ControllerLog:
    (tmp_path / "slurmctld.log").write_text(LOG)
    return ControllerLog(tmp_path / "slurmctld.log")


def test_what_slurmctld_writes(log: ControllerLog) -> None:
    assert log.between("release", "allocate", ["1#1", "2#1", "3#1"]).round(3).tolist() == [30, 50]
    assert log.between("submit", "release", ["1#1", "2#1"]).round(3).tolist() == [100, 1150]
    assert log.nodes == {"1#1": ["n[0-2]"], "2#1": ["n[0-3]"], "1#2": ["n3"]}  # the id was given twice
    assert log.life("3#1") is None
    begin, start, end = log.life("1#2") or (0.0, 0.0, 0.0)
    assert (round(start - begin, 3), round(end - start, 3)) == (0.5, 1.0)


def test_the_same_jobs_in_the_fast_world(log: ControllerLog, tmp_path: Path) -> None:
    outcome = DemoResult(log, [*ASKED], ASKED, 4, "live")
    assert outcome.left_out == ["3#1"]
    table = outcome.workload.jobs
    assert table["submit"].tolist() == [0.0, 1.0]
    assert table["run"].round(3).tolist() == [2.0, 3.0]
    live, fast = outcome.live("fcfs+easy"), outcome.fast("fcfs+easy", tmp_path)
    assert live.jobs["starting_time"].round(3).tolist() == [0.13, 2.2]
    assert fast.jobs["starting_time"].round(3).tolist() == [0.0, 2.0]
    assert apart(live, fast).round(3).tolist() == [0.13, 0.2]
    assert live.metrics["wait.mean"] == pytest.approx((0.13 + 1.2) / 2)
    write_run(live, tmp_path / "live")
    assert read_run(tmp_path / "live").config["world"] == "live"


def test_nothing_has_ended(log: ControllerLog) -> None:
    with pytest.raises(BridgeError, match="no job has ended"):
        DemoResult(log, ["3#1"], ASKED, 4, "live")


def test_a_window_of_a_log() -> None:
    bundled = read_log("bundled-128")
    jobs = window(bundled, 3, 3, 64, 100.0)
    assert [job.submit for job in jobs] == pytest.approx([0.0, 4.67, 7.38])
    assert [job.nodes for job in jobs] == [32, 1, 16]
    assert [job.run for job in jobs] == pytest.approx([89.7, 1.35, 237.28])
    assert [job.request for job in jobs] == pytest.approx([1728, 18, 864])
    with pytest.raises(BridgeError, match="has 3,000 jobs"):
        window(bundled, 2999, 2, 64, 1.0)


@pytest.mark.slow
def test_a_short_demo(tmp_path: Path) -> None:
    if cluster.missing() or os.getuid() != 0:
        pytest.skip("Slurm (slurmctld slurmd slurm-client munge) is not installed, or this is not root")
    out, port = tmp_path / "demo", 45000 + (os.getpid() % 500) * 16
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    words = [sys.executable, "-m", "bridge", "slurm", "demo", "--out", str(out), "--port", str(port)]
    words += ["--policy", "sjf+easy", "--jobs", "10", "--nodes", "8", "--factor", "20000", "--json"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["jobs"], found["did not end"]) == (10, 0)
    for name in ("live", "fast", "slurm-backfill"):
        assert read_run(out / name).metrics["jobs.started"] == 10
    assert (out / "demo.html").read_text().count("slurm-backfill") > 0
    assert not list(out.glob("cluster-*"))


def test_earlier_jobs_teach_run_times() -> None:
    jobs = [DemoJob(float(k), 1, 5.0, 100.0) for k in range(300)]
    document = {
        "running": [],
        "waiting": [{"submit": 1000.0, "user": "ann", "request": 100.0, "demand": {"nodes": 1}}],
    }
    RunTimeModel(history(jobs, "ann", 1000.0)).into(document)
    assert np.allclose(document["waiting"][0]["quantiles"], 5.0, rtol=0.01)  # type: ignore[arg-type]


def test_a_look_forgives_a_busy_slurmctld_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [
        SlurmUnreachableError("squeue did not answer within 10 s"),
        BridgeError("quantile forests need scikit-learn"),
    ]
    monkeypatch.setattr(monitor, "warm_up", lambda: None)

    def read() -> None:
        raise errors.pop(0)

    looking = monitor.DemoMonitor(cast(Any, SimpleNamespace(read=read)), total=1)
    looking.refresh()
    assert looking.line() == ""
    with pytest.raises(BridgeError, match="scikit-learn"):
        looking.refresh()
