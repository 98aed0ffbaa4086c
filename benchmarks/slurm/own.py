"""How many of Slurm's own starts does the protocol `slurm` predict, beside a real slurmctld on fake nodes?

    python benchmarks/slurm/own.py --jobs 300

Mixed jobs on shared nodes: GPUs, two partitions that overlap, licences, arrays, whole nodes. Slurm decides
alone, the shadow only reads. Needs root and Debian's packages of Slurm.
"""

import random
import threading
import time
from pathlib import Path
from tempfile import mkdtemp

import click
from bench import requests, tell

from bridge.slurm_demo import cluster
from bridge.slurm_demo.demo_jobs import submit
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.own_shadow import OwnShadow


@click.command()
@click.option("--jobs", default=300, show_default=True, help="Submissions, of which some are arrays of four.")
@click.option("--rate", default=2.0, show_default=True, help="Submissions a second.")
@click.option("--nodes", default=8, show_default=True)
@click.option("--interval", default=0.25, show_default=True, help="Seconds between two readings.")
@click.option("--seed", default=1, show_default=True)
@click.option("--port", default=25800, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(jobs: int, rate: float, nodes: int, interval: float, seed: int, port: int, as_json: bool) -> None:
    rng = random.Random(seed)
    folder = Path(mkdtemp(prefix="bridge-slurm-"))
    folder.chmod(0o755)
    client = Client(str(cluster.start(folder, nodes=nodes, port=port, site=True)))
    try:
        shadow = OwnShadow(client)
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
    finally:
        cluster.stop(folder)
    figures = shadow.report.document()
    tell(figures, {"hit rate": (figures["hit rate"] or 0) >= 0.95}, as_json)


if __name__ == "__main__":
    main()
