"""What-if: seven rules, 100 futures, 500 waiting jobs, each future until all have started; warm, seconds.

python benchmarks/whatif.py [--waiting 500] [--futures 100] [--repeat 5]
"""

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402

from bridge.forecasting.state import FairShareUser, MachineState  # noqa: E402
from bridge.forecasting.whatif import whatif  # noqa: E402
from bridge.scheduler.estimators import RunTimeEstimates  # noqa: E402
from bridge.scheduler.state import SECOND  # noqa: E402

POLICIES = [f"{order}+easy" for order in ("fcfs", "sjf", "saf", "f1", "wfp3", "unicep", "slurm")]
LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def crowded(waiting: int, nodes: int = 128, seed: int = 0) -> MachineState:
    """Return a full machine with a queue: sizes and requests log-uniform, run times a part of the request."""
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    while sum(sizes) < nodes:
        sizes.append(min(int(2 ** rng.uniform(0, 5)), nodes - sum(sizes)))
    running, n = len(sizes), len(sizes) + waiting
    demand = np.array([*sizes, *(2 ** rng.uniform(0, 6, waiting)).astype(np.int64)])[:, None]
    now = 10**6 * SECOND
    submit = now - np.sort(rng.integers(1, 86_400, n))[::-1] * SECOND
    request = np.exp(rng.uniform(np.log(600), np.log(64_800), n)).astype(np.int64) * SECOND
    request[:running] += now - submit[:running]
    return MachineState(
        now=now,
        resources=("nodes",),
        capacity=np.array([nodes]),
        free=np.array([0]),
        id=tuple(map(str, range(n))),
        submit=submit,
        start=submit,
        request=request,
        demand=demand,
        lengths=RunTimeEstimates(request, request, request, False),
        n_running=running,
        user=tuple(map(str, rng.integers(0, 30, n))),
        partition=rng.random(n),
        levels=LEVELS,
        quantiles=request[:, None] / SECOND * LEVELS**2,
        users={str(u): FairShareUser(1 / 30, float(rng.random() * 1e6)) for u in range(30)},
        used=1.5e7,
        longest=64_800.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("waiting", 500), ("futures", 100), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    state = crowded(given.waiting)
    whatif([state], POLICIES, futures=2)  # compiles
    for _ in range(given.repeat):
        begun, busy = time.perf_counter(), time.process_time()
        whatif([state], POLICIES, futures=given.futures)
        wall, cpu = time.perf_counter() - begun, time.process_time() - busy
        print(
            f"{len(POLICIES)} rules × {given.futures} futures × {given.waiting} waiting jobs: {wall:.2f} s",
            end=" ",
        )
        print(
            f"({cpu:.2f} s of processors; {os.cpu_count()} there, load {os.getloadavg()[0]:.1f})", flush=True
        )


if __name__ == "__main__":
    main()
