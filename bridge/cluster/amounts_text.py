"""Amounts of nodes as texts: what a job has of each of its nodes, what each node of a cluster has.

A jobs table says in its column ``per_node`` what a job has of each of its nodes, in the order of
``allocated_resources``: amounts with a stroke between them, equal ones after each other once, such as
``4/8192/1x3 2/4096/0``. A record says likewise, for all nodes, what each has (``-``: that is not counted).
The column ``suspended`` says since and until when (s) a job was suspended, such as ``3-8 20-25.5``;
``progress_time`` (s) what its earlier lives had done that was kept. Of a log's own starts on a cluster,
``unknown_nodes`` and ``stray_nodes`` list nodes that a job ran on and that the cluster, or the job's
partition, does not have; the record says how many nodes partitions have whose jobs have whole nodes.
"""

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError

#: The column, and its name in a run's record.
PER_NODE, NODE_AMOUNTS, NODE_RESOURCES = "per_node", "node_amounts", "node_resources"
SUSPENDED, PROGRESS = "suspended", "progress_time"
UNKNOWN_NODES, STRAY_NODES, PARTITION_NODES = "unknown_nodes", "stray_nodes", "partition_nodes"
#: A run's record: what in the cluster's calendar changed nothing.
IDLE_EVENTS = "idle_events"
#: An amount that nobody counts.
_ENDLESS = 1 << 60


def amounts_text(rows: Ints, uncounted: int) -> str:
    """Return the text of amounts [nodes, R]; `uncounted`: the least number that stands for no limit."""
    words = ["/".join("-" if amount >= uncounted else str(amount) for amount in row) for row in rows.tolist()]
    counts = ((word, sum(1 for _ in same)) for word, same in groupby(words))
    return " ".join(word if n == 1 else f"{word}x{n}" for word, n in counts)


def read_amounts(text: str, where: str) -> Ints:
    """Return the amounts [nodes, R] of a text; BridgeError: it is none."""
    rows: list[list[int]] = []
    try:
        for word in text.split():
            one, _, times = word.partition("x")
            rows += [[_ENDLESS if part == "-" else int(part) for part in one.split("/")]] * int(times or 1)
        return np.array(rows, np.int64)
    except ValueError as error:
        what = f"{text[:40]!r} does not say what nodes have, such as '4/8192/1x3'"
        raise BridgeError(what, where=where, remedy="Write the run anew.") from error


def format_spans(spans: Iterable[tuple[float, float]]) -> str:
    """Return times (s) as a text such as ``3-8 20-25.5``."""
    return " ".join("-".join(f"{time:.6f}".rstrip("0").rstrip(".") for time in span) for span in spans)


def parse_spans(text: str, where: str) -> list[tuple[float, float]]:
    """Return the times (s) of a text; BridgeError: it is none."""
    try:
        return [(float(since), float(until)) for since, until in (word.split("-") for word in text.split())]
    except ValueError as error:
        what = f"{text[:40]!r} does not say when a job was suspended, such as '3-8 20-25.5'"
        raise BridgeError(what, where=where, remedy="Write the run anew.") from error
