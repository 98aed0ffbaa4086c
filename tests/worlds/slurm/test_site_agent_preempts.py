"""An agent stops running jobs as Slurm's configuration says, beside a stand-in for a Slurm."""

from pathlib import Path

import pytest
from fake_site import FakeSite
from small_policies import rule
from test_site_agent import Beside, run, where

from bridge.base.errors import BridgeError
from bridge.experiment.live_pass import ClusterPass
from bridge.worlds.slurm.audit import replay

BY_TIER = "PreemptType = preempt/partition_prio\nPreemptMode = GANG,SUSPEND\nPreemptExemptTime = 00:00:00\n"
HIGH = "PriorityTier=10 PreemptMode=OFF GraceTime=0"


@pytest.fixture
def tiers(slurm: FakeSite) -> FakeSite:
    """Return a site on which gpu's jobs preempt cpu's."""
    slurm.config = BY_TIER
    slurm.of_partitions = {"gpu": HIGH, "cpu": "PriorityTier=1 PreemptMode=REQUEUE GraceTime=0"}
    return slurm


def wide(slurm: FakeSite, label: str, partition: str) -> None:
    """Submit a job that has three whole nodes: of gpu n0 to n2, of cpu n2 to n4."""
    slurm.submit(label, partition, nodes="3-3", tasks=3, each=8, submit=int(slurm.clock))


def replayed(log: Path) -> tuple[tuple[str, ...], int]:
    """Return the differences and starts of an audit log that is decided again."""
    deciding = rule("fcfs")
    outcome = replay(log, deciding, lambda: ClusterPass(deciding.policy, deciding.protocol))
    return outcome.differences, outcome.starts


def test_a_requeued_job_waits_again_and_its_nodes_are_waited_for(
    tiers: FakeSite, beside: Beside, tmp_path: Path
) -> None:
    said: list[str] = []
    agent = beside(said=said.append)
    wide(tiers, "1", "cpu")
    run(agent, tiers)
    wide(tiers, "2", "gpu")
    run(agent, tiers)
    assert tiers.commands == ["requeuehold 1"]
    assert where(tiers) == {"1": "n2,n3,n4", "2": ""}  # Slurm has not cleared the nodes yet
    tiers.clear("1")
    run(agent, tiers)
    assert where(tiers) == {"1": "", "2": "n0,n1,n2"}
    tiers.end("2")
    run(agent, tiers)
    assert where(tiers) == {"1": ""}  # Slurm lets it wait for two minutes
    tiers.clock += 121
    run(agent, tiers)
    assert where(tiers) == {"1": "n2,n3,n4"}
    assert (agent.counters.requeued, agent.counters.starts, agent.counters.lost) == (1, 3, [])
    assert said == ["jobs are preempted by tier of partitions, as Slurm's configuration says"]
    agent.close()
    assert replayed(tmp_path / "audit.jsonl") == ((), 3)


def test_a_job_that_may_not_be_requeued_is_cancelled_when_its_grace_is_over(
    tiers: FakeSite, beside: Beside, tmp_path: Path
) -> None:
    tiers.of_partitions["cpu"] = "PriorityTier=1 PreemptMode=REQUEUE GraceTime=30"
    agent = beside()
    tiers.submit("1", "cpu", nodes="3-3", tasks=3, each=8, requeue=0)
    run(agent, tiers)
    wide(tiers, "2", "gpu")
    run(agent, tiers)
    run(agent, tiers, 24.0)
    assert tiers.commands == ["scancel -s TERM -f 1"]  # heard at 1004
    run(agent, tiers, 6.0)
    assert tiers.commands == ["scancel -s TERM -f 1", "scancel 1"]
    tiers.clear("1")
    run(agent, tiers)
    assert where(tiers) == {"2": "n0,n1,n2"}
    assert agent.counters.cancelled == 1
    agent.close()
    assert replayed(tmp_path / "audit.jsonl") == ((), 2)


def test_a_suspended_job_goes_on_where_it_was_also_under_another_agent(
    tiers: FakeSite, beside: Beside, tmp_path: Path
) -> None:
    tiers.of_partitions["cpu"] = "PriorityTier=1 PreemptMode=SUSPEND GraceTime=0"
    agent = beside()
    tiers.submit("1", "cpu", nodes="3-3", tasks=3, each=8)
    run(agent, tiers)
    wide(tiers, "2", "gpu")
    run(agent, tiers)
    tiers.submit("3", "cpu", each=8)
    run(agent, tiers)
    assert (tiers.commands, where(tiers)) == (["suspend 1"], {"1": "n2,n3,n4", "2": "n0,n1,n2", "3": "n3"})
    assert tiers.jobs["1"].mark == "agent:suspended"
    agent.close()
    again = beside()
    tiers.end("2")
    run(again, tiers)
    assert tiers.commands == ["suspend 1"]  # another job is on n3
    tiers.end("3")
    run(again, tiers)
    assert tiers.commands == ["suspend 1", "resume 1"]
    assert (tiers.jobs["1"].mark, tiers.jobs["1"].state) == ("agent:held", "RUNNING")
    again.close()
    assert replayed(tmp_path / "audit.jsonl") == ((), 3)


def test_a_qos_preempts_those_that_it_names(slurm: FakeSite, beside: Beside) -> None:
    slurm.config = "PreemptType = preempt/qos\nPreemptMode = CANCEL\n"
    slurm.of_partitions = {"gpu": HIGH}  # of tiers and modes of partitions nothing counts
    slurm.qos = (
        "Name|Priority|GraceTime|Preempt|PreemptMode\nnormal|1|00:00:00||cluster\n"
        "low|0|00:00:00||requeue\nhigh|5|00:00:00|low,normal|cluster\n"
    )
    agent = beside()
    slurm.submit("1", "cpu", nodes="2-2", tasks=2, each=8, qos="normal")
    slurm.submit("2", "cpu", each=8, qos="low")
    run(agent, slurm)
    slurm.submit("3", "cpu", each=8, qos="normal")
    run(agent, slurm)
    assert slurm.commands == []
    slurm.end("3")
    slurm.submit("4", "cpu", nodes="3-3", tasks=3, each=8, qos="high")
    run(agent, slurm)
    assert slurm.commands == ["scancel 1", "requeuehold 2"]


def test_a_dry_run_says_what_it_would_stop(tiers: FakeSite, beside: Beside) -> None:
    wide(tiers, "1", "cpu")
    tiers.start("1", "n2,n3,n4")
    said: list[str] = []
    agent = beside(said=said.append, mode="dry-run")
    wide(tiers, "2", "gpu")
    run(agent, tiers)
    assert said[1:] == ["would requeue 1", "would start 2 on n0,n1,n2"]
    assert (tiers.commands, agent.counters.requeued) == ([], 0)
    assert where(tiers) == {"1": "n2,n3,n4", "2": ""}


def test_a_job_that_slurm_does_not_let_go_runs_on(tiers: FakeSite, beside: Beside) -> None:
    said: list[str] = []
    agent = beside(said=said.append)
    wide(tiers, "1", "cpu")
    run(agent, tiers)
    tiers.refused = "Job/step already completing or completed for job 1"
    wide(tiers, "2", "gpu")
    run(agent, tiers)
    run(agent, tiers)
    assert said[1:] == [f"REFUSED to requeue 1: {tiers.refused}"]
    assert where(tiers) == {"1": "n2,n3,n4", "2": ""}
    tiers.end("1")
    run(agent, tiers)
    assert where(tiers) == {"2": "n0,n1,n2"}


def test_what_is_not_honoured_is_named(tiers: FakeSite, beside: Beside) -> None:
    tiers.config = BY_TIER.replace("GANG,SUSPEND", "REQUEUE,WITHIN") + "PreemptParameters = youngest_first\n"
    said: list[str] = []
    wide(tiers, "1+0", "cpu")
    tiers.start("1+0", "n2,n3,n4")
    agent = beside(said=said.append)
    wide(tiers, "2", "gpu")
    run(agent, tiers)
    run(agent, tiers)
    assert said == [
        "jobs are preempted by tier of partitions, as Slurm's configuration says",
        "NOT HONOURED: PreemptMode=WITHIN",
        "NOT HONOURED: PreemptParameters=youngest_first",
        "NOT PREEMPTED 1+0: it is a component of a heterogeneous job",
    ]
    assert tiers.commands == []


def test_preemption_by_qos_needs_the_database(slurm: FakeSite, beside: Beside) -> None:
    slurm.config = "PreemptType = preempt/qos\n"
    with pytest.raises(BridgeError, match="no line of column names"):
        beside()
