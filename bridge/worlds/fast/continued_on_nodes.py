"""Goes on from the recorded state on a cluster, whose record does not say which nodes a job had.

Each window is a replay of its own: jobs that ran start first, on nodes that `select` chooses for them, for
what is left of their runs; then come those that waited, and those of the window.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.fast.continued import WindowStarts, jobs_at
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay


def continue_on_nodes(
    jobs: Jobs, has_record: Flags, start: Ints, firsts: Ints, length: int,
    scenario_of: Callable[[Jobs], Scenario], progress: ProgressCallback = ignore_progress,
) -> WindowStarts:  # fmt: skip
    """Return how windows of jobs start, each played from what the record says of before.

    As `continue_from_record`, but that waiting jobs are submitted when the window begins. Start -1: the
    cluster refuses the job, or it never starts.
    """
    starts = WindowStarts.empty(len(firsts), length)
    end = start + jobs.run
    for w, first in enumerate(firsts.tolist()):
        now = int(jobs.submit[first])
        running, waiting = jobs_at(now, first, has_record, start, end)
        which = np.concatenate((running, waiting, np.arange(first, first + length)))
        one = _played(jobs, which, len(running), now, start, scenario_of)
        starts.note(w, which, one.start, one.how, one.past, one.reserved)
        progress(w + 1)
    return starts


def _played(
    jobs: Jobs, which: Ints, n_running: int, now: int, start: Ints, scenario_of: Callable[[Jobs], Scenario]
) -> Schedule:
    """Return the schedule of these jobs; the first ones run already, and start an instant before `now`."""
    part = jobs.take(which)
    later = max(1 - now, 0)  # no time is before 0
    submit, run, request = (np.maximum(part.submit, now) + later, part.run.copy(), part.request.copy())
    ran = now - start[which[:n_running]]
    submit[:n_running] = now + later - 1
    run[:n_running] -= ran - 1
    request[:n_running] = np.maximum(request[:n_running] - ran + 1, SECOND)
    own = replace(part, submit=submit, run=run, request=request, follows=None, think=None)
    scenario = scenario_of(own)
    scenario.compiled.refuse_action("a replay that goes on from the record")
    one = replay(scenario)
    start, reserved = (np.where(times >= 0, times - later, times) for times in (one.start, one.reserved))
    return replace(one, start=start, reserved=reserved)
