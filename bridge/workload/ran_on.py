"""The nodes that a log says its jobs ran on: a column of texts, which is read only where it is asked for.

The text is a list as Slurm writes it: ``n[1-3,7],gpu2``; empty: the log does not name the job's nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.slurm_values import node_names
from bridge.workload.requests import Texts, intern_texts
from bridge.workload.table import Workload

#: The column. (``nodelist`` holds nodes that a job must have.)
RAN_ON = "ran_on"


@dataclass(frozen=True)
class NodesOfJobs:
    """The nodes of n jobs: job `j` ran on ``node[first[j]:first[j + 1]]``, places in `names`."""

    first: Ints
    node: Ints
    names: tuple[str, ...]

    @property
    def counts(self) -> Ints:
        """How many nodes the log names of each job [n]."""
        return np.diff(self.first)

    @property
    def owner(self) -> Ints:
        """The job of each place in `node`."""
        return np.repeat(np.arange(len(self.first) - 1), self.counts)

    def head(self, n: int) -> "NodesOfJobs":
        """Return the nodes of the first `n` jobs."""
        return NodesOfJobs(self.first[: n + 1], self.node[: self.first[n]], self.names)

    def of(self, which: Flags) -> Ints:
        """Return the nodes on which these jobs ran, each once."""
        return np.unique(self.node[np.repeat(which, self.counts)])

    def most_at_once(self, start: Floats, end: Floats, amount: Floats) -> Floats:
        """Return the most in use on each node at one time; ends come before starts.

        `start`, `end`: [n]; `amount`: of each place in `node`.
        """
        job = self.owner
        ran = end[job] > start[job]
        job, node, amount = job[ran], self.node[ran], amount[ran]
        times = np.concatenate((end[job], start[job]))
        nodes = np.concatenate((node, node))
        changes = np.concatenate((-amount, amount))
        order = np.lexsort((changes, times, nodes))  # of one instant, ends first
        in_use = np.cumsum(changes[order])  # all of a node's changes together are nothing
        most = np.zeros(len(self.names))
        np.maximum.at(most, nodes[order], in_use)
        return most


def read_ran_on(workload: Workload, ids: npt.NDArray[Any]) -> NodesOfJobs | None:
    """Return the nodes of jobs `ids` [n]; None: the log names none.

    BridgeError: a cell is no list of nodes.
    """
    import pandas as pd

    table = workload.jobs
    if RAN_ON not in table:
        return None
    rows = pd.Index(table["job_id"]).get_indexer(pd.Index(ids))
    texts = intern_texts([str(text).strip() for text in table[RAN_ON].fillna("").iloc[rows]])
    return nodes_of_texts(texts, lambda j: f"{workload.where}, job {table['job_id'].iloc[rows[j]]}")


def nodes_of_texts(texts: Texts, place: Callable[[int], str]) -> NodesOfJobs | None:
    """Return the nodes of jobs by their lists; None: they name none. `place`: job -> where its list stands.

    BridgeError: a text is no list of nodes.
    """
    index: dict[str, int] = {}
    lists: list[Ints] = []
    for code, text in enumerate(texts.texts):
        try:
            names = dict.fromkeys(node_names(text))
        except ValueError as error:
            where, remedy = place(int((texts.code == code).argmax())), "Mend the cell, or leave it empty."
            raise BridgeError(f"its {RAN_ON!r} {error}", where=where, remedy=remedy) from error
        lists.append(np.array([index.setdefault(name, len(index)) for name in names], np.int64))
    if not index:
        return None
    nothing = np.zeros(0, np.int64)
    of_jobs = [lists[code] if code >= 0 else nothing for code in texts.code.tolist()]
    first = np.concatenate(([0], np.cumsum([len(one) for one in of_jobs])))
    return NodesOfJobs(first, np.concatenate(of_jobs), tuple(index))
