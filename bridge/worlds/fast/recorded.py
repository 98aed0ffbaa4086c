"""The log's own starts in place of a rule's: what really happened, as a schedule like any other.

Starts and ends are those of the log, to the last job; where they use more nodes than there are, or start
before they could, they do so, and `bridge check` tells. On a cluster they have the nodes that the log names.
"""

from dataclasses import replace

import numpy as np

from bridge.base.arrays import Flags, Floats
from bridge.base.errors import BridgeError
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.estimators import estimate
from bridge.scheduler.names import RECORDED
from bridge.scheduler.protocol import Policy, Protocol
from bridge.workload.select import CUT, MICRO, Jobs
from bridge.workload.table import TallyEntry, tally
from bridge.worlds.fast.episode import Scenario, refuse_followers
from bridge.worlds.fast.recorded_nodes import build_recorded_nodes

#: The column of a jobs table, and of a log, from when a job could start, s.
ELIGIBLE = "eligible"
_WHY = "start not recorded"


def is_recorded(jobs: Jobs) -> Flags:
    """Tell which jobs [n] have a recorded start and run time."""
    has_record: Flags = (jobs.logged_wait >= 0) & (jobs.logged_run >= 0)
    return has_record


def with_record(jobs: Jobs) -> Jobs:
    """Return the jobs whose start and run time are recorded, with the run times as logged.

    BridgeError: there are none.
    """
    has_record = is_recorded(jobs)
    if not has_record.any():
        what = "the log does not say when its jobs started (no record has a wait and a run time)"
        remedy = "Name a rule, such as --policy fcfs+easy, or a log with the column wait (SWF's third field)."
        raise BridgeError(what, where=f"{jobs.name}, policy {RECORDED!r}", remedy=remedy)
    counted: dict[str, TallyEntry] = {**jobs.tally, **tally("dropped", _WHY, jobs.id[~has_record])}
    counted.pop(CUT, None)  # they ran on
    eligible = _eligible(jobs)
    extra = {**jobs.extra} if eligible is None else {**jobs.extra, ELIGIBLE: eligible}
    jobs = replace(jobs, run=np.maximum(jobs.logged_run, 0), extra=extra, follows=None, think=None)
    return replace(jobs if has_record.all() else jobs.take(has_record), tally=counted)


def _eligible(jobs: Jobs) -> Floats | None:
    """Return from when each job could start [n], s on the jobs' clock; None if the log does not say.

    That is its column ``eligible``, and the recorded end of the job that it follows.
    """
    stated = jobs.extra.get(ELIGIBLE)
    if stated is None and jobs.follows is None:
        return None
    since = jobs.submit / MICRO
    if stated is not None:
        since = np.fmax(since, np.where(stated >= 0, stated - jobs.origin / MICRO, np.nan))
    if jobs.follows is not None:
        end = (jobs.submit + jobs.logged_wait + jobs.logged_run) / MICRO
        has_record = (jobs.follows >= 0) & is_recorded(jobs)[jobs.follows]
        since = np.where(has_record, np.maximum(since, end[jobs.follows]), since)
    return since


def recorded_scenario(jobs: Jobs, protocol: Protocol, *, on_nodes: bool = False) -> Scenario:
    """Return the scenario of the recorded run; see `with_record`. It has no estimates and no policy.

    `on_nodes`: on those of the jobs' cluster, if they have one; else only numbers of nodes count.
    """
    if on_nodes and jobs.cluster is not None:
        refuse_followers(jobs)
    jobs, nodes = with_record(jobs), None
    if on_nodes and jobs.cluster is not None:
        nodes = build_recorded_nodes(jobs)
        jobs = replace(jobs, demand=nodes.count[:, None])
    nobody = np.zeros(len(jobs), np.int64)
    return Scenario(
        jobs=jobs,
        estimate=estimate("requested", jobs.run, jobs.request),
        compiled=compile_policy(Policy("fcfs", "none"), protocol),
        users=nobody,
        share=np.ones(1),
        partition=nobody / 1.0,
        tie=nobody,
        recorded=True,
        recorded_nodes=nodes,
    )
