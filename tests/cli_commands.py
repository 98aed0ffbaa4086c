"""What the tests of commands share: a small log whose schedule is known, and two ways to type a command."""

import io
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from bridge.cli.main import main

#: (id, submit, run, nodes, requested time, user), times in seconds, on a machine of 4 nodes.
#: FCFS + EASY, counted from 1000: 1 starts at 0; 2 blocks and is promised 100; 3 fits before that, at 20;
#: when 3 ends at 90, 5 still fits, but 4 does not; 2 starts at 100 as promised; 4 starts when 2 ends, at 150.
ROWS = (
    (1, 1000, 100, 2, 100, 1),
    (2, 1010, 50, 4, 60, 1),
    (3, 1020, 70, 2, 80, 2),
    (4, 1030, 20, 1, 20, 2),
    (5, 1040, 10, 1, 10, 3),
)
#: Start times of `ROWS` under FCFS + EASY.
STARTS = {1: 0.0, 2: 100.0, 3: 20.0, 4: 150.0, 5: 90.0}
LINES = [f"{i} {s} -1 {r} {p} -1 -1 {p} {q} -1 1 {u} 1 -1 1 -1 -1 -1\n" for i, s, r, p, q, u in ROWS]
TINY = "; MaxProcs: 4\n" + "".join(LINES)
#: A cancelled job and one that is larger than the machine.
ODD = (
    "6 1050 -1 -1 1 -1 -1 1 10 -1 5 3 1 -1 1 -1 -1 -1\n",
    "7 1060 -1 10 5 -1 -1 5 10 -1 1 3 1 -1 1 -1 -1 -1\n",
)


@dataclass(frozen=True)
class CommandResult:
    status: int
    out: str
    err: str


def run_bridge(*words: object) -> CommandResult:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(word) for word in words])
    return CommandResult(status, out.getvalue(), err.getvalue())


def run_ok(*words: object) -> str:
    """Run `bridge WORDS…`, which must succeed, and return what it printed."""
    told = run_bridge(*words)
    assert told.status == 0, told.err
    return told.out


def run_refused(*words: object) -> str:
    """Run `bridge WORDS…`, which must end in one error that says nothing on stdout, and return the error."""
    told = run_bridge(*words)
    assert (told.status, told.out) == (1, ""), told
    errors = [line for line in told.err.splitlines() if line.startswith("bridge: error: ")]
    assert len(errors) == 1, told.err
    assert "Traceback" not in told.err
    return told.err[told.err.index("bridge: error: ") + len("bridge: error: ") :]


def start_bridge(
    *words: object, env: Mapping[str, str] | None = None, **options: object
) -> "subprocess.Popen[bytes]":
    """Start `bridge WORDS…` as a process of its own, stdout and stderr piped unless told otherwise."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-m", "bridge.cli.main", *map(str, words)],
        env={**os.environ, **(env or {})},
        **{**pipes, **options},  # type: ignore[call-overload]
    )


#: Longer than a command should show nothing, s: only a broken one takes that long.
PATIENCE = 120.0


def read_until(ours: int, seen: Callable[[bytes], object] = lambda _: False) -> bytes:
    """Return what a terminal shows until `seen` is content with it, or the other end closes."""
    shown = b""
    while not seen(shown):
        ready, _, _ = select.select([ours], [], [], PATIENCE)
        assert ready, f"nothing more for {PATIENCE:g} s after {shown[-300:]!r}"
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other end is closed
            return shown
        if not block:
            return shown
        shown += block
    return shown


def limit_file_sizes() -> None:
    """Let this process write no file above 40 kB; the write fails instead of killing it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))


def file_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
