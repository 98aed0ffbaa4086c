"""How fast replays on clusters are: jobs a second of the compiled core, simulation only.

    python benchmarks/cluster.py --case exclusive   # 10,000 nodes, 7 overlapping partitions, 10^5 jobs, EASY
    python benchmarks/cluster.py --case shared      # 1,000 nodes x 64 cores, 512 GiB, 4 GPUs

Jobs are Lublin-like; the time between arrivals is scaled to the `--load`. Processor time,
the best of several runs; then how many jobs waited at most.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from bridge.cluster.description import Cluster, NodeGroup, Partition  # noqa: E402
from bridge.scheduler.protocol import Policy, protocol  # noqa: E402
from bridge.workload import lublin  # noqa: E402
from bridge.workload.rules import LOAD_RULES  # noqa: E402
from bridge.workload.select import Jobs, select  # noqa: E402
from bridge.workload.table import Workload  # noqa: E402
from bridge.worlds.fast import replay as fast  # noqa: E402
from bridge.worlds.fast.episode import Scenario, load_episode, prepare  # noqa: E402


def exclusive_site() -> Cluster:
    """Return 10,000 nodes of three kinds in seven partitions that overlap."""
    groups = (
        NodeGroup(name="thin", count=7000, cores=64),
        NodeGroup(name="fat", count=2000, cores=64, weight=2),
        NodeGroup(name="gpu", count=1000, cores=64, gpus={"a100": 4}, weight=3),
    )
    partitions = (
        Partition(name="all", nodes=("ALL",), default=True),
        Partition(name="thin", nodes=("thin",)),
        Partition(name="fat", nodes=("fat",)),
        Partition(name="gpu", nodes=("gpu",)),
        Partition(name="debug", nodes=("thin[0-499]",)),
        Partition(name="mixed", nodes=("thin[4000-6999]", "fat")),
        Partition(name="large", nodes=("fat", "gpu")),
    )
    return Cluster(name="exclusive", nodes=groups, partitions=partitions)


def exclusive_jobs(jobs: int, seed: int, load: float) -> Workload:
    """Return Lublin-like jobs whose partitions hold them."""
    size = {"all": 10_000, "thin": 7000, "fat": 2000, "gpu": 1000, "debug": 500, "mixed": 5000, "large": 3000}
    log = lublin.add_estimates(lublin.generate(lublin.lublin_1(4096), jobs, seed), seed)
    rng = np.random.default_rng(seed)
    names = rng.choice([*size], len(log.jobs), p=[0.2, 0.3, 0.12, 0.1, 0.08, 0.12, 0.08])
    nodes = np.minimum(log.jobs["req_procs"].to_numpy(), [size[name] // 2 for name in names])
    return scaled(log, load, 10_000, {"partition_name": names, "nodes": nodes}, nodes)


def shared_site() -> Cluster:
    """Return 1,000 nodes with 64 cores, 512 GiB and 4 GPUs, which jobs share."""
    group = NodeGroup(name="n", count=1000, cores=64, memory=512 * 1024, gpus={"a100": 4})
    partitions = (Partition(name="work", exclusive=False, default=True),)
    return Cluster(name="shared", nodes=(group,), partitions=partitions)


def shared_jobs(jobs: int, seed: int, load: float) -> Workload:
    """Return Lublin-like jobs: cores of a node, or some nodes; a fifth of them has GPUs."""
    log = lublin.add_estimates(lublin.generate(lublin.lublin_1(1024), jobs, seed), seed)
    rng = np.random.default_rng(seed)
    cores = log.jobs["req_procs"].to_numpy()
    nodes = np.maximum(1, cores // 64)
    per_node = np.minimum(64, -(-cores // nodes))
    columns = {
        "nodes": nodes,
        "cores_per_node": per_node,
        "memory_per_node": per_node * rng.choice([1024, 2048, 4096, 8192], len(cores)),
        "gpus_per_node": np.where(rng.random(len(cores)) < 0.2, rng.integers(1, 5, len(cores)), 0),
    }
    return scaled(log, load, 64_000, columns, nodes * per_node)


def scaled(log: Workload, load: float, capacity: int, columns: dict[str, object], size: object) -> Workload:
    """Return the log with more columns, its arrivals so close together that the machine has this load."""
    table: pd.DataFrame = log.jobs.assign(**columns)
    span = float(table["submit"].max() - table["submit"].min())
    work = float((np.asarray(size) * table["run"].to_numpy()).sum())
    table["submit"] = ((table["submit"] - table["submit"].min()) * (work / (capacity * span * load))).round()
    return Workload(log.name, table, {}, {})


def play(prepared: Scenario) -> tuple[float, int]:
    """Return how long a replay took, s, and how many jobs waited at most, by its schedule."""
    state, memory = fast.allocate(prepared, len(prepared.jobs))
    load_episode(state, memory, 0, prepared, 0, len(prepared.jobs))
    log = fast.AllocationLog(state)
    started_at = time.process_time()
    fast.play(state, memory, prepared, log.collect)
    took = time.process_time() - started_at
    start = state.jobs.start[0]
    submit = prepared.jobs.submit
    events = np.concatenate((submit, start[start >= 0]))
    steps = np.concatenate((np.ones(len(submit)), -np.ones(int((start >= 0).sum()))))
    waiting = np.cumsum(steps[np.argsort(events, kind="stable")])
    return took, int(waiting.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=("exclusive", "shared"), default="exclusive")
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--order", default="fcfs")
    options = parser.parse_args()
    site, build = {
        "exclusive": (exclusive_site, exclusive_jobs),
        "shared": (shared_site, shared_jobs),
    }[options.case]
    log = build(options.jobs, options.seed, options.load)
    jobs: Jobs = select(log, LOAD_RULES["standard"], cluster=site())
    began = time.process_time()
    prepared = prepare(jobs, protocol("standard"), Policy(options.order), "requested", LOAD_RULES["standard"])
    print(f"{len(jobs):,} jobs; arrays in {time.process_time() - began:.2f} s")
    first = prepare(jobs.take(slice(0, 50)), protocol("standard"), Policy(options.order), "requested",
                    LOAD_RULES["standard"])  # fmt: skip
    began = time.process_time()
    play(first)
    print(f"compiled in {time.process_time() - began:.1f} s")
    runs = [play(prepared) for _ in range(options.rounds)]
    best = min(took for took, _ in runs)
    print(f"{options.case}, load {options.load:g}, seed {options.seed}: {len(jobs) / best:,.0f} jobs/s; "
          f"at most {runs[0][1]:,} waited")  # fmt: skip


if __name__ == "__main__":
    main()
