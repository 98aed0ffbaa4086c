"""What jobs say of their lives on a cluster: costs, and the memory that a suspended job keeps."""

import os
from pathlib import Path
from typing import Any

import pytest
from test_actions_on_nodes import compare_case, lives_of, site_jobs

from bridge.base.errors import BridgeError
from bridge.experiment.prepare import beliefs
from bridge.scheduler.actions import parse_action
from bridge.worlds.fast.action_terms import read_terms
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Compiled they take half a minute more, see `test_actions_without_compiler.py`.
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]
#: A node with memory and a GPU; its jobs share it, or have it alone.
NODE = """
[[nodes]]
name = "n"
nodes = "n1"
cores = 4
memory = 100
gpus = { a100 = 2 }
[[partitions]]
name = "p"
exclusive = %s
"""
#: Submit, run, request, nodes, partition: a host that works from 0, and who comes at 50.
ROWS = ((0, 1000, 1000, 1, "p"), (50, 5, 5, 1, "p"))


def lives_on_node(
    tmp_path: Path, action: str, own: str = "", *, whole: bool = True, rows: Any = ROWS, **columns: Any
) -> list[tuple[int, int, int, bool]]:
    """Return each job's lives: job, start, end, completed; `own`: more of the partition, or a QOS."""
    site = NODE % str(whole).lower() + own
    jobs = site_jobs(tmp_path, site=site, rows=rows, **columns)
    return [life[:4] for life in lives_of(jobs, action)]


def is_guest(lives: list[tuple[int, int, int, bool]]) -> bool:
    return lives == [(1, 50, 55, True), (0, 0, 1015, True)]


WAITS = [(0, 0, 1000, True), (1, 1000, 1005, True)]


@pytest.mark.parametrize(
    ("whole", "memory", "own", "columns", "is_one"),
    [
        (True, (60, 40), "", {}, True),
        (True, (60, 41), "", {}, False),
        (True, (60, 41), "suspended_memory = 0.95\n", {}, True),
        (True, (60, 41), "suspended_memory = 0\n", {"suspended_memory": [1.0, -1.0]}, False),
        (True, (60, 41), "suspended_memory = 1\n[[qos]]\nname = 'q'\nsuspended_memory = 0\n",
         {"qos_name": "q"}, True),
        (False, (60, 1), "", {}, False),
        (False, (60, 0), "", {}, True),
        (False, (60, 30), "suspended_memory = 0.5\n", {}, True),
        (False, (60, 31), "suspended_memory = 0.5\n", {}, False),
        (True, (0, 0), "suspended_memory = 0\n", {"gpus_per_node": [0, 1]}, False),
        (False, (0, 0), "suspended_memory = 0\n", {"gpus_per_node": [1, 1]}, False),
        (False, (0, 0), "suspended_memory = 0\n", {"gpus_per_node": [2, 0]}, True),
    ],
)  # fmt: skip
def test_a_host_keeps_its_memory_and_all_gpus(
    tmp_path: Path, whole: bool, memory: tuple[int, int], own: str, columns: dict[str, Any], is_one: bool
) -> None:
    columns = {"memory_per_node": memory, "cores_per_node": 4, **columns}
    lives = lives_on_node(tmp_path, "guest(10)", own, whole=whole, **columns)
    assert is_guest(lives) if is_one else lives == WAITS


def test_a_job_that_was_stopped_at_a_checkpoint_keeps_nothing(tmp_path: Path) -> None:
    rows = ((0, 4000, 4000, 1, "p"), (2000, 10, 10, 1, "p"))
    needs = {"memory_per_node": 100, "cores_per_node": 4, "gpus_per_node": 2}
    for action in ("las(300,3600)", "hybrid(300)"):
        assert lives_on_node(tmp_path, action, whole=False, rows=rows, **needs) == [
            (0, 0, 2000, False), (1, 2000, 2010, True), (0, 2010, 4070, True),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("own", "columns", "is_permitted"),
    [
        ("", {}, True),
        ("%s = false\n", {}, False),
        ("%s = false\n", {"own": 1}, True),
        ("%s = true\n", {"own": 0}, False),
        ("%s = false\n[[qos]]\nname = 'q'\n%s = true\n", {"qos_name": "q"}, True),
        ("%s = true\n[[qos]]\nname = 'q'\n%s = false\n", {"qos_name": "q"}, False),
    ],
)
@pytest.mark.parametrize("name", ["restartable", "suspendable", "checkpointable"])
def test_log_then_qos_then_partition_permit_each(
    tmp_path: Path, name: str, own: str, columns: dict[str, Any], is_permitted: bool
) -> None:
    columns = {name if key == "own" else key: value for key, value in columns.items()}
    own = own.replace("%s", name)
    if name == "checkpointable":
        rows = ((0, 4000, 4000, 1, "p"), (2000, 10, 10, 1, "p"))
        lives = lives_on_node(tmp_path, "las(300,3600)", own, rows=rows, **columns)
        assert (lives[0] == (0, 0, 2000, False)) == is_permitted
        assert is_permitted or lives == [(0, 0, 4000, True), (1, 4000, 4010, True)]
    else:  # a guest is killed and restarted, its host is suspended
        lives = lives_on_node(tmp_path, "guest(10)", own, **columns)
        assert is_guest(lives) if is_permitted else lives == WAITS


@pytest.mark.parametrize(
    ("own", "columns", "cost"),
    [
        ("", {}, None),
        ("%s = 3\n", {}, 3),
        ("%s = 3\n[[qos]]\nname = 'q'\n%s = 4\n", {"qos_name": "q"}, 4),
        ("%s = 3\n", {"own": [5.0, 5.0]}, 5),
        ("%s = 3\n", {"own": [-1.0, -1.0]}, 3),
    ],
)
@pytest.mark.parametrize("name", ["restart_cost", "host_cost", "resume_cost"])
def test_costs_of_log_then_qos_then_partition_then_rule(
    tmp_path: Path, name: str, own: str, columns: dict[str, Any], cost: int | None
) -> None:
    columns = {name if key == "own" else key: value for key, value in columns.items()}
    own = own.replace("%s", name)
    if name == "restart_cost":  # each is killed at its limit
        rows = ((0, 90, 90, 1, "p"), (0, 95, 95, 1, "p"))
        lives = lives_on_node(tmp_path, "trial(40)", own, rows=rows, **columns)
        more = 30 if cost is None else cost
        end = 80 + more + 90
        killed = [(0, 0, 40, False), (1, 40, 80, False)]
        assert lives == [*killed, (0, 80, end, True), (1, end, end + more + 95, True)]
    elif name == "host_cost":
        lives = lives_on_node(tmp_path, "guest(10)", own, **columns)
        assert lives == [(1, 50, 55, True), (0, 0, 1005 + (10 if cost is None else cost), True)]
    else:
        rows = ((0, 4000, 4000, 1, "p"), (2000, 10, 10, 1, "p"))
        lives = lives_on_node(tmp_path, "las(300,3600)", own, rows=rows, **columns)
        end = 4010 + (60 if cost is None else cost)
        assert lives == [(0, 0, 2000, False), (1, 2000, 2010, True), (0, 2010, end, True)]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [("host_cost", 0.5, "host_cost 0.5"), ("suspended_memory", 1.5, "suspended_memory 1.5")],
)
def test_a_cost_that_is_none_is_refused(tmp_path: Path, name: str, value: float, why: str) -> None:
    with pytest.raises(BridgeError, match=f"has the {why}, which is not from"):
        lives_on_node(tmp_path, "guest(10)", **{name: [-1.0, value]})


def test_costs_of_jobs_are_refused_in_the_detailed_world(tmp_path: Path) -> None:
    scenario = SchedulerConfig(action="trial(300)").build_scenario(
        site_jobs(tmp_path, restart_cost=[1.0, -1, -1])
    )
    with pytest.raises(BridgeError, match="costs of their own"):
        beliefs(scenario)


def test_a_warning_says_what_a_host_keeps(tmp_path: Path) -> None:
    setup = SchedulerConfig(action="guest(300)")
    own = "suspendable = true\n"
    (note,) = setup.build_scenario(site_jobs(tmp_path, site=NODE % "true" + own, rows=ROWS)).warnings
    assert note.startswith("action guest: a suspended job keeps all the memory that it asks for")
    own += "suspended_memory = 0.5\n"
    assert not setup.build_scenario(site_jobs(tmp_path, site=NODE % "true" + own, rows=ROWS)).warnings


def test_a_share_of_the_users_is_drawn_on_a_cluster(tmp_path: Path) -> None:
    rows = tuple((k, 10, 10, 1, "p") for k in range(40))
    jobs = site_jobs(tmp_path, site=NODE % "true", rows=rows, user=[k % 10 for k in range(40)])
    permits = [
        read_terms(parse_action(f"trial(5, share=0.5, seed={seed})"), jobs, None).of_jobs["permits"] & 1
        for seed in (1, 1, 2)
    ]
    assert permits[0].sum() == 20
    assert permits[0].tolist() == permits[1].tolist() != permits[2].tolist()


#: Three nodes; jobs 0 and 1 hold the first two, or wait for all; job 2 has the third one for a while.
FAILURE: dict[str, Any] = {
    "nodes": [{"cores": 1}] * 3,
    "partitions": {
        "wide": {"nodes": [0, 1, 2], "exclusive": True},
        "small": {"nodes": [1, 2], "exclusive": True},
    },
    "action": {"limit": 60, "level": 0, "restart": 30, "host": 1, "resume": 60, "guard": 0, "latest": False},
}


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("kind", ["speculative", "guest"])
@pytest.mark.parametrize("node", [0, 2])
def test_a_failing_node_stops_who_speculates_or_is_a_guest(kind: str, requeue: bool, node: int) -> None:
    host = {"submit": 0, "run": 400, "request": 400, "nodes": 2 if kind == "speculative" else 3}
    rows = [(300, 10, 3, "wide"), (310, 100, 1, "small")]
    jobs = [host | {"partitions": ["wide"]}]
    jobs += [
        {"submit": at, "run": run, "request": run, "nodes": n, "partitions": [name], "requeue": requeue}
        for at, run, n, name in rows
    ]
    if kind == "guest":
        jobs[1]["permits"] = False
    calendar = [{"time": t, "state": state, "nodes": [node]} for t, state in ((340, "down"), (350, "up"))]
    compare_case(
        {**FAILURE, "jobs": jobs, "calendar": calendar, "action": FAILURE["action"] | {"kind": kind}}
    )
