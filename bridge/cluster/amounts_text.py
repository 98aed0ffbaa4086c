"""Amounts of nodes as texts: what a job has of each of its nodes, what each node of a cluster has.

A jobs table says in its column ``per_node`` what a job has of each of its nodes, in the order of
``allocated_resources``: amounts with a stroke between them, equal ones after each other once, such as
``4/8192/1x3 2/4096/0``. A record says likewise, for all nodes, what each has (``-``: that is not counted).
"""

from itertools import groupby

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError

#: The column, and its name in a run's record.
PER_NODE, NODE_AMOUNTS, NODE_RESOURCES = "per_node", "node_amounts", "node_resources"
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
