"""Speed of the protocol `slurm`: a site's log, and a month of a large site whose queue is never empty.

    BRIDGE_TRACES=traces python benchmarks/slurm/protocol.py [--jobs N] [--days D]

Simulation only: neither reading nor writing counts. Times are those of the processor, so that other programs
beside it do not count. Published rates of Slurm's own simulators, which patch slurmctld: 17 days an hour
(408 × real time), and 100 × real time.
"""

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from bridge.experiment.prepare import prepare_experiment
from bridge.experiment.spec import parse
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.slurm.log_replay import LogReplay
from bridge.worlds.fast.slurm.own_clock import OwnClock

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


SHARED = LARGE.replace("count = 1000", "count = 1000\ncores = 16").replace(
    'name = "batch"', 'name = "batch"\nexclusive = false'
)


def _rate(jobs: int, cpu: float, simulated: float) -> str:
    rate = simulated / cpu
    ratios = ", ".join(f"{rate / other:,.0f} × '{name}'" for name, other in PUBLISHED.items())
    return f"{jobs:,} starts in {cpu:.1f} s: {jobs / cpu:,.0f} a second, {rate:,.0f} × real time ({ratios})"


def measure(log: str, cluster: Path, first: int | None) -> str:
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
    return _rate(len(schedule.start), cpu, simulated)


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


def many_jobs(folder: Path, count: int, nodes: int = 1000, *, shared: bool = False) -> Path:
    """Return a log of jobs of one instant: `Crowd` submits them in turn; `shared`: of cores, not of nodes."""
    rng = np.random.default_rng(7)
    size = np.minimum(np.exp2(rng.integers(0, 9, count)), nodes / 2).astype(np.int64)
    run = np.minimum(rng.lognormal(8.6, 1.1, count), 86_400.0).round()
    table = pd.DataFrame(
        {
            "job_id": np.arange(1, count + 1),
            "submit": np.zeros(count),
            "run": run,
            "req_time": np.ceil(run * rng.uniform(1.0, 4.0, count) / 600) * 600,
            "procs": size,
            "req_procs": size,
            "user": rng.integers(1, 60, count),
        }
    )
    if shared:  # as much work, in tasks of one core that lie on as many nodes as they need
        table["tasks"] = np.maximum(size * 16 // rng.integers(1, 3, count), 1)
        table["nodes"], table["cores_per_task"] = -1, 1
    table.to_parquet(folder / "crowded.parquet")
    return folder / "crowded.parquet"


class _OverError(Exception):
    """The days are over."""


class Crowd(LogReplay):
    """Keeps so many jobs waiting: whenever one starts, the next is submitted."""

    waiting, days = 1000, 30.0
    stops_at_starts = True

    def play(self, seed: int, glance: object = None) -> None:
        del glance
        self.glance = None
        self.following = iter(range(len(self.all)))
        for _ in range(self.waiting):
            self._let_one_come(0.0)
        self.push(self.days * DAY, "over", None)
        try:
            self.play_freely(OwnClock.of_site(self.site, 0.0, seed))
        except _OverError:
            return

    def _let_one_come(self, time: float) -> None:
        if (j := next(self.following, None)) is None:
            raise SystemExit("the crowd has no jobs left: give many_jobs more")
        self.push(time, "submit", j)

    def happen(self, time: float, kind: str, what: object) -> None:
        if kind == "over":
            raise _OverError
        super().happen(time, kind, what)

    def on_start(self, job: SlurmJob, who: str, time: float) -> None:
        super().on_start(job, who, time)
        self._let_one_come(time)


def measure_crowd(folder: Path, days: float, waiting: int, *, shared: bool) -> str:
    """Play so many days of a site with so many jobs waiting throughout."""
    log = many_jobs(folder, int(400 * days) + 2 * waiting, shared=shared)
    cluster = folder / ("shared.toml" if shared else "large.toml")
    for length in (0.05, days):  # the first so that kernels are compiled
        task = prepare_experiment(
            parse({"workload": str(log)}, "here", {"protocol": "slurm", "cluster": str(cluster)})
        )
        world = Crowd(task.prepared)
        world.waiting, world.days = waiting, length
        begin = time.process_time()
        world.play(0)
        cpu = time.process_time() - begin
    left = len(world.slurm.pending)
    return f"{days:g} days, {left:,} jobs wait in the end: {_rate(world.serial, cpu, days * DAY)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=0, help="only the first N jobs of the site's log; -1: none"
    )
    parser.add_argument("--days", type=float, default=30.0, help="of the crowded site")
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--kinds", nargs="*", default=["whole", "shared"], help="nodes of the crowded site")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sdsc.toml").write_text(SITE)
        (folder / "large.toml").write_text(LARGE)
        (folder / "shared.toml").write_text(SHARED)
        if options.jobs >= 0:
            log = Path(os.environ["BRIDGE_TRACES"]) / "SDSC-SP2-1998-4.2-cln.swf.gz"
            speed = measure(str(log_of_site(folder, log)), folder / "sdsc.toml", options.jobs or None)
            print("SDSC-SP2, 3 partitions, QOS, fair share:", speed)
        for kind in options.kinds:
            speed = measure_crowd(folder, options.days, options.waiting, shared=kind == "shared")
            print(f"1,000 nodes, {kind}, {speed}")


if __name__ == "__main__":
    main()
