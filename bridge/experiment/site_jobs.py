"""A scenario on a cluster as a decision process has it: all jobs in the records of one scheduler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.cluster.amounts_text import NODE_AMOUNTS, NODE_RESOURCES, PER_NODE, amounts_text
from bridge.scheduler.cluster_session import ClusterSession, NodeDemand, SiteJobs
from bridge.scheduler.cluster_state import UNCOUNTED
from bridge.scheduler.timed_session import TimedSession
from bridge.wire.hosts import from_ids, intervals, text_of
from bridge.worlds.fast import episode
from bridge.worlds.fast.allocations import by_job
from bridge.worlds.fast.attempts import cut_short, with_attempts
from bridge.worlds.fast.cluster_nodes import NodeClasses
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.jobs_table import OF_CLUSTER, JobsTableBuilder
from bridge.worlds.fast.lives import LivesLog
from bridge.worlds.fast.replay import Schedule, read_on_nodes

if TYPE_CHECKING:
    from bridge.worlds.batsim.dispatcher import DispatcherConfig as Deciding
    from bridge.worlds.batsim.site_dispatcher import SiteDispatcher


#: Times that count from a job's submission, which the platform knows of its first life alone.
_OF_WAITS = ("submission_time", "waiting_time", "turnaround_time", "stretch")


@dataclass(frozen=True)
class SiteOutcome:
    """What the jobs table of a simulation on a cluster is made of.

    Attributes:
        builder: of what became of the jobs, and behind them of their runs that were cut short.
        node_of: host -> node.
        jobs: number of a row of the builder -> its job's id, `J#k` for a run that was cut short.
        nodes: the nodes of each such row, ascending.
        lives: of a site whose jobs are killed: id on the platform -> number of its row; None: of another one.
        cut_short: metrics of runs that were cut short.
    """

    builder: JobsTableBuilder
    node_of: Mapping[int, int]
    jobs: Sequence[str]
    nodes: Sequence[Ints]
    lives: Mapping[str, int] | None
    cut_short: Mapping[str, float]


def on_nodes(setup: "Deciding", prepared: Scenario) -> "Deciding":
    """Return the setup of a decision process with the nodes and rules that its jobs meet, if any."""
    if prepared.cluster is None:
        return setup
    calendar = prepared.cluster.calendar
    if calendar is not None and calendar.suspends:
        what = "a platform suspends no jobs: SimGrid runs a job or kills it"
        remedy = "Set preempt_mode to requeue or cancel; replay and evaluate have suspend."
        raise BridgeError(what, where=f"cluster {prepared.cluster.cluster.name!r}", remedy=remedy)
    kills = calendar is not None and calendar.stops_jobs
    return replace(setup, site=partial(build_site, prepared), site_kills=kills)


def schedule_of(session: ClusterSession, prepared: Scenario) -> Schedule:
    """Return what became of the jobs in a session."""
    n = len(prepared.jobs)
    schedule = read_on_nodes(session.state, prepared, 0, 0, n)
    if isinstance(session, TimedSession):
        assert prepared.cluster is not None
        lives = session.site.lives.lives()
        return replace(schedule, allocation=lives.allocations(n, prepared.cluster.classes), node_lives=lives)
    jobs, classes, units = session.allocated()
    return replace(schedule, allocation=by_job(jobs, classes, units, n))


def outcome_of(dispatcher: "SiteDispatcher", prepared: Scenario, *, kills: bool) -> SiteOutcome:
    """Return what became of a simulation's jobs; `kills`: requests kill jobs."""
    schedule = schedule_of(dispatcher.session, prepared)
    cut = cut_short(prepared, schedule)
    lives = _rows_of_lives(dispatcher, prepared, schedule)
    prepared, schedule = with_attempts(prepared, schedule)
    assert prepared.cluster is not None
    assert schedule.allocation is not None
    nodes = schedule.allocation.node_indices(
        prepared.cluster.classes, schedule.start, schedule.end, schedule.serial
    )
    builder = JobsTableBuilder(prepared, schedule, killed_at_request=kills)
    names = prepared.jobs.id.astype(str).tolist()
    return SiteOutcome(builder, dispatcher.hosts.node_of, names, nodes, lives, cut)


def _rows_of_lives(
    dispatcher: "SiteDispatcher", prepared: Scenario, schedule: Schedule
) -> dict[str, int] | None:
    """Return the rows of `with_attempts` by the ids of lives on the platform; None: no job is ever killed."""
    from bridge.worlds.batsim.killing_site_dispatcher import KillingSiteDispatcher, NodeLife

    if not isinstance(dispatcher, KillingSiteDispatcher):
        return None
    n, runs = len(prepared.jobs), schedule.node_lives
    assert runs is not None
    cut = runs.records[runs.attempts()]
    row_of = {(int(run.job), int(run.episode)): n + k for k, run in enumerate(cut)}
    return {
        life.job_id: row_of.get((life.index, life.episode), life.index)
        for job in dispatcher.repeatable_jobs
        for life in job.lives
        if isinstance(life, NodeLife)
    }


def add_site_columns(table: pd.DataFrame, which: Ints, task_site: SiteOutcome) -> pd.DataFrame:
    """Return a simulation's jobs table with what a replay on a cluster tells of each job.

    `which`: [rows] its row, see `SiteOutcome`. Nodes stand for hosts; a job waits since it is eligible. Runs
    that were cut short in the instant in which they began stand last: the platform knows nothing of them.
    """
    builder = task_site.builder
    all_rows = builder.rows().set_index(builder.order)
    own = all_rows.loc[which].reset_index(drop=True)
    table = table.reset_index(drop=True)
    names = ("requested_number_of_resources", *OF_CLUSTER, "cores", "gpus", PER_NODE)
    table = table.assign(**{name: own[name] for name in (*names, *_OF_WAITS)})
    texts = [
        text_of(
            from_ids(
                sorted(task_site.node_of[h] for low, high in intervals(text) for h in range(low, high + 1))
            )
        )
        for text in table["allocated_resources"].fillna("")
    ]
    table = table.assign(allocated_resources=texts)
    begun_there = which[table["starting_time"].notna().to_numpy()]
    unbegun = np.setdiff1d(all_rows.index[all_rows["starting_time"].notna()], begun_there)
    if not len(unbegun):
        return table
    extra = all_rows.loc[unbegun].reset_index(drop=True)
    extra["allocated_resources"] = [text_of(from_ids(task_site.nodes[row].tolist())) for row in unbegun]
    extra["request"] = extra["requested_time"]
    table = table[~np.isin(which, unbegun)]
    return pd.concat([table, extra.reindex(columns=table.columns)], ignore_index=True)


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
    classes, calendar = arrays.classes, arrays.calendar
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
        outages=() if calendar is None else calendar.outages(),
        lives=None if calendar is None else LivesLog(state),
        repeats_jobs=calendar is not None and calendar.repeats_jobs,
    )
