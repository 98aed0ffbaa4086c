"""Small workloads and platform programs for the tests of experiments."""

import os
import stat
import sys
from pathlib import Path

import pytest
from simgrid_available import needs_simgrid as needs_simgrid

from bridge.experiment.prepare import PreparedExperiment
from bridge.experiment.run import run_detailed, run_fast
from bridge.judge.compare import compare_runs
from bridge.judge.run import Run

PLATFORMS = Path(__file__).parents[2] / "platforms"

#: (submit, nodes, run, request) of ten jobs on 16 nodes; some wait, one is backfilled, one reaches its end.
JOBS = [
    (0, 10, 100, 120),
    (5, 4, 300, 300),
    (6, 12, 50, 100),
    (7, 2, 30, 60),
    (8, 2, 200, 200),
    (9, 16, 10, 20),
    (400, 1, 5, 50),
    (400, 8, 70, 90),
    (401, 8, 60, 90),
    (402, 9, 20, 90),
]


def write_log(path: Path, jobs: list[tuple[int, int, int, int]] = JOBS, nodes: int = 16) -> Path:
    lines = [f"; MaxProcs: {nodes}"]
    for number, (submit, procs, run, request) in enumerate(jobs, 1):
        lines.append(
            f"{number} {submit} -1 {run} {procs} -1 -1 {procs} {request} -1 1 {number % 3} -1 -1 1 -1 -1 -1"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def simulated(task: PreparedExperiment, folder: Path) -> Run:
    """Return the detailed run of a task, which must not fail; its files go to a folder."""
    folder.mkdir(exist_ok=True)
    made, how = run_detailed(task, folder)
    assert how.fault is None and how.exit_status == 0
    return made


def in_both_worlds(task: PreparedExperiment, folder: Path) -> tuple[Run, Run]:
    """Return a task's fast and detailed run; no job may start at another time."""
    made, fast = simulated(task, folder), run_fast(task)
    difference = compare_runs([fast, made]).jobs[0]
    assert (difference.common, difference.differing_starts) == (len(task.prepared.jobs), 0)
    return fast, made


def write_program(path: Path, text: str, shebang: str = "#!/bin/sh") -> Path:
    path.write_text(f"{shebang}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def write_peer(path: Path, body: str) -> Path:
    """Write a program with Batsim's command line that connects; `body` has `ask(events)`, `sys` and `os`."""
    head = """
import json, os, signal, sys, time
import zmq
words = sys.argv[1:]
if "--version" in words:
    print("v0"); sys.exit(0)
socket = zmq.Context().socket(zmq.REQ)
socket.connect(words[words.index("-s") + 1])
def ask(*events, now=0.0):
    told = [{"timestamp": now, "type": kind, "data": data} for kind, data in events]
    socket.send(json.dumps({"now": now, "events": told}).encode())
    return json.loads(socket.recv())["events"]
def host(k):
    return {"id": k, "name": f"n{k:02}", "state": "idle", "properties": {"role": ""}, "zone_properties": {}}
CONFIG = {"redis-enabled": False, "redis-hostname": "", "redis-port": 0, "redis-prefix": "",
    "sched-config": "", "profiles-forwarded-on-submission": False, "dynamic-jobs-enabled": False,
    "forward-unknown-events": False,
    "dynamic-jobs-acknowledged": False, "profile-reuse-enabled": False}
BEGIN = ("SIMULATION_BEGINS", {"nb_resources": 16, "nb_compute_resources": 16, "nb_storage_resources": 0,
    "allow_compute_sharing": False, "allow_storage_sharing": True, "config": CONFIG,
    "compute_resources": [host(k) for k in range(16)], "storage_resources": [],
    "workloads": {"w0": "w"}, "profiles": {"w0": {"d": {"type": "delay", "delay": 100}}}})
def submit(name, res=10):
    job = {"id": f"w0!{name}", "subtime": 0, "res": res, "walltime": 120, "profile": "d"}
    return ("JOB_SUBMITTED", {"job_id": f"w0!{name}", "job": job})
open("pid", "w").write(str(os.getpid()))
"""
    return write_program(path, head + body, f"#!{sys.executable}")


def on_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a folder before everything else on PATH."""
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
