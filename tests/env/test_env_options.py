"""Wrong options of environments and resets are refused with a remedy; seeds may be listed; own rewards."""

from typing import Any

import numpy as np
import pytest
from small_pools import job_set

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from bridge.base.errors import BridgeError  # noqa: E402
from bridge.env.environment import SchedulingEnv, SchedulingVectorEnv  # noqa: E402
from bridge.env.reward import EpisodeOutcome  # noqa: E402
from bridge.pool.environment import PickOrKillEnv, PickOrKillVectorEnv  # noqa: E402

LENGTH = 32
POOL: dict[str, Any] = {"data": job_set([(3, 4, 2, [2, 3, 6, 6]), (2, 2, 4, [4])]), "steps": 20}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "bsld"}, "reward cannot be 'bsld'\n  Write a bridge.env.reward.Reward"),
        ({"encoder": 3}, "encoder cannot be 3\n  Write a bridge.env.encoder.Encoder"),
        ({"setup": 7}, "setup cannot be 7\n  Write a bridge.worlds.fast.scheduler_config.Setup"),
        ({"workload": 5}, "workload cannot be 5\n  Write a log's path"),
        ({"guard": 1}, "unknown guard\n  Choose none, penalty, mask."),
        ({"length": "x"}, "length cannot be 'x'\n  Write a whole number."),
        ({"part": 0.5}, "part cannot be 0.5\n  Write a list of 2, each a number."),
        ({"starts": "a"}, "starts cannot be 'a'\n  A list of whole numbers"),
        ({"starts": [0.5]}, "starts cannot be [0.5]\n  A list of whole numbers"),
        ({"seed": "x"}, "seed cannot be 'x'\n  Write a whole number at least 0."),
        ({"retry_after": 0.0}, "retry_after cannot be 0.0\n  Write a number above 0."),
        ({"max_rejects": -1}, "max_rejects cannot be -1\n  Write a whole number at least 0."),
        ({"constants": 3}, "constants cannot be 3"),
        ({"cancelled": "kep"}, "cancelled cannot be 'kep'\n  Write one of '', 'keep', 'drop'."),
        ({"rebase": "yes"}, "rebase cannot be 'yes'\n  Write true or false."),
        ({"nodes": 0}, "nodes cannot be 0\n  Write a whole number at least 1."),
        ({"protocol": "textbook"}, "protocol cannot be 'textbook'\n  Write one of 'standard', 'cqsim'"),
        ({"ordr": "sjf"}, "'ordr': unknown option\n  Did you mean order? Known: action, backfill"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_option_is_refused_with_a_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BridgeError) as refused:
        SchedulingEnv("pick", **options)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": "x"}, "rate cannot be 'x'\n  Write a number at least 0."),
        ({"steps": 0}, "steps cannot be 0\n  Write a whole number at least 1."),
        ({"estimator": 3}, "estimator cannot be 3\n  Write a text."),
        ({"settings": {}}, "settings cannot be {}\n  Write a bridge.pool.settings.Settings."),
        ({"data": 3}, "data cannot be 3\n  Write a job file's path"),
        ({"sequences": 2}, "sequences cannot be 2\n  Write a bridge.pool.world.Sequences."),
        ({"stesp": 3}, "'stesp': unknown option\n  Did you mean steps? Known: data, kill, rate"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_option_of_the_pool_is_refused_with_a_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BridgeError) as refused:
        PickOrKillEnv(**POOL | options)
    assert message in str(refused.value)


def test_numbers_of_numpy_are_numbers() -> None:
    env = SchedulingEnv(
        "pick", length=np.int64(LENGTH), nodes=np.int32(128), starts=np.arange(3), seed=np.int64(1)
    )
    assert env.task.length == LENGTH
    assert [env.reset()[1]["first_job"] for _ in range(2)] == [0, 1]


# Resets.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strat": 5}, "reset: unknown option 'strat'\n  Did you mean start? There is start."),
        ({"start": "a"}, "reset: start cannot be 'a'\n  The number of a job, counted from 0, or 2 of them."),
        ({"start": 1.5}, "reset: start cannot be 1.5\n"),
        ({"start": [1, 2, 3]}, "reset: start cannot be [1, 2, 3]\n"),
        ({"start": 10**9}, "does not fit"),
    ],
    ids=str,
)
def test_a_wrong_option_of_a_reset_is_refused(options: dict[str, Any], message: str) -> None:
    many = SchedulingVectorEnv(2, "backfill", length=LENGTH)
    many.reset(options={"start": [100, 200]})
    with pytest.raises(BridgeError) as refused:
        many.reset(options=options)
    assert message in str(refused.value)


def test_the_pool_knows_no_option_of_a_reset() -> None:
    with pytest.raises(BridgeError, match="unknown option 'start'\n  There are none: leave it out"):
        PickOrKillEnv(**POOL).reset(options={"start": 5})


@pytest.mark.parametrize("kind", ["backfill", "pool"])
def test_listed_seeds_are_those_of_single_environments(kind: str) -> None:
    def single() -> Any:
        return PickOrKillEnv(**POOL) if kind == "pool" else SchedulingEnv("backfill", length=LENGTH)

    def several(n: int) -> Any:
        return (
            PickOrKillVectorEnv(n, **POOL)
            if kind == "pool"
            else SchedulingVectorEnv(n, "backfill", length=LENGTH)
        )

    many, singles, seeds = several(2), [single(), single()], [7, 8]
    seen, _ = many.reset(seed=seeds)
    shown = [env.reset(seed=seed)[0] for env, seed in zip(singles, seeds, strict=True)]
    ended, episodes = [False, False], 0
    while episodes < 4:
        assert all(np.array_equal(seen[b], shown[b]) for b in range(2))
        masks = many.action_masks()
        actions = np.array([int(np.flatnonzero(row)[-1]) if row.any() else 0 for row in masks])
        seen, _, over, cut, _ = many.step(actions)
        for b, env in enumerate(singles):
            if ended[b]:
                shown[b], ended[b] = env.reset()[0], False
            else:
                shown[b], _, terminated, truncated, _ = env.step(actions[b])
                ended[b] = terminated or truncated
                episodes += ended[b]
            assert ended[b] == (over[b] or cut[b])


def test_a_listed_none_leaves_a_generator_as_it_is() -> None:
    many = SchedulingVectorEnv(2, "backfill", length=LENGTH)
    single = SchedulingEnv("backfill", length=LENGTH)
    many.reset(seed=[7, 8])
    single.reset(seed=8)
    first = many.reset(seed=[7, None])[1]["first_job"].tolist()
    assert first == [
        SchedulingEnv("backfill", length=LENGTH).reset(seed=7)[1]["first_job"],
        single.reset()[1]["first_job"],
    ]
    one = many.reset(seed=3)[1]["first_job"].tolist()
    assert one == SchedulingVectorEnv(2, "backfill", length=LENGTH).reset(seed=3)[1]["first_job"].tolist()


@pytest.mark.parametrize("seed", [[1], ["a", 2], "ab", 1.5, [1, -1]], ids=str)
def test_wrong_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(BridgeError, match=r"seed cannot be .*\n.* a list of 2, one for each environment"):
        SchedulingVectorEnv(2, "backfill", length=LENGTH).reset(seed=seed)


# Rewards of one's own.


def mean_turnaround(episode: EpisodeOutcome) -> float:
    """Return minus the mean turnaround, s."""
    return -float((episode.start + episode.run - episode.submit).mean())


def test_a_function_is_a_reward() -> None:
    env = SchedulingEnv("backfill", length=LENGTH, reward=mean_turnaround)
    env.reset(seed=1)
    given, over = [], False
    while not over:
        _, value, over, _, info = env.step(int(np.flatnonzero(env.action_masks())[0]))
        given.append(value)
    assert given[-1] == mean_turnaround(env.job_outcomes()) == -info["metric"]
    assert not any(given[:-1])
    assert info["base"] > 0


def test_a_function_that_returns_no_number_is_refused_at_once() -> None:
    with pytest.raises(BridgeError, match="the reward cannot be 'much'"):
        SchedulingEnv("backfill", length=LENGTH, reward=lambda _: "much").reset(seed=1)
