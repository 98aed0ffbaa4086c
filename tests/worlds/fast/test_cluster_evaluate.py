"""`evaluate` on clusters: a sequence that is a whole case by hand has the wait that its known starts have."""

from pathlib import Path

import pytest
from cluster_micro_cases import MICRO_CASES
from cluster_on_bridge import build_cluster, build_workload
from cluster_reference.scheduler import simulate

import bridge
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.workload.columns import write_csv


@pytest.mark.filterwarnings("ignore:.*jobs (name|depend):UserWarning")  # cases are about such jobs
@pytest.mark.parametrize("name", MICRO_CASES)
def test_the_mean_wait_is_that_of_the_known_starts(name: str, tmp_path: Path) -> None:
    micro = MICRO_CASES[name]
    without, answers_none = micro.without_backfilling()
    log, site = tmp_path / "log.csv", tmp_path / "site.toml"
    write_csv(build_workload(micro.case), log)
    write_cluster_toml(build_cluster(micro.case), site)
    judged = bridge.evaluate(
        log,
        ["fcfs+easy", "fcfs+none"],
        cluster=str(site),
        metric="wait",
        sequences=1,
        length=len(micro.answers),
    )
    for case, answers, mean in zip(
        (micro.case, without), (micro.answers, answers_none), judged["mean"], strict=True
    ):
        eligible = [job["eligible"] for job in simulate(case)["jobs"]]
        waits = [
            start - since for (start, _), since in zip(answers, eligible, strict=True) if start is not None
        ]
        assert mean == sum(waits) / len(waits)
