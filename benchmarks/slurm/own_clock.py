"""Does a recorded mean wait lie among those that the protocol's own clock gives over its phases?

    python benchmarks/slurm/own_clock.py FOLDER-OF-CASES [--phases 200] [--only NAME]…

A line a case: the recorded mean wait and makespan, how much later they are than the mean over all phases, the
deviation over the phases, and whether they lie in the central 98 %. Then how many cases do.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bridge.worlds.fast.slurm.agreement import play_case
from bridge.worlds.fast.slurm.case import SlurmCase, read_case

#: What must lie between these quantiles over the phases.
CENTRAL = (0.01, 0.99)


def outcome(case: SlurmCase, starts: Mapping[tuple[str, int], float]) -> tuple[float, float]:
    """Return the mean wait of first starts, s, and the makespan: the last end, s."""
    waits, ends = [], [0.0]
    for (job, episode), start in starts.items():
        rows = case.recorded.get(job, [])
        if episode == 0 and rows and rows[0].submit is not None:
            waits.append(start - rows[0].submit)
        elapsed = rows[episode].elapsed if episode < len(rows) else None
        ends.append(start + (elapsed or 0.0))
    return float(np.mean(waits)), max(ends)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--phases", type=int, default=200)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    folders = [one for one in sorted(options.cases.iterdir()) if (one / "cycles.csv").exists()]
    within = []
    for folder in folders:
        if options.only and folder.name not in options.only:
            continue
        case = read_case(folder)
        real = np.array(outcome(case, {key: one.start for key, one in case.starts.items()}))
        played = np.array(
            [
                outcome(
                    case, {(one.job, one.episode): one.start for one in play_case(folder, "own", seed).starts}
                )
                for seed in range(options.phases)
            ]
        )
        low, high = np.quantile(played, CENTRAL, axis=0)
        within.append((low <= real) & (real <= high))
        columns = (
            f"{name} {real[k]:9.1f} {real[k] - played[:, k].mean():+8.1f} ± {played[:, k].std():6.1f} "
            f"{'within' if within[-1][k] else 'OUTSIDE'}"
            for k, name in enumerate(("wait", "makespan"))
        )
        print(f"{folder.name:20s}", " | ".join(columns), flush=True)
    waits, makespans = np.sum(within, axis=0)
    print(f"of {len(within)} cases: wait of {waits}, makespan of {makespans} within")


if __name__ == "__main__":
    main()
