"""What happens to jobs while an agent decides beside a real slurmctld: cancelled, requeued, drained, …

    python benchmarks/slurm/faults.py

Four nodes are drained, 20 held and 20 running jobs cancelled, 5 requeued; an array of 50, 10 dependencies, 20
jobs in another partition; names and comments meant to harm, and a user who releases his own job. Needs root
and Debian's packages of Slurm.
"""

import subprocess
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from bench import Bench, bench, busy_twice, decided, tell

from bridge.cluster.slurm_values import node_names

_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
_TRAP = Path("/tmp/bridge-slurm-trap")
_NAMES = (
    "a\n7 RUNNING",
    f"'; touch {_TRAP}; '",
    f"$(touch {_TRAP})",
    f'"|\x1f`touch {_TRAP}`',
    "x AdminComment=agent:held",
)
#: Slurm takes no longer comment.
_COMMENT = 1000


def _state(made: Bench, job: str) -> str:
    return next((row.state for row in made.rows() if row.label == job), "")


def _cancelled(made: Bench) -> dict[str, list[str]]:
    """Cancel 20 held and 20 running jobs; requeue 5."""
    running = [made.submit("-N1", seconds=300) for _ in range(20)]
    again = [made.submit("-N1", "--requeue", seconds=15) for _ in range(5)]
    made.until(lambda: all(_state(made, job) == "RUNNING" for job in (*running, *again)))
    blocker = made.submit("-N64", seconds=1)  # nobody of its size starts before it
    held = [made.submit("-N64", seconds=1) for _ in range(20)]
    made.until(lambda: {*held} <= {row.label for row in made.rows()})
    made.client.call("scancel", *held)
    made.client.call("scontrol", "requeue", ",".join(again))
    made.client.call("scancel", *running)
    return {"held": held, "running": running, "again": again, "blocker": [blocker]}


def _hostile(made: Bench) -> tuple[list[str], bool]:
    """Submit jobs with names meant to harm; and tell whether a user could release his own job."""
    _TRAP.unlink(missing_ok=True)
    jobs = [made.submit("-N1", "-J", name, "--comment", (name * 900)[:_COMMENT]) for name in _NAMES]
    made.client.call("scontrol", "update", "PartitionName=agent", "State=DOWN")
    own = made.submit("-N1", who=_NOBODY)
    words = [*_NOBODY, "scontrol", "release", own]
    done = subprocess.run(words, env=made.client.env, capture_output=True, check=False)
    made.client.call("scontrol", "update", "PartitionName=agent", "State=UP")
    return [*jobs, own], done.returncode == 0


@click.command()
@click.option("--nodes", default=64, show_default=True)
@click.option("--policy", default="sjf+easy", show_default=True)
@click.option("--port", default=26200, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(nodes: int, policy: str, port: int, as_json: bool) -> None:
    with bench(nodes, port, policy) as made:
        made.agent.start()
        begun = time.monotonic()
        draw = np.random.default_rng(1)
        plain = [made.submit(f"-N{1 + k % 3}", seconds=1 + draw.exponential()) for k in range(60)]
        drained = [f"n{k}" for k in range(10, 14)]
        made.client.call("scontrol", "update", f"NodeName={','.join(drained)}", "State=DRAIN", "Reason=test")
        drained_at = time.time()
        parts = _cancelled(made)
        array = made.submit("--array=0-49", "-N1")
        parents = [made.submit("-N1", seconds=2) for _ in range(10)]
        children = [made.submit("-N1", "-d", f"afterok:{parent}") for parent in parents]
        other = [made.submit("-p", "other", "-N1", seconds=1) for _ in range(20)]
        hostile, released = _hostile(made)
        made.until(
            lambda: len(made.rows()) <= len(parts["again"]) + 1, 240
        )  # Slurm lets those wait for 2 min
        resumed_at = time.time()
        made.client.call("scontrol", "update", f"NodeName={','.join(drained)}", "State=RESUME")
        made.until(lambda: not made.rows(), 300)
        took = time.monotonic() - begun
        time.sleep(1)
        made.agent.end()
        tasks = [f"{array}_{k}" for k in range(50)]
        ours = [*plain, *parts["again"], *parts["blocker"], *tasks, *parents, *children, *hostile]
        _tell(made, ours, parts, dict(zip(children, parents, strict=True)), other, as_json, {
            "all done after (s)": round(took, 1),
            "a user could release his own held job": released,
            "drained": (drained, drained_at, resumed_at),
        })  # fmt: skip


def _tell(
    made: Bench,
    ours: list[str],
    parts: dict[str, list[str]],
    children: dict[str, str],
    other: list[str],
    as_json: bool,
    told: dict[str, Any],
) -> None:
    log, report = made.log, made.report()
    drained, since, until = told.pop("drained")
    jobs = [f"{job}#1" for job in ours]
    chosen = decided(log, made.audit())
    text = (made.folder / "log" / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
    times = log.times
    begun = {job: times["allocate"].get(f"{job}#1", [0.0])[-1] for job in ours}
    on_drained = [
        job
        for job in jobs
        for at, nodes in zip(times["allocate"].get(job, []), log.nodes.get(job, []), strict=True)
        if since + 0.5 < at < until and {*drained} & {*node_names(nodes)}
    ]
    elsewhere = [
        j for j in jobs if j in log.nodes and {*node_names(log.nodes[j][-1])} != {*node_names(chosen[j])}
    ]
    found = told | {
        "jobs of the agent": len(ours),
        "completed": sum(job in times["end"] for job in jobs),
        "held, cancelled, and started": sum(f"{job}#1" in log.nodes for job in parts["held"]),
        "running, cancelled": sum(f"REQUEST_KILL_JOB JobId={job} " in text for job in parts["running"]),
        "requeued, and started twice": sum(len(log.nodes.get(f"{job}#1", [])) == 2 for job in parts["again"]),
        "tasks of the array completed": sum("_" in job and job in times["end"] for job in jobs),
        "children before their parents' end": sum(
            begun[child] < times["end"][f"{parent}#1"][-1] for child, parent in children.items()
        ),
        "other partition, completed": sum(f"{job}#1" in times["end"] for job in other),
        "other partition, touched by the agent": sum(f"{job}#1" in times["release"] for job in other),
        "on drained nodes": len(on_drained),
        "on other nodes than decided": len(elsewhere),
        # Jobs of the other partition share nodes with each other, as it is configured.
        "nodes given twice": sum(busy_twice(log, [*jobs, f"{job}#1"]) for job in other),
        "a name or a comment ran": _TRAP.exists(),
        "reported lost": len(report["lost"]),
        "passes decided otherwise from the audit log": made.differences(),
    }
    nothing = (
        "held, cancelled, and",
        "children",
        "other partition, touched",
        "on ",
        "nodes given",
        "a name",
        "a user",
    )
    nothing += ("reported lost", "passes")
    wanted = {name: not value for name, value in found.items() if name.startswith(nothing)}
    wanted |= {
        "completed": found["completed"] == len(ours),
        "running, cancelled": found["running, cancelled"] == 20,
        "requeued, and started twice": found["requeued, and started twice"] == 5,
        "tasks of the array completed": found["tasks of the array completed"] == 50,
        "other partition, completed": found["other partition, completed"] == 20,
    }
    tell(found, wanted, as_json)


if __name__ == "__main__":
    main()
