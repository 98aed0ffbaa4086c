"""Events of a calendar that change nothing: nodes and partitions have that state by then."""

from collections.abc import Iterator

from bridge.cluster.description import CalendarEvent, Cluster
from bridge.cluster.node_table import build_node_table, partitions_of


def label_of(n: int, event: CalendarEvent) -> str:
    return f"calendar[{n}] ({event.event} at {event.time} s) does nothing"


def idle_events(cluster: Cluster) -> Iterator[tuple[int, str]]:
    """Yield the places of such events, and why they change nothing.

    Where nodes fail at random, nobody knows which are up. A job that an event names is not looked at.
    """
    if not cluster.calendar:
        return
    table, fails = build_node_table(cluster), bool(cluster.failures.mean_time_between)
    state = {node: cluster.nodes[group].state for node, group in enumerate(table.group.tolist())}
    partitions = {one.name: one.state for one in partitions_of(cluster)}
    for n, event in sorted(enumerate(cluster.calendar), key=lambda pair: pair[1].time):
        if event.event == "partition_state" and event.partition in partitions:
            if partitions[event.partition] == event.state:
                yield n, f"partition {event.partition!r} is {event.state} by then"
            partitions[event.partition] = event.state or "up"
        if event.event not in ("down", "drain", "up"):
            continue
        members = table.indices(event.nodes)[0].tolist()
        # nodes that go down when they drain already lose their jobs; those that drain when down do not change
        same = {"up": ("up",), "down": ("down",), "drain": ("drain", "down")}[event.event]
        if members and not fails and all(state[node] in same for node in members):
            yield n, f"its nodes are {' or '.join(sorted({state[node] for node in members}))} by then"
            continue
        for node in members:
            if event.event != "drain" or state[node] != "down":
                state[node] = event.event
