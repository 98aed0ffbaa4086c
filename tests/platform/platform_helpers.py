"""Shared by the tests of platforms: where files are, and what SimGrid makes of one."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.wire.platform_xml import NO_TASKS, TASKS, parse_xml, wifi_links
from bridge.worlds.simgrid import find_interpreter

CORPUS = Path(__file__).with_name("corpus")
SHIPPED = Path(__file__).parents[2] / "platforms"

# Prints one line of JSON; routes need a sealed platform, hence an actor.
_PROGRAM = """
import json, sys
from simgrid import Actor, Engine
engine = Engine(["load", *sys.argv[3:], "--log=root.thres:critical"])
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
    path: Path, pairs: Sequence[tuple[str, str]] = (), *, speeds_of: Sequence[str] = ()
) -> dict[str, Any]:
    """What SimGrid makes of a platform: hosts, speeds of some, routes (links with figures, latency)."""
    asked = json.dumps([list(pairs), list(speeds_of)])
    root, _ = parse_xml(path.read_bytes())
    settings = [f"--cfg={setting}" for setting in (NO_TASKS if wifi_links(root) else TASKS)]
    command = [find_interpreter(), "-c", _PROGRAM, str(path.resolve()), asked, *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("loaded ")]
    loaded: dict[str, Any] = json.loads(line.removeprefix("loaded "))
    return loaded
