"""Lives of jobs: each run of a job on a cluster that changes in time, the last one and those cut short."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.base.arrays import Floats, Ints, Records
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import (
    ENDED,
    FAILED_REQUEUED,
    LIFE,
    NODE_FAILED,
    PREEMPTED,
    PREEMPTED_REQUEUED,
    STOOD,
    SUSPENDED,
    TimedState,
)
from bridge.workload.requests import MILLI
from bridge.worlds.fast.allocations import Allocations
from bridge.worlds.fast.cluster_demands import Demands
from bridge.worlds.fast.cluster_nodes import NodeClasses


def worked_since(state: Any, b: int | Ints | slice, which: Ints | slice, now: int | Ints, /) -> Ints:
    """Return when jobs would have started their last lives, had these never been suspended; -1: not yet.

    `b`: a scheduler and some of its jobs; or several, all of whose jobs are meant.
    """
    start = np.array(state.jobs[b]["start"][which], np.int64)
    if not isinstance(state, TimedState):
        return start
    rows = state.timed_jobs[b][which]
    stands = np.where(rows["doing"] == SUSPENDED, now - rows["suspended_at"], 0)
    since: Ints = np.where(start >= 0, start + rows["stood"] + stands, -1)
    return since


@dataclass(frozen=True)
class Lives:
    """All lives that are over, in the order in which they ended; times in microseconds.

    Attributes:
        records: LIFE; of each ``nodes[first:last]``.
        nodes: indices of nodes.
        units: what the job had of each: one node, or so many tasks.
        stands: LIFE, of each when its job was suspended and went on (or was stopped for good).
    """

    records: Records
    nodes: Ints
    units: Ints
    stands: Records

    def last_of(self, n: int) -> Ints:
        """Return the place of each job's last life [n], -1 for one that never ran."""
        last = np.full(n, -1, np.int64)
        last[self.records.job] = np.arange(len(self.records))
        return last

    def allocations(self, n: int, classes: NodeClasses) -> "NodeLists":
        """Return what each of `n` jobs had in its last life."""
        last = self.last_of(n)
        nothing = np.zeros(0, np.int64)
        rows = [
            np.arange(self.records.first[k], self.records.last[k]) if k >= 0 else nothing
            for k in last.tolist()
        ]
        first = np.cumsum([0, *map(len, rows)])
        flat = np.concatenate([np.zeros(0, np.int64), *rows])
        return NodeLists(first, classes.class_of[self.nodes[flat]], self.units[flat], self.nodes[flat])

    def suspensions(self) -> dict[int, list[tuple[float, float]]]:
        """Return since and until when (s) jobs were suspended in their lives, in order of time."""
        spans: dict[int, list[tuple[float, float]]] = {}
        for row in self.stands[np.argsort(self.stands.start, kind="stable")]:
            spans.setdefault(int(row.job), []).append((row.start / SECOND, row.end / SECOND))
        return spans

    def attempts(self) -> Ints:
        """Return the places of the runs after which their jobs waited again."""
        return np.flatnonzero(self.records.outcome >= PREEMPTED_REQUEUED)

    def counts(self) -> dict[str, int]:
        """Return how many runs ended how, those that were cut short."""
        names: tuple[tuple[int, str], ...] = ((PREEMPTED, "cancelled"), (NODE_FAILED, "failed"))
        names += ((PREEMPTED_REQUEUED, "requeued"), (FAILED_REQUEUED, "restarted"))
        counts = np.bincount(self.records.outcome, minlength=FAILED_REQUEUED + 1)
        return {name: int(counts[outcome]) for outcome, name in names}

    def lost(self, classes: NodeClasses, demands: Demands) -> dict[str, float]:
        """Return the node-seconds, core-seconds and GPU-seconds of lives that were cut short."""
        totals = self._amounts(classes, demands)
        cut = self.records.outcome != ENDED
        vain = (self.records.end - self.records.start - self.records.stood - self.records.kept) / SECOND
        return {name: float((amounts * vain)[cut].sum()) for name, amounts in totals.items()}

    def _amounts(self, classes: NodeClasses, demands: Demands) -> dict[str, Floats]:
        """Return how many nodes, cores and GPUs each life had."""
        n = len(self.records)
        which = np.concatenate(
            [np.zeros(0, np.int64), *(np.arange(row.first, row.last) for row in self.records)]
        )
        first = np.cumsum([0, *(self.records.last - self.records.first).tolist()])
        own = Allocations(first, classes.class_of[self.nodes[which]], self.units[which])
        of = Demands(
            demands.partition[self.records.job],
            demands.shape[self.records.job],
            demands.shapes,
            demands.taken,
            demands.elsewhere[self.records.job],
            demands.redirected[self.records.job],
        )
        totals = own.totals(classes, of)
        assert all(len(values) == n for values in totals.values())
        return {name: totals[name] / (MILLI if name == "gpus" else 1) for name in ("nodes", "cores", "gpus")}


@dataclass(frozen=True)
class NodeLists(Allocations):
    """What n jobs had, with the indices of their nodes beside classes and units."""

    nodes: Ints

    def node_indices(self, classes: NodeClasses, start: Ints, end: Ints, serial: Ints) -> list[Ints]:
        """Return the indices of each job's nodes, ascending; of a job that did not start, none."""
        del classes, end, serial
        return [
            np.sort(self.nodes[self.first[j] : self.first[j + 1]]) if start[j] >= 0 else self.nodes[:0]
            for j in range(len(start))
        ]


class LivesLog:
    """Collects lives from a scheduler's log while it plays; jobs are those of its records."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._records: list[Records] = []
        self._nodes: list[Ints] = []
        self._units: list[Ints] = []
        self._n_nodes = 0

    def collect(self) -> None:
        state, more = self._state, self._state.timed_scalars[0]
        n, k = int(more.n_lives), int(more.n_life_nodes)
        if n:
            rows = state.life_log[0, :n].copy()
            rows.first += self._n_nodes
            rows.last += self._n_nodes
            self._records.append(rows)
            self._nodes.append(state.life_nodes[0, :k].astype(np.int64))
            self._units.append(state.life_units[0, :k].copy())
            self._n_nodes += k
            more.n_lives = more.n_life_nodes = 0

    def lives(self) -> Lives:
        nothing = np.zeros(0, np.int64)
        records = np.concatenate([np.zeros(0, LIFE), *self._records]).view(np.recarray)
        stood = records.outcome == STOOD
        nodes, units = np.concatenate([nothing, *self._nodes]), np.concatenate([nothing, *self._units])
        return Lives(records[~stood], nodes, units, records[stood])
