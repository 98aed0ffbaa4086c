"""Running jobs of a state are believed to take what their progress suggests."""

import numpy as np

from bridge.forecasting.reestimated import with_beliefs
from bridge.forecasting.statefile import state_of
from bridge.scheduler.state import SECOND
from bridge.workload.running_beliefs import RunningBeliefs

QUANTILES = [20, 50, 80]
DOCUMENT = {
    "format": "bridge-state",
    "version": 1,
    "now": 100,
    "policy": "fcfs+easy",
    "capacity": {"nodes": 4},
    "free": {"nodes": 1},
    "levels": [0.25, 0.5, 0.75],
    "running": [
        {
            "id": "a",
            "submit": 0,
            "start": 40,
            "request": 90,
            "demand": {"nodes": 2},
            "quantiles": [20, 50, 80],
        },
        {
            "id": "c",
            "submit": 0,
            "start": 90,
            "request": 90,
            "demand": {"nodes": 1},
            "quantiles": [20, 50, 80],
        },
    ],
    "waiting": [{"id": "b", "submit": 50, "request": 60, "demand": {"nodes": 4}, "quantiles": [5, 30, 60]}],
}


def beliefs(*after_total: tuple[int, int], job: int = 0) -> RunningBeliefs:
    after, total = (np.array([pair[k] for pair in after_total], np.int64) * SECOND for k in (0, 1))
    first = np.array([0] * (job + 1) + [len(after)] * (3 - job))
    return RunningBeliefs(first, after, total)


def test_a_distribution_moves_to_the_last_belief() -> None:
    state = state_of(DOCUMENT, "a test")
    moved = with_beliefs(state, beliefs((0, 40), (50, 75), (61, 85)))  # a has run for 60 s
    assert moved.quantiles.tolist() == [[30, 75, 120], [20, 50, 80], [5, 30, 60]]
    assert (moved.lengths.running // SECOND).tolist() == [75, 90, 60]
    assert moved.lengths.waiting.tolist() == state.lengths.waiting.tolist()


def test_no_belief_lies_before_the_present_or_behind_the_request() -> None:
    state = state_of(DOCUMENT, "a test")
    assert with_beliefs(state, beliefs((0, 40))).lengths.running[0] == 61 * SECOND
    assert with_beliefs(state, beliefs((0, 400))).lengths.running[0] == 90 * SECOND
    assert with_beliefs(state, beliefs((30, 80), job=1)).lengths.running[1] == 90 * SECOND, (
        "has run 10 s only"
    )


def test_a_state_without_distributions_gets_one() -> None:
    document = {name: value for name, value in DOCUMENT.items() if name != "levels"}
    for kind in ("running", "waiting"):
        jobs = document[kind]
        assert isinstance(jobs, list)
        document[kind] = [{name: value for name, value in job.items() if name != "quantiles"} for job in jobs]
    moved = with_beliefs(state_of(document, "a test"), beliefs((0, 70)))
    assert moved.quantiles.tolist() == [[70, 70], [90, 90], [60, 60]]
