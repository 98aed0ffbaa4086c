"""What every environment keeps: Gymnasium's interface, masks, rewards, determinism, the scheduler's rules."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
import small_jobs
from hypothesis import given, settings
from hypothesis import strategies as st
from subprocess_python import run_python

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
from env_checker import NAMES, check  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from bridge.base.errors import BridgeError  # noqa: E402
from bridge.env.batch import Batch  # noqa: E402
from bridge.env.env_config import ENCODERS  # noqa: E402
from bridge.env.environment import SchedulingEnv, SchedulingVectorEnv  # noqa: E402
from bridge.env.episode_starts import constants_of  # noqa: E402
from bridge.env.reward import EpisodeOutcome, Reward, base_costs, compute_rewards, episode_of  # noqa: E402
from bridge.scheduler.core import BACKFILL, DECLINE, INSPECT  # noqa: E402
from bridge.scheduler.state import State  # noqa: E402
from bridge.workload.select import Jobs  # noqa: E402

#: Small enough that more candidates wait than are shown.
WINDOW = 4
NODES = 8


def crowd(n: int = 60, seed: int = 1) -> Jobs:
    """Return jobs that arrive far faster than eight nodes can run them; requests are up to thrice the run."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 20 * n, n))
    run = rng.integers(1, 400, n)
    request = run * rng.integers(1, 4, n)
    nodes = rng.integers(1, NODES + 1, n)
    return small_jobs.make_jobs(np.stack([submit, run, request, nodes], axis=1).tolist(), [NODES])


def small(decision: str, **changes: Any) -> Any:
    """Return the decision's default encoder with a small window."""
    return replace(ENCODERS[decision], window=WINDOW, **changes)  # type: ignore[index]


#: Every kind of decision, under every protocol that changes what is asked. All on the crowd.
CASES: dict[str, dict[str, Any]] = {
    "pick": {"decision": "pick", "encoder": small("pick")},
    "pick, none behind": {"decision": "pick", "encoder": small("pick"), "backfill": "none", "order": "sjf"},
    "pick, schedgym": {"decision": "pick", "encoder": small("pick"), "protocol": "schedgym"},
    "pick, held": {"decision": "pick", "encoder": small("pick"), "blocked": "held"},
    "pick, first": {"decision": "pick", "encoder": small("pick"), "blocked": "first"},
    "both": {"decision": "pick+backfill", "encoder": small("pick+backfill")},
    "both, mask": {
        "decision": "pick+backfill",
        "encoder": small("pick+backfill"),
        "guard": "mask",
        "blocked": "",
    },
    "backfill": {"decision": "backfill", "encoder": small("backfill")},
    "backfill, no stop": {"decision": "backfill", "encoder": small("backfill", stop=False)},
    "backfill, mask": {"decision": "backfill", "encoder": small("backfill"), "guard": "mask"},
    "backfill, schedgym": {
        "decision": "backfill",
        "encoder": small("backfill", padding=(-1.0,) * len(ENCODERS["backfill"].features)),
        "protocol": "schedgym",
    },
    "backfill, cqsim": {"decision": "backfill", "encoder": small("backfill"), "protocol": "cqsim"},
    "inspect": {"decision": "inspect"},
    "inspect, easy": {"decision": "inspect", "order": "f1", "backfill": "easy"},
    "inspect, schedgym": {"decision": "inspect", "protocol": "schedgym", "preset": "schedinspector"},
}
REWARDS = [
    Reward("bsld", "percentage", "end"),
    Reward("bsld.max", "winloss", "end"),
    Reward("wait.max", "relative", "end"),
    Reward("wait", "native", "end", penalty=0.25),
    Reward("bsld", "plain", "end"),
    Reward("bsld", "percentage", "time", penalty=0.5),
    Reward("wait", "native", "time"),
    Reward("bsld", "percentage", "end", idle=3.0),
    Reward("wait", "native", "time", idle=60.0),
]


def make(case: str, **changes: Any) -> SchedulingEnv:
    """Return a case's environment on the crowd, episodes of 40 jobs."""
    return SchedulingEnv(**{"workload": crowd(), "length": 40, "seed": 3, **CASES[case], **changes})


def play(env: SchedulingEnv, rng: np.random.Generator, **reset: Any) -> list[tuple[Any, ...]]:
    """Play an episode by random legal actions; return (observation, masks, time, action, reward, info)."""
    seen, info = env.reset(**reset)
    steps: list[tuple[Any, ...]] = []
    over = False
    while not over:
        masks, time = env.action_masks(), info["time"]
        action = rng.choice(np.flatnonzero(masks))
        after, reward, over, truncated, info = env.step(action)
        assert not truncated
        assert info["invalid"] is False
        assert info["action_mask"].tolist() == env.action_masks().astype(int).tolist()
        info = {**info, "action_mask": info["action_mask"].tolist()}
        steps.append((seen, masks, time, int(action), reward, info))
        seen = after
    return steps


# Gymnasium's interface.


@pytest.mark.parametrize("name", NAMES)
def test_check_env_has_nothing_to_say(name: str) -> None:
    check(gymnasium.make(name, length=64))


@pytest.mark.parametrize("case", CASES)
def test_check_env_has_nothing_to_say_about_other_settings(case: str) -> None:
    check(make(case))


def test_a_name_that_names_the_module_needs_no_import() -> None:
    code = (
        "import gymnasium; "
        "env = gymnasium.make('bridge.env.register:bridge/Inspect-v0', length=32, order='f1'); "
        "print(env.unwrapped.task.setup.order, env.reset(seed=1)[0].shape)"
    )
    done = run_python(code)
    assert done.stdout == "f1 (1, 11)\n", done.stderr


@pytest.mark.parametrize("case", CASES)
def test_observations_have_padding_where_no_row_is(case: str) -> None:
    env = make(case)
    shape = env.task.encoder
    padding = np.array(shape.padding or np.zeros(len(shape.features)), np.float32)
    for seen, masks, *_ in play(env, np.random.default_rng(0)):
        assert env.observation_space.contains(seen)
        if shape.decision != "inspect":
            assert (seen[~masks] == padding).all()
            assert (seen[masks] != padding).any(axis=1).all()
        if shape.stop:
            marked = seen[:, list(shape.features).index("stop")] == 1.0
            assert np.flatnonzero(marked).tolist() == [WINDOW]
            assert masks[WINDOW]
    assert not env.action_masks().any()


# The scheduler decides by the same answers just so.


@pytest.mark.parametrize("case", CASES)
def test_the_core_given_the_same_answers_starts_every_job_at_the_same_time(case: str) -> None:
    env = make(case, workload=crowd(40))
    steps = play(env, np.random.default_rng(5), options={"start": 0})
    prepared = env.task.setup.build_scenario(crowd(40), env.task.policy())
    told = iter(steps)
    stop, decision = env.task.encoder.stop, env.task.decision

    def agent(state: State, kind: int) -> int:
        if kind == INSPECT:
            _, masks, time, action, *_ = next(told)
            assert masks.tolist() == [True, True]
        else:
            n = min(int(state.scalars.n_candidates[0]), WINDOW)
            if n + (stop and kind == BACKFILL) == 1:
                return 0  # nobody has a choice
            _, masks, time, action, *_ = next(told)
            assert np.flatnonzero(masks).tolist() == [*range(n), *([WINDOW] if stop else [])]
        assert time == int(state.scalars.now[0]) / 1e6
        if decision == "inspect":
            return DECLINE if action == 1 else 0
        return DECLINE if action == WINDOW else action

    start, _, _ = small_jobs.play(prepared, agent)
    assert env.job_outcomes().start.tolist() == start
    assert next(told, None) is None
    assert len(steps) > 5


@pytest.mark.parametrize("case", CASES)
def test_every_legal_action_is_taken_and_every_other_is_replaced(case: str) -> None:
    env = make(case)
    choices = []
    for before in (0, 3, 5, 12, 15):

        def come_here(before: int = before) -> bool:
            env.reset(seed=1)
            return not any(env.step(0)[2] for _ in range(before))

        if not come_here():
            break  # the episode was over before
        masks = env.action_masks()
        brought = {}
        for action in [*range(int(env.action_space.n)), -1, -1000, 10**6]:
            come_here()
            after, reward, over, _, info = env.step(action)
            brought[action] = (after.tobytes(), reward, over, info["time"], env.action_masks().tobytes())
            assert info["invalid"] is not (0 <= action < len(masks) and bool(masks[action]))
        stop = WINDOW if env.task.encoder.stop else 0
        instead = {"pick": 0, "pick+backfill": 0, "backfill": stop, "inspect": 1}[env.task.decision]
        assert masks[instead]
        for action, what in brought.items():
            if not (0 <= action < len(masks) and masks[action]):
                assert what == brought[instead]
        choices.append(len({brought[action] for action in np.flatnonzero(masks)}))
    assert max(choices) > 1


# Episodes.


@pytest.mark.parametrize("case", CASES)
def test_a_seed_repeats_everything(case: str) -> None:
    def run(env: SchedulingEnv, seed: int | None) -> list[Any]:
        rng = np.random.default_rng(9)
        return [
            (seen.tobytes(), masks.tolist(), *rest)
            for reset in (seed, None)  # the second episode is drawn from the same generator
            for seen, masks, *rest in play(env, rng, seed=reset)
        ]

    env = make(case)
    once = run(env, 11)
    assert run(env, 11) == once
    assert run(make(case, seed=11), None) == once
    assert run(env, 12) != once


@pytest.mark.parametrize("case", CASES)
def test_an_episode_ends_with_every_job_accounted_for(case: str) -> None:
    env, jobs = make(case), crowd()
    env.reset(seed=2)
    assert np.isnan(env.job_outcomes().start).any()
    *_, last = play(env, np.random.default_rng(2), seed=2)
    info, part = last[-1], slice(last[-1]["first_job"], last[-1]["first_job"] + 40)
    outcome = env.job_outcomes()
    assert outcome.submit.tolist() == (jobs.submit[part] / 1e6).tolist()
    assert outcome.run.tolist() == (jobs.run[part] / 1e6).tolist()
    assert (outcome.start >= outcome.submit).all()
    assert info["time"] == (outcome.start + outcome.run).max()
    assert info["metric"] == outcome.value("bsld")
    base = base_costs(env.task.setup.build_scenario(jobs), np.array([part.start]), 40, Reward())
    assert info["base"] == base[0]
    with pytest.raises(BridgeError, match="no decision waits"):
        env.step(0)


def test_episodes_come_from_the_part_or_in_the_order_of_a_list() -> None:
    env = make("inspect", part=(0.25, 0.5), length=10)
    first = {env.reset()[1]["first_job"] for _ in range(200)}
    assert first == set(range(15, 21))
    listed = make("inspect", starts=[7, 3, 5], length=10)
    assert [listed.reset()[1]["first_job"] for _ in range(4)] == [7, 3, 5, 7]
    assert listed.reset(seed=1)[1]["first_job"] == 7


def test_episodes_without_a_decision_are_passed_over() -> None:
    lonely = [(1000 * k, 10, 10, 1) for k in range(8)]
    busy = [(8000, 50, 50, NODES), *[(8001 + k, 50, 50, 4) for k in range(7)]]
    jobs = small_jobs.make_jobs([*lonely, *busy], [NODES])
    env = SchedulingEnv("pick", workload=jobs, length=8, starts=[0, 8])
    assert env.reset()[1]["first_job"] == 8
    with pytest.raises(BridgeError, match="no decision had to be taken"):
        SchedulingEnv("pick", workload=jobs, length=8, starts=[0]).reset()
    with pytest.raises(BridgeError, match="no decision had to be taken"):
        env.reset(options={"start": 0})


# Rewards.


@pytest.mark.parametrize("reward", REWARDS, ids=lambda r: f"{r.metric} {r.form} {r.spread} {r.idle:g}")
@pytest.mark.parametrize("case", ["pick", "backfill", "backfill, no stop", "inspect", "backfill, schedgym"])
def test_rewards_are_those_of_training(case: str, reward: Reward) -> None:
    env = make(case, reward=reward)
    steps = play(env, np.random.default_rng(4), seed=4)
    first = np.array([steps[0][-1]["first_job"]])
    jobs, shape = crowd(), env.task.encoder
    batch = Batch(
        env.task.setup.build_scenario(jobs, env.task.policy()), shape.compile(constants_of(jobs)), 1, 40
    )
    view = batch.reset(first)
    times, late = [], []
    for seen, masks, _, action, *_ in steps:
        assert np.array_equal(view.rows, seen[masks] if shape.decision != "inspect" else seen)
        times.append(int(batch.now[0]))
        view = batch.step(np.array([len(view.rows) - 1 if shape.stop and action == WINDOW else action]))
        late.append(bool(batch.delays_head[0]))
    base = base_costs(env.task.setup.build_scenario(jobs), first, 40, reward)
    expected = compute_rewards(reward, episode_of(batch, 0), float(base[0]), np.array(times), np.array(late))
    got = np.array([step[4] for step in steps])
    assert len(times) > 5
    if reward.spread == "end":
        assert got.tolist() == expected.tolist()
    else:
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert got.sum() == pytest.approx(expected.sum(), rel=1e-12)
    if reward.penalty and case == "backfill, no stop":
        assert any(late)


def test_rewards_in_time_by_hand() -> None:
    # Job 1 holds all nodes until 100. The agent is asked about job 2 at 10, and at 20 about job 3, for it is
    # shorter; both are accepted, and blocked until job 1 ends.
    rows = [(0, 100, 100, 8), (10, 50, 50, 8), (20, 30, 30, 8)]
    jobs = small_jobs.make_jobs(rows, [8])
    env = SchedulingEnv("inspect", workload=jobs, length=3, reward=Reward("wait", "native", "time"))
    _, info = env.reset(seed=0)
    got = []
    for action in cycle([0]):
        asked = info["time"]
        _, reward, over, _, info = env.step(action)
        got.append((asked, pytest.approx(reward, abs=1e-12)))
        if over:
            break
    # 0–10 nobody waits, 10–20 one job, 20–100 two, 100–130 one (job 2); divided by three jobs.
    assert got == [(0, 0.0), (10, -10 / 3), (20, -160 / 3), (100, 0.0), (100, -30 / 3), (130, 0.0)]
    assert env.job_outcomes().start.tolist() == [0, 130, 100]
    assert info["metric"] == info["base"] == (120 + 80) / 3


# Whatever is answered.

ROWS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 100), st.integers(1, 3), st.integers(1, NODES)),
    min_size=3,
    max_size=25,
)


def busiest(outcome: EpisodeOutcome, nodes: np.ndarray) -> int:
    """Return the most nodes in use at any instant."""
    moments = np.concatenate((outcome.start + outcome.run, outcome.start))
    changes = np.concatenate((-nodes, nodes))
    return int(np.cumsum(changes[np.lexsort((changes, moments))]).max())


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25)
@given(rows=ROWS, actions=st.lists(st.integers(-2, WINDOW + 3), min_size=1, max_size=30))
def test_no_answer_breaks_the_machine(case: str, rows: list[tuple[int, ...]], actions: list[int]) -> None:
    table = [(submit, run, run * more, nodes) for submit, run, more, nodes in sorted(rows)]
    jobs = small_jobs.make_jobs(table, [NODES])
    env = make(case, workload=jobs, length=len(jobs))
    try:
        env.reset()
    except BridgeError as error:
        assert "no decision had to be taken" in str(error)
        return
    for action in cycle([*actions, 0]):  # who always rejects is asked 72 times a job
        if env.step(action)[2]:
            break
    outcome = env.job_outcomes()
    assert (outcome.start >= outcome.submit).all()
    assert busiest(outcome, jobs.demand[:, 0]) <= NODES


# Many at once.


@pytest.mark.parametrize("case", CASES)
def test_the_vector_environment_is_as_many_single_ones(case: str) -> None:
    options = {"workload": crowd(), "length": 40, **CASES[case]}
    reward = Reward("bsld", "percentage", "time", penalty=0.5)
    starts = [0, 4, 8, 12, 16, 20]
    many = SchedulingVectorEnv(3, reward=reward, starts=starts, **options)
    singles = [SchedulingEnv(reward=reward, **options) for _ in range(3)]
    seen, info = many.reset(seed=0)
    queue = cycle(starts)
    last: list[tuple[Any, ...]] = []
    for env in singles:
        last.append(env.reset(options={"start": next(queue)}))
    ended = [False] * 3
    rng = np.random.default_rng(1)
    episodes = 0
    for _ in range(1000):
        for b, env in enumerate(singles):
            assert np.array_equal(seen[b], last[b][0])
            assert np.array_equal(many.action_masks()[b], env.action_masks())
            assert np.array_equal(info["action_mask"][b], env.action_masks())
            assert all(info[key][b] == last[b][-1][key] for key in ("time", "first_job", "invalid"))
            assert ended[b] == bool(info.get("_metric", [False] * 3)[b])
            if ended[b]:
                assert info["metric"][b] == last[b][-1]["metric"]
                assert info["base"][b] == last[b][-1]["base"]
        if episodes >= len(starts):
            break
        actions = rng.integers(0, int(many.single_action_space.n), 3)
        kept = seen.copy()
        seen_before = seen
        seen, given_, over, cut, info = many.step(actions)
        assert np.array_equal(seen_before, kept)  # what a caller keeps is not written over
        assert not cut.any()
        for b, env in enumerate(singles):
            if ended[b]:
                last[b] = env.reset(options={"start": next(queue)})
                assert given_[b] == 0.0
                ended[b] = False
            else:
                last[b] = env.step(actions[b])
                ended[b] = last[b][2]
                assert given_[b] == pytest.approx(last[b][1], rel=1e-9, abs=1e-12)
                episodes += ended[b]
            assert over[b] == ended[b]
    assert episodes >= len(starts)


def test_make_vec_makes_the_batched_one_and_a_seed_repeats_it() -> None:
    def run() -> list[Any]:
        many = gymnasium.make_vec("bridge/Backfill-v0", num_envs=4, workload=crowd(), length=30)
        assert type(many) is SchedulingVectorEnv
        assert many.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        seen, _ = many.reset(seed=6)
        assert many.observation_space.contains(seen)
        rng = np.random.default_rng(0)
        steps = [many.step(rng.integers(0, 65, 4)) for _ in range(120)]
        assert sum(int(step[2].sum()) for step in steps) > 4
        return [(s[0].tobytes(), s[1].tolist(), s[2].tolist(), s[4]["first_job"].tolist()) for s in steps]

    assert run() == run()


# Refusals.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ordr": "sjf"}, "unknown option"),
        ({"encoder": ENCODERS["pick"]}, "shows no backfill decision"),
        ({"backfill": "none"}, "no agent can backfill"),
        ({"guard": "soft"}, "unknown guard"),
        ({"guard": "penalty"}, "penalty above 0"),
        ({"reward": Reward("bsld.max", spread="time")}, "reward.metric"),
        ({"reward": Reward("bsld", "winloss", "time")}, "reward.form"),
        ({"order": "no such order"}, "order"),
        ({"protocol": "textbook"}, "protocol cannot be 'textbook'"),
        ({"length": 100}, "holds no episode of 100"),
        ({"length": 0}, "at least one job"),
        ({"part": (0.5, 0.1)}, "part cannot be"),
        ({"starts": []}, "starts is empty"),
        ({"starts": [0, 21]}, "no episode of 40 jobs there"),
        ({"workload": "no-such-log"}, "neither a file nor the name"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        make("backfill", **options)


def test_an_unknown_decision_is_refused() -> None:
    with pytest.raises(BridgeError, match="unknown decision"):
        SchedulingEnv("tick")  # type: ignore[arg-type]
