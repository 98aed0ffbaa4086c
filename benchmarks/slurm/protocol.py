"""Speed of the protocol `slurm`: a site's log, and a month of a large site whose queue is never empty.

    BRIDGE_TRACES=traces python benchmarks/slurm/protocol.py [--jobs N] [--days D]

Simulation only: neither reading nor writing counts. Times are those of the processor, so that other programs
beside it do not count. Published rates of Slurm's own simulators, which patch slurmctld: 17 days an hour
(408 × real time), and 100 × real time.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from bridge.experiment.prepare import prepare_experiment
from bridge.experiment.spec import parse
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.slurm.log_replay import LogReplay

DAY = 86_400.0
#: Rates that are published for simulators of Slurm, × real time.
PUBLISHED = {"17 days an hour": 17 * 24.0, "100 × real time": 100.0}
SITE = """name = "sdsc"
[[nodes]]
name = "n"
count = 128
[[partitions]]
name = "short"
max_time = 14400
tier = 2
[[partitions]]
name = "batch"
default = true
[[partitions]]
name = "big"
nodes = ["n[0-95]"]
[[qos]]
name = "normal"
priority = 10
max_jobs_per_user = 30
[[qos]]
name = "high"
priority = 100
max_tres_per_user = {nodes = 64}
[priority]
age = 1000
fairshare = 10000
qos = 2000
job_size = 500
"""
LARGE = """name = "large"
[[nodes]]
name = "n"
count = 1000
[[partitions]]
name = "batch"
[priority]
age = 1000
fairshare = 10000
"""


@dataclass(frozen=True)
class Speed:
    """A simulation: how many jobs, s of its processor, and s that passed in it."""

    jobs: int
    cpu: float
    simulated: float
    waiting: float

    def __str__(self) -> str:
        rate = self.simulated / self.cpu
        ratios = ", ".join(f"{rate / other:,.0f} × '{name}'" for name, other in PUBLISHED.items())
        return (
            f"{self.jobs:,} jobs in {self.cpu:.1f} s: {self.jobs / self.cpu:,.0f} jobs/s, "
            f"{rate:,.0f} × real time ({ratios}); {self.waiting:,.0f} jobs wait until the last comes"
        )


def measure(log: str, cluster: Path, first: int | None) -> Speed:
    """Play a log on a site twice, a few jobs first, so that kernels are compiled; time the second."""
    setup = {"protocol": "slurm", "cluster": str(cluster)}
    for count in (50, first):
        task = prepare_experiment(
            parse({"workload": log}, "here", setup | ({"first": count} if count else {}))
        )
        world = LogReplay(task.prepared)
        begin = time.process_time()
        world.play(0)
        cpu = time.process_time() - begin
    schedule = Schedule(**world.outcomes())
    simulated = float(schedule.end.max() - schedule.submit.min()) / 1e6
    last = schedule.submit.max()  # afterwards the queue only empties
    waited = float(np.maximum(np.minimum(schedule.start, last) - schedule.submit, 0).sum()) / 1e6
    return Speed(len(schedule.start), cpu, simulated, waited / max(last / 1e6, 1.0))


def log_of_site(folder: Path, log: Path) -> Path:
    """Return a log whose jobs are in the three partitions and two QOS, by their lengths and users."""
    from bridge.workload.catalogue import read_log

    jobs = read_log(str(log)).jobs
    short = (jobs["req_time"] > 0) & (jobs["req_time"] <= 14_400)
    big = ~short & (jobs["req_procs"] >= 32) & (jobs["req_procs"] <= 96)
    jobs["partition_name"] = np.where(short, "short", np.where(big, "big", "batch"))
    jobs["qos_name"] = np.where(jobs["user"] % 5 == 0, "high", "normal")
    jobs.to_parquet(folder / "site.parquet")
    return folder / "site.parquet"


def crowded(folder: Path, days: float, waiting: int, nodes: int = 1000) -> Path:
    """Return a log that keeps `waiting` jobs waiting: as many at the begin, then as many as can run."""
    rng = np.random.default_rng(7)
    size = np.minimum(np.exp2(rng.integers(0, 9, 400_000)), nodes / 2).astype(np.int64)
    run = np.minimum(rng.lognormal(8.6, 1.1, len(size)), 86_400.0).round()
    work = np.cumsum(size * run)
    n_first = int(np.searchsorted(work, 0.5 * nodes * 3600)) + waiting
    rest = np.maximum(work - work[n_first], 0.0) / (0.93 * nodes)
    submit = np.where(np.arange(len(size)) < n_first, 0.0, rest)
    kept = submit < days * DAY
    table = pd.DataFrame(
        {
            "job_id": np.arange(1, len(size) + 1),
            "submit": submit.round(),
            "run": run,
            "req_time": np.ceil(run * rng.uniform(1.0, 4.0, len(size)) / 600) * 600,
            "procs": size,
            "req_procs": size,
            "user": rng.integers(1, 60, len(size)),
        }
    )
    table[kept].to_parquet(folder / "crowded.parquet")
    return folder / "crowded.parquet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=0, help="only the first N jobs of the site's log")
    parser.add_argument("--days", type=float, default=30.0, help="of the crowded site")
    parser.add_argument("--waiting", type=int, default=1000)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sdsc.toml").write_text(SITE)
        (folder / "large.toml").write_text(LARGE)
        log = Path(os.environ["BRIDGE_TRACES"]) / "SDSC-SP2-1998-4.2-cln.swf.gz"
        site = str(log_of_site(folder, log))
        print(
            "SDSC-SP2, 3 partitions, QOS, fair share:",
            measure(site, folder / "sdsc.toml", options.jobs or None),
        )
        busy = str(crowded(folder, options.days, options.waiting))
        print(f"1,000 nodes, {options.days:g} days:", measure(busy, folder / "large.toml", None))


if __name__ == "__main__":
    main()
