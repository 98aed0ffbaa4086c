"""Writes the goldens with the code on PYTHONPATH; see README.md."""

import json
import sys
import tempfile
from pathlib import Path

from golden_cases import HERE, POOL_AGENTS, SESSIONS, TRAININGS, ZOO, workload_of
from golden_runs import judged_and_replayed, judged_on_pool, session, trained, write_workloads


def write(name: str, value: object) -> None:
    """Write one file of data: a line per item of a list, so that what changes can be read."""
    if isinstance(value, list):
        text = "[\n" + ",\n".join(json.dumps(item, separators=(",", ":")) for item in value) + "\n]\n"
    else:
        text = json.dumps(value, indent=1) + "\n"
    (HERE / "data" / f"{name}.json").write_text(text)
    print(name)


def regenerate(wanted: set[str]) -> None:
    """Write all goldens, or those of these names."""
    (HERE / "data").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_workloads(folder)
        for agent in ZOO:
            if not wanted or agent in wanted:
                write(agent, judged_and_replayed(agent, workload_of(agent, folder), folder))
        for name in TRAININGS:  # one is the teacher of another
            rows = trained(name, folder)
            if not wanted or f"training-{name}" in wanted:
                write(f"training-{name}", rows)
    for agent in POOL_AGENTS:
        if not wanted or agent in wanted:
            write(agent, judged_on_pool(agent))
    for kind in SESSIONS:
        if not wanted or f"session-{kind}" in wanted:
            write(f"session-{kind}", session(kind))


if __name__ == "__main__":
    regenerate(set(sys.argv[1:]))
