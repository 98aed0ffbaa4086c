"""Load platforms with the real SimGrid, each in a process of its own: it stops the process on mistakes."""

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.platform.findings import Finding, Findings

# Prints one line of JSON per platform; routes need a sealed platform, hence an actor.
_PROGRAM = """
import json, os, resource, signal, sys
from simgrid import Actor, Engine
asked = json.load(sys.stdin)
def load(path):
    engine = Engine(["load", "--cfg=host/model:ptask_L07", "--log=root.thres:critical"])
    engine.load_platform(path)
    hosts = {host.name: host for host in engine.all_hosts}
    def speeds(host):
        return [host.pstate_speed(i) for i in range(host.pstate_count)]
    answer = {"hosts": sorted(hosts), "speeds": {name: speeds(hosts[name]) for name in asked["speeds"]}}
    def ask():
        answer["routes"] = []
        for src, dst in asked["pairs"]:
            links, latency = hosts[src].route_to(hosts[dst])
            answer["routes"].append([[[link.name, link.bandwidth, link.latency] for link in links], latency])
    if asked["pairs"]:
        Actor.create("ask", list(hosts.values())[0], ask)
    engine.run()
    return answer
for path in asked["paths"]:
    out, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(to_parent, 1)
        os.dup2(to_parent, 2)
        resource.setrlimit(resource.RLIMIT_AS, (asked["bytes"], asked["bytes"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(asked["seconds"])
        try:
            print("loaded " + json.dumps(load(path)), flush=True)
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


def _load(
    paths: Sequence[str | Path],
    pairs: Sequence[tuple[str, str]] = (),
    speeds_of: Sequence[str] = (),
    timeout: float = 120.0,
) -> list[dict[str, Any] | str]:
    """For each platform what SimGrid answers, or why it refuses. Raises BridgeError: no SimGrid."""
    from bridge.simgrid.interpreter import find_interpreter

    asked = {
        "paths": [str(Path(path).resolve()) for path in paths],
        "pairs": list(pairs),
        "speeds": list(speeds_of),
        "seconds": max(1, round(timeout)),
        "bytes": _MEMORY,
    }
    # Not here, where a module of the user's could shadow another, and SimGrid looks for files.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [find_interpreter(), "-c", _PROGRAM],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=folder,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    if len(lines) != len(paths):
        words = done.stderr.strip().splitlines()[-1:] or ["it gave no reason"]
        raise BridgeError(f"SimGrid's bindings stopped: {words[0]}", remedy="See `bridge doctor`.")
    found: list[dict[str, Any] | str] = []
    for line in lines:
        status, said = json.loads(line)
        loaded = [part for part in said.splitlines() if part.startswith("loaded ")]
        if status == 0:
            found.append(json.loads(loaded[-1].removeprefix("loaded ")))
        elif status == 14:  # SIGALRM
            found.append(f"SimGrid was still loading after {timeout:g} s")
        else:
            words = [part.strip() for part in said.splitlines() if part.strip()]
            telling = [w for w in words if "Error" in w or "CRITICAL" in w]
            found.append(f"SimGrid refuses the platform: {(telling or words or ['it gave no reason'])[-1]}")
    return found


def load_in_simgrid(
    path: str | Path,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    speeds_of: Sequence[str] = (),
    timeout: float = 120.0,
) -> dict[str, Any]:
    """Load the platform under the parallel-task model.

    Args:
        path: the platform file.
        pairs: (source, destination) hosts whose routes are wanted.
        speeds_of: hosts whose speeds are wanted.
        timeout: seconds to wait.

    Returns:
        `hosts`: sorted names; `speeds`: name -> flop/s of each pstate; `routes`, for each pair: [[name,
        bandwidth, latency] of each link, latency in seconds].

    Raises:
        BridgeError: no interpreter with SimGrid's bindings, or SimGrid refuses the platform (in its words).
    """
    (answer,) = _load([path], pairs, speeds_of, timeout)
    if isinstance(answer, str):
        raise BridgeError(answer, where=str(path), remedy="See `bridge platform check`.")
    return answer


def findings_of_simgrid(paths: Sequence[str | Path], *, timeout: float = 120.0) -> list[Finding | None]:
    """SimGrid's own finding about each platform file, None if it loads.

    Args:
        paths: the files.
        timeout: seconds to wait for each.

    Raises:
        BridgeError: no interpreter with SimGrid's bindings.
    """
    found: list[Finding | None] = []
    for path, answer in zip(paths, _load(paths, timeout=timeout), strict=True):
        if isinstance(answer, str):
            findings = Findings(str(path))
            at = re.search(rf"{re.escape(str(Path(path).resolve()))}:(\d+)", answer)
            findings.add(int(at[1]) if at else 1, "simgrid-refuses", answer=answer)
            found += findings.found
        else:
            found.append(None)
    return found
