"""An agent for partitions whose nodes differ and are shared, beside a stand-in for Slurm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_site import FakeJob, FakeSite
from small_policies import Deciding, rule

from bridge.base.errors import BridgeError
from bridge.experiment.live_pass import ClusterPass, site_pass_of
from bridge.scheduler.protocol import Policy
from bridge.worlds.slurm.agent import SlurmAgent
from bridge.worlds.slurm.audit import replay
from bridge.worlds.slurm.job_text import RefusedError, request_of
from bridge.worlds.slurm.site_jobs import SiteRequest

Beside = Callable[..., SlurmAgent]


def run(agent: SlurmAgent, slurm: FakeSite, seconds: float = 3.0) -> None:
    """Let the agent work for some seconds, in which released jobs are seen to run."""
    for _ in range(3):
        slurm.clock += seconds / 3
        agent.step()


def where(slurm: FakeSite) -> dict[str, str]:
    return {label: job.hosts for label, job in slurm.jobs.items()}


def test_jobs_share_nodes_and_their_gpus(slurm: FakeSite, beside: Beside) -> None:
    agent = beside()
    slurm.submit("1", "gpu", gres="gres:gpu:2", each=2)
    slurm.submit("2", "gpu", gres="gres:gpu:1")
    slurm.submit("3", "gpu", tres="   TresPerJob=gres:gpu:1\n")
    slurm.submit("4", "gpu", nodes="2-2", tasks=2, gres="gres:gpu:2")
    slurm.submit("5", "gpu", each=6)  # needs no GPU, and leaves room beside those who have them
    run(agent, slurm)
    assert where(slurm) == {"1": "n0", "2": "n1", "3": "n1", "4": "", "5": "n0"}
    slurm.end("2")
    slurm.end("3")
    run(agent, slurm)
    assert where(slurm) == {"1": "n0", "4": "n1,n2", "5": "n0"}


def test_partitions_overlap(slurm: FakeSite, beside: Beside) -> None:
    agent = beside()
    slurm.submit("1", "cpu", nodes="3-3", tasks=3, each=5)
    slurm.submit("2", "gpu", nodes="3-3", tasks=3, each=4)  # n2 has three cores left: the head of gpu
    slurm.submit("3", "gpu", each=8, limit=1200.0)  # would delay the head
    slurm.submit("4", "gpu", each=4, limit=60.0)
    slurm.submit("5", "gpu,cpu", each=3)
    slurm.submit("6", "cpu", nodes="4", tasks=6, each=1)  # anywhere
    run(agent, slurm)
    assert where(slurm) == {"1": "n2,n3,n4", "2": "", "3": "", "4": "n0", "5": "n0", "6": "n2,n3"}


def test_a_whole_node_job_beside_shared_ones(slurm: FakeSite, beside: Beside) -> None:
    agent = beside("sjf")
    slurm.submit("1", "cpu", each=1, limit=60.0)
    slurm.submit("2", "cpu", nodes="2-2", tasks=2, exclusive=True)
    slurm.submit("3", "cpu", each=7, limit=900.0)
    run(agent, slurm)
    assert where(slurm) == {"1": "n2", "2": "n3,n4", "3": "n2"}


def test_licences_arrays_and_dependencies(slurm: FakeSite, beside: Beside) -> None:
    agent = beside()
    slurm.submit("1", "cpu", licenses="solver:1")
    slurm.submit("2", "cpu", licenses="solver:2")
    for task in range(4):
        slurm.submit(f"3_{task}", "cpu", array=(3, 2))
    slurm.submit("4", "cpu", dependency="afterok:1(unfulfilled)")
    run(agent, slurm)
    starts = {"1": "n2", "2": "", "3_0": "n2", "3_1": "n2", "3_2": "", "3_3": "", "4": ""}
    assert where(slurm) == starts
    slurm.end("1")
    slurm.end("3_1")
    slurm.jobs["4"].dependency = ""
    run(agent, slurm)
    assert where(slurm) == {"2": "n2", "3_0": "n2", "3_2": "n2", "3_3": "", "4": "n2"}


def test_a_licence_in_use_elsewhere_counts(slurm: FakeSite, beside: Beside) -> None:
    slurm.submit("1", "other", licenses="solver:2")
    slurm.start("1", "n4")
    agent = beside()
    slurm.submit("2", "cpu", licenses="solver:1")
    run(agent, slurm)
    assert where(slurm)["2"] == ""
    slurm.end("1")
    run(agent, slurm)
    assert where(slurm)["2"] == "n2"


def test_an_advance_reservation(slurm: FakeSite, beside: Beside) -> None:
    slurm.reservations = "ReservationName=class StartTime=1200 EndTime=1400 Nodes=n[3-4] Users=alice\n"
    agent = beside()
    slurm.submit("1", "cpu", reservation="class", limit=60.0)
    slurm.submit("2", "cpu", nodes="2-2", tasks=2, each=8, limit=100.0)
    slurm.submit("3", "cpu", nodes="2-2", tasks=2, each=8, limit=500.0)
    run(agent, slurm)
    assert where(slurm) == {"1": "", "2": "n2,n3", "3": ""}
    slurm.end("2")
    run(agent, slurm)
    assert where(slurm) == {"1": "", "3": ""}  # three nodes are free, two of them are the reservation's
    slurm.clock = 1200.0
    run(agent, slurm)
    assert where(slurm) == {"1": "n3", "3": ""}
    slurm.end("1")
    run(agent, slurm)
    slurm.clock = 1400.0
    run(agent, slurm)
    assert where(slurm) == {"3": "n2,n3"}


def test_a_reservation_that_is_new_is_read_at_once(slurm: FakeSite, beside: Beside) -> None:
    agent = beside()
    run(agent, slurm)
    slurm.reservations = "ReservationName=new StartTime=900 EndTime=9400 Nodes=n3 Users=alice\n"
    slurm.submit("1", "cpu", reservation="new")
    run(agent, slurm)
    assert where(slurm) == {"1": "n3"}


def test_what_others_have_and_what_is_drained_is_not_free(slurm: FakeSite, beside: Beside) -> None:
    slurm.submit("1", "other", each=6)
    slurm.start("1", "n4")
    slurm.states["n3"] = "drained"
    agent = beside()
    slurm.submit("2", "cpu", each=8)
    slurm.submit("3", "cpu", each=2)
    slurm.submit("4", "cpu", each=1)
    run(agent, slurm)
    assert where(slurm) == {"1": "n4", "2": "n2", "3": "n4", "4": ""}


def test_what_is_left_to_slurm(slurm: FakeSite, beside: Beside) -> None:
    agent = beside()
    for label, asks in {
        "1": {"nodes": "2-3"},
        "2": {"gres": "gres:gpu:3"},
        "3": {"gres": "gres:shard:1"},
        "4": {"nodes": "2-2", "tasks": 2, "tres": "   TresPerJob=gres:gpu:4\n"},
        "5": {"features": "[a|b]"},
        "6": {"reservation": "elsewhere"},
        "7+1": {},
    }.items():
        slurm.submit(label, "gpu", **asks)
    slurm.submit("8", "gpu,other")
    run(agent, slurm)
    assert {key.partition("@")[0]: why for key, why in agent.counters.foreign.items()} == {
        "1": "asks for 2 to 3 nodes",
        "2": "can never run: it asks for 3 gpus a node, nodes of partition 'gpu' have at most 2",
        "3": "asks for gres:shard:1",
        "4": "asks for GPUs of all its nodes together",
        "5": "asks for features [a|b]",
        "6": "names the advance reservation 'elsewhere', which the cluster does not have",
        "7+1": "a component of a heterogeneous job",
        "8": "may go to partition other",
    }


def test_another_agent_takes_over_what_runs(slurm: FakeSite, beside: Beside, tmp_path: Path) -> None:
    agent = beside("saf")
    slurm.submit("1", "gpu", gres="gres:gpu:2", each=3)
    slurm.submit("2", "cpu", nodes="3-3", tasks=3, each=8)
    run(agent, slurm)
    agent.close()
    again = beside("saf")
    slurm.submit("3", "gpu", gres="gres:gpu:2")
    slurm.submit("4", "gpu", each=6)
    run(again, slurm)
    assert where(slurm) == {"1": "n0", "2": "n2,n3,n4", "3": "n1", "4": "n1"}
    again.close()
    outcome = replay(tmp_path / "audit.jsonl", rule("saf"), lambda: _pass_of(rule("saf")))
    assert (outcome.differences, outcome.starts) == ((), 4)
    other = replay(tmp_path / "audit.jsonl", rule("saf"), lambda: _pass_of(rule("saf", "none")))
    assert other.starts == 4


def test_each_file_of_a_rotated_log_stands_alone(slurm: FakeSite, beside: Beside, tmp_path: Path) -> None:
    slurm.reservations = "ReservationName=class StartTime=1200 EndTime=1400 Nodes=n4 Users=alice\n"
    slurm.states["n3"] = "drained"
    slurm.submit("1", "other", each=6, licenses="solver:1")
    slurm.start("1", "n4")
    agent = beside()
    for label, asks in {"2": {"each": 8}, "3": {"each": 8}, "4": {"each": 1, "limit": 60.0}}.items():
        slurm.submit(label, "cpu", **asks)
    run(agent, slurm)
    log = tmp_path / "audit.jsonl"
    log.rename(tmp_path / "first.jsonl")
    run(agent, slurm)
    slurm.end("2")
    run(agent, slurm)
    agent.close()
    assert where(slurm) == {"1": "n4", "3": "n2", "4": "n4"}
    for file, starts in ((tmp_path / "first.jsonl", 2), (log, 1)):
        outcome = replay(file, rule("fcfs"), lambda: _pass_of(rule("fcfs")))
        assert (outcome.differences, outcome.starts) == ((), starts)


def _pass_of(deciding: Deciding) -> ClusterPass:
    return ClusterPass(deciding.policy, deciding.protocol)


def test_another_policy_differs_where_it_is_replayed(slurm: FakeSite, beside: Beside, tmp_path: Path) -> None:
    agent = beside("fcfs")
    slurm.submit("1", "cpu", nodes="3-3", tasks=3, each=8, limit=900.0)
    slurm.submit("2", "cpu", each=8, limit=60.0)
    run(agent, slurm)
    agent.close()
    (fault,) = replay(tmp_path / "audit.jsonl", rule("sjf"), lambda: _pass_of(rule("sjf"))).differences
    assert fault.endswith("decided 1@1000 on n[2-4], now 2@1000 on n2")


def test_policies_that_need_more_than_the_present_are_refused_for_several_partitions() -> None:
    for policy in (
        Policy("fcfs", "easy", action="trial(300)"),
        Policy("multifactor", "easy"),
        Policy("fcfs", "conservative_keeps"),
    ):
        assert site_pass_of(Deciding(policy), 1) is None
        with pytest.raises(BridgeError, match="does not decide on the nodes of a real site yet"):
            site_pass_of(Deciding(policy), 2)


@pytest.mark.parametrize(
    ("asks", "request_"),
    [
        ({}, {"nodes": 1, "memory": 10}),
        ({"nodes": "2-2", "tasks": 5, "each": 2}, {"nodes": 2, "cores": 6, "memory": 60}),
        ({"nodes": "4", "tasks": 8}, {"nodes": 0, "tasks": 8, "memory": 10}),
        ({"nodes": "4", "tasks": 8, "on_each": 3}, {"nodes": 3, "cores": 3, "memory": 30}),
        (
            {"nodes": "1", "tasks": 2, "unit": "Node", "memory": "300M"},
            {"nodes": 1, "cores": 2, "memory": 300},
        ),
        ({"memory": "0", "unit": "Node"}, {"nodes": 1, "memory": -1}),
        ({"gres": "gres/gpu:a100:2"}, {"nodes": 1, "memory": 10, "gpus": 2, "gpu_type": "a100"}),
        (
            {"nodes": "1", "tasks": 2, "tres": "   TresPerTask=gres:gpu:1\n"},
            {"nodes": 0, "tasks": 2, "memory": 10, "gpus": 1},
        ),
        (
            {"nodes": "2-2", "tasks": 2, "each": 2, "tres": "   TresPerTask=cpu=2,gres/gpu=1\n"},
            {"nodes": 2, "cores": 2, "memory": 20, "gpus": 1},
        ),
        ({"array": (7, 2)}, {"nodes": 1, "memory": 10, "array": 7, "array_limit": 2}),
    ],
)
def test_what_a_job_asks_for(asks: dict[str, Any], request_: dict[str, Any]) -> None:
    job = FakeJob("1", "gpu", **asks)
    assert request_of(job.row(), job.text()) == SiteRequest(partition="gpu", **request_)


def test_whole_cores_and_features_by_number() -> None:
    job = FakeJob("1", "gpu", each=3)
    assert request_of(job.row(), job.text(), threads=2).cores == 4
    job = FakeJob("1", "gpu", features="a*2")
    with pytest.raises(RefusedError):
        request_of(job.row(), job.text())
