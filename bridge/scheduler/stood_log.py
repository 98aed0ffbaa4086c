"""Rows of the log of lives that are no end: times for which a job stood."""

from bridge.base.jit import inner
from bridge.scheduler.timed_state import STOOD, TimedState


@inner
def write_stood(state: TimedState, b: int, j: int, since: int, until: int) -> None:
    """Write to the log, if somebody collects it, that job `j` did not work for a time."""
    more = state.timed_scalars[b]
    if not state.timed_switches[0].logs_lives:
        return
    row = state.life_log[b, more.n_lives]
    more.n_lives += 1
    row.job, row.episode, row.outcome = j, state.timed_jobs[b, j].episode, STOOD
    row.start, row.end = since, until
    row.first = row.last = more.n_life_nodes
