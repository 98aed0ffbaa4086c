"""When will waiting jobs start? Futures by Slurm's own schedulers and by EASY, beside a real slurmctld.

    python benchmarks/slurm/own_forecasts.py --jobs 80

Slurm decides alone, on fake nodes. At some moments the futures of its queue are played with the true run
times, so that only the rules differ. Needs root and Debian's packages of Slurm.
"""

import random
import threading
import time
from pathlib import Path
from tempfile import mkdtemp

import click
import numpy as np
from bench import requests, tell

from bridge.base.arrays import Floats
from bridge.forecasting.site_fork import open_fork
from bridge.forecasting.state import MachineState
from bridge.scheduler.state import NEVER, SECOND
from bridge.serve.site_observer import SiteObserver
from bridge.slurm_demo import cluster
from bridge.slurm_demo.case_log import read_log
from bridge.slurm_demo.demo_jobs import submit
from bridge.worlds.slurm.client import Client

#: Futures by Slurm's own clock; the median is compared.
FUTURES = 15


def starts(state: MachineState, true_times: dict[str, float], futures: int) -> Floats:
    """Return the median start of each job [n], s since 1970; not a number: it never starts."""
    own = np.array([true_times[name.partition("_")[0]] for name in state.id])
    runs = np.maximum(np.rint((own + 0.5) * SECOND), state.elapsed + SECOND / 10).astype(np.int64)
    played = open_fork(state).simulate_futures(np.repeat(runs[None], futures, axis=0))
    return np.median(np.where(played == NEVER, np.nan, played / SECOND), axis=0)


@click.command()
@click.option("--jobs", default=80, show_default=True)
@click.option("--rate", default=1.5, show_default=True, help="Submissions a second.")
@click.option("--every", default=15.0, show_default=True, help="Seconds between two forecasts.")
@click.option("--seed", default=1, show_default=True)
@click.option("--port", default=25800, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(jobs: int, rate: float, every: float, seed: int, port: int, as_json: bool) -> None:
    rng = random.Random(seed)
    folder = Path(mkdtemp(prefix="bridge-slurm-"))
    folder.chmod(0o755)
    client = Client(str(cluster.start(folder, nodes=8, port=port, site=True)))
    true_times: dict[str, float] = {}
    forecasts: list[tuple[float, str, float, float]] = []
    spent = [0.0, 0.0]
    try:
        observer = SiteObserver(client, "gpu,cpu", own=True)
        is_over = threading.Event()

        def submit_all() -> None:
            for _ in range(jobs):
                words, seconds = requests(rng), rng.choice([4, 8, 15])
                if "--gpus" not in words:
                    number = submit(client, "-t", rng.choice(["1", "2", "5"]), *words, seconds=seconds)
                    true_times[number] = seconds
                time.sleep(1 / rate)
            while any(row.partition != "kick" for row in client.queue()):
                time.sleep(0.5)
            is_over.set()

        threading.Thread(target=submit_all, daemon=True).start()
        time.sleep(every)
        while not is_over.wait(every):
            reading = observer.read()
            own, standard = reading.machine_state(), reading.site.state()
            if not len(own.waiting) or any(name.partition("_")[0] not in true_times for name in own.id):
                continue
            medians = []
            for k, (state, futures) in enumerate(((own, FUTURES), (standard, 1))):
                began = time.process_time()
                medians.append(starts(state, true_times, futures))
                spent[k] += time.process_time() - began
            now = own.now / SECOND
            forecasts += [(now, own.id[j], medians[0][j], medians[1][j]) for j in own.waiting]
        observer.close()
        log = read_log((folder / "log" / "slurmctld.log").read_text(encoding="utf-8", errors="replace"))
        actual = {job: runs[0].start for job, runs in log.runs.items()}
    finally:
        cluster.stop(folder)
    rows = np.array([(actual[name], a, b) for _, name, a, b in forecasts if name in actual])
    rows = rows[~np.isnan(rows).any(axis=1)]
    errors = np.abs(rows[:, 1:] - rows[:, :1])
    figures = {
        "forecasts": len(rows),
        "mean error, Slurm's own schedulers (s)": round(float(errors[:, 0].mean()), 1),
        "mean error, fcfs+easy (s)": round(float(errors[:, 1].mean()), 1),
        "median error, Slurm's own schedulers (s)": round(float(np.median(errors[:, 0])), 1),
        "median error, fcfs+easy (s)": round(float(np.median(errors[:, 1])), 1),
        f"processor time of {FUTURES} own futures and one of EASY (s)": [round(one, 2) for one in spent],
    }
    tell(
        figures,
        {"mean error, Slurm's own schedulers (s)": bool(errors[:, 0].mean() < errors[:, 1].mean())},
        as_json,
    )


if __name__ == "__main__":
    main()
