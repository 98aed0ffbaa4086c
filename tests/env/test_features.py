"""Features at a machine state worked out by hand, and what an encoder refuses."""

import os

import numpy as np
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import Encoder
from bridge.scheduler.core import BACKFILL, INSPECT, PICK
from bridge.scheduler.protocol import Policy

#: (submit, run, request, nodes) on 4 nodes. At 20 job 1 holds three nodes until 100, when the head, job 2,
#: takes all four; one node is free; jobs 3 and 4 have just come: the first would be in time, the second not.
ROWS = [(0, 100, 100, 3), (10, 50, 60, 4), (20, 70, 80, 1), (20, 200, 200, 1)]
COST = 1 / 60 + 1 / 80 + 1 / 200
#: What each variable is for job 3, job 4 and the head.
EXPECTED = {
    "s": (20, 20, 10),
    "t": (80, 200, 60),
    "n": (1, 1, 4),
    "w": (0, 0, 10),
    "z": (10, 10, 10),
    "l": (60, 60, 60),
    "fairshare": (1, 1, 1),
    "partition": (1, 1, 1),
    "t_max": (200, 200, 200),
    "n_max": (4, 4, 4),
    "free": (1, 1, 1),
    "fits": (1, 1, 0),
    "gap": (80, 80, 80),
    "extra": (0, 0, 0),
    "blocked": (0, 0, 1),
    "safe": (1, 0, 0),
    "rejects": (0, 0, 0),
    "waiting": (3, 3, 3),
    "running": (1, 1, 1),
    "cost": (COST, COST, COST),
    "backfillable": (2, 2, 2),
    "head_w": (10, 10, 10),
    "head_t": (60, 60, 60),
    "head_n": (4, 4, 4),
    "served": (0, 0, 0),
    "rest": (80, 200, 60),
    "head_served": (0, 0, 0),
    "rule": (0, 0, 0),
    "max_run": (300, 300, 300),
    "min(t/max_run, 0.5)": (80 / 300, 0.5, 60 / 300),
    "log2(1 + n)*w": (0, 0, 10 * np.log2(5)),
}
BACKFILLS = Policy(agent=frozenset({"backfill"}), guard=False)


def batch(rows: list[tuple[int, ...]], encoder: Encoder, policy: Policy) -> Batch:
    p = prepared(make_jobs(rows, [4]), policy)
    return Batch(p, encoder.compile({"max_run": 300.0}), 1, len(rows))


@pytest.mark.parametrize("expression", EXPECTED)
def test_a_feature_is_what_it_says(expression: str) -> None:
    encoder = Encoder("backfill", {"it": expression}, window=8, stop=True)
    b = batch(ROWS, encoder, BACKFILLS)
    view = b.reset(np.zeros(1, np.int64))
    assert (b.decision_kinds.tolist(), b.now.tolist(), view.offsets.tolist()) == (
        [BACKFILL],
        [20_000_000],
        [0, 3],
    )
    assert view.rows[:, 0] == pytest.approx(np.array(EXPECTED[expression]), rel=1e-6)


def test_all_features_stand_side_by_side() -> None:
    encoder = Encoder("backfill", {e: e for e in EXPECTED}, window=8, stop=True)
    view = batch(ROWS, encoder, BACKFILLS).reset(np.zeros(1, np.int64))
    assert view.rows == pytest.approx(np.array(list(EXPECTED.values())).T, rel=1e-6)


def test_extra_nodes_make_a_long_job_safe() -> None:
    # the head takes three of the four nodes at 100: one is extra
    rows = [(0, 100, 100, 3), (10, 50, 60, 3), (20, 200, 200, 1)]
    encoder = Encoder("backfill", {"extra": "extra", "safe": "safe"}, window=8, stop=True)
    view = batch(rows, encoder, BACKFILLS).reset(np.zeros(1, np.int64))
    assert view.rows.tolist() == [[1, 1], [1, 0]]


def test_without_a_stop_row_only_candidates_are_shown_and_at_most_a_window_full() -> None:
    one = Encoder("backfill", {"t": "t"}, window=8)
    assert batch(ROWS, one, BACKFILLS).reset(np.zeros(1, np.int64)).rows.tolist() == [[80], [200]]
    more = [*ROWS, (20, 300, 300, 1)]
    two = Encoder("backfill", {"t": "t"}, window=2, stop=True)
    assert batch(more, two, BACKFILLS).reset(np.zeros(1, np.int64)).rows.tolist() == [[80], [200], [60]]


def test_a_pick_shows_the_queue_in_its_order_and_no_reservation() -> None:
    rows = [(0, 100, 100, 4), (10, 50, 60, 4), (20, 70, 80, 1)]
    encoder = Encoder("pick", {"t": "t", "gap": "gap", "head": "head_n", "safe": "safe"}, window=8)
    b = batch(rows, encoder, Policy("sjf", "easy", agent=frozenset({"pick"})))
    view = b.reset(np.zeros(1, np.int64))
    assert b.decision_kinds.tolist() == [PICK]
    assert b.now.tolist() == [20_000_000]  # before that there was at most one job to pick
    assert view.rows.tolist() == [[60, 0, 0, 0], [80, 0, 0, 0]]


def test_an_inspection_shows_the_picked_job_and_how_often_it_was_rejected() -> None:
    encoder = Encoder("inspect", {"t": "t", "rejects": "rejects", "w": "w", "others": "backfillable"})
    policy = Policy("fcfs", "easy", agent=frozenset({"inspect"}), retry_after=30)
    b = batch([(0, 100, 100, 2), (10, 50, 60, 2)], encoder, policy)
    assert b.reset(np.zeros(1, np.int64)).rows.tolist() == [[100, 0, 0, 0]]
    assert b.decision_kinds.tolist() == [INSPECT]
    # an arrival ends the pause of a rejection early
    assert b.step(np.ones(1, np.int64)).rows.tolist() == [[100, 1, 10, 1]]
    assert b.step(np.ones(1, np.int64)).rows.tolist() == [[100, 2, 40, 1]]


@pytest.mark.parametrize("text", ["nodes", "w + foo", "max_runs", "head"])
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="unknown") as error:
        Encoder("backfill", {"x": text}).compile({"max_run": 1.0})
    assert "max_run" in error.value.remedy


@pytest.mark.parametrize("text", ["t if w else n", "t.real", "print(t)", "[t]", "t <", "'t'", "True"])
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(BridgeError):
        Encoder("backfill", {"x": text}).compile({})


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0",
    reason="Python's own math raises before the feature is seen",
)
def test_a_feature_that_is_not_a_number_is_one_error() -> None:
    encoder = Encoder("backfill", {"broken": "log(w)"}, window=8, stop=True)
    with pytest.raises(BridgeError, match="job 3 is not a finite number at time 20 s") as error:
        batch(ROWS, encoder, BACKFILLS).reset(np.zeros(1, np.int64))
    assert error.value.where == "features broken"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"decision": "guess", "features": {"t": "t"}}, "unknown decision"),
        ({"decision": "pick", "features": {}}, "needs features"),
        ({"decision": "pick", "features": {"t": "t"}, "window": 0}, "at least one"),
        ({"decision": "pick", "features": {"t": "t"}, "stop": True}, "no stop row"),
        ({"decision": "pick", "features": {"t": "t"}, "padding": (0.0, 1.0)}, "2 values for 1 features"),
    ],
)
def test_an_encoder_that_fits_no_decision_is_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        Encoder(**arguments)  # type: ignore[arg-type]


def test_sizes() -> None:
    one = {"t": "t"}
    assert (Encoder("inspect", one, window=128).rows, Encoder("inspect", one).actions) == (1, 2)
    assert (Encoder("pick", one, window=7).rows, Encoder("pick", one, window=7).actions) == (7, 7)
    assert Encoder("backfill", one, window=7, stop=True).actions == 8
