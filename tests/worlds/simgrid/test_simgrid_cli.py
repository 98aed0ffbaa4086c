"""`bridge simgrid` finds an interpreter, passes everything on, and says what to install if there is none."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from model_process import PATIENCE_S, needs_simgrid, runs
from subprocess_python import run_python

from bridge.base.errors import BridgeError
from bridge.worlds import simgrid

RUN = "import sys; from bridge.cli.simgrid import simgrid; simgrid(sys.argv[1:])"
CASE = Path(__file__).with_name("cases") / "no_sched"


@needs_simgrid
def test_options_output_and_exit_status_are_passed_on(tmp_path: Path) -> None:
    files = ["-p", str(CASE / "platform.xml"), "-w", str(CASE / "workload.json")]
    done = run_python(RUN, *files, "-e", "got", "-q", "--no-sched", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "got_machine_states.csv").read_text() == (CASE / "_machine_states.csv").read_text()
    refused = run_python(RUN, *files, "--enable-redis", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("bridge simgrid: error: --enable-redis: Redis is not supported")


@needs_simgrid
def test_help_is_the_models_own(tmp_path: Path) -> None:
    shown = run_python(RUN, "--help", cwd=tmp_path)
    assert shown.returncode == 0
    assert "--enable-dynamic-jobs" in shown.stdout and "--peer-timeout" in shown.stdout


def test_an_interpreter_without_the_modules_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(simgrid.VARIABLE, "/bin/false")
    simgrid.find_interpreter.cache_clear()
    try:
        with pytest.raises(BridgeError, match="has the module simgrid") as refusal:
            simgrid.find_interpreter()
    finally:
        simgrid.find_interpreter.cache_clear()
    assert "apt install python3-simgrid" in str(refusal.value)
    assert simgrid.VARIABLE in str(refusal.value)


@needs_simgrid
def test_nothing_outlives_the_command(tmp_path: Path) -> None:
    files = ["-p", str(CASE / "platform.xml"), "-w", str(CASE / "workload.json")]
    command = [sys.executable, "-c", RUN, *files, "-e", "got", "-q", "-s", "tcp://127.0.0.1:9"]
    process = subprocess.Popen(command, cwd=tmp_path)
    try:
        patiently((tmp_path / "got_jobs.csv").exists)  # it simulates, and waits for a peer
        below = descendants(process.pid)
    finally:
        process.kill()
        process.wait()
    assert below
    patiently(lambda: not any(map(runs, below)))


def patiently(happened: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    for _ in range(PATIENCE_S * 20):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("it has not happened")


def descendants(pid: int) -> list[int]:
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for word in words for found in (int(word), *descendants(int(word)))]
