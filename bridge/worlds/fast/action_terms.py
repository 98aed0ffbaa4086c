"""What the log and the cluster say of jobs under a rule of action: what is permitted, its costs, memory kept.

Of each a column of the log says so, else the job's QOS, else its partition, else the rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.scheduler.actions import COSTS, PERMITS, Action, draw_permits, format_action
from bridge.scheduler.node_guests import ALL_MEMORY
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.fast.cluster_arrays import ClusterArrays

#: The share of its memory that a suspended job keeps: a setting of partitions and QOS, a column of logs.
SUSPENDED_MEMORY = "suspended_memory"


@dataclass(frozen=True)
class ActionTerms:
    """Of n jobs; nothing without a rule of action.

    Attributes:
        of_jobs: [n] by names of `bridge.scheduler.action_state.TERMS`.
        notes: what is taken for granted.
    """

    of_jobs: Mapping[str, Ints] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def has_costs(self) -> bool:
        """Tell whether a job has costs of its own."""
        return any(self.of_jobs[f"{name}_more"].any() for name in COSTS if f"{name}_more" in self.of_jobs)


NO_TERMS = ActionTerms()


def read_terms(action: Action | None, jobs: Jobs, cluster: ClusterArrays | None) -> ActionTerms:
    """Return what the jobs permit, and at what costs. BridgeError: a cost or a share that is none."""
    if action is None:
        return NO_TERMS
    where = f"action {format_action(action)!r}"
    if jobs.follows is not None:
        raise BridgeError(
            "is not defined where jobs arrive after the end of others",
            where=where,
            remedy="Leave out --dependencies, or the action.",
        )
    named = (*PERMITS, *(f"{name}_cost" for name in COSTS), SUSPENDED_MEMORY)
    stated = {} if cluster is None else cluster.stated(named)
    columns = {**stated, **{name: jobs.extra[name] for name in PERMITS if name in jobs.extra}}
    permitted = {
        name: np.where(np.isnan(columns[name]), 1.0, columns[name]) for name in PERMITS if name in columns
    }
    terms = {"permits": draw_permits(action, jobs.user, permitted)}
    notes = []
    if action.needs not in columns and action.share == 1:
        notes.append(action.note if cluster is None else action.cluster_note)
    for name in COSTS:
        own = _number_of(f"{name}_cost", jobs, stated, least=1.0 if name == "host" else 0.0)
        if own is not None:
            rule = getattr(action, name)
            more = np.where(np.isnan(own), 0.0, own - rule)
            terms[f"{name}_more"] = np.rint(more * SECOND).astype(np.int64)
    if cluster is not None:
        share = _number_of(SUSPENDED_MEMORY, jobs, stated, most=1.0)
        kept = np.ones(len(jobs)) if share is None else np.where(np.isnan(share), 1.0, share)
        terms["memory_kept"] = np.ceil(kept * ALL_MEMORY).astype(np.int64)
        if action.kind == "guest":
            notes += _memory_notes(cluster, share is None)
    return ActionTerms(terms, tuple(notes))


def _number_of(
    name: str, jobs: Jobs, stated: Mapping[str, Floats], *, least: float = 0.0, most: float = 1e9
) -> Floats | None:
    """Return what is said of each job [n], NaN of whom nothing is said; None: of nobody."""
    own, other = jobs.extra.get(name), stated.get(name)
    if own is None:
        return other
    own = np.where(own < 0, np.nan, own)
    wrong = np.flatnonzero((own < least) | (own > most))
    if len(wrong):
        j = int(wrong[0])
        what = f"has the {name} {own[j]:g}, which is not from {least:g} to {most:g}"
        raise BridgeError(what, where=f"job {jobs.called(int(jobs.number[j]))}", remedy="Mend the column.")
    return own if other is None else np.where(np.isnan(own), other, own)


def _memory_notes(cluster: ClusterArrays, is_silent: bool) -> list[str]:
    """Say what is believed of the memory that hosts keep."""
    if not is_silent or not cluster.counts_memory:
        return []
    what = "a suspended job keeps all the memory that it asks for"
    return [f"action guest: {what}, as nothing has a {SUSPENDED_MEMORY}"]
