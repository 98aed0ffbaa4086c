"""How many of Slurm's own starts does the protocol `slurm` predict, beside a real slurmctld on fake nodes?

    python benchmarks/slurm/own.py --jobs 300

Mixed jobs on shared nodes: GPUs, two partitions that overlap, licences, arrays, whole nodes. Slurm decides
alone, the shadow only reads. Readings do not tell the order of what happens between two of them; slurmctld's
log does. So starts are predicted a second time, each from all that the log has before its pass. Needs root
and Debian's packages of Slurm.
"""

import random
import threading
import time
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click
from bench import requests, tell

from bridge.slurm_demo import cluster
from bridge.slurm_demo.case_log import CaseLog, read_log
from bridge.slurm_demo.demo_jobs import submit
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.own_jobs import COMPLETING, OwnJob
from bridge.worlds.slurm.own_shadow import OwnShadow
from bridge.worlds.slurm.own_site import OwnQueue


class _Noting(OwnShadow):
    """Keeps each job as it waited last, and as it ran first."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.waited: dict[str, OwnJob] = {}
        self.ran: dict[str, OwnJob] = {}

    def read(self, text: str, began: int, now: int) -> None:
        super().read(text, began, now)
        for label, one in (self._last or {}).items():
            if one.is_waiting:
                self.waited[label] = one
            elif one.cores:
                self.ran.setdefault(label, one)


def _events(log: CaseLog) -> list[tuple[float, str, str, str]]:
    """Return what changes the queue: when, what, which job, and which scheduler or node; starts last."""
    events = [(time, "submit", job, "") for job, time in log.submitted.items()]
    for job, runs in log.runs.items():
        for run in runs:
            events.append((run.start, "start", job, run.by))
            events += [(run.end, "end", job, "")] if run.end else []
            events += [(time, "free", job, node) for node, time in run.freed.items()]
    order = {"submit": 0, "end": 1, "free": 2, "start": 3}
    return sorted(events, key=lambda event: (event[0], order[event[1]]))


def predicted_by_log(shadow: _Noting, log: CaseLog) -> dict[str, Any]:
    """Return how many starts are predicted from all that the log has before their passes."""
    queue, starts, right = OwnQueue(shadow.site), 0, 0
    passes = sorted(time for time, kind in log.passes if kind in ("default", "full", "backfill"))

    def pass_of(instant: float) -> float:
        return max((time for time in passes if time <= instant), default=instant)

    def key(event: tuple[float, str, str, str]) -> object:
        return (pass_of(event[0]), event[3]) if event[1] == "start" else event

    for _, group in groupby(_events(log), key):
        batch = list(group)
        instant, kind, job, more = batch[0]
        if kind == "start":
            jobs = [shadow.ran[label] for _, _, label, _ in batch if label in shadow.ran]
            predicted = queue.predict(int(pass_of(instant)), more)
            right += sum(predicted.get(one.label) == frozenset(one.cores) for one in jobs)
            starts += len(batch)
            for one in jobs:
                queue.start(one)
        elif kind == "submit":
            for label in {**shadow.waited, **shadow.ran}:
                if job == label.partition("_")[0]:
                    queue.waiting[label] = shadow.waited.get(label) or shadow.ran[label]
        elif job in queue.running:
            one = queue.running[job]
            left = one.nodes - {more}
            names = {"NodeList": ",".join(sorted(left))}
            queue.running[job] = replace(one, state=COMPLETING, fields=one.fields | names)
            if not left:
                queue.running.pop(job)
    return {"starts, by the log": starts, "hit rate, by the log": right / starts if starts else None}


@click.command()
@click.option("--jobs", default=300, show_default=True, help="Submissions, of which some are arrays of four.")
@click.option("--rate", default=1.5, show_default=True, help="Submissions a second.")
@click.option("--nodes", default=8, show_default=True)
@click.option("--interval", default=0.1, show_default=True, help="Seconds between two readings.")
@click.option("--seed", default=1, show_default=True)
@click.option("--port", default=25800, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(jobs: int, rate: float, nodes: int, interval: float, seed: int, port: int, as_json: bool) -> None:
    rng = random.Random(seed)
    folder = Path(mkdtemp(prefix="bridge-slurm-"))
    folder.chmod(0o755)
    client = Client(str(cluster.start(folder, nodes=nodes, port=port, site=True)))
    try:
        client.call("scontrol", "setdebug", "debug2")
        shadow = _Noting(client)
        is_over = threading.Event()

        def submit_all() -> None:
            for _ in range(jobs):
                words = requests(rng)
                if "--gpus" not in words:
                    submit(client, "-t", rng.choice(["1", "2", "5"]), *words, seconds=rng.choice([4, 8, 15]))
                time.sleep(1 / rate)
            while any(row.partition != "kick" for row in client.queue()):
                time.sleep(0.5)
            time.sleep(1.0)
            is_over.set()

        thread = threading.Thread(target=submit_all, daemon=True)
        thread.start()
        shadow.run(is_over.is_set, interval)
        log = read_log((folder / "log" / "slurmctld.log").read_text(encoding="utf-8", errors="replace"))
    finally:
        cluster.stop(folder)
    figures = shadow.report.document() | predicted_by_log(shadow, log)
    wanted = {name: (figures[name] or 0) >= 0.95 for name in figures if name.startswith("hit rate")}
    del wanted["hit rate"]  # readings do not tell the order between two of them
    tell(figures, wanted, as_json)


if __name__ == "__main__":
    main()
