"""Load platforms with the real SimGrid, each in a process of its own: it stops the process on mistakes."""

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bridge.errors import BridgeError
from bridge.platform.findings import Finding, Findings

# Prints one line of JSON per platform: exit status and what SimGrid said.
_PROGRAM = """
import json, os, resource, signal, sys
from simgrid import Engine
paths, seconds, memory = json.load(sys.stdin)
def load(path):
    engine = Engine(["load", "--cfg=host/model:ptask_L07", "--log=root.thres:critical"])
    engine.load_platform(path)
    engine.run()
for path in paths:
    out, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(to_parent, 1)
        os.dup2(to_parent, 2)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(seconds)
        try:
            load(path)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    os.close(to_parent)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    print(json.dumps([os.waitpid(child, 0)[1], said]), flush=True)
"""
#: A platform that needs more memory than this is refused (bytes).
_MEMORY = 8 << 30
_TOO_LATE = 14  # what remains of a process that SIGALRM has ended


def findings_of_simgrid(paths: Sequence[str | Path], *, timeout: float = 120.0) -> list[Finding | None]:
    """SimGrid's own finding about each platform file under the parallel-task model, None if it loads.

    Args:
        paths: the files.
        timeout: seconds to wait for each.

    Raises:
        BridgeError: no interpreter with SimGrid's bindings, or none of their answers.
    """
    from bridge.simgrid.interpreter import find_interpreter

    files = [str(Path(path).resolve()) for path in paths]
    # Not here, where a module of the user's could shadow another, and SimGrid looks for files.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [find_interpreter(), "-c", _PROGRAM],
            input=json.dumps([files, max(1, round(timeout)), _MEMORY]),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=folder,
        )
    lines = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("[") and line[-1] == "]"
    ]
    if len(lines) != len(files):
        words = done.stderr.strip().splitlines()[-1:] or ["they gave no reason"]
        raise BridgeError(f"SimGrid's bindings stopped: {words[0]}", remedy="See `bridge doctor`.")
    return [
        _finding(str(path), file, status, said, timeout) if status else None
        for path, file, (status, said) in zip(paths, files, lines, strict=True)
    ]


def _finding(path: str, file: str, status: int, said: str, timeout: float) -> Finding:
    words = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [word for word in words if "Error" in word or "CRITICAL" in word]
    answer = f"SimGrid refuses the platform: {(telling or words or ['it gave no reason'])[-1]}"
    if status == _TOO_LATE:
        answer = f"SimGrid was still loading after {timeout:g} s"
    at = re.search(rf"{re.escape(file)}:(\d+)", answer)
    findings = Findings(path)
    findings.add(int(at[1]) if at else 1, "simgrid-refuses", answer=answer)
    return findings.found[0]
