"""Overhead of a study's executors: the same cells by a plain loop, on processes, on Ray; prints ratios.

Every executor works with one worker, on cells of the same cost, and is measured from its first cell's end to
its last one's: what it costs to start processes or a cluster is told apart.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bridge.study.cells import Cell, cells_of
from bridge.study.executor import Executor, Processes, Ray
from bridge.study.runner import StudyRun
from bridge.study.spec import Study, StudyRow
from bridge.study.store import Store
from bridge.study.windows import TestSet
from bridge.study.work import run_cell

_TRAINING = {"trajectories": 10, "length": 64, "iterations": 10, "critic_iterations": 10}


def study_of(cells: int, epochs: int) -> Study:
    """Return a study of so many cells of the same cost."""
    agent = StudyRow("agent", policy="rlbackfilling", changes={"training": _TRAINING})
    return Study(
        "Overhead", ("bundled-128",), (agent,), seeds=cells, epochs=epochs, tests=(TestSet(length=64),)
    )


def looped(cells: list[Cell], folder: Path) -> tuple[float, float]:
    """Return the seconds from the first cell's end to the last one's, and those up to the first's."""
    store, times = Store(folder), [time.perf_counter()]
    for cell in cells:
        run_cell(cell, store, "loop")
        times.append(time.perf_counter())
    return times[-1] - times[1], times[1] - times[0]


def run_on(kind: str, cells: list[Cell], folder: Path) -> tuple[float, float]:
    """Return the same of an executor with one worker."""
    store, times = Store(folder), [time.perf_counter()]
    run = StudyRun(cells, store, lambda _: times.append(time.perf_counter()))
    executor: Executor
    if kind == "ray":
        executor = Ray(store, run.token, cells, "local", cores=1)
    else:
        executor = Processes(store, run.token, 1)
    if run.carry_out(executor).failed:
        sys.exit("a cell failed")
    return times[-1] - times[1], times[1] - times[0]


def main() -> None:
    """Measure in turns, and print the smallest time of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ray", action="store_true", help="Measure Ray too.")
    args = parser.parse_args()
    kinds = ["loop", "processes", *(["ray"] if args.ray else [])]
    cells = cells_of(study_of(args.cells, args.epochs))
    best = dict.fromkeys(kinds, (float("inf"), float("inf")))
    with tempfile.TemporaryDirectory() as place:
        run_cell(replace(cells[0], seed=10**6), Store(Path(place) / "warm"), "warm")
        for k in range(args.rounds):
            for kind in kinds:
                folder = Path(place) / f"{kind}{k}"
                found = looped(cells, folder) if kind == "loop" else run_on(kind, cells, folder)
                best[kind] = min(best[kind], found)
    for kind, (seconds, first) in best.items():
        per = seconds / (args.cells - 1)
        ratio = seconds / best["loop"][0]
        print(f"{kind:10} {per:6.2f} s a cell, ratio {ratio:.3f}, {first:5.1f} s up to the first one's end")


if __name__ == "__main__":
    main()
