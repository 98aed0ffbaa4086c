"""Which nodes jobs had: lists of classes and units as the scheduler chose them, and the nodes' indices.

Nodes of a counted class are alike for the scheduler; their indices follow from the schedule: a start takes
the free nodes of lowest index.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.scheduler.cluster_state import ALL_OF_IT, HELD_FOR_EVER, NOT_GONE, NOT_HELD, UNCOUNTED
from bridge.scheduler.free_nodes import FreeNodes
from bridge.worlds.fast.cluster_demands import Demands
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, NodeClasses


@dataclass(frozen=True)
class Allocations:
    """Allocations of n jobs: job `j` has ``first[j]:first[j + 1]`` of the classes and units."""

    first: Ints
    classes: Ints
    units: Ints

    def totals(self, classes: NodeClasses, demands: Demands) -> dict[str, Ints]:
        """Return how many nodes, cores and thousandths of GPUs each job had [n]."""
        n = len(self.first) - 1
        job = np.repeat(np.arange(n), np.diff(self.first))
        counted = classes.counted[self.classes]
        whole = np.array([shape.whole for shape in demands.shapes], np.bool_)[demands.shape[job]]
        nodes = np.where(counted, self.units, 1)
        totals = {"nodes": np.bincount(job, nodes, n).astype(np.int64)}
        vectors = np.array([shape.vector for shape in demands.shapes], np.int64)
        for name, r in (("cores", CORES), ("gpus", GPUS)):
            of_nodes = classes.amounts[self.classes, r] * nodes
            of_units = vectors[demands.shape[job], r] * self.units
            totals[name] = np.bincount(job, np.where(whole, of_nodes, of_units), n).astype(np.int64)
        return totals

    def of_nodes(self, j: int, classes: NodeClasses, demands: Demands) -> Ints:
        """Return what job `j` has of each of its nodes [k, R], by index; it shares them: each is a class."""
        part = slice(int(self.first[j]), int(self.first[j + 1]))
        order = np.argsort([classes.members[c][0] for c in self.classes[part]], kind="stable")
        of, units = self.classes[part][order], self.units[part][order]
        vector = np.array(demands.shapes[demands.shape[j]].vector, np.int64)
        whole = np.where(classes.amounts[of] < UNCOUNTED, classes.amounts[of], 0)
        amounts: Ints = np.where(vector == ALL_OF_IT, whole, vector * units[:, None])
        return amounts

    def node_indices(self, classes: NodeClasses, start: Ints, end: Ints, serial: Ints) -> list[Ints]:
        """Return the indices of each job's nodes, ascending; of a job that did not start, none."""
        n = len(start)
        free = FreeNodes(classes.members, classes.counted, classes.is_up)
        nodes: list[Any] = [np.zeros(0, np.int64)] * n
        started = np.flatnonzero(start >= 0)
        starts = started[np.lexsort((serial[started], start[started]))].tolist()
        ends = started[np.lexsort((serial[started], end[started]))].tolist()
        k = 0
        for j in starts:
            while k < len(ends) and end[ends[k]] <= start[j]:
                free.release(ends[k])
                k += 1
            part = slice(int(self.first[j]), int(self.first[j + 1]))
            nodes[j] = free.take(j, zip(self.classes[part].tolist(), self.units[part].tolist(), strict=True))
        return nodes


class AllocationLog:
    """Collects allocations from a scheduler's log while it plays; jobs are those of its records."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._parts: list[tuple[Ints, Ints, Ints]] = []

    def collect(self) -> None:
        """Move the log's entries to the collection."""
        state = self._state
        n = int(state.node_scalars.n_log[0])
        if n:
            log = (state.log_job[0, :n], state.log_class[0, :n], state.log_units[0, :n])
            self._parts.append((log[0].astype(np.int64), log[1].astype(np.int64), log[2].copy()))
            state.node_scalars.n_log[0] = 0

    def allocations(self, n: int) -> Allocations:
        jobs, classes, units = (
            (np.concatenate([np.zeros(0, np.int64), *column]) for column in zip(*self._parts, strict=True))
            if self._parts
            else (np.zeros(0, np.int64),) * 3
        )
        return by_job(jobs, classes, units, n)


def by_job(jobs: Ints, classes: Ints, units: Ints, n: int) -> Allocations:
    """Return entries of `n` jobs in the order of the jobs."""
    order = np.argsort(jobs, kind="stable")
    first = np.searchsorted(jobs[order], np.arange(n + 1))
    return Allocations(first, classes[order], units[order])


def was_eligible(state: Any, b: int, n: int) -> Flags:
    """Tell of the first `n` jobs whether hold, begin time and dependencies ever allowed them."""
    rows = state.node_jobs[b][:n]
    ever: Flags = (rows.gone == NOT_GONE) & (
        (rows.held == NOT_HELD) | ((rows.held == HELD_FOR_EVER) & (rows.for_ever > 0))
    )
    return ever


def as_intervals(nodes: list[Ints]) -> tuple[Ints, Ints, Ints]:
    """Return ascending indices as closed intervals: first [k], last [k]; each job's places there [n + 1]."""
    lengths = np.array([len(indices) for indices in nodes], np.int64)
    flat = np.concatenate([np.zeros(0, np.int64), *nodes])
    begins = np.concatenate([[0], np.cumsum(lengths)])
    opens = np.ones(len(flat), np.bool_)
    opens[1:] = flat[1:] != flat[:-1] + 1
    opens[begins[:-1][lengths > 0]] = True
    places = np.flatnonzero(opens)
    closes = np.append(places[1:], len(flat)) - 1
    return flat[places], flat[closes] if len(flat) else flat, np.searchsorted(places, begins)
