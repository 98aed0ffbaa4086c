"""What happens to a command from outside: Ctrl-C, a closed pipe, a full disk, a limit on file sizes."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_commands import (
    PATIENCE,
    TINY,
    file_names,
    limit_file_sizes,
    read_until,
    run_ok,
    run_refused,
    start_bridge,
)


@pytest.fixture(autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make sure that the kernels are compiled before they are used by another process."""
    log = tmp_path_factory.mktemp("warm") / "tiny.swf"
    log.write_text(TINY)
    run_ok("replay", log)


def write_queue(path: Path, jobs: int, waiting: int) -> str:
    """Write a log of jobs of 100 s on one node, of which so many always wait."""
    rest = "-1 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1"
    lines = (f"{k} {max(0, k - waiting) * 100} {rest}\n" for k in range(1, jobs + 1))
    path.write_text("; MaxProcs: 1\n" + "".join(lines))
    return path.name


@pytest.fixture
def overload(folder: Path) -> str:
    """Write a log that takes WFP3 long: 20,000 jobs always wait for one node, and every score changes."""
    return write_queue(folder / "overload.swf", 300_000, waiting=20_000)


@pytest.fixture
def burst(folder: Path) -> str:
    """Write a log of jobs that all come at once to one node: every sequence takes WFP3 long."""
    return write_queue(folder / "burst.swf", 6_000, waiting=6_000)


def interrupted(process: "subprocess.Popen[bytes]", screen: int, seen: Callable[[bytes], object]) -> bytes:
    """Send Ctrl-C once the progress bar shows this; return all that was shown."""
    shown = read_until(screen, seen)
    assert seen(shown), f"ended with {process.wait()} after {shown!r}"
    process.send_signal(signal.SIGINT)
    return shown + read_until(screen)


def test_ctrl_c_during_a_long_replay(overload: str, folder: Path, screen: tuple[int, int]) -> None:
    before = file_names(folder)
    ours, theirs = screen
    words = ["--order", "wfp3", "--out", "run", "--rst", "run.rst", "--plot"]
    process = start_bridge("replay", overload, *words, stderr=theirs)
    os.close(theirs)
    # the bar comes only after a second of replaying
    shown = interrupted(process, ours, lambda text: b"overload wfp3" in text and b"jobs/s" in text)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, b"")
    assert shown.rstrip().endswith(b"bridge: interrupted")
    assert b"Traceback" not in shown
    assert file_names(folder) == before


def test_ctrl_c_during_an_evaluation_prints_the_policies_that_are_finished(
    burst: str, folder: Path, screen: tuple[int, int]
) -> None:
    before = file_names(folder)
    ours, theirs = screen
    words = ["--order", "fcfs", "--order", "wfp3", "--sequences", "500", "--length", "3000"]
    process = start_bridge("evaluate", burst, *words, stderr=theirs)
    os.close(theirs)

    def in_the_second_policy(text: bytes) -> bool:
        return any(int(done) > 500 for done in re.findall(rb"(\d+)/1000", text))

    shown = interrupted(process, ours, in_the_second_policy)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"bridge: interrupted; 1 of 2 policies are finished:" in shown
    assert "fcfs+easy" in out.decode()
    assert "wfp3" not in out.decode()
    assert b"Traceback" not in shown
    assert file_names(folder) == before


def test_a_pipe_that_is_closed_early(tiny: str, folder: Path) -> None:
    process = start_bridge("replay", tiny, "--json", "--out", "run")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.wait(PATIENCE)
    assert (process.returncode, err) == (1, b"")
    assert file_names(folder / "run") == {"jobs.csv", "jobs.parquet", "metrics.json", "run.toml"}


@pytest.mark.parametrize("words", [("replay", "bundled-128"), ("workload", "list"), ("--help",)])
def test_head(words: tuple[str, ...]) -> None:
    process = start_bridge(*words)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout:
        assert process.stdout.readline()
    lines = process.stderr.read().splitlines()
    assert [line for line in lines if b"no scheduler uses" not in line] == []  # that is of the log
    process.wait(PATIENCE)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_a_full_device_as_output(tiny: str) -> None:
    # Only ever opened for writing: a path there would be replaced, which --rst and --out therefore refuse.
    with Path("/dev/full").open("wb") as full:
        process = start_bridge("replay", tiny, "--json", stdout=full)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err == b"bridge: error: input or output: No space left on device\n"


@pytest.mark.parametrize("options", [["--out", "run"], ["--rst", "run.rst"]])
def test_a_disk_that_fills_up_leaves_nothing_behind(folder: Path, options: list[str]) -> None:
    # the bundled workload's jobs.csv and .rst are larger; compiled kernels are only read
    process = start_bridge("replay", "bundled-128", *options, preexec_fn=limit_file_sizes)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"cannot write: File too large\n  Choose a writable folder with enough free space" in err
    assert b"Traceback" not in err
    assert file_names(folder) == set()


def test_a_disk_that_fills_up_keeps_the_old_run(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--out", "run", "--rst", "run.rst")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    words = ["--out", "run", "--rst", "run.rst", "--force"]
    process = start_bridge("replay", "bundled-128", *words, preexec_fn=limit_file_sizes)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_an_end_of_file_is_no_ctrl_c(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """click takes one for the end of a terminal at which somebody was asked something."""

    def ends(*_: object, **__: object) -> None:
        raise EOFError

    monkeypatch.setattr("bridge.experiment.prepare.read_log", ends)
    said = run_refused("replay", tiny)
    assert "ended too early" in said
    assert "interrupted" not in said


#: A command that compiles a kernel: machine code that runs for minutes, in which Ctrl-C comes.
COMPILING = """
import hashlib, os, signal, sys, threading
import click
from bridge.base import interrupts
from bridge.cli import terminal
from bridge.cli.main import main
interrupts._GRACE = 0.1
switches = []
terminal.on_compile_progress = switches.append
signal.signal(signal.SIGINT, signal.default_int_handler)

@click.command(sys.argv[1])
def command():
    terminal.TERMINAL.announce_compiling("compiling")
    for switch in switches:
        switch(0, False)
    is_sent = threading.Event()

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        is_sent.set()

    threading.Timer(0.2, interrupt).start()
    while not is_sent.is_set():
        hashlib.pbkdf2_hmac("sha256", b"", b"", int(sys.argv[2]))

sys.exit(main([], command.main, sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("name", "rounds"), [("replay", 10**9), ("evaluate", 10**6)], ids=["at once", "after it"]
)
def test_ctrl_c_while_a_kernel_compiles(name: str, rounds: int, tmp_path: Path) -> None:
    """What writes nothing before its end does not wait for the compiler; others end after it."""
    script = tmp_path / "compiling.py"
    script.write_text(COMPILING)
    done = subprocess.run(
        [sys.executable, script, name, str(rounds)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 130
    assert done.stderr.split("\n")[0] == "bridge: compiling"
    assert done.stderr.endswith("\nbridge: interrupted\n")
