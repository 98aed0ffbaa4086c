"""Futures of clusters under `lookahead`, beside a calendar, against its second implementation."""

import random
from typing import Any

import numpy as np
from cluster_on_bridge import Case
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_case
from cluster_reference.looking import Looking
from cluster_reference.scheduler import simulate
from test_site_fork import LATER, as_future, states

from bridge.forecasting.site_fork import SiteFork
from bridge.scheduler.state import NEVER, SECOND


def first_starts(outcome: Any) -> list[int]:
    """Return when each job starts first; `LATER`: never, as far as the present knows."""
    starts = [LATER] * len(outcome["jobs"])
    for life in outcome["lives"]:
        starts[life["job"]] = min(starts[life["job"]], life["start"])
    return starts


def check(case: Case, seed: int) -> tuple[int, bool]:
    """Compare a future under `lookahead` of a site that another rule has brought to its present.

    Only where `lookahead` would have brought it there, too. Return how many jobs wait, and whether it then
    starts some at other times than the rule.
    """
    rng = random.Random(seed)
    now = rng.randint(0, max(job["submit"] for job in case["jobs"]))
    [(state, which)], scenario = states(case, [now])
    if not len(state.waiting):
        return 0, False
    seconds, margin = rng.choice([5, 20]), rng.choice([0, 0.05])
    rule = f"lookahead({case['order']}, T={seconds}, margin={margin}, deviations=3)"
    fork = SiteFork(state, f"{rule}+easy")
    longest = zip((state.elapsed // SECOND).tolist(), (state.request // SECOND).tolist(), strict=True)
    runs = [rng.randint(low + 1, max(high, low + 1)) for low, high in longest]
    [starts] = fork.simulate_futures(np.array([runs], np.int64) * SECOND)
    future = as_future(case, now, scenario, dict(zip(which.tolist(), runs, strict=True)))
    by_rule = first_starts(simulate(future))
    expected = first_starts(Looking(future, seconds, margin, 3).play())
    places = [int(scenario.jobs.id[j]) - 1 for j in which[state.n_running :]]
    same_past = all(min(pair) > now or pair[0] == pair[1] for pair in zip(by_rule, expected, strict=True))
    if (
        not same_past or min(by_rule[k] for k in places) <= now
    ):  # it has run before: its length is of the past
        return 0, False
    outcome = [LATER if start == NEVER else start // SECOND for start in starts[state.n_running :].tolist()]
    assert outcome == [expected[k] for k in places], (seed, now)
    return len(places), any(expected[k] != by_rule[k] for k in places)


def test_futures_under_lookahead_are_what_a_second_implementation_plays_out() -> None:
    waiting = differ = 0
    for seed in (9, 41, 45, 48, 63, 83, 135, 151, 480):
        case = draw_case(
            730_000 + seed, parts=(*PARTS, *TIMED_PARTS), backfills=("easy",), jobs=(6, 14), overruns=False
        )
        case = {**case, "order": ("fcfs", "sjf", "ljf")[seed % 3]}
        case.pop("candidate_order", None)
        n, other = check(case, seed)
        waiting, differ = waiting + n, differ + other
    assert (waiting, differ) == (49, 9)
