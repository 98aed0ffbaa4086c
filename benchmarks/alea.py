"""How many starts of AleaNG's own results the protocol `alea` gives, and without each of its rules.

    python benchmarks/alea.py FOLDER    # with Example1-load_50p-….swf.gz, its site, and completed_jobs_….gz

The results are those that AleaNG's repository holds (aleasimulator/AleaNG, a759abe); their starts are rounded
to a tenth of a second.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from bridge.cluster.description import Cluster, SchedulerParameters  # noqa: E402
from bridge.cluster.swf_site import import_swf_site  # noqa: E402
from bridge.scheduler.protocol import Policy, Protocol, protocol  # noqa: E402
from bridge.scheduler.state import SECOND  # noqa: E402
from bridge.workload.rules import LOAD_RULES  # noqa: E402
from bridge.workload.select import select  # noqa: E402
from bridge.workload.swf_requests import read_with_site  # noqa: E402
from bridge.worlds.fast.episode import prepare  # noqa: E402
from bridge.worlds.fast.replay import replay  # noqa: E402

ALEA = protocol("alea")
SHARES, RESERVED = Policy("user_shares", "filler"), Policy("user_shares", "easy")
#: What is changed -> the protocol, the policy and the rule of limits.
VARIANTS: dict[str, tuple[Protocol, Policy, SchedulerParameters | None]] = {
    "all of its rules": (ALEA, SHARES, None),
    "a start takes no time, and a pass starts all": (replace(ALEA, start_gap=0), SHARES, None),
    "jobs run as logged, without the extra second": (replace(ALEA, extra_second=False), SHARES, None),
    "nodes of several machines": (replace(ALEA, one_machine=False), SHARES, None),
    "a blocked head has a reservation": (replace(ALEA, backfills=("easy",)), RESERVED, None),
    "quotas of queues stand in for those of users": (ALEA, SHARES, SchedulerParameters()),
    "first come, first served": (ALEA, Policy("fcfs", "filler"), None),
    "standard, user_shares+easy": (protocol("standard"), RESERVED, None),
    "standard, fcfs+easy": (protocol("standard"), Policy("fcfs", "easy"), None),
}


def shares_of_equal_starts(folder: Path, load: str) -> Iterator[tuple[str, int, int]]:
    """Yield for each variant how many starts are equal, and how many jobs there are."""
    log = next(folder.glob(f"Example1-load_{load}p-*.swf.gz"))
    results = pd.read_csv(folder / f"completed_jobs_load_{load}p.csv.gz", sep="\t").set_index("job_ID")
    cluster: Cluster = import_swf_site(log).cluster
    rule = LOAD_RULES["standard"]
    for name, (rules, policy, limits) in VARIANTS.items():
        site = cluster if limits is None else replace(cluster, scheduler=limits)
        jobs = select(read_with_site(log), rule, cluster=site)
        start = replay(prepare(jobs, rules, policy, "requested", rule)).start
        rows = results.loc[[int(number) for number in jobs.id]]
        wait = (start - jobs.submit) / SECOND
        expected = (rows["start_time"] - rows["arrival"]).to_numpy()
        yield name, int((np.floor(wait * 10 + 0.5) == np.round(expected * 10)).sum()), len(jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for load in ("50", "100"):
        for name, equal, n in shares_of_equal_starts(folder, load):
            print(f"{load:>3} %  {name:46} {equal:>5,} of {n:,}  {100 * equal / n:5.1f} %", flush=True)


if __name__ == "__main__":
    main()
