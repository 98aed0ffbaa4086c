"""A case of a cluster through the wire: a decision process, and a scripted Batsim at the other end."""

from typing import Any

import numpy as np
from cluster_on_bridge import Case, Outcome, build_scenario, seconds
from detailed import delay_jobs
from fake_batsim import FakeBatsim, hosts_of

from bridge.experiment.prepare import beliefs
from bridge.experiment.site_jobs import on_nodes
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.allocations import was_eligible
from bridge.worlds.fast.episode import Scenario


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
