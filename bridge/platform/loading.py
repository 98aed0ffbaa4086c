"""Load a platform with the real SimGrid, in a process of its own: it stops the process on mistakes."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError

# Prints one line of JSON; routes need a sealed platform, hence an actor.
_PROGRAM = """
import json, sys
from simgrid import Actor, Engine
engine = Engine(["load", "--cfg=host/model:ptask_L07", "--log=root.thres:critical"])
engine.load_platform(sys.argv[1])
pairs, wanted = json.loads(sys.argv[2])
hosts = {host.name: host for host in engine.all_hosts}
def speeds(host):
    return [host.pstate_speed(i) for i in range(host.pstate_count)]
answer = {"hosts": sorted(hosts), "speeds": {name: speeds(hosts[name]) for name in wanted}}
def ask():
    answer["routes"] = []
    for src, dst in pairs:
        links, latency = hosts[src].route_to(hosts[dst])
        answer["routes"].append([[[link.name, link.bandwidth, link.latency] for link in links], latency])
if hosts:
    Actor.create("ask", list(hosts.values())[0], ask)
engine.run()
print("loaded " + json.dumps(answer))
"""


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
    from bridge.simgrid.interpreter import find_interpreter

    python = find_interpreter()
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # not here, where a module of the user's could shadow another
        command = [
            python,
            "-c",
            _PROGRAM,
            str(Path(path).resolve()),
            json.dumps([list(pairs), list(speeds_of)]),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout, check=False, cwd=folder
            )
        except subprocess.TimeoutExpired as error:
            raise BridgeError(
                f"SimGrid was still loading after {timeout:g} s",
                where=str(path),
                remedy="Describe a smaller network.",
            ) from error
    for line in done.stdout.splitlines():
        if line.startswith("loaded "):
            loaded: dict[str, Any] = json.loads(line.removeprefix("loaded "))
            return loaded
    words = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    telling = [w for w in words if "Error" in w or "CRITICAL" in w] or words[-1:] or ["it gave no reason"]
    raise BridgeError(
        f"SimGrid refuses the platform: {telling[-1]}", where=str(path), remedy="See `bridge platform check`."
    )
