"""Batched episodes: together as alone; built-in answers give the built-in schedule; lateness is noticed."""

import numpy as np
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.arrays import Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.env.batch import Batch, PackedObservations
from bridge.env.encoder import Encoder
from bridge.scheduler.core import BACKFILL
from bridge.scheduler.protocol import Policy
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay_sequences
from bridge.worlds.fast.world import DONE

LENGTH = 40
STARTS = np.array([0, 7, 33, 80, 120], np.int64)
FEATURES = {"t": "t", "w": "w", "safe": "safe", "free": "free"}


def busy(seed: int = 3, n: int = 160) -> Jobs:
    """Return jobs whose queue stays long."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 20, n)
    columns = (np.sort(rng.integers(0, 300, n)), run, run + rng.integers(0, 9, n), rng.integers(1, 9, n))
    return make_jobs(np.column_stack(columns).tolist(), [8])


def agent(decision: str, order: str = "fcfs", rules: str = "standard") -> Scenario:
    return prepared(busy(), Policy(order, "easy", agent=frozenset({decision}), guard=False), rules)


def encoder(decision: str) -> Encoder:
    return Encoder(decision, FEATURES, window=12, stop=decision == "backfill")  # type: ignore[arg-type]


def odd_answer(rows: Floats32, decision: str) -> int:
    """Return an answer that depends on everything that is seen, and varies."""
    return int(rows.sum()) % (2 if decision == "inspect" else len(rows))


def play(
    p: Scenario, shape: Encoder, starts: Ints, threads: int = 1
) -> tuple[list[list[int]], list[list[bytes]]]:
    """Play episodes with the odd answer; return every episode's starts, and the rows that it saw."""
    batch = Batch(p, shape.compile({}), len(starts), LENGTH, threads=threads)
    view = batch.reset(starts)
    seen: list[list[bytes]] = [[] for _ in starts]
    while len(view.rows):
        actions = np.zeros(len(starts), np.int64)
        for b in range(len(starts)):
            rows = view.rows[view.offsets[b] : view.offsets[b + 1]]
            if len(rows):
                seen[b].append(rows.tobytes())
                actions[b] = odd_answer(rows, shape.decision)
        view = batch.step(actions)
    assert batch.decision_kinds.tolist() == [DONE] * len(starts)
    return [batch.starts_of(b).tolist() for b in range(len(starts))], seen


@pytest.mark.parametrize("rules", ["standard", "cqsim", "schedgym"])
@pytest.mark.parametrize("decision", ["pick", "backfill", "inspect"])
def test_a_batch_equals_its_episodes_one_by_one(decision: str, rules: str) -> None:
    p, shape = agent(decision, rules=rules), encoder(decision)
    together = play(p, shape, STARTS)
    alone = [play(p, shape, STARTS[k : k + 1]) for k in range(len(STARTS))]
    assert together[0] == [starts for starts, _ in alone for starts in starts]
    assert together[1] == [seen for _, seen in alone for seen in seen]
    assert play(p, shape, STARTS, threads=2) == together
    assert play(p, shape, STARTS, threads=9) == together
    assert all(len(seen) > 10 for seen in together[1])
    assert min(min(starts) for starts in together[0]) >= 0


def built_in(view: PackedObservations, b: int, decision: str) -> int:
    """Answer as the built-in rule: the head of the queue, accept, the first that EASY allows, else stop."""
    if decision != "backfill":
        return 0
    rows = view.rows[view.offsets[b] : view.offsets[b + 1]]
    safe = np.flatnonzero(rows[:, 2])
    return int(safe[0]) if len(safe) else len(rows) - 1


@pytest.mark.parametrize("decision", ["pick", "backfill", "inspect"])
@pytest.mark.parametrize("order", ["fcfs", "wfp3"])
def test_built_in_answers_give_the_built_in_schedule(decision: str, order: str) -> None:
    base = prepared(busy(), Policy(order, "easy"))
    expected = [s.start.tolist() for s in replay_sequences(base, STARTS, LENGTH)]
    wide = Encoder(decision, FEATURES, window=LENGTH, stop=decision == "backfill")  # type: ignore[arg-type]
    batch = Batch(agent(decision, order), wide.compile({}), len(STARTS), LENGTH)
    view = batch.reset(STARTS)
    while len(view.rows):
        live = np.diff(view.offsets) > 0
        actions = [built_in(view, b, decision) if live[b] else 0 for b in range(len(STARTS))]
        view = batch.step(np.array(actions, np.int64))
        assert not batch.delays_head.any()
    assert [batch.starts_of(b).tolist() for b in range(len(STARTS))] == expected


#: On 4 nodes: three are held until 100, then the head takes all four; 3 and 4 fit at 20, only 3 is in time.
ROWS = [(0, 100, 100, 3), (10, 50, 60, 4), (20, 70, 80, 1), (20, 200, 200, 1)]


@pytest.mark.parametrize(
    ("action", "late", "starts"),
    [(0, False, [0, 100, 20, 150]), (1, True, [0, 220, 270, 20]), (2, False, [0, 100, 150, 150])],
)
def test_late_tells_a_backfill_that_easy_would_not_allow(action: int, late: bool, starts: list[int]) -> None:
    p = prepared(make_jobs(ROWS, [4]), Policy(agent=frozenset({"backfill"}), guard=False))
    shape = Encoder("backfill", {"t": "t"}, window=8, stop=True)
    batch = Batch(p, shape.compile({}), 1, len(ROWS))
    view = batch.reset(np.zeros(1, np.int64))
    assert (view.rows.tolist(), batch.decision_kinds.tolist()) == ([[80], [200], [60]], [BACKFILL])
    view = batch.step(np.array([action], np.int64))
    assert bool(batch.delays_head[0]) is late
    while len(view.rows):  # stop whenever asked again
        view = batch.step(np.diff(view.offsets) - 1)
    assert (batch.starts_of(0) / 1e6).tolist() == starts


def test_a_decision_with_one_answer_is_not_asked() -> None:
    # without a stop row, job 3 is the only candidate: it is backfilled
    p = prepared(make_jobs(ROWS[:3], [4]), Policy(agent=frozenset({"backfill"}), guard=False))
    batch = Batch(p, Encoder("backfill", {"t": "t"}, window=8).compile({}), 1, 3)
    assert len(batch.reset(np.zeros(1, np.int64)).rows) == 0
    assert (batch.starts_of(0) / 1e6).tolist() == [0, 100, 20]


def test_places_without_an_episode_stay_empty() -> None:
    batch = Batch(agent("pick"), encoder("pick").compile({}), 4, LENGTH)
    view = batch.reset(STARTS[:2])
    sizes = np.diff(view.offsets)
    assert (sizes[:2] > 0).all()
    assert sizes[2:].tolist() == [0, 0]


@pytest.mark.parametrize("start", [-1, 160 - LENGTH + 1])
def test_an_episode_that_does_not_fit_is_refused(start: int) -> None:
    batch = Batch(agent("pick"), encoder("pick").compile({}), 1, LENGTH)
    with pytest.raises(BridgeError, match="an episode of 40 jobs does not fit"):
        batch.reset(np.array([start], np.int64))
