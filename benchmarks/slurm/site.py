"""A policy decides on shared nodes: GPUs, two partitions that overlap, licences, arrays, a reservation.

    python benchmarks/slurm/site.py --jobs 300
    python benchmarks/slurm/site.py --jobs 100 --policy zoo/rlbackfilling-lublin-1
    python benchmarks/slurm/site.py --jobs 100 --policy "lookahead(saf)+easy"

Eight fake nodes or more. Every job must run once, on the nodes that were decided, and Slurm must have them
when the policy says so. Halfway, every job that waits must have a forecast, or a reason why it has none.
Needs root and Debian's packages of Slurm.
"""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import click
import numpy as np
from bench import Bench, bench, quantiles, requests, tell

from bridge.cluster.slurm_values import node_names

RESERVATION = "class"


@click.command()
@click.option("--jobs", default=300, show_default=True, help="Submissions, of which some are arrays of four.")
@click.option("--rate", default=4.0, show_default=True, help="Submissions a second.")
@click.option("--nodes", default=8, show_default=True)
@click.option("--policy", default="saf+easy", show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--port", default=26800, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(jobs: int, rate: float, nodes: int, policy: str, seed: int, port: int, as_json: bool) -> None:
    rng = random.Random(seed)
    with bench(nodes, port, policy, site=True) as made:
        made.agent.start()
        begin = int(time.time()) + 30
        for words in (
            ("-p", "cpu", "-N1", "--hold"),
            ("-p", "agent", "-N1"),
        ):  # left to their user, and to Slurm
            made.submit(*words)
        made.client.call(
            *("scontrol", "create", "reservation", f"ReservationName={RESERVATION}", "Nodes=n[4-5]"),
            *(f"StartTime={time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(begin))}", "Duration=2"),
            *("Users=root",),
        )
        labels: list[str] = []
        reserved: list[str] = []
        foreseen: dict[str, Any] = {}
        for k in range(jobs):
            if k == jobs // 2:
                foreseen = foresee(made)
            words = requests(rng)
            in_it = k % 40 == 5 and k < 130
            if in_it:
                words = ("-p", "cpu", "-N1", "--reservation", RESERVATION)
            limit = "1" if in_it else rng.choice(["2", "3", "5"])
            job = made.submit("-t", limit, *words, seconds=rng.choice([1, 2, 4]))
            labels += [f"{job}_{task}" for task in range(4)] if "--array" in words[-1] else [job]
            reserved += [job] if in_it else []
            time.sleep(1 / rate)
        rest = made.until(lambda: len(made.rows()) == 1)  # its user holds it
        made.agent.end()
        outcome(made, labels, reserved, begin, rest, foreseen, as_json)


def foresee(made: Bench) -> dict[str, Any]:
    """Return for how many waiting jobs there is a forecast, and how many have neither that nor a reason."""
    words = ["forecast", "--slurm", "--partition", "gpu,cpu", "--futures", "20", "--json"]
    before = {row.label for row in made.rows() if row.state == "PENDING" and row.partition != "agent"}
    command = [sys.executable, "-m", "bridge", *words]
    done = subprocess.run(command, env=made.client.env, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"forecasts on the site's nodes": done.stderr.strip(), "without forecast or reason": -1}
    document = json.loads(done.stdout)
    after = {row.label for row in made.rows() if row.state == "PENDING"}
    rows = {row["job"]: row for row in document["jobs"]}
    mute = (before & after) - {*rows} - {*document.get("left", {})}
    never = sum(row["median"] is None for row in rows.values())
    return {
        "forecasts on the site's nodes": f"{len(rows)}, of which {never} never start",
        "left out of them": dict(Counter(document.get("left", {}).values())),
        "without forecast or reason": len(mute),
    }


def outcome(
    made: Bench,
    labels: list[str],
    reserved: list[str],
    begin: int,
    rest: float,
    foreseen: dict[str, Any],
    as_json: bool,
) -> None:
    audit, report = made.audit(), made.report()
    chosen: dict[str, list[dict[str, Any]]] = {}
    for line in audit:
        if "start" in line:
            chosen.setdefault(line["start"].partition("@")[0], []).append(line)
    nodes = {job.partition("#")[0]: runs for job, runs in made.log.nodes.items()}
    times = {job.partition("#")[0]: at for job, at in made.log.times["allocate"].items()}
    once = [label for label in labels if len(nodes.get(label, ())) == 1]
    right = [
        label
        for label in once
        if label in chosen and {*node_names(chosen[label][-1]["nodes"])} == {*node_names(nodes[label][0])}
    ]
    refused = sum(any(line["answer"]) for lines in chosen.values() for line in lines)
    waits = [1000 * (times[label][-1] - chosen[label][-1]["time"]) for label in right]
    in_time = [label for label in reserved if label in times and begin <= times[label][0] < begin + 120]
    on_them = [label for label in in_time if {*node_names(nodes[label][0])} <= {"n4", "n5"}]
    figures = {
        "jobs": len(labels),
        "of which ran once": len(once),
        "of which ran on the nodes decided": len(right),
        "left to Slurm": dict(Counter(report["foreign"].values())),
        "starts refused by Slurm": refused,
        "starts withdrawn": report["withdrawn"],
        "jobs moved": len(report["moved"]),
        "jobs lost": len(report["lost"]),
        "jobs of the reservation, run in it": f"{len(on_them)} of {len(reserved)}",
        "passes": report["passes"],
        "passes decided otherwise from the audit log": made.differences(),
        "the last job ended after (s)": round(rest, 1),
        **quantiles("release -> allocate", np.array(waits)),
        "agent's CPU (s)": round(made.agent.cpu, 1),
        **foreseen,
    }
    wanted = {
        "of which ran once": len(once) == len(labels),
        "of which ran on the nodes decided": len(right) == len(labels),
        "starts refused by Slurm": refused == 0,
        "jobs moved": not report["moved"],
        "jobs lost": not report["lost"],
        "jobs of the reservation, run in it": len(on_them) == len(reserved),
        "passes decided otherwise from the audit log": figures["passes decided otherwise from the audit log"]
        == 0,
        "without forecast or reason": foreseen["without forecast or reason"] == 0,
    }
    tell(figures, wanted, as_json)


if __name__ == "__main__":
    main()
