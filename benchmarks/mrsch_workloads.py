"""Prints the statistics of MRSch's workloads, the paper's in brackets, as Markdown tables.

    python benchmarks/mrsch_workloads.py THETA_LOG [SEED]

THETA_LOG is theta_2022.swf.gz; SEED is 1 unless given.
"""

import argparse
import sys
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]  # not this folder: its scripts have names of their own

from bridge.workload.mrsch import SETTINGS, Sizes, StatisticRow, generate_mrsch, statistics  # noqa: E402
from bridge.workload.swf import read_swf  # noqa: E402

#: Statistic -> heading and number format.
SHOWN = {
    "mean nodes": ("mean nodes", ".1f"),
    "jobs with burst buffer, %": ("jobs with burst buffer, %", ".1f"),
    "least request, TB": ("least, TB", ".1f"),
    "mean request, TB": ("mean, TB", ".1f"),
    "largest request, TB": ("largest, TB", ".1f"),
    "mean power per node, W": ("mean W per node", ".1f"),
    "offered load: nodes": ("load: nodes", ".2f"),
    "offered load: burst_buffer": ("burst buffer", ".2f"),
    "offered load: power": ("power", ".2f"),
    "goal: burst_buffer (Eq. 1 over all jobs)": ("goal: burst buffer", ".2f"),
}


def main(path: Path, seed: int) -> None:
    """Print one table per distribution of sizes."""
    log = read_swf(path)
    for sizes in get_args(Sizes):
        print(f"| {sizes} | {' | '.join(heading for heading, _ in SHOWN.values())} |")
        print("|---|" + "---|" * len(SHOWN))
        for name in SETTINGS:
            if (sizes == "heavy-tailed") != (SETTINGS[name].sizes == "heavy-tailed"):
                continue
            rows = {row.what: row for row in statistics(generate_mrsch(log, name, seed, sizes=sizes), name)}
            cells = [_cell(rows[what], how) if what in rows else "" for what, (_, how) in SHOWN.items()]
            print(f"| {name} | {' | '.join(cells)} |")
        print()


def _cell(row: StatisticRow, how: str) -> str:
    return f"{row.here:{how}}" + (f" ({row.paper})" if row.paper[:1].isdigit() else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    arguments = parser.parse_args()
    main(arguments.log, arguments.seed)
