"""What is kept of jobs that are over: little, but all that is told of them; decisions stay the same."""

import random
import sys

import pytest
from fake_batsim import MICRO, DelayJob, FakeBatsim

from bridge.base.errors import BridgeError
from bridge.scheduler import session
from bridge.scheduler.protocol import Policy
from bridge.wire import events as ev
from bridge.wire.hosts import Hosts
from bridge.worlds.batsim import machine_view
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.estimates import WorkloadFacts
from bridge.worlds.batsim.jobs import DispatchedJob, DispatchedJobs
from bridge.worlds.batsim.process import DecisionProcess

HOSTS = 8


def test_a_job_that_is_over_is_read_as_it_was() -> None:
    jobs = DispatchedJobs[DispatchedJob]()
    first = DispatchedJob(
        "w0!1", 0, 2, 7, 5, 2**60, "COMPLETED_FAILED", ((0, 1), (5, 5)), "", {"disk": 8}, 3, True, "w0!9", 4
    )
    jobs["w0!1"], jobs["w0!2"] = first, DispatchedJob("w0!2", 1, 1)
    jobs.close(first)
    assert "w0!1" in jobs and len(jobs) == 2 and jobs.get("w0!3") is None
    first.index = -1
    assert jobs["w0!1"] == first == jobs.get("w0!1") and jobs["w0!1"] is not first
    assert [job.job_id for job in jobs.values()] == ["w0!1", "w0!2"] and jobs["w0!2"] is jobs["w0!2"]


def workload() -> list[DelayJob]:
    """Return jobs that queue up now and then."""
    rng, clock, jobs = random.Random(3), 0, []
    for k in range(300):
        clock += rng.randint(0, 60)
        run = rng.randint(1, 300)
        jobs.append(DelayJob(str(k), clock * MICRO, run * MICRO, rng.choice([1, 2, 4, 9]), 2 * run * MICRO))
    return jobs


def run_to_the_end(policy: Policy) -> DecisionProcess:
    process = DecisionProcess(DispatcherConfig(policy, facts=WorkloadFacts(longest=600.0)), strict=True)
    FakeBatsim(workload(), HOSTS).run(process.reply_to_frame)
    return process


@pytest.mark.parametrize("order", ["fcfs", "wfp3", "slurm", "sjf"])
@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_who_forgets_the_jobs_that_are_over_decides_the_same(
    order: str, backfill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(order, backfill)
    before = run_to_the_end(policy).result().as_dict()
    monkeypatch.setattr(session, "_MET", 20)
    monkeypatch.setattr(session, "_TIMES", 2)
    monkeypatch.setattr(machine_view, "_UNCOUNTED", 16)
    process = run_to_the_end(policy)
    assert process.result().as_dict() == before
    assert before["counts"]["COMPLETED_SUCCESSFULLY"] + before["counts"]["rejected"] == 300
    assert {job["start_kind"] for job in before["jobs"]} == {"head", "backfilled", None}
    dispatcher = process.dispatcher
    assert isinstance(dispatcher, Dispatcher)
    # all that grows with the jobs: nothing but an id, here and at the referee's, and bytes
    assert dispatcher.session.n_jobs < 150 and len(dispatcher._index) == dispatcher.session.n_jobs
    assert dispatcher._index == [None] * len(dispatcher._index)
    assert len(dispatcher._machine._placed) < 16
    assert process.referee._jobs == {} and process.referee._users == {} and process.referee._dropped == set()
    records = [*dispatcher.jobs._jobs.values()]
    assert len(records) == 300 and all(isinstance(record, bytes) for record in records)
    assert max(map(sys.getsizeof, records)) <= 128


def with_one_running() -> DecisionProcess:
    """Return who has started a job of two hosts on four."""
    process = DecisionProcess(DispatcherConfig(Policy("fcfs", "none")))
    hosts = tuple(ev.HostInfo(k, f"n{k}") for k in range(4))
    process.reply_to_message(ev.Message(0, (ev.SimulationBegins(0, hosts),)))
    reply = process.reply_to_message(ev.Message(1, (ev.JobSubmitted(1, "w0!1", 2, 1, None, "p"),)))
    assert reply.decisions == (ev.ExecuteJob(1, "w0!1", ((0, 1),)),)
    return process


def test_a_completion_on_other_hosts_than_were_given_is_an_error() -> None:
    with pytest.raises(BridgeError) as error:
        with_one_running().reply_to_message(
            ev.Message(2, (ev.JobCompleted(2, "w0!1", "COMPLETED_FAILED", 0, ((2, 3),)),))
        )
    assert error.value.what == "completed on hosts 2-3, but runs on 0-1 here"
    assert error.value.where == "job w0!1, time 0.000002 s"


@pytest.mark.parametrize("hosts", [(), ((0, 1),)], ids=["not repeated", "repeated"])
def test_a_completion_on_the_hosts_that_were_given(hosts: Hosts) -> None:
    process = with_one_running()
    process.reply_to_message(ev.Message(2, (ev.JobCompleted(2, "w0!1", "COMPLETED_FAILED", 0, hosts),)))
    job = process.dispatcher.jobs["w0!1"]
    assert (job.finish, job.state, job.hosts) == (2, "COMPLETED_FAILED", ((0, 1),))
