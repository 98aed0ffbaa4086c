"""The agent's heart and the gate: who has opened it, and what the agent makes of it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.worlds.slurm import event_file, gate
from bridge.worlds.slurm.event_file import EndedJobs, EventLine
from bridge.worlds.slurm.gate import WATCHDOG, Heartbeat, close_gate, gate_of, lock_gate, opened_by, status
from bridge.worlds.slurm.install import write


@pytest.fixture(name="gate")
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a gate of what `bridge slurm setup` writes; the heart beats and looks at once."""
    monkeypatch.setattr(gate, "_EVERY", 0.0)
    write(tmp_path / "agent", ["batch", "long"], {})
    return tmp_path / "agent" / "batch"


def watch(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\nexit 1\n")  # no slurmctld is waited for
    (tmp_path / "squeue").chmod(0o755)
    words, env = ["sh", directory / "watchdog.sh"], os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(words, check=False, capture_output=True, env=env)


def test_an_agent_that_begins_closes_the_gate(gate: Path) -> None:
    (gate / "gate_open").touch()
    one = Heartbeat(gate)
    one.beat()
    assert status(gate).alive
    assert abs(float((gate / "heartbeat").read_text()) - time.time()) < 5
    assert one.poll_gate() == ""


def test_the_gate_of_an_operator_stays_open(gate: Path) -> None:
    one = Heartbeat(gate)
    (gate / "gate_open").write_text("operator\n")
    assert "an operator has opened the gate" in one.poll_gate()
    assert one.paused
    assert one.poll_gate() == ""
    assert (gate / "gate_open").exists()
    close_gate(gate)
    assert "the queue is taken back" in one.poll_gate()
    assert not one.paused


def test_the_watchdogs_gate_is_closed_again(gate: Path, tmp_path: Path) -> None:
    one = Heartbeat(gate)
    (gate / "heartbeat").write_text(f"{time.time() - 40:.0f}\n")
    watch(gate.parent, tmp_path)
    assert opened_by(gate) == WATCHDOG
    assert "the watchdog had opened the gate" in one.poll_gate()
    assert not one.paused
    assert not (gate / "gate_open").exists()


def test_a_partition_has_one_agent(gate: Path) -> None:
    one = lock_gate(gate)
    with pytest.raises(BridgeError) as told:
        lock_gate(gate)
    assert f"another agent (process {os.getpid()}) decides for partition 'batch'" in str(told.value)
    assert told.value.where == str(gate)
    lock_gate(gate_of(gate.parent, "long")).close()
    one.close()
    lock_gate(gate).close()
    write(gate.parent, ["batch"], {})  # its files may be there


def test_an_agent_that_dies_leaves_the_gate_to_the_next(gate: Path) -> None:
    words = (
        "import os, sys; from pathlib import Path; from bridge.worlds.slurm.gate import lock_gate; "
        "file = lock_gate(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", words, gate], check=False).returncode == -9
    lock_gate(gate).close()


def test_an_agent_needs_a_directory_with_a_gate(tmp_path: Path, gate: Path) -> None:
    for wrong in (tmp_path / "gone", tmp_path):
        with pytest.raises(BridgeError, match="holds no gate"):
            gate_of(wrong, "batch")
    (gate / "agent.lock").mkdir()  # stands for what cannot be written
    with pytest.raises(BridgeError, match="cannot write"):
        lock_gate(gate)


def test_who_lives_does_not_hide_who_is_dead(gate: Path, tmp_path: Path) -> None:
    other = gate.with_name("long")
    Heartbeat(gate).beat()
    (other / "heartbeat").write_text(f"{time.time() - 40:.0f}\n")
    watch(gate.parent, tmp_path)
    assert (opened_by(gate), opened_by(other)) == ("", WATCHDOG)


def test_without_a_gate_there_is_nothing_to_do() -> None:
    one = Heartbeat()
    one.beat()
    assert (one.poll_gate(), one.paused) == ("", False)


def test_ends_that_slurm_may_have_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = EndedJobs()
    ended.add(EventLine(7, "COMPLETED", start=20, submit=10))
    ended.add(EventLine(8, "PENDING", start=20, submit=10))  # it was requeued
    assert not ended.has_ended(7, 10, 20)  # squeue may be older than the line
    monkeypatch.setattr(event_file, "_NOTICED", -1.0)
    assert ended.has_ended(7, 10, 20)
    assert not ended.has_ended(7, 10, 30)  # another life
    assert not ended.has_ended(7, 11, 20)  # another job of this id
    assert not ended.has_ended(8, 10, 20)
