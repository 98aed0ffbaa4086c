"""What an agent sees of a cluster, at a state worked out by hand; and where it does not fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import job
from cluster_on_bridge import build_scenario
from small_jobs import make_jobs, prepared

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import Encoder
from bridge.scheduler.core import BACKFILL
from bridge.scheduler.protocol import Policy

#: Nodes 0 and 1 are whole, of 4 cores; 2 and 3 are shared: 8 cores, 100 MiB, 2 GPUs. At 0 jobs 0 (node 0) and
#: 1 (half of node 2) start. Job 2 is the head of `whole`, until 50; job 3 that of `parts`, until 20, on both
#: nodes. Jobs 4 and 5 could start now. Jobs 6 to 9 wait for their begin times, a job, a limit, for ever.
CASE: dict[str, Any] = {
    "nodes": [{"cores": 4}] * 2 + [{"cores": 8, "memory": 100, "gpus": {"a": 2}}] * 2,
    "partitions": {
        "whole": {"nodes": [0, 1], "exclusive": True},
        "parts": {"nodes": [2, 3], "max_time": 1000},
        "tight": {"nodes": [3], "qos": "tight"},
    },
    "qos": {"usual": {}, "tight": {"max_jobs": 0}},
    "accounts": {"physics": {}, "biology": {}},
    "jobs": [
        job(0, run=50, partitions=["whole"], account="physics"),
        job(0, run=20, partitions=["parts"], account="biology", vector={"cores": 4, "memory": 50}),
        job(0, run=30, nodes=2, partitions=["whole"]),
        job(0, run=30, nodes=2, partitions=["parts"], vector={"cores": 8, "memory": 10}),
        job(
            0,
            run=15,
            partitions=["parts"],
            account="physics",
            vector={"cores": 2, "memory": 25, "gpus": {"any": 1}},
        ),
        job(0, run=60, partitions=["whole"], qos="usual"),
        job(0, partitions=["parts"], begin=500),
        job(0, partitions=["parts"], depends="afterok:0"),
        job(0, partitions=["tight"], vector={"cores": 1, "memory": 0}),
        job(0, partitions=["parts"], run=2000, vector={"cores": 1, "memory": 0}),
    ],
}
#: Of jobs 5 and 4, in queue order 4, 5, and of the blocked head that stands in the last row, job 3's.
EXPECTED = {
    "t": (15, 60, 30),
    "gap": (20, 50, 20),
    "extra": (0, 0, 0),
    "head_w": (0, 0, 0),
    "head_t": (30, 30, 30),
    "head_n": (2, 2, 2),
    "fits": (1, 1, 0),
    "safe": (1, 0, 0),
    "blocked": (0, 0, 1),
    "waiting": (5, 5, 5),
    "running": (2, 2, 2),
    "free": (2, 2, 2),
    "backfillable": (2, 2, 2),
    "cost": (2 / 30 + 1 / 15 + 1 / 60 + 1 / 10,) * 3,
    "share[0]": (1 / 4, 1 / 4, 2 / 4),
    "used[0]": (2 / 4,) * 3,
    "admissible": (2 / 4, 2 / 4, 2 / 4),
    "partition_free": (12 / 16, 4 / 8, 12 / 16),
    "partition_waiting": (2, 2, 2),
    "account_used": (4 / 24, 0, 0),
    "in_partition[0]": (0, 1, 0),
    "in_partition[1]": (1, 0, 1),
    "in_qos[0]": (0, 1, 0),
    "per_node[0]": (2 / 8, 1, 8 / 8),
    "per_node[2]": (1 / 2, 0, 0),
    "free_node[0]": (1, 4 / 8, 1),
    "free_node[2]": (1, 0, 1),
    "waiting_begin": (1, 1, 1),
    "waiting_dependency": (1, 1, 1),
    "waiting_limit": (1, 1, 1),
    "waiting_never": (1, 1, 1),
}
BACKFILLS = {"agent": frozenset({"backfill"}), "guard": False}


def waiting_batch(features: dict[str, str], **more: Any) -> tuple[Batch, Any]:
    scenario = build_scenario(CASE, **BACKFILLS)
    encoder = Encoder("backfill", features, window=8, stop=True, **more).compile({})
    batch = Batch(scenario, encoder, 1, len(scenario.jobs))
    view = batch.reset(np.zeros(1, np.int64))
    assert batch.decision_kinds[0] == BACKFILL
    return batch, view


@pytest.fixture(scope="module")
def rows() -> dict[str, list[float]]:
    _, view = waiting_batch({name: name for name in EXPECTED})
    return dict(zip(EXPECTED, view.rows.T.tolist(), strict=True))


@pytest.mark.parametrize("expression", EXPECTED)
def test_a_feature_is_what_it_says(expression: str, rows: dict[str, list[float]]) -> None:
    assert rows[expression] == pytest.approx(EXPECTED[expression], rel=1e-6)


def test_the_context_has_running_and_waiting_jobs_and_the_site() -> None:
    _, view = waiting_batch(
        {"t": "t"},
        running={"left": "left", "nodes": "n"},
        running_rows=(3,),
        queued={"t": "t"},
        queued_rows=4,
        machine={"gap": "gap", "limited": "waiting_limit"},
    )
    running, queued, machine = [20, 1, 50, 1, 0, 0], [30, 15, 60, 10], [20, 1]
    assert view.context[0].tolist() == [*running, *queued, *machine]


def test_what_only_a_cluster_has_is_refused_elsewhere() -> None:
    encoder = Encoder("backfill", {"it": "admissible + t"}, window=8, stop=True).compile({})
    pool = prepared(make_jobs([(0, 10, 10, 1)], [4]), Policy(agent=frozenset({"backfill"})))
    with pytest.raises(BridgeError, match="admissible, which only a cluster has"):
        Batch(pool, encoder, 1, 1)


@pytest.mark.parametrize(("text", "what"), [("in_partition[3]", "3 partitions"), ("in_qos[2]", "2 QOS")])
def test_places_that_the_cluster_has_not_are_refused(text: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        waiting_batch({"it": text})


@pytest.mark.parametrize(
    ("text", "what"), [("per_node[3]", "there is no place 3"), ("per_node", "of one place")]
)
def test_amounts_of_a_node_are_three(text: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        Encoder("pick", {"it": text}).compile({})


def test_what_a_job_waits_for_changes_with_time() -> None:
    batch, _ = waiting_batch(
        {"t": "t"}, machine={"begin": "waiting_begin", "dependency": "waiting_dependency"}
    )
    counts = []
    while batch.decision_kinds[0] == BACKFILL:
        view = batch.step(np.zeros(1, np.int64))
        if len(view.rows):
            counts.append((batch.now[0] / 1e6, *view.context[0].tolist()))
    assert all(dependency == (time < 50) for time, _, dependency in counts)
    state: Any = batch.state
    assert state.held_jobs[0].tolist()[1:] == [0, 0, 1]
    assert replace(batch.schedule(0, 0)).start[9] == -1
