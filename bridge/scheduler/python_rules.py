"""Rules in Python: what they are shown of the waiting jobs, and how their answers reach the compiled core.

An order is called at every pass with the waiting jobs and returns their scores. A backfilling rule is called
behind a blocked head with the jobs that could start now and returns one of them, again and again until it
returns None. Both see arrays in seconds, in queue order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.queue import waiting
from bridge.scheduler.state import SECOND, State


@dataclass(frozen=True)
class JobsView:
    """Jobs as a rule sees them: n of them, all arrays [n]; times in seconds.

    Attributes:
        id: the log's ids; 1, 2, … in order of submission where those are texts.
        user: dense user numbers, -1 = unknown.
        submitted: when they were submitted.
        requested: believed lengths, by the estimator of the run.
        waited: how long they have waited.
        nodes: asked for.
        demand: [n, R] asked for of all resources, nodes first.
        now: the time.
        free: [R] amounts that are free now.
        gap: until the blocked head's reservation, 0 without one.
        extra: [R] amounts that are extra at the reservation, 0 without one.
    """

    id: Ints
    user: Ints
    submitted: Floats
    requested: Floats
    waited: Floats
    nodes: Ints
    demand: Ints
    now: float
    free: Ints
    gap: float
    extra: Ints

    def __len__(self) -> int:
        return len(self.id)


#: A rule that orders: jobs -> scores [n], the highest first.
Scorer = Callable[[JobsView], Any]
#: A rule that backfills: jobs that can start now -> the place of one, or None: no more in this pass. It sees
#: only what EASY would allow, unless it has an attribute ``guard`` that is False: then whatever fits now.
Chooser = Callable[[JobsView], int | None]


def build_view(state: State, b: int, which: npt.NDArray[np.integer]) -> JobsView:
    """Return what rules see of the jobs ``which``."""
    env = state.scalars[b]
    jobs = state.jobs[b][which]
    demand = state.demand[b][which]
    reserved = bool(env.is_reserved)
    return JobsView(
        id=jobs.id.copy(),
        user=jobs.user.astype(np.int64),
        submitted=jobs.s.copy(),
        requested=jobs.t.copy(),
        waited=(env.now - jobs.submit) / SECOND,
        nodes=demand[:, 0].copy(),
        demand=demand,
        now=float(env.now / SECOND),
        free=state.free[b].copy(),
        gap=float((env.shadow - env.now) / SECOND) if reserved else 0.0,
        extra=np.maximum(state.extra[b], 0) if reserved else np.zeros_like(state.extra[b]),
    )


def decide(state: State, b: int, kind: int, scorer: Scorer | None, chooser: Chooser | None) -> bool:
    """Answer the pending decision with a Python order or backfilling rule; return whether one did.

    BridgeError: an answer that is none; the error names the rule.
    """
    if kind == core.SCORE and scorer is not None:
        which = waiting(state, b)
        scores = _scores(scorer, build_view(state, b, which))
        state.jobs.score[b, which] = scores
        core.sort_by_scores(state, b)
        return True
    if kind == core.BACKFILL and chooser is not None:
        candidates = state.candidates[b, : int(state.scalars.n_candidates[b])]
        choice = chooser(build_view(state, b, candidates))
        if choice is None:
            choice = core.DECLINE
        elif not (isinstance(choice, int | np.integer) and 0 <= choice < len(candidates)):
            raise BridgeError(
                f"returned {choice!r}, which is no place among {counted(len(candidates), 'job')}",
                where=f"backfilling rule {_name(chooser)}",
                remedy="Return an index into the arrays that it was shown, or None.",
            )
        core.apply_choice(state, b, int(choice))
        return True
    return False


def _scores(scorer: Scorer, jobs: JobsView) -> Floats:
    try:
        scores = np.asarray(scorer(jobs), np.float64)
    except (TypeError, ValueError) as error:
        raise BridgeError(f"returned no scores ({error})", where=f"order {_name(scorer)}") from error
    if scores.shape != (len(jobs),):
        raise BridgeError(
            f"returned scores of the shape {scores.shape} for {counted(len(jobs), 'job')}",
            where=f"order {_name(scorer)}",
            remedy="Return one number a job.",
        )
    if not np.isfinite(scores).all():
        bad = int(np.argmin(np.isfinite(scores)))
        raise BridgeError(
            f"the score of job {jobs.id[bad]} is not a finite number", where=f"order {_name(scorer)}"
        )
    return scores


def _name(rule: object) -> str:
    return str(getattr(rule, "__name__", type(rule).__name__))
