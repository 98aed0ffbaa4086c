"""A case of a cluster through the wire: a decision process, and a scripted Batsim at the other end."""

import csv
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cluster_on_bridge import Case, Outcome, build_cluster, build_scenario, outcomes_of, seconds
from detailed import PATIENCE_S, delay_jobs, write_workload
from fake_batsim import FakeBatsim, hosts_of

from bridge.cluster import Cluster, Partition
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.experiment.prepare import beliefs
from bridge.experiment.site_jobs import on_nodes, schedule_of
from bridge.platform.author import write_platform
from bridge.scheduler.timed_session import TimedSession
from bridge.wire.hosts import intervals
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.endpoint import Endpoint
from bridge.worlds.batsim.killing_site_dispatcher import KillingSiteDispatcher
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.allocations import was_eligible
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay

#: (job, run of the job, start, end, whether it was cut short, nodes): times in seconds.
NodeLives = list[tuple[int, int, int | float | None, int | float | None, bool, list[int]]]


def decision_process(scenario: Scenario, decider: Any = None, window: int = 128) -> DecisionProcess:
    """Return who decides for a scenario's jobs behind the wire; an illegal start is an error."""
    estimator, facts = beliefs(scenario)
    config = DispatcherConfig(
        policy=scenario.compiled.policy, estimator=estimator, facts=facts, decider=decider, window=window
    )
    return DecisionProcess(on_nodes(config, scenario), strict=True)


def host_names(scenario: Scenario) -> list[str]:
    """Return the nodes' names in the order of the platform's hosts, which is that of texts."""
    assert scenario.cluster is not None
    return sorted(scenario.cluster.classes.table.names)


def wire_case(case: Case, decider: Any = None, **decides: Any) -> list[Outcome]:
    """Return what becomes of each job behind the wire, with a scripted Batsim at the other end."""
    scenario = build_scenario(case, **decides)
    assert scenario.cluster is not None
    process, names = decision_process(scenario, decider), host_names(scenario)
    fake = FakeBatsim(
        delay_jobs(scenario.jobs), len(names), names=names, sharing=scenario.cluster.is_shared
    ).run(process.reply_to_frame)
    assert not fake.deadlocked
    index = {name: k for k, name in enumerate(scenario.cluster.classes.table.names)}
    state: Any = process.dispatcher.session.state  # type: ignore[attr-defined]
    eligible = np.where(was_eligible(state, 0, len(scenario.jobs)), state.jobs.submit[0], -1)
    outcomes: list[Outcome] = [(None, None, None, [])] * len(case["jobs"])
    for j, made in enumerate(delay_jobs(scenario.jobs)):
        start, end = fake.starts.get(made.name, -1), fake.ends.get(made.name, -1)
        hosts = hosts_of(fake.alloc[f"w0!{made.name}"]) if start >= 0 else set()
        nodes = sorted(index[names[host]] for host in hosts)
        assert (made.name in fake.rejected) == (start < 0)
        outcomes[int(made.name) - 1] = (seconds(int(eligible[j])), seconds(start), seconds(end), nodes)
    return outcomes


def lives_in_fast_world(case: Case) -> tuple[NodeLives, list[Outcome]]:
    """Return all lives of a case in the fast world but those of no length, and what became of each job."""
    scenario = build_scenario(case)
    schedule = replay(scenario)
    lives = schedule.node_lives
    assert lives is not None
    rows: NodeLives = []
    for row in lives.records:
        if row.end > row.start:
            nodes = sorted(lives.nodes[row.first : row.last].tolist())
            number = int(scenario.jobs.id[row.job])
            rows.append(
                (number, int(row.episode), seconds(row.start), seconds(row.end), row.outcome > 0, nodes)
            )
    return sorted(rows, key=str), outcomes_of(case, scenario, schedule)


def lives_on_platform(case: Case, scenario: Scenario, process: DecisionProcess, starts: Any) -> Any:
    """Return what `lives_in_fast_world` returns, of a simulation that has ended.

    `starts`: id of a job of the platform -> when it started there, when it ended, in seconds, whether it was
    killed, its hosts. What became of each job is the scheduler's word; the lives are the platform's.
    """
    dispatcher: Any = process.dispatcher
    assert dispatcher.ended and not process.result().missing
    assert isinstance(dispatcher.session, TimedSession)
    rows: NodeLives = []
    names = dispatcher.hosts.node_of
    lives = {name: (job, 0) for name, job in dispatcher.jobs.items()}
    if isinstance(dispatcher, KillingSiteDispatcher):
        lives = {
            life.job_id: (job.event, life.episode)  # type: ignore[attr-defined]
            for job in dispatcher.repeatable_jobs
            for life in job.lives
        }
    for name, (start, end, killed, hosts) in starts.items():
        job, episode = lives[name]
        number = int(job.job_id.rpartition("!")[2])
        rows.append((number, episode, start, end, killed, sorted(names[host] for host in hosts)))
    schedule = schedule_of(dispatcher.session, scenario)
    return sorted(rows, key=str), outcomes_of(case, scenario, schedule)


def lives_behind_wire(
    case: Case, decider: Any = None, decides: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """Return what `lives_in_fast_world` returns, with a scripted Batsim at the other end.

    `decider`: an agent; `decides`: more of the policy.
    """
    scenario = build_scenario(case, **(decides or {}))
    assert scenario.cluster is not None
    process, names = decision_process(scenario, decider), host_names(scenario)
    options = {"dynamic": True, "sharing": scenario.cluster.is_shared, **options}
    fake = FakeBatsim(delay_jobs(scenario.jobs), len(names), names=names, **options)
    fake.run(process.reply_to_frame)
    assert not fake.deadlocked
    starts = {
        job_id: (
            seconds(fake.starts[job.name]),
            seconds(fake.ends[job.name]),
            fake.state[job_id] == "COMPLETED_KILLED",
            hosts_of(fake.alloc[job_id]),
        )
        for job_id, job in fake.jobs.items()
        if job.name in fake.starts
    }
    return lives_on_platform(case, scenario, process, starts)


def lives_on_program(command: Sequence[str], case: Case, folder: Path, *options: str) -> Any:
    """Return what `lives_in_fast_world` returns, with a platform program at the other end of a socket.

    The lives are those of the program's own table of jobs.
    """
    scenario = build_scenario(case)
    assert scenario.cluster is not None
    folder.mkdir()
    site = Cluster(nodes=build_cluster(case).nodes, partitions=(Partition(name="all"),))
    write_cluster_toml(site, folder / "site.toml")
    write_platform(None, folder / "platform.xml", cluster=str(folder / "site.toml"))
    write_workload(folder / "workload.json", delay_jobs(scenario.jobs), len(case["nodes"]))
    process = decision_process(scenario)
    options = ("--enable-dynamic-jobs", *options)
    if scenario.cluster.is_shared:
        options = ("--enable-compute-sharing", *options)
    with Endpoint("tcp://127.0.0.1:*", startup_timeout=PATIENCE_S, idle_timeout=PATIENCE_S) as endpoint:
        words = ["-p", "platform.xml", "-w", "workload.json", "-s", endpoint.address, "-e", "out", "-q"]
        with subprocess.Popen([*command, *words, *options], cwd=folder) as child:
            try:
                result = process.run(endpoint)
                assert child.wait(PATIENCE_S) == 0
            finally:
                child.kill()
    assert result.error is None and not result.refusals
    starts = {}
    with (folder / "out_jobs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["starting_time"]:
                times = (round(float(row[name])) for name in ("starting_time", "finish_time"))
                hosts = [
                    host
                    for low, high in intervals(row["allocated_resources"])
                    for host in range(low, high + 1)
                ]
                killed = row["final_state"] == "COMPLETED_KILLED"
                starts[f"{row['workload_name']}!{row['job_id']}"] = (*times, killed, hosts)
    return lives_on_platform(case, scenario, process, starts)


def without_suspension(case: Case) -> Case:
    """Return a case whose preempted jobs are requeued where they would be suspended."""
    partitions = {
        name: {**row, **({"preempt": "requeue"} if row.get("preempt") == "suspend" else {})}
        for name, row in case["partitions"].items()
    }
    return {**case, "partitions": partitions}
