"""Conditions of jobs on other jobs, by places in a log: parents, arrays as parents, jobs of one name."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Flags, Ints, Records
from bridge.base.errors import BridgeError
from bridge.cluster.request_texts import parse_dependency
from bridge.scheduler.cluster_state import (
    AFTER,
    AFTER_ANY,
    AFTER_NOT_OK,
    AFTER_OK,
    CONDITION,
    SINGLETON,
)
from bridge.scheduler.state import SECOND
from bridge.workload.requests import JobRequests

_KINDS = {
    "after": AFTER,
    "afterany": AFTER_ANY,
    "afterok": AFTER_OK,
    "afternotok": AFTER_NOT_OK,
    "singleton": SINGLETON,
}


@dataclass(frozen=True)
class Conditions:
    """The conditions of n jobs.

    Attributes:
        first: [n + 1] a job's are ``first[j]:first[j + 1]``.
        records: CONDITION; parents are places in the log, -1: there is no such job.
        any_is_enough: [n].
        group: [n] jobs of one user and name, of which one or more wait for all others; -1: of no such group.
        is_singleton: [n].
        n_unknown: jobs with a parent that there is not.
    """

    first: Ints
    records: Records
    any_is_enough: Flags
    group: Ints
    is_singleton: Flags
    n_unknown: int


def build_conditions(requests: JobRequests, ids: Sequence[object]) -> Conditions:
    """Return the conditions; BridgeError: a text is none, or jobs wait for each other's ends."""
    n = len(requests)
    first, rows = np.zeros(n + 1, np.int64), []
    any_is_enough, is_singleton = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    group = np.full(n, -1, np.int64)
    unknown = 0
    stated = np.flatnonzero(requests.dependency.code >= 0)
    if len(stated):
        place = {str(job): j for j, job in enumerate(ids)}
        tasks: dict[str, list[int]] = {}
        for j in np.flatnonzero(requests.array_id >= 0).tolist():
            tasks.setdefault(str(int(requests.array_id[j])), []).append(j)
        for j in stated.tolist():
            text = requests.dependency.of(j)
            try:
                conditions, any_is_enough[j] = parse_dependency(text)
            except ValueError as error:
                where, remedy = f"job {ids[j]}", "Mend its column 'dependency', or leave it empty."
                raise BridgeError(str(error), where=where, remedy=remedy) from error
            for part, condition in enumerate(conditions):
                kind = _KINDS[condition.kind]
                if kind == SINGLETON:
                    is_singleton[j] = True
                    rows.append((0, -1, kind, part))
                else:
                    parents = tasks.get(condition.job) or [place.get(condition.job, -1)]
                    unknown += parents == [-1]
                    rows += [(condition.delay * SECOND, parent, kind, part) for parent in parents]
            first[j + 1] = len(rows)
    np.maximum.accumulate(first, out=first)
    if is_singleton.any():
        pairs = np.column_stack((requests.user.code, requests.job_name.code))
        _, of = np.unique(pairs, axis=0, return_inverse=True)
        of = of.reshape(-1)
        waiting = np.unique(of[is_singleton])
        among = np.isin(of, waiting)
        group[among] = np.searchsorted(waiting, of[among])
    records = np.array(rows, CONDITION).view(np.recarray)
    return Conditions(first, records, any_is_enough, group, is_singleton, unknown)
