"""Signals end the work once; what was made by then is written; nothing is left behind by what is killed."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from subprocess_python import run_python

from bridge.base.interrupts import ends_anyway, hold_interrupts, interrupts_once, raise_if_interrupted
from bridge.experiment.program import simulation_folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_work_the_second_nothing(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with interrupts_once() as signals:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGINT)
        assert signals.status == 128 + number
        with pytest.raises(KeyboardInterrupt):  # who insists, ends it
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before


def test_results_are_written_undisturbed() -> None:
    with interrupts_once() as signals:
        with interrupts_once() as same:
            assert same is signals
            hold_interrupts()
        signal.raise_signal(signal.SIGINT)
        assert signals.status == 130


def test_an_interrupt_that_python_lost_is_raised_at_the_next_step() -> None:
    with interrupts_once():
        raise_if_interrupted()
        with contextlib.suppress(KeyboardInterrupt):  # as a destructor does
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    raise_if_interrupted()  # that work is over


#: Machine code that runs for minutes, and lets other threads run; a signal comes in it.
IN_MACHINE_CODE = """
import hashlib, os, signal, sys, threading, time
from bridge.base import interrupts
interrupts._GRACE = 0.1
with interrupts.interrupts_once(), interrupts.ends_anyway(lambda: print("last words", flush=True)) as switch:
    switch(sys.argv[1] == "on")
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", int(sys.argv[2]))
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("words", "out"), [(("on", 10**9), "last words\n"), (("off", 10**6), "")], ids=["on", "off"]
)
def test_a_signal_in_machine_code_ends_what_can_be_killed(
    words: tuple[str, int], out: str, tmp_path: Path
) -> None:
    """Where it can be killed, it does not wait for the machine code; elsewhere it does, and ends after it."""
    script = tmp_path / "long.py"
    script.write_text(IN_MACHINE_CODE)
    done = subprocess.run(
        [sys.executable, script, *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == out
    assert done.returncode == (130 if out else -signal.SIGINT)
    assert ("KeyboardInterrupt" in done.stderr) == (words[0] == "off")


def test_what_watches_machine_code_leaves_nothing_behind() -> None:
    threads = threading.active_count()
    with ends_anyway(lambda: None) as switch:
        switch(True)
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_that_is_ignored_outside_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts_once() as signals:
            signal.raise_signal(signal.SIGHUP)
            assert signals.status == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


#: Begins the command line, and gets a signal while a module of it is imported.
AT_START = """
import os, signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
sys.argv = ["bridge", "replay", "bundled-128"]
from bridge.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["bridge.cli.main", "click", "bridge.cli.replay", "numba", "pandas"])
def test_ctrl_c_at_start_up_is_one_line(module: str) -> None:
    code = AT_START.replace("sys.argv[1]", repr(module))
    done = run_python(code)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "bridge: interrupted"


AT_THE_END = """
import atexit, os, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["bridge", "--version"]
from bridge.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_after_the_end_changes_nothing() -> None:
    done = run_python(AT_THE_END)
    assert (done.returncode, done.stderr) == (0, "")


KILLED = """
import os, signal
from bridge.experiment.program import simulation_folder
with simulation_folder() as folder:
    print(folder, flush=True)
    (folder / "file").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_that_was_left_by_a_killed_process_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = run_python(KILLED, env={**os.environ, "TMPDIR": str(tmp_path)})
    left = Path(killed.stdout.strip()).parent
    assert killed.returncode == -signal.SIGKILL and left.parent == tmp_path and left.is_dir()
    with simulation_folder() as ours:
        assert left.exists()  # too young: its process may be about to lock it
        for lock in (left / "lock", ours.parent / "lock"):
            os.utime(lock, (time.time() - 3600,) * 2)
        with simulation_folder():
            assert not left.exists()
            assert ours.exists()  # ours is locked
    assert list(tmp_path.iterdir()) == []
