"""A scenario on a cluster as a decision process has it: all jobs in the records of one scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import pandas as pd

from bridge.base.arrays import Ints
from bridge.cluster.amounts_text import NODE_AMOUNTS, NODE_RESOURCES, PER_NODE, amounts_text
from bridge.scheduler.cluster_session import ClusterSession, NodeDemand, SiteJobs
from bridge.scheduler.cluster_state import UNCOUNTED
from bridge.wire.hosts import from_ids, intervals, text_of
from bridge.worlds.fast import episode
from bridge.worlds.fast.allocations import by_job
from bridge.worlds.fast.cluster_nodes import NodeClasses
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.jobs_table import OF_CLUSTER, JobsTableBuilder
from bridge.worlds.fast.replay import Schedule, read_on_nodes

if TYPE_CHECKING:
    from bridge.worlds.batsim.dispatcher import DispatcherConfig as Deciding
    from bridge.worlds.batsim.site_dispatcher import SiteDispatcher


@dataclass(frozen=True)
class SiteOutcome:
    """What the jobs table of a simulation on a cluster is made of: `node_of`: host -> node."""

    builder: JobsTableBuilder
    node_of: Mapping[int, int]


def on_nodes(setup: "Deciding", prepared: Scenario) -> "Deciding":
    """Return the setup of a decision process with the nodes and rules that its jobs meet, if any."""
    if prepared.cluster is None:
        return setup
    prepared.cluster.refuse_calendar("simulated platforms")
    return replace(setup, site=partial(build_site, prepared))


def schedule_of(session: ClusterSession, prepared: Scenario) -> Schedule:
    """Return what became of the jobs in a session."""
    n = len(prepared.jobs)
    schedule = read_on_nodes(session.state, prepared, 0, 0, n)
    jobs, classes, units = session.allocated()
    return replace(schedule, allocation=by_job(jobs, classes, units, n))


def outcome_of(dispatcher: "SiteDispatcher", prepared: Scenario, *, kills: bool) -> SiteOutcome:
    """Return what became of a simulation's jobs; `kills`: requests kill jobs."""
    builder = JobsTableBuilder(prepared, schedule_of(dispatcher.session, prepared), killed_at_request=kills)
    return SiteOutcome(builder, dispatcher.hosts.node_of)


def add_site_columns(table: pd.DataFrame, which: Ints, task_site: SiteOutcome) -> pd.DataFrame:
    """Return a simulation's jobs table with what a replay on a cluster tells of each job.

    `which`: [rows] its place among the jobs. Nodes stand for hosts; a job waits since it is eligible.
    """
    builder = task_site.builder
    own = builder.rows().set_index(builder.order).loc[which].reset_index(drop=True)
    table = table.reset_index(drop=True)
    names = ("requested_number_of_resources", *OF_CLUSTER, "cores", "gpus", PER_NODE)
    table = table.assign(**{name: own[name] for name in names})
    table["waiting_time"] = table["starting_time"] - table["eligible_time"]
    texts = [
        text_of(
            from_ids(
                sorted(task_site.node_of[h] for low, high in intervals(text) for h in range(low, high + 1))
            )
        )
        for text in table["allocated_resources"].fillna("")
    ]
    return table.assign(allocated_resources=texts)


def nodes_record(classes: NodeClasses) -> dict[str, str]:
    """Return what a run's record says of nodes that jobs share, for a check."""
    text = amounts_text(_amounts(classes), UNCOUNTED)
    return {NODE_RESOURCES: " ".join(classes.resources), NODE_AMOUNTS: text}


def _amounts(classes: NodeClasses) -> Ints:
    amounts: Ints = classes.amounts[classes.class_of]
    return amounts


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
        amounts=_amounts(classes),
        shape=arrays.demands.shape,
        demands=demands,
    )
