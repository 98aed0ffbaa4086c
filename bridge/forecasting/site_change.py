"""Changes of a run's cluster at a time: nodes are drained, or nodes that were not there come up."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bridge.base.errors import BridgeError
from bridge.cluster.check import require_consistent
from bridge.cluster.description import CalendarEvent, Cluster, NodeGroup
from bridge.cluster.node_table import NodeTable, build_node_table
from bridge.forecasting.state import MachineState
from bridge.scheduler.calendar import apply_due_now
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import NODES_UP
from bridge.worlds.fast.episode import Scenario

#: Name of the group of nodes that were added.
ADDED = "added"
#: When an event is that no replay comes to by itself, s: after all others.
_LAST = 1 << 42


def drain_nodes(state: MachineState, nodes: str) -> Callable[[Cluster], Cluster]:
    """Return the change of a cluster by which nodes are drained at the state's time."""
    event = CalendarEvent(time=_second(state), event="drain", nodes=(nodes,))

    def change(cluster: Cluster) -> Cluster:
        changed = replace(cluster, calendar=(*cluster.calendar, event))
        require_consistent(changed, lambda _path: f"--drain {nodes}")
        return changed

    return change


def add_nodes(state: MachineState, text: str) -> Callable[[Cluster], Cluster]:
    """Return the change by which N nodes like those of a group come up at the state's time: ``GROUP:N``."""
    name, _, number = text.rpartition(":")
    if not name or not number.isdigit() or not 0 < int(number) < 1_000_000:
        raise BridgeError(
            "is no number of nodes", where=f"--add {text}", remedy="Write GROUP:N, such as n:4."
        )
    event = CalendarEvent(time=_second(state), event="up", nodes=(ADDED,))

    def change(cluster: Cluster) -> Cluster:
        like = next((group for group in cluster.nodes if group.name == name), None)
        if like is None:
            groups = ", ".join(dict.fromkeys(group.name for group in cluster.nodes))
            raise BridgeError("is no group of nodes", where=f"--add {text}", remedy=f"Choose {groups}.")
        table = build_node_table(cluster)
        added: NodeGroup = replace(like, name=ADDED, nodes="", count=int(number), state="down")
        own = {*table.indices([name])[0].tolist()}
        partitions = [
            replace(one, nodes=(*one.nodes, ADDED)) if own <= _members(table, one.nodes) else one
            for one in cluster.partitions
        ]
        changed = replace(
            cluster,
            nodes=(*cluster.nodes, added),
            partitions=tuple(partitions),
            calendar=(*cluster.calendar, event),
        )
        require_consistent(changed, lambda _path: f"--add {text}")
        return changed

    return change


def _members(table: NodeTable, lists: tuple[str, ...]) -> set[int]:
    return {*table.indices(lists)[0].tolist()}


def _second(state: MachineState) -> int:
    """Return the state's time on the log's clock; BridgeError: it is no whole second."""
    assert state.site is not None
    time = state.now + state.site.origin
    if time % SECOND:
        what, remedy = "a cluster changes at whole seconds only", "Give --at a whole number."
        raise BridgeError(what, where=f"{state.now / SECOND:g} s", remedy=remedy)
    return time // SECOND


def postponed(change: Callable[[Cluster], Cluster]) -> Callable[[Cluster], Cluster]:
    """Return a change whose event, the calendar's last, waits for `let_happen`."""

    def later(cluster: Cluster) -> Cluster:
        changed = change(cluster)
        *before, event = changed.calendar
        return replace(changed, calendar=(*before, replace(event, time=_LAST)))

    return later


def without_added(scenario: Scenario) -> Scenario:
    """Return a replay on a cluster with a postponed change, where nodes to come have no earlier events.

    The calendar may say ALL, and nodes fail at random: none of that is of nodes that are not there.
    """
    arrays = scenario.cluster
    assert arrays is not None
    assert arrays.calendar is not None
    table, calendar = arrays.classes.table, arrays.calendar
    groups = [g for g, group in enumerate(arrays.cluster.nodes) if group.name == ADDED]
    is_added = np.isin(table.group, groups)
    if not is_added.any():
        return scenario
    events, old, nodes = calendar.events.copy(), calendar.static["event_nodes"], list[int]()
    last = len(events) - 1
    keeps = np.ones(len(events), np.bool_)
    for k, event in enumerate(events):
        if event.kind > NODES_UP:
            continue
        own, first = old[event.first : event.last], len(nodes)
        nodes += (own if k == last else own[~is_added[own]]).tolist()
        keeps[k] = len(nodes) > first
        event.first, event.last = first, len(nodes)
    static = {**calendar.static, "event_nodes": np.array(nodes, np.int32)}
    calendar = replace(calendar, events=events[keeps], static=static)
    return replace(scenario, cluster=replace(arrays, calendar=calendar))


def let_happen(state: MachineState) -> None:
    """Let the postponed event of a state happen now; the scheduler has not yet answered to it."""
    assert state.site is not None
    arrays = state.site.state
    events, first = arrays.events[0], int(arrays.timed_scalars[0].next_event)
    events[first:] = np.roll(events[first:].copy(), 1)
    events.time[first] = arrays.scalars.now[0] = state.now
    apply_due_now(arrays, 0)
