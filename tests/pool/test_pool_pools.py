"""Many pools at once: the same as one by one, by hand where kills are the rule's; steps, rewards, masks."""

from dataclasses import replace

import numpy as np
import pytest
from small_pools import job_set, machine, pools_in_play, sequences_of

from bridge.base.errors import BridgeError
from bridge.pool.batch import PoolBatch
from bridge.pool.heuristics import choose_kill
from bridge.pool.machine import apply_action, legal
from bridge.pool.settings import PoolConfig
from bridge.pool.world import DONE, Sequences, advance, load
from bridge.scheduler.names import Kill

SMALL = PoolConfig(units=4, slots=2, backlog=30, kill_slots=2, horizon=16, last_step=200)
NONE = SMALL.slots


def crowd(width: int = 12) -> Sequences:
    """Return three sequences of jobs whose beliefs change a lot."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, [5, 13, 9], (20, 3)).tolist()
    rows = [(units, length, believed, rng.integers(1, 16, 9).tolist()) for units, length, believed in sizes]
    return Sequences(job_set(rows, width), rng.integers(-1, 20, (3, 30)))


@pytest.mark.parametrize("who", ["none", "rule", "learned"])
def test_together_is_as_one_by_one(who: Kill) -> None:
    drawn = crowd()
    pools = PoolBatch(drawn, 3, SMALL, who)
    view = pools.play(drawn)
    state, world = machine(drawn, SMALL)
    rng = np.random.default_rng(1)
    answers: list[list[int]] = [[], [], []]
    told: list[list[tuple[float, int]]] = [[], [], []]
    masks: list[list[list[bool]]] = [[], [], []]
    while pools.waiting.any():
        live = np.flatnonzero(pools.waiting)
        actions = (rng.random(pools.masks.shape) * pools.masks).argmax(1)
        for b in live.tolist():
            answers[b].append(int(actions[b]))
            masks[b].append(pools.masks[b].tolist())
        assert not pools.masks[~pools.waiting].any()
        assert (np.diff(view.offsets)[~pools.waiting] == 0).all()
        view = pools.step(actions)
        for b in live.tolist():
            told[b].append((float(pools.rewards[b]), int(pools.moved[b])))
    for s in range(3):
        load(state, world, 0, drawn, s)
        out = np.zeros(SMALL.actions, np.bool_)
        for action, (reward, moved), mask in zip(answers[s], told[s], masks[s], strict=True):
            before = int(state.env.now[0])
            while who == "rule" and (rule := choose_kill(state, 0)) >= 0:
                apply_action(state, 0, rule)
            legal(state, 0, out)
            if who != "learned":
                out[NONE + 1 :] = False
            assert mask == out.tolist()
            apply_action(state, 0, action)
            kind = advance(state, world, 0)
            assert (float(state.env.reward[0]), int(state.env.now[0]) - before) == (reward, moved)
            assert moved == 1 or reward == 0.0
        assert kind == DONE
        assert pools.schedule(s).end.tolist() == state.jobs.end[0, : state.env.n_submitted[0]].tolist()
    kills = sum(int(pools.schedule(s).kills.sum()) for s in range(3))
    assert (kills > 0) is (who != "none")


def test_the_kill_rule_answers_before_the_agent_is_asked() -> None:
    # believed 2, once it has run for a step 12: the rule kills it in step 2, and it waits again
    drawn = sequences_of([(2, 12, 2, [2, 12])], [-1, 0], width=15)
    pools = pools_in_play(drawn, SMALL, "rule", answers=(NONE, 0, NONE))
    assert pools.rewards.tolist() == [-1 / 12]  # of step 2, in which it was still running; its kill earns 0
    assert pools.masks.tolist() == [[True, False, True, False, False]]
    assert pools.state.jobs.kills[0, 0] == 1
    view = pools.step(np.array([0]))
    assert view.pictures()[0, 0, 3:4].tolist() == [np.float32(pools.state.jobs.colour[0, 0] / 500)]


@pytest.mark.parametrize(
    ("objective", "reward"),
    [
        ("slowdown", -(1 / 5 + 1 / 4 + 1 / 2)),
        ("completion", -3.0),
        ("weighted", -(0.75 * (1 / 5 + 1 / 4 + 1 / 2) + 0.25 * 3.0)),
    ],
)
def test_rewards_of_all_objectives(objective: str, reward: float) -> None:
    # in step 3 one job runs (believed 5 then), one waits in a slot (4), one in the backlog (2)
    rows = [(4, 6, 3, [3, 4, 5]), (4, 4, 4, [4]), (1, 2, 2, [2])]
    small = replace(SMALL, slots=1, objective=objective, completion_weight=0.25)  # type: ignore[arg-type]
    pools = pools_in_play(sequences_of(rows, [-1, 0, 1, 2]), small, "none", answers=(1, 0, 1, 1))
    assert pools.rewards[0] == pytest.approx(reward, abs=1e-15)


def test_places_begin_on_their_own() -> None:
    drawn = crowd()
    pools, fresh = PoolBatch(drawn, 3, SMALL, "learned"), PoolBatch(drawn, 3, SMALL, "learned")
    pools.play(Sequences(drawn.jobs, drawn.arrivals[:2]))
    assert pools.waiting.tolist() == [True, True, False]
    for _ in range(9):
        pools.step(np.where(pools.masks[:, 0], 0, NONE))
    before = pools.masks[:2].copy()
    view = pools.begin(np.array([2]), drawn, np.array([2]))
    assert len(view) == 3
    assert pools.waiting.all()
    assert pools.masks[:2].tolist() == before.tolist()
    fresh.play(drawn)
    while fresh.waiting.any():
        actions = np.where(pools.masks[:, 0], 0, NONE)
        same = np.where(fresh.masks[:, 0], 0, NONE)
        a, b = pools.step(actions), fresh.step(same)
        left, right = a.pictures(np.array([2])), b.pictures(np.array([2]))
        assert np.array_equal(left, right)
    assert not pools.waiting.any()
    assert [pools.schedule(s).end.tolist() for s in range(3)] == [
        fresh.schedule(s).end.tolist() for s in range(3)
    ]


def test_a_decision_does_not_depend_on_its_place() -> None:
    drawn = crowd()
    same = Sequences(drawn.jobs, drawn.arrivals[[1, 1, 1]])
    pools = PoolBatch(same, 3, SMALL, "learned")
    view = pools.play(same)
    while pools.waiting.any():
        pictures = view.pictures()
        assert np.array_equal(pictures[0], pictures[1])
        assert np.array_equal(pictures[0], pictures[2])
        view = pools.step(np.where(pools.masks[:, 0], 0, NONE))


def test_jobs_that_did_not_end_count_as_ended_now() -> None:
    # one ends at 3 (arrived at 1, length 2), one waits from 2 until the forced end at 6
    drawn = sequences_of([(1, 2, 2, [2]), (4, 3, 3, [3])], [-1, 0, 1])
    pools = pools_in_play(drawn, replace(SMALL, last_step=5, objective="weighted"), "none")
    for action in (NONE, 0, NONE, NONE, NONE, NONE, NONE):
        assert pools.waiting[0]
        pools.step(np.array([action]))
    assert not pools.waiting[0]
    assert pools.values(0, "completion").tolist() == [2.0, 4.0]
    assert pools.values(0, "slowdown").tolist() == [1.0, 4 / 3]
    # a tenth of the weight on the completion
    assert pools.values(0, "weighted").tolist() == pytest.approx([0.9 + 0.2, 0.9 * 4 / 3 + 0.4])


def test_what_cannot_be_played_is_refused() -> None:
    drawn = crowd()
    with pytest.raises(BridgeError, match="at least one pool"):
        PoolBatch(drawn, 0, SMALL, "none")
    wide = sequences_of([(11, 1, 1, [1])], [-1, 0])
    with pytest.raises(BridgeError, match="job 101: asks for more than 10 units"):
        PoolBatch(wide, 1, PoolConfig(), "none")
    pools = pools_in_play(drawn, SMALL)
    with pytest.raises(BridgeError, match="pool 1: there is no action 5"):
        pools.step(np.array([0, 5, 0]))
