"""The log of a site with nodes and queues of its own: ThetaGPU's record of 2023."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from bridge.base.errors import BridgeError
from bridge.workload.formats import write
from bridge.workload.mapped import read_mapped
from bridge.workload.table import Workload
from papers import store

#: Where studies read it.
THETAGPU = store.WORK / "workloads" / "ThetaGPU.parquet"
#: The longest request of the queue that gives single GPUs, s.
SINGLE_LIMIT = 3600
#: Of a job with a single GPU: an eighth of its node.
CORES = 16


def sort_into_queues(log: Workload) -> Workload:
    """Return ThetaGPU's record for the cluster `thetagpu-2023`.

    The record counts a job's units and names no queue. The queue of single GPUs gave one GPU for an hour at
    most; all other jobs had whole nodes. So a job of one unit that requests no more has a GPU, and units of
    all others are nodes: read so, they never exceed the machine's nodes, and read as GPUs they fill nothing.
    """
    jobs = log.jobs.copy()
    single = ((jobs["procs"] == 1) & (jobs["req_time"] <= SINGLE_LIMIT)).to_numpy()
    jobs["partition_name"] = np.where(single, "single-gpu", "full-node")
    jobs["nodes"] = jobs["procs"]
    jobs["cores_per_node"] = np.where(single, CORES, -1)
    jobs["gpus_per_node"] = np.where(single, 1, -1)
    return replace(log, jobs=jobs, capacity={"nodes": 24})


def write_thetagpu(table: Path) -> Path:
    """Write the log from the published table; BridgeError: it is not there."""
    if not table.exists():
        remedy = "Get it from github.com/DIR-LAB/lumos, and name it with --thetagpu."
        raise BridgeError("there is no such table", where=str(table), remedy=remedy)
    THETAGPU.parent.mkdir(parents=True, exist_ok=True)
    write(sort_into_queues(read_mapped(table, "thetagpu")), THETAGPU)
    return THETAGPU
