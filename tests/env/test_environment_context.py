"""Environments of encoders with a context: what is seen beside the rows is the batch's, at every step."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
from env_checker import check  # noqa: E402
from gymnasium.spaces import Box, Dict  # noqa: E402

import bridge.env.register  # noqa: E402, F401
from bridge.base.arrays import Floats32, Ints  # noqa: E402
from bridge.base.errors import BridgeError  # noqa: E402
from bridge.env.batch import Batch  # noqa: E402
from bridge.env.encoder import Encoder  # noqa: E402
from bridge.env.environment import SchedulingEnv, SchedulingVectorEnv  # noqa: E402
from bridge.env.episode_starts import constants_of  # noqa: E402
from bridge.env.reward import Reward  # noqa: E402
from bridge.scheduler.core import BACKFILL  # noqa: E402
from bridge.workload.select import Jobs  # noqa: E402

LENGTH = 20
#: Two running jobs (share of both resources, time left), and use and goal of both resources.
PLACES = 2
CONTEXT = PLACES * 3 + 4
SHOWN = Encoder(
    "pick",
    {"share": "share[r]", "request": "t/600", "wait": "w/600"},
    window=4,
    running={"share": "share[r]", "left": "left/600"},
    running_rows=(PLACES,),
    empty_row=(-1.0, -1.0, -1.0),
    machine={"used": "used[r]", "goal": "goal[r]"},
    resources=0,
)


def crowd(n: int = 50, seed: int = 2) -> Jobs:
    """Return jobs that arrive far faster than eight nodes and a burst buffer of 100 bytes can run them."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 400, n)
    columns = (np.sort(rng.integers(0, 20 * n, n)), run, run * rng.integers(1, 4, n))
    demand = (rng.integers(1, 9, n), rng.integers(0, 2, n) * rng.integers(1, 80, n))
    return small_jobs.make_jobs(np.stack([*columns, *demand], axis=1).tolist(), [8, 100])


#: Every way to be asked for candidates, with rows of running jobs, of units, or none.
CASES: dict[str, dict[str, Any]] = {
    "pick": {"decision": "pick", "encoder": SHOWN, "blocked": "held"},
    "both": {"decision": "pick+backfill", "encoder": replace(SHOWN, decision="pick+backfill")},
    "backfill": {"decision": "backfill", "encoder": replace(SHOWN, decision="backfill", stop=True)},
    "inspect": {"decision": "inspect", "encoder": replace(SHOWN, decision="inspect")},
    "units": {
        "decision": "pick",
        "encoder": replace(SHOWN, row_unit="unit", running_rows=(8, 10), machine={}),
    },
    "machine": {
        "decision": "pick",
        "encoder": replace(
            SHOWN, running={}, running_rows=(), empty_row=(), machine={"free": "free/eight", "load": "load"}
        ),
        "constants": {"eight": 8.0},
    },
}
WIDTHS = {"units": 18 * 3, "machine": 2}


def options(case: str, **changes: Any) -> dict[str, Any]:
    return {"workload": crowd(), "length": LENGTH, "seed": 3, **CASES[case], **changes}


def make(case: str, **changes: Any) -> SchedulingEnv:
    return SchedulingEnv(**options(case, **changes))


def make_many(case: str, n: int, **changes: Any) -> SchedulingVectorEnv:
    return SchedulingVectorEnv(n, **options(case, **changes))


def batch_of(env: SchedulingEnv | SchedulingVectorEnv) -> Batch:
    """Return a batch of one episode that decides and shows what an environment does."""
    task, jobs = env.task, crowd()
    constants = constants_of(jobs) if task.constants is None else task.constants
    shape = task.encoder.for_resources(2).compile(constants)
    return Batch(task.setup.build_scenario(jobs, task.policy()), shape, 1, LENGTH)


def answer_of(env: SchedulingEnv | SchedulingVectorEnv, action: int, rows: Floats32) -> Ints:
    """Return the batch's answer for an action: the stop row is the last of those that are there."""
    stops = env.task.encoder.stop and action == env.task.encoder.window
    return np.array([len(rows) - 1 if stops else action])


@pytest.mark.parametrize("case", CASES)
def test_check_env_has_nothing_to_say(case: str) -> None:
    check(make(case))


def test_check_env_has_nothing_to_say_about_one_made_by_name() -> None:
    check(gymnasium.make("bridge/Pick-v0", **options("pick", decision="pick")))


@pytest.mark.parametrize("case", CASES)
def test_the_space_has_rows_and_context(case: str) -> None:
    env, many = make(case), make_many(case, 3)
    width = WIDTHS.get(case, CONTEXT)
    rows = {"inspect": 1, "backfill": 5}.get(case, 4)
    assert isinstance(env.observation_space, Dict)
    assert {k: v.shape for k, v in env.observation_space.items()} == {"rows": (rows, 4), "context": (width,)}
    assert many.single_observation_space == env.observation_space
    assert {k: v.shape for k, v in many.observation_space.items()} == {  # type: ignore[attr-defined]
        "rows": (3, rows, 4),
        "context": (3, width),
    }
    assert env.task.encoder.resources == many.task.encoder.resources == 2


def test_without_a_context_the_space_is_a_box() -> None:
    bare = replace(SHOWN, running={}, running_rows=(), empty_row=(), machine={})
    env = make("pick", encoder=bare)
    assert isinstance(env.observation_space, Box)
    assert env.observation_space.shape == (4, 4)
    many = make_many("pick", 2, encoder=bare)
    seen, _ = many.reset()
    assert isinstance(seen, np.ndarray)
    assert many.observation_space.contains(seen)


@pytest.mark.parametrize("case", CASES)
def test_at_every_step_the_context_is_the_batchs(case: str) -> None:
    env = make(case)
    rng = np.random.default_rng(1)
    batch = batch_of(env)
    contexts = set()
    for first in (0, 12):  # right after a reset as well, the first and the next
        seen, _ = env.reset(options={"start": first})
        view = batch.reset(np.array([first]))
        over = False
        while not over:
            assert isinstance(seen, dict)
            assert env.observation_space.contains(seen)
            assert np.array_equal(seen["context"], view.context[0])
            masks = env.action_masks()
            assert np.array_equal(seen["rows"] if case == "inspect" else seen["rows"][masks], view.rows)
            contexts.add(seen["context"].tobytes())
            kept, before = seen, {k: v.copy() for k, v in seen.items()}
            action = int(rng.choice(np.flatnonzero(masks)))
            view = batch.step(answer_of(env, action, view.rows))
            seen, _, over, _, _ = env.step(action)
            assert all(np.array_equal(kept[k], before[k]) for k in before)  # what a caller keeps stays
        assert isinstance(seen, dict)
        assert env.observation_space.contains(seen)
        assert not seen["context"].any()
        assert not seen["rows"].any()
    assert len(contexts) > 5


@pytest.mark.parametrize("case", CASES)
def test_the_contexts_of_a_vector_environment_are_those_of_single_ones(case: str) -> None:
    starts = [0, 5, 10, 15, 20, 25]
    many = make_many(case, 3, starts=starts)
    batches = [batch_of(many) for _ in range(3)]
    queue = iter(starts * 3)
    views = [batch.reset(np.array([next(queue)])) for batch in batches]
    seen, _ = many.reset()
    rng = np.random.default_rng(1)
    ended = [False] * 3
    begun = 0
    for _ in range(400):
        assert isinstance(seen, dict)
        assert many.observation_space.contains(seen)
        for b, view in enumerate(views):
            assert ended[b] == (not len(view.rows))
            assert np.array_equal(
                seen["context"][b], np.zeros_like(view.context[0]) if ended[b] else view.context[0]
            )
        if begun >= 6:
            break
        masks = many.action_masks()
        actions = np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in masks])
        kept, before = seen, {k: v.copy() for k, v in seen.items()}
        seen, _, over, _, _ = many.step(actions)
        assert all(np.array_equal(kept[k], before[k]) for k in before)
        for b, batch in enumerate(batches):
            if ended[b]:  # the place begins anew at the step behind the end
                views[b] = batch.reset(np.array([next(queue)]))
                begun += 1
            else:
                views[b] = batch.step(answer_of(many, int(actions[b]), views[b].rows))
            ended[b] = bool(over[b])
    assert begun >= 6


def test_the_context_by_hand() -> None:
    # On 8 nodes and 100 bytes, job 1 (4 nodes, 50 bytes, 600 s) starts at once: nobody else is there. At 60,
    # jobs 2 and 3 (neither fits) wait, and only then is there a choice.
    jobs = small_jobs.make_jobs([(0, 600, 600, 4, 50), (60, 300, 300, 8, 0), (60, 300, 300, 2, 60)], [8, 100])
    env = SchedulingEnv("pick", workload=jobs, length=3, encoder=SHOWN)
    seen, info = env.reset(seed=0)
    assert isinstance(seen, dict)
    assert info["time"] == 60
    assert seen["rows"] == pytest.approx(
        np.array([[1.0, 0.0, 0.5, 0.0], [0.25, 0.6, 0.5, 0.0], [0.0] * 4, [0.0] * 4])
    )
    assert seen["context"][:6].tolist() == pytest.approx([0.5, 0.5, 0.9, -1, -1, -1])
    # MRSch, Eq. 1: demand × time of waiting jobs and of what is left of running ones, as parts of the sum
    nodes, bytes_ = 300 * 1.0 + 300 * 0.25 + 540 * 0.5, 300 * 0.6 + 540 * 0.5
    goals = [nodes / (nodes + bytes_), bytes_ / (nodes + bytes_)]
    assert seen["context"][6:].tolist() == pytest.approx([0.5, 0.5, *goals])


def test_the_default_agent_of_both_knows_what_it_is_asked() -> None:
    env = gymnasium.make("bridge/PickAndBackfill-v0", workload=crowd(), length=LENGTH).unwrapped
    assert env.task.decision == "pick+backfill"
    head = list(env.task.encoder.features).index("head nodes")
    safe = list(env.task.encoder.features).index("safe")
    seen, _ = env.reset(seed=1)
    asked = {"pick": 0, "backfill": 0}
    over = False
    while not over:
        masks = env.action_masks()
        rows = seen[masks]
        kind = env._episodes.batch.decision_kinds[0]
        asked["backfill" if rows[0, head] > 0 else "pick"] += 1
        assert (rows[:, head] > 0).all() == (kind == BACKFILL)
        if kind != BACKFILL:
            assert not rows[:, [head, safe]].any()
        seen, _, over, _, _ = env.step(int(masks.nonzero()[0][-1]))
    assert min(asked.values()) > 2


@pytest.mark.parametrize("guard", ["none", "penalty", "mask"])
def test_a_guard_holds_for_the_backfills_of_both(guard: str) -> None:
    reward = Reward("wait", "native", "end", penalty=1000.0)
    env = make("both", guard=guard, reward=reward)
    env.reset(options={"start": 0})
    given, over = [], False
    while not over:
        _, value, over, _, info = env.step(int(np.flatnonzero(env.action_masks())[-1]))
        given.append(value)
    given[-1] -= info["base"] - info["metric"]
    late = sum(round(value) == -1000 for value in given)
    assert (late == 0) == (guard == "mask")


# Refusals.


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workload": "bundled-128", "encoder": replace(SHOWN, resources=2)}, "the agent sees 2 resources"),
        ({"encoder": replace(SHOWN, padding=(0.0,) * 3)}, "the padding has 3 values for 4 features"),
        ({"encoder": replace(SHOWN, machine={"left": "left"})}, "feature 'left': unknown"),
        ({"encoder": replace(SHOWN, machine={"free": "free/eight"})}, "unknown variable 'eight'"),
        ({"blocked": "never"}, "blocked cannot be 'never'"),
        (
            {
                "decision": "pick+backfill",
                "encoder": replace(SHOWN, decision="pick+backfill"),
                "backfill": "none",
            },
            "no agent can backfill",
        ),
        ({"decision": "pick+backfill"}, "shows no pick[+]backfill decision"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        make("pick", **changes)
