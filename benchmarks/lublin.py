"""Compares the generated Lublin workloads with the two logs they stand for, as a Markdown table.

    python benchmarks/lublin.py FOLDER [SEEDS]

FOLDER holds lublin_256.swf.gz and lublin_256_new2.swf.gz; SEEDS (40) workloads of 10,000 jobs are drawn.
"""

import argparse
import sys
from pathlib import Path

sys.path[:1] = [str(Path(__file__).resolve().parent.parent)]  # not this folder: its bridge.py is no package

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from bridge.workload.lublin import PRESETS, generate  # noqa: E402
from bridge.workload.statistics import offered_load  # noqa: E402
from bridge.workload.swf import read_swf  # noqa: E402
from bridge.workload.table import Workload  # noqa: E402

LOGS = {"lublin-1": "lublin_256.swf.gz", "lublin-2": "lublin_256_new2.swf.gz"}


def measure(workload: Workload) -> dict[str, float]:
    jobs: pd.DataFrame = workload.jobs
    gap = np.diff(jobs["submit"].to_numpy(dtype=np.float64))
    run = jobs["run"].to_numpy(dtype=np.float64)
    size = jobs["procs"].to_numpy()
    return {
        "mean time between arrivals, s": float(gap.mean()),
        "mean of ln(time between arrivals)": float(np.log(np.maximum(gap, 1)).mean()),
        "mean run time, s": float(run.mean()),
        "mean of ln(run time)": float(np.log(np.maximum(run, 1)).mean()),
        "standard deviation of ln(run time)": float(np.log(np.maximum(run, 1)).std()),
        "mean processors": float(size.mean()),
        "share on one processor": float((size == 1).mean()),
        "share on a power of two": float(((size & (size - 1)) == 0).mean()),
        "share in queue 1 (batch)": float((jobs["queue"] == 1).mean()),
        "offered load": offered_load(workload) or float("nan"),
    }


def main(folder: Path, seeds: int) -> None:
    print("| model | statistic | log | model: mean ± sd | least … most | deviation, sd |")
    print("|---|---|---|---|---|---|")
    for name, file in LOGS.items():
        log = measure(read_swf(folder / file))
        drawn = [measure(generate(PRESETS[name](256), 10_000, seed, name)) for seed in range(seeds)]
        for what, value in log.items():
            values = np.array([each[what] for each in drawn])
            sd = values.std(ddof=1)
            off = f"{(value - values.mean()) / sd:+.1f}" if sd > 0 else "–"
            spread = f"{values.mean():.4g} ± {sd:.2g} | {values.min():.4g} … {values.max():.4g}"
            print(f"| {name} | {what} | {value:.4g} | {spread} | {off} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("seeds", type=int, nargs="?", default=40)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.seeds)
