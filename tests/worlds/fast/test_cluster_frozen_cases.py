"""Cases of clusters on which two schedulers once differed, as small as they can be; answers by hand."""

from collections.abc import Mapping
from typing import Any

import pytest
from cluster_micro_cases import NEVER, Answers, job, whole
from cluster_on_bridge import replay_case
from cluster_reference.scheduler import simulate

KILLS = {"kill_invalid_dependency": True}
TWO = {
    "nodes": [{"cores": 1}] * 2,
    "partitions": {
        "work": {"nodes": [0, 1], "exclusive": True},
        "closed": {"nodes": [0, 1], "exclusive": True, "state": "inactive"},
    },
}

CASES: dict[str, tuple[Mapping[str, Any], Answers]] = {
    # job 1 is cancelled when it could begin, and not before; then job 2 may go
    "a dependency that is never met, and a begin time": (
        whole(1, [job(run=1), job(begin=32, depends="afternotok:0"), job(depends="afterany:1")], **KILLS),
        [(0, [0]), NEVER, (32, [0])],
    ),
    # jobs 2 and 3 come at one instant: job 2 is cancelled only after job 3 was counted with it
    "a submission beside one that is cancelled": (
        whole(
            1,
            [
                job(run=1, user="ann", qos="few"),
                job(5, user="bob", qos="few", run=20),
                job(6, user="ann", qos="few", depends="afternotok:0"),
                job(6, user="ann", qos="few"),
                job(7, user="ann", qos="few"),
            ],
            qos={"few": {"max_submit": 1}},
            **KILLS,
        ),
        [(0, [0]), (5, [0]), NEVER, NEVER, (25, [0])],
    ),
    # of the array only job 1 was ever there, and it ended well
    "a refused task of an array is none that failed": (
        {
            **TWO,
            "jobs": [
                job(partitions=["closed"], array="x"),
                job(partitions=["work"], array="x"),
                job(5, partitions=["work"], depends="afternotok:x"),
            ],
        },
        [NEVER, (0, [0]), NEVER],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_answers_by_hand(name: str) -> None:
    case, answers = CASES[name]
    assert [(start, nodes) for _, start, _, nodes in replay_case(case)] == answers
    assert [(one["start"], one["nodes"]) for one in simulate(case)["jobs"]] == answers
