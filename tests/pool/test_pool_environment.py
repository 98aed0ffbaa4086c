"""Gymnasium's interface to the slotted pool: its checks, masks, rewards, ends, determinism, MaskablePPO."""

import warnings
from typing import Any

import numpy as np
import pytest
from small_pools import job_set
from subprocess_python import run_python

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from bridge.base.errors import BridgeError  # noqa: E402
from bridge.env.register import PICK_OR_KILL  # noqa: E402
from bridge.pool.environment import PickOrKillEnv, PickOrKillVectorEnv  # noqa: E402
from bridge.pool.settings import PoolConfig  # noqa: E402
from bridge.pool.world import Sequences  # noqa: E402

SMALL = PoolConfig(units=4, slots=2, backlog=30, kill_slots=2, horizon=16, last_step=200)
NONE = SMALL.slots
ROWS = [(3, 4, 2, [2, 3, 6, 6]), (2, 2, 4, [4]), (1, 7, 3, [3, 3, 9])]


def make(**changes: Any) -> PickOrKillEnv:
    """Return a small environment of drawn sequences."""
    options: dict[str, Any] = {"data": job_set(ROWS), "settings": SMALL, "steps": 20, "seed": 3}
    return PickOrKillEnv(**options | changes)


def play(env: PickOrKillEnv, rng: np.random.Generator, **reset: Any) -> list[tuple[Any, ...]]:
    """Play an episode by random legal actions; return (observation, masks, action, reward, info)."""
    seen, _ = env.reset(**reset)
    steps: list[tuple[Any, ...]] = []
    over = cut = False
    while not (over or cut):
        masks = env.action_masks()
        action = int(rng.choice(np.flatnonzero(masks)))
        after, reward, over, cut, info = env.step(action)
        assert info["invalid"] is False
        assert info["action_mask"].tolist() == env.action_masks().astype(int).tolist()
        info = {**info, "action_mask": info["action_mask"].tolist()}
        steps.append((seen, masks, action, reward, info))
        seen = after
    assert (seen == 0).all()
    assert not env.action_masks().any()
    return steps


@pytest.mark.parametrize("kill", ["none", "rule", "learned"])
def test_check_env_has_nothing_to_say(kill: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(PICK_OR_KILL, kill=kill).unwrapped)
        warnings.filterwarnings("ignore", message=".*not having a spec.*")  # it was not made by name
        check_env(make(kill=kill))


def test_a_name_that_names_the_module_needs_no_import() -> None:
    code = (
        f"import gymnasium; env = gymnasium.make('bridge.env.register:{PICK_OR_KILL}');"
        "print(env.observation_space.shape, env.action_space.n)"
    )
    done = run_python(code)
    assert done.stdout.split("\n")[0] == "(120, 72) 14", done.stderr


def test_a_seed_repeats_everything_and_the_next_episode_is_another() -> None:
    runs = [[play(make(), np.random.default_rng(1)) for _ in range(2)] for _ in range(2)]
    again = [play(env, np.random.default_rng(1), seed=3) for env in [make(seed=8)]]
    for steps in (runs[0][1], runs[1][0], again[0]):
        for left, right in zip(runs[0][0], steps, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(left[:4], right[:4], strict=True))
            assert left[4] == right[4]
    env = make()
    first, second = (play(env, np.random.default_rng(1)) for _ in range(2))
    assert [s[2] for s in first] != [s[2] for s in second]


def test_an_episode_by_hand() -> None:
    # arrives at 1, runs from 1 to 5: five answers that move time, two jobs' worth of rewards from 1 to 4
    drawn = Sequences(job_set([(3, 4, 4, [4])]), np.array([[-1, 0]]))
    env = make(sequences=drawn)
    _, info = env.reset()
    assert info.pop("action_mask").tolist() == [0, 0, 1, 0, 0]
    assert info == {"time": 0.0, "invalid": False}
    got = []
    for action in (NONE, 0, NONE, NONE, NONE, NONE):
        _, reward, over, cut, info = env.step(action)
        got.append((info["time"], reward, over, cut))
    assert got == [
        (300.0, -0.25, False, False),
        (300.0, 0.0, False, False),
        (600.0, -0.25, False, False),
        (900.0, -0.25, False, False),
        (1200.0, -0.25, False, False),
        (1500.0, 0.0, True, False),
    ]
    assert info.pop("action_mask").tolist() == [0, 0, 0, 0, 0]
    assert info == {"time": 1500.0, "invalid": False, "slowdown": 1.0, "completion_time": 1200.0}
    assert env.job_outcomes().end.tolist() == [5]
    with pytest.raises(BridgeError, match="Call reset"):
        env.step(NONE)


def test_what_is_not_legal_lets_time_pass() -> None:
    drawn = Sequences(job_set(ROWS), np.array([[-1, 0, 1, 2]]))
    for kill, action in (("learned", 1), ("learned", 4), ("none", 3), ("learned", 99), ("learned", -3)):
        env = make(sequences=drawn, kill=kill)
        env.reset()
        for legal in (NONE, 0, NONE):
            env.step(legal)  # job 0 runs, job 1 is in slot 0
        assert env.action_masks().tolist() == [True, False, True, kill == "learned", False]
        *_, info = env.step(action)
        assert info.pop("action_mask").tolist() == env.action_masks().astype(int).tolist()
        assert info == {"time": 900.0, "invalid": True}


def test_an_episode_is_cut_after_the_last_step() -> None:
    drawn = Sequences(job_set(ROWS), np.array([[-1, 0, 1, 2]]))
    env = make(sequences=drawn, settings=PoolConfig(units=4, slots=2, kill_slots=2, horizon=16, last_step=6))
    env.reset()
    ends = [env.step(NONE)[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]


def test_given_sequences_come_in_turn() -> None:
    arrivals = np.array([[-1, 0, -1, -1], [-1, -1, 1, -1], [-1, -1, -1, 2]])
    env = make(sequences=Sequences(job_set(ROWS), arrivals))
    rng = np.random.default_rng(1)
    firsts = []
    for seed in (None, None, None, None, 5, None):
        play(env, rng, seed=seed)
        firsts.append(int(env.job_outcomes().submit[0]))
    assert firsts == [1, 2, 3, 1, 1, 2]


def test_the_vector_environment_is_as_many_single_ones() -> None:
    drawn = Sequences(job_set(ROWS), np.random.default_rng(2).integers(-1, 3, (4, 15)))
    vector = PickOrKillVectorEnv(2, sequences=drawn, settings=SMALL, kill="rule")
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    each = [Sequences(drawn.jobs, drawn.arrivals[[b]]) for b in (0, 1)]
    singles = [PickOrKillEnv(sequences=one, settings=SMALL, kill="rule") for one in each]
    rng = np.random.default_rng(1)
    seen, _ = vector.reset(seed=1)
    views = [env.reset()[0] for env in singles]
    over = np.zeros(2, np.bool_)
    for _ in range(400):
        masks = vector.action_masks()
        actions = (rng.random(masks.shape) * masks).argmax(1)
        for b, env in enumerate(singles):
            if not over[b]:
                assert np.array_equal(views[b], seen[b])
                assert env.action_masks().tolist() == masks[b].tolist()
        seen, rewards, ended, cut, info = vector.step(actions)
        for b, env in enumerate(singles):
            if over[b]:
                continue
            views[b], reward, done, _, told = env.step(int(actions[b]))
            assert (reward, done) == (rewards[b], ended[b])
            assert told["time"] == info["time"][b]
            if done:
                assert info["_slowdown"][b]
                expected = (info["slowdown"][b], info["completion_time"][b])
                assert (told["slowdown"], told["completion_time"]) == expected
        assert not cut.any()
        over |= ended
        if over.all():
            break
    assert over.all()
    vector.step(np.zeros(2, np.int64))
    assert vector.action_masks()[:, NONE].all()  # places begin the next sequences
    made = gymnasium.make_vec(PICK_OR_KILL, num_envs=3, data=job_set(ROWS), settings=SMALL)
    assert made.reset(seed=1)[0].shape == (3, 16, 26)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kill": "always"}, "unknown kill 'always'"),
        ({"speed": 3}, "unknown option"),
        ({"rate": 0.0}, "no job arrives"),
        ({"data": "nowhere.csv"}, "nowhere.csv: no such file"),
        ({"estimator": "requested"}, "no requested time"),
    ],
)
def test_what_cannot_be_made_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(BridgeError, match=says):
        make(**options).reset()
