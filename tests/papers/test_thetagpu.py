"""ThetaGPU's record: which jobs have a GPU, which have nodes; and a replay on the site that has both."""

from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("torch", reason="papers need PyTorch")

from bridge.base.errors import BridgeError
from bridge.workload.table import Workload
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers.sites.thetagpu import sort_into_queues, write_thetagpu


def record(units: list[int], requests: list[int]) -> Workload:
    n = len(units)
    columns = {"job_id": range(1, n + 1), "submit": range(n), "wait": 0, "run": 600, "procs": units}
    more = {"req_procs": -1, "req_time": requests, "status": 1, "user": 1, "queue": -1}
    return Workload("t", pd.DataFrame(columns | more), {"nodes": 192})


def test_one_unit_for_an_hour_is_a_gpu_and_all_else_are_nodes() -> None:
    jobs = sort_into_queues(record([1, 1, 2, 21], [3600, 3601, 600, 43_200])).jobs
    assert jobs["partition_name"].tolist() == ["single-gpu", "full-node", "full-node", "full-node"]
    assert jobs["nodes"].tolist() == [1, 1, 2, 21]
    assert jobs["gpus_per_node"].tolist() == [1, -1, -1, -1]


def test_sixteen_gpus_or_eight_beside_all_whole_nodes() -> None:
    config = SchedulerConfig(cluster="thetagpu-2023")

    def starts(units: list[int]) -> list[int]:
        jobs = config.select(sort_into_queues(record(units, [3600] * len(units))))
        played = replay(config.build_scenario(jobs))
        return [int(start) // 1_000_000 for start in played.start]

    assert starts([1] * 17) == [*range(16), 600]
    # 23 whole nodes leave node 24 to eight GPUs; the others wait for node 23
    assert starts([23] + [1] * 9) == [*range(9), 600]


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="there is no such table"):
        write_thetagpu(tmp_path / "none.csv.gz")
