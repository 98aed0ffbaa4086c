"""A scenario on a cluster as a decision process has it: all jobs in the records of one scheduler."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from bridge.scheduler.cluster_session import NodeDemand, SiteJobs
from bridge.worlds.fast import episode
from bridge.worlds.fast.episode import Scenario

if TYPE_CHECKING:
    from bridge.worlds.batsim.dispatcher import DispatcherConfig as Deciding


def on_nodes(setup: "Deciding", prepared: Scenario) -> "Deciding":
    """Return the setup of a decision process with the nodes and rules that its jobs meet, if there are any."""
    return setup if prepared.cluster is None else replace(setup, site=partial(build_site, prepared))


def build_site(prepared: Scenario, window: int) -> SiteJobs:
    """Return the jobs and nodes of a scenario on a cluster, none of them submitted yet.

    `window`: most candidates shown to an agent.
    """
    arrays, n = prepared.cluster, len(prepared.jobs)
    assert arrays is not None
    length = window if prepared.compiled.chooser is None else n
    state = episode.allocate(prepared, 1, n, window=length, whole=True, pauses=True)
    episode.fill(state, 0, prepared, 0, n)
    classes = arrays.classes
    amounts = np.zeros((len(classes.table), len(classes.resources)), np.int64)
    for c, members in enumerate(classes.members):
        amounts[members] = classes.amounts[c]
    demands = [
        NodeDemand(
            shape.nodes,
            shape.tasks,
            shape.vector,
            shape.whole or bool(classes.counted[list(shape.classes)].all()),
            frozenset(int(node) for c in shape.classes for node in classes.members[c]),
        )
        for shape in arrays.demands.shapes
    ]
    numbers = prepared.jobs.number.tolist()
    return SiteJobs(
        state=cast("object", state),
        compiled=prepared.compiled,
        places={number: j for j, number in enumerate(numbers)},
        node_names=classes.table.names,
        members=classes.members,
        counted=classes.counted,
        is_up=classes.is_up,
        resources=classes.resources,
        amounts=amounts,
        shape=arrays.demands.shape,
        demands=demands,
    )
