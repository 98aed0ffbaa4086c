"""How fast replays are where thousands of jobs run at a time, against another commit, as ratios of pairs.

Simulation only: jobs of one node under FCFS with EASY, requests of up to five times the run times. On a
machine that is never full so many run as the case says; on a full one, of so many nodes, the queue's head is
blocked at every pass. Both commits run in processes of their own, in turns.

    python benchmarks/running.py                          # against the commit before
    python benchmarks/running.py --against v1.0 --pairs 5
    python benchmarks/running.py --against ""             # this tree alone
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent
CASES = tuple((running, full) for running in (300, 12_000, 36_000) for full in (False, True))
JOBS, GAP_S = 300_000, 3


def measure(running: int, full: bool, rounds: int) -> float:
    """Return jobs per second, the best of several rounds."""
    import time

    import numpy as np
    from small_jobs import make_jobs, prepared

    from bridge.scheduler import state as scheduler_state
    from bridge.scheduler.protocol import Policy
    from bridge.worlds.fast import episode, world

    rng = np.random.default_rng(1)
    run = np.maximum(rng.exponential(running * GAP_S, JOBS).astype(np.int64), 1)
    submit = np.cumsum(rng.integers(0, 2 * GAP_S + 1, JOBS))
    request = run * rng.integers(1, 6, JOBS)
    if full:  # 2 % more than it can do
        submit = submit * 50 // 51
    rows = np.column_stack((submit, run, request, np.ones_like(run)))
    scenario = prepared(make_jobs(rows, [running if full else 2 * running]), Policy("fcfs", "easy"))
    state = scheduler_state.allocate(1, JOBS, 1, window=1, users=len(scenario.share))
    state, memory = episode.configure(state, scenario), world.allocate(1, JOBS)
    best = np.inf
    for _ in range(rounds):
        episode.load_episode(state, memory, 0, scenario, 0, JOBS)
        before = time.perf_counter()
        kind = world.run_until_decision(state, memory, 0, 1 << 60)
        best = min(best, time.perf_counter() - before)
        if kind != world.DONE:
            raise SystemExit(f"the replay ended with kind {kind}")
    return JOBS / best


def run_in(tree: Path, rounds: int) -> list[float]:
    """Return the jobs per second of all cases, by the code in a folder."""
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}"}
    # -P: this folder has scripts of other names, such as bridge.py
    command = [sys.executable, "-P", str(HERE), "--child", "--rounds", str(rounds)]
    done = subprocess.run(command, env=environment, cwd=tree, check=True, stdout=subprocess.PIPE)
    speeds: list[float] = json.loads(done.stdout)
    return speeds


def unpack(revision: str, folder: Path) -> None:
    """Write a commit's files to a folder."""
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive, check=True)


def main() -> None:
    """Measure what the command line asks for, and print a row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", default="HEAD~1", metavar="COMMIT", help="default: HEAD~1; '' = none")
    parser.add_argument("--pairs", type=int, default=3, help="default: 3")
    parser.add_argument("--rounds", type=int, default=3, help="replays per process and case, the best counts")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps([measure(*case, options.rounds) for case in CASES]))
        return
    here, there = list[list[float]](), list[list[float]]()
    with tempfile.TemporaryDirectory() as folder:
        if options.against:
            unpack(options.against, Path(folder))
        for k in range(options.pairs):
            sides = [(ROOT, here), (Path(folder), there)] if options.against else [(ROOT, here)]
            for tree, speeds in sides if k % 2 else sides[::-1]:
                speeds.append(run_in(tree, options.rounds))
    other = options.against or "none"
    print(f"| running jobs | machine | jobs/s | jobs/s, {other} | ratio, median of {options.pairs} pairs |")
    print("|---|---|---|---|---|")
    for c, (running, full) in enumerate(CASES):
        mine, others = ([speeds[c] for speeds in side] for side in (here, there))
        words = ["–", "–"]
        if others:
            ratio = statistics.median(one / two for one, two in zip(mine, others, strict=True))
            words = [f"{statistics.median(others):,.0f}", f"{ratio:.2f}"]
        kind = "full" if full else "never full"
        print(f"| {running:,} | {kind} | {statistics.median(mine):,.0f} | {' | '.join(words)} |")


if __name__ == "__main__":
    main()
