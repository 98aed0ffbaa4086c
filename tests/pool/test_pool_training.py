"""Training on the slotted pool: numbers by hand, the same bits again, resuming, teachers, refusals."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from small_pools import pools_in_play, sequences_of
from tiny_pool import POOL, TINY, jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.learn.checkpoint import load, read_agent, read_tensors
from bridge.learn.checkpoint_files import is_of_pool
from bridge.learn.recipe import from_dict
from bridge.learn.trainer import EpochRecord, Trainer
from bridge.pool.heuristics import heuristic_actions
from bridge.pool.network import network_of
from bridge.pool.observation import PictureBatch
from bridge.pool.recipe import PoolNetworkConfig, PoolRecipe, PoolTrainingConfig
from bridge.pool.rollout import PoolRollout, agent_action_masks, collect, deciding, make_teacher, play
from bridge.pool.settings import PoolConfig
from bridge.pool.training import PoolPpo, PoolPpoUpdate, advantages, value_error


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Use one thread: the same bits need the same number."""
    torch.set_num_threads(1)


def bits(one: Trainer) -> tuple[Any, ...]:
    """Return everything that must be the same again."""
    history = [{k: v for k, v in p.row().items() if k != "seconds"} for p in one.history]
    tensors, meta = read_tensors(one.folder / "resume.safetensors")
    weights = (one.folder / "weights.safetensors").read_bytes()
    return json.dumps(history), {k: v.numpy().tobytes() for k, v in tensors.items()}, meta["best"], weights


# Advantages.


def rollout_of(rewards: list[float], values: list[float], moved: list[int], places: list[int]) -> PoolRollout:
    n, none = len(rewards), np.zeros(0, np.int64)
    return PoolRollout(
        view=PictureBatch(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(n + 1, np.int64), POOL),
        places=np.array(places),
        outlooks=np.zeros((n, 0), np.float32),
        masks=np.ones((n, 2), np.bool_),
        actions=np.zeros(n, np.int64),
        teacher_actions=none,
        logp=np.zeros(n),
        values=np.array(values),
        rewards=np.array(rewards),
        elapsed_steps=np.array(moved),
    )


def test_advantages_by_hand() -> None:
    # place 1 answers in rounds 1, 2 and 3 (decisions 1, 2, 3), place 0 in round 1 only (decision 0)
    some = rollout_of([-8.0, 0.0, -2.0, -4.0], [-4.0, -4.0, -2.0, -6.0], [1, 0, 1, 1], [0, 1, 1, 1])
    training = PoolTrainingConfig(gamma=0.5, lam=0.5)
    # deltas of place 1: 0 + .5 * -2 + 4 = 3, -2 + .5 * -6 + 2 = -3, -4 + 6 = 2
    advantage, returns = advantages(some, training)
    assert advantage.tolist() == [-4.0, 3.0 + 0.25 * -2.5, -3.0 + 0.25 * 2.0, 2.0]
    assert returns.tolist() == [-8.0, -1.625, -4.5, -4.0]
    # where time does not move nothing is discounted: 0 - 2 + 4 = 2, then lam alone
    advantage, _ = advantages(some, replace(training, discount="step"))
    assert advantage.tolist() == [-4.0, 2.0 + 0.5 * -2.5, -2.5, 2.0]


# The course of a training.


def test_imitation_fades_linearly_behind_the_lessons(tmp_path: Path) -> None:
    one = trainer(tmp_path, tiny(epochs=10, lessons=2, imitation=0.5, imitated=0.5, teacher="saf"))
    expected = [0.0, 0.0, 0.5, 0.375, 0.25, 0.125, 0.0, 0.0]
    assert [one.learner.imitation(epoch) for epoch in range(8)] == expected


def test_lessons_teach(tmp_path: Path) -> None:
    one = trainer(tmp_path, tiny(epochs=12, lessons=12, teacher="saf", iterations=10, learning_rate=3e-3))
    one.run()
    first, last = one.history[0], one.history[-1]
    assert last.more["agreement"] > max(0.9, first.more["agreement"])
    assert last.more["imitation_loss"] < 0.5 * first.more["imitation_loss"]
    assert [p.train_mean for p in one.history] == [p.base_mean for p in one.history]  # the teacher acted


def test_reinforcement_improves_on_chance(tmp_path: Path) -> None:
    recipe = tiny(
        epochs=25, sequences=16, iterations=4, critic="outlook", discount="step", entropy=0.0,
        learning_rate=3e-3, target_kl=0.05,
    )  # fmt: skip
    one = trainer(tmp_path, recipe)
    one.run()
    early, late = (np.mean([p.train_mean for p in part]) for part in (one.history[:4], one.history[-4:]))
    assert late < 0.93 * early


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"teacher": "saf", "lessons": 1, "imitation": 0.5, "fresh": True, "average": 0.5}},
        {"kill": "learned", "training": {"critic": "outlook", "anneal": True, "discount": "step"}},
        {"kill": "rule", "deploy": "validated", "estimator": "submit", "training": {"algorithm": "pg"}},
        {"mask": False, "pool": {"objective": "completion"}, "deploy": "sample"},
        {"network": {"kind": "cnn", "hidden": [8], "channels": [3], "kernels": [4], "strides": [2]}},
    ],
)
def test_the_same_seed_gives_the_same_bits_resumed_or_not(tmp_path: Path, changes: dict[str, Any]) -> None:
    recipe = from_dict(changes, "a test", TINY)
    whole = trainer(tmp_path / "whole", recipe)
    whole.run()
    half = trainer(tmp_path / "half", recipe)
    for _ in range(2):
        half.step()
    again = trainer(tmp_path / "half", recipe)
    again.resume()
    assert again.epoch == 2
    again.run()
    assert bits(whole) == bits(again)
    other = trainer(tmp_path / "other", recipe, seed=2)
    other.run()
    assert bits(other)[3] != bits(whole)[3]
    agent = load(tmp_path / "half", PoolRecipe)
    assert (agent.recipe, agent.origin) == (recipe, whole.origin)
    assert agent.epoch in (2, 4)
    table = pq.read_table(tmp_path / "half" / "progress.parquet")
    expected = [*list(EpochRecord.__dataclass_fields__)[:-1], "imitation_loss", "agreement", "kills"]
    assert table.column_names == expected
    assert table["epoch"].to_pylist() == [1, 2, 3, 4]
    assert is_of_pool(tmp_path / "half")


@pytest.mark.parametrize(("estimator", "alike"), [("submit", True), ("running", False)])
def test_the_clamp_changes_what_is_learnt_from_beliefs_that_change(
    tmp_path: Path, estimator: str, alike: bool
) -> None:
    recipe = replace(tiny(), estimator=estimator)
    worse = replace(jobs(), beliefs=np.minimum(2 * jobs().beliefs, 15))
    made = []
    for clamp in (False, True):
        one = trainer(
            tmp_path / str(clamp), replace(recipe, pool=replace(POOL, oracle_clamp=clamp)), of=worse
        )
        one.run()
        made.append(bits(one))
    assert (made[0] == made[1]) is alike


def test_a_killed_training_goes_on(tmp_path: Path) -> None:
    """What a process left that was stopped without warning is whole."""
    code = (
        "import os, sys; from pathlib import Path; sys.path[:0] = sys.argv[2:];"
        "from tiny_pool import trainer;"
        "one = trainer(Path(sys.argv[1])); one.step(); one.step(); os._exit(9)"
    )
    here = Path(__file__).parent
    words = [sys.executable, "-c", code, str(tmp_path / "a"), str(here), str(here.parent)]
    done = subprocess.run(words, check=False)
    assert done.returncode == 9
    one, whole = trainer(tmp_path / "a"), trainer(tmp_path / "b")
    one.resume()
    one.run()
    whole.run()
    assert bits(one) == bits(whole)


# What public code does otherwise.


def test_rates_fall_by_a_factor_from_epoch_to_epoch(tmp_path: Path) -> None:
    assert [PoolTrainingConfig(decay=0.95).rate_fraction(k) for k in (0, 1, 2)] == [1.0, 0.95, 0.95**2]
    annealed = PoolTrainingConfig(epochs=3, anneal=True, decay=0.5)
    assert [annealed.rate_fraction(k) for k in (0, 2)] == [1.0, pytest.approx(0.1 * 0.25)]
    one = trainer(tmp_path, tiny(epochs=3, decay=0.5))
    one.run()
    assert isinstance(one.learner, PoolPpo)
    assert one.learner.adam.param_groups[0]["lr"] == 1e-3 * 0.25


def test_every_sequence_is_played_so_many_times(tmp_path: Path) -> None:
    once, thrice = (trainer(tmp_path / str(n), tiny(epochs=1, episodes=n)) for n in (1, 3))
    assert isinstance(once.learner, PoolPpo)
    assert isinstance(thrice.learner, PoolPpo)
    assert [len(one.learner.pools) for one in (once, thrice)] == [16, 16]
    sequences = thrice.learner.sequences.repeat(3)
    assert len(sequences) == 12
    assert [sequences.arrivals[k].tolist() for k in (0, 1, 2, 3)] == [
        thrice.learner.sequences.arrivals[k].tolist() for k in (0, 0, 0, 1)
    ]
    assert thrice.learner.sequences.repeat(1) is thrice.learner.sequences
    for one in (once, thrice):
        one.run()
    few, many = (one.history[0].decisions for one in (once, thrice))
    assert 2.5 * few < many < 3.5 * few
    assert once.history[0].base_mean == thrice.history[0].base_mean


def test_errors_of_the_value_are_squared_or_smooth() -> None:
    values, returns = torch.tensor([0.0, 0.0, 2.0]), torch.tensor([0.5, -3.0, 2.0])
    assert float(value_error(values, returns, "squared")) == pytest.approx((0.25 + 9.0) / 3)
    assert float(value_error(values, returns, "smooth")) == pytest.approx((0.125 + 2.5) / 3)


def test_advantages_and_rewards_may_stay_as_they_are(tmp_path: Path) -> None:
    some = rollout_of([-8.0, 0.0, -2.0, -4.0], [-4.0, -4.0, -2.0, -6.0], [1, 0, 1, 1], [0, 1, 1, 1])
    training = PoolTrainingConfig(gamma=0.5, lam=0.5)
    raw = advantages(some, training)[0].astype(np.float32)
    network = network_of(TINY)
    whole, as_they_are = (
        PoolPpoUpdate(some, network, replace(training, normalised=yes), 0.0, False).advantage.numpy()
        for yes in (True, False)
    )
    assert as_they_are.tolist() == raw.tolist()
    np.testing.assert_allclose(whole, (raw - raw.mean()) / raw.std(), rtol=1e-6)
    scaled, plain = (trainer(tmp_path / str(yes), tiny(scaled=yes)).learner for yes in (True, False))
    assert isinstance(scaled, PoolPpo)
    assert isinstance(plain, PoolPpo)
    assert plain._unit == 1.0
    assert scaled._unit > 1.0


# Teachers.


def test_an_agent_teaches_and_is_kept_with_its_pupil(tmp_path: Path) -> None:
    trainer(tmp_path / "first", tiny(epochs=2)).run()
    recipe = replace(tiny(teacher="agent", lessons=1, imitation=0.5), kill="learned")
    with pytest.raises(BridgeError, match="learns from a trained agent"):
        trainer(tmp_path / "none", recipe)
    pupil = trainer(tmp_path / "pupil", recipe, teacher=tmp_path / "first")
    pupil.step()
    pupil.step()
    assert (tmp_path / "pupil/teacher/weights.safetensors").is_file()
    assert read_agent(tmp_path / "pupil/teacher", PoolRecipe) == read_agent(tmp_path / "first", PoolRecipe)
    again = trainer(tmp_path / "pupil", recipe)
    again.resume()
    again.run()
    whole = trainer(tmp_path / "whole", recipe, teacher=tmp_path / "first")
    whole.run()
    assert bits(again) == bits(whole)
    small = replace(recipe, pool=replace(POOL, units=5))
    with pytest.raises(BridgeError, match="pool of 4 units, not 5"):
        trainer(tmp_path / "small", small, teacher=tmp_path / "first")


def test_the_kill_rule_comes_first_in_what_is_taught(tmp_path: Path) -> None:
    trainer(tmp_path / "first", tiny(epochs=2)).run()
    agent = load(tmp_path / "first", PoolRecipe)
    one = trainer(tmp_path / "one", replace(TINY, kill="learned"))
    learner = one.learner
    assert isinstance(learner, PoolPpo)
    pools, rng = learner.pools, np.random.default_rng(1)
    best = deciding(agent.recipe, agent.actor, "greedy", 1)
    for plain in (heuristic_actions("saf"), best):
        teacher = make_teacher(plain, one.recipe)
        lesson = collect(pools, one.recipe, learner.actor, learner.sequences, rng, teacher, lesson=True)
        kills = lesson.actions > POOL.slots
        assert kills.sum() == sum(pools.schedule(b).kills.sum() for b in range(4)) > 0
        assert lesson.masks[np.arange(len(lesson)), lesson.actions].all()
        assert (lesson.elapsed_steps[kills] == 0).all()
    play(pools, make_teacher(best, TINY), learner.sequences)
    assert sum(pools.schedule(b).kills.sum() for b in range(4)) == 0


def test_answers_that_an_agent_has() -> None:
    # a job waits in slot 0; before it is booked the pool is idle, then it runs, and another one waits
    pools = pools_in_play(sequences_of([(4, 5, 5, [5])], [-1, 0, 0]), POOL)
    found = []
    for action in (2, 0, 2):
        pools.step(np.array([action]))
        for mask, kill, idle in ((True, "learned", False), (True, "none", True), (False, "rule", False)):
            recipe = replace(TINY, mask=mask, kill=kill, idle=idle)  # type: ignore[arg-type]
            found.append(agent_action_masks(recipe, pools, np.array([0])).astype(int).tolist()[0])
    assert found == [
        *([1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0]),  # idle: waiting is not for everybody
        *([0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 0, 0]),  # nobody waits
        *([1, 0, 1, 1, 0], [1, 0, 1, 0, 0], [1, 1, 1, 0, 0]),  # a running job may be killed by who kills
    ]


def test_a_job_is_killed_so_often_and_no_more() -> None:
    pools = pools_in_play(sequences_of([(4, 9, 9, [9]), (2, 9, 9, [9])], [-1, 0, 1]), POOL)
    recipes = [replace(TINY, kill="learned", most_kills=most) for most in (0, 1, 2)]
    found = []
    for action in (2, 0, 2, 3, 0, 2, 3, 0, 2):  # book job 0, run it for a step, kill it; twice
        pools.step(np.array([action]))
        found.append([bool(agent_action_masks(r, pools, np.array([0]))[0, 3]) for r in recipes])
    assert found[2] == [True, True, True]
    assert found[5] == [True, False, True]
    assert found[8] == [True, False, False]


def test_only_suspects_are_killed() -> None:
    # believed to take 4 steps, and after 0, 1, … steps 4, 8, 9, 9, 9, 9: more than twice as many from 2 on
    pools = pools_in_play(sequences_of([(4, 9, 4, [4, 8, 9, 9, 9, 9])], [-1, 0]), POOL)
    recipes = [replace(TINY, kill="learned", suspicion=share) for share in (0.0, 0.9, 1.0)]
    found = []
    for action in (2, 0, 2, 2, 2, 2, 2):
        pools.step(np.array([action]))
        found.append([bool(agent_action_masks(r, pools, np.array([0]))[0, 3]) for r in recipes])
    assert found[:2] == [[False, False, False]] * 2  # it waits, it is booked
    assert found[2] == [True, True, False]  # grown by 4, which is not more than 4
    assert found[3:6] == [[True, True, True]] * 3
    assert found[6] == [True, False, False]  # it has run longer than was believed


def test_what_a_pupil_does_not_have_is_not_taught() -> None:
    pools = pools_in_play(sequences_of([(4, 9, 9, [9])], [-1, 0, -1]), POOL)
    view = pools.step(np.array([2]))
    waits = make_teacher(lambda *_: np.array([2]), TINY)
    assert waits(pools, view, np.array([0])).tolist() == [0]  # the pool is idle, and a job waits
    assert waits(pools, pools.step(np.array([0])), np.array([0])).tolist() == [2]


def test_a_pupil_may_begin_as_its_teacher(tmp_path: Path) -> None:
    trainer(tmp_path / "first", tiny(epochs=1)).run()
    agent = load(tmp_path / "first", PoolRecipe)
    recipe = replace(tiny(teacher="agent", inherit=True, critic="outlook"), kill="learned")
    pupil = trainer(tmp_path / "pupil", recipe, teacher=agent.folder)
    given = agent.actor.state_dict()
    own = pupil.learner.actor.state_dict()
    none = POOL.slots
    for name in ("policy.weight", "policy.bias"):  # kills were never learnt: they begin as probable as none
        assert torch.equal(own[name][: none + 1], given[name][: none + 1])
        assert torch.equal(own[name][none + 1 :], own[name][none].expand_as(own[name][none + 1 :]))
    rest = set(given) - {"policy.weight", "policy.bias"}
    assert all(torch.equal(own[name], given[name]) for name in rest)
    assert set(own) - set(given) == {name for name in own if name.startswith("critic.")}
    other = replace(recipe, network=PoolNetworkConfig(hidden=(9, 8)))
    with pytest.raises(BridgeError, match="network is of another shape"):
        trainer(tmp_path / "other", other, teacher=agent.folder)
    with pytest.raises(BridgeError, match=r"training\.inherit"):
        tiny(teacher="saf", inherit=True).check()


def test_a_critic_may_learn_faster(tmp_path: Path) -> None:
    before = trainer(tmp_path / "before", tiny(critic="outlook"))
    assert isinstance(before.learner, PoolPpo)
    assert before.learner.actor.critic is not None
    fresh = [p.detach().clone() for p in before.learner.actor.critic.parameters()]
    moved = []
    for rate in (1.0, 100.0):
        one = trainer(tmp_path / str(rate), tiny(epochs=1, critic="outlook", critic_rate=rate))
        one.run()
        assert isinstance(one.learner, PoolPpo)
        assert one.learner.actor.critic is not None
        steps = zip(one.learner.actor.critic.parameters(), fresh, strict=True)
        moved.append(max(float((now - then).detach().abs().max()) for now, then in steps))
    assert moved[1] > 5 * moved[0]


# Recipes and files.


def test_recipes_are_plain_data() -> None:
    recipe = replace(TINY, kill="learned", network=PoolNetworkConfig("cnn", (8,), (2,), (4,), (2,)))
    document = json.loads(json.dumps(recipe.as_dict()))
    assert from_dict(document, "a test", PoolRecipe) == recipe
    assert (recipe.decision, recipe.metric) == ("tick", "slowdown")
    assert from_dict({"pool": {"objective": "completion"}}, "a test", recipe).metric == "completion"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"training": {"epochs": 0}}, r"training.epochs cannot be 0"),
        ({"training": {"rate": 0.0}}, "training.rate cannot be 0"),
        ({"training": {"gamma": 1.5}}, "training.gamma cannot be 1.5"),
        ({"training": {"average": 1.0}}, "training.average cannot be 1"),
        ({"training": {"entropy": -1.0}}, "training.entropy cannot be -1"),
        ({"training": {"lessons": 3}}, "training.teacher cannot be ''"),
        ({"training": {"teacher": "random"}}, "training.teacher cannot be 'random'"),
        ({"training": {"speed": 1}}, "unknown field 'speed'"),
        ({"kill": "always"}, "cannot be 'always'"),
        ({"suspicion": -1.0}, "suspicion cannot be -1"),
        ({"training": {"decay": 1.5}}, "training.decay cannot be 1.5"),
        ({"training": {"episodes": 0}}, "training.episodes cannot be 0"),
        ({"training": {"value_loss": "cubed"}}, "cannot be 'cubed'"),
        ({"training": {"critic_rate": 0.0}}, "training.critic_rate cannot be 0"),
        ({"most_kills": -1}, "most_kills cannot be -1"),
        ({"network": {"hidden": []}}, "network.hidden"),
        ({"network": {"kind": "cnn"}}, "network.channels"),
        ({"network": {"channels": [2], "kernels": [2], "strides": [1]}}, "network.channels"),
        (
            {"network": {"kind": "cnn", "channels": [2], "kernels": [0], "strides": [1]}},
            r"network.kernels\[0\] cannot be 0",
        ),
        ({"pool": {"kill_slots": 3}}, "3 kill slots do not fit"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BridgeError, match=says):
        from_dict(changes, "a test", TINY)


def test_a_training_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="no job arrives"):
        trainer(tmp_path, tiny(rate=1e-9))
    with pytest.raises(BridgeError, match="more than the pool's 3 units"):
        trainer(tmp_path, replace(TINY, pool=replace(POOL, units=3)))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    one = trainer(tmp_path, tiny(epochs=1))
    with pytest.raises(BridgeError, match="is missing"):
        one.resume()
    one.run()
    with pytest.raises(BridgeError, match="is no checkpoint"):
        load(tmp_path / "teacher", PoolRecipe)
    document = json.loads((tmp_path / "agent.json").read_text())
    for change, says in (
        ({"scheduler": "event"}, "is an agent of the event-driven scheduler"),
        ({"format": 0}, "not a checkpoint of this version"),
        ({"seed": -1}, "seed cannot be -1"),
        ({"jobs": "many"}, "jobs cannot be 'many'"),
        ({"recipe": None}, "recipe is no table"),
        ({"recipe": {**document["recipe"], "network": {"hidden": [9, 8]}}}, "not of the network"),
    ):
        (tmp_path / "agent.json").write_text(json.dumps(document | change))
        with pytest.raises(BridgeError, match=says):
            load(tmp_path, PoolRecipe)
    (tmp_path / "agent.json").write_text("[")
    with pytest.raises(BridgeError, match="is not JSON"):
        is_of_pool(tmp_path)
    (tmp_path / "resume.safetensors").write_bytes(b"nothing")
    with pytest.raises(BridgeError, match="is damaged"):
        one.resume()


def test_a_recipe_is_typed_to_the_last_field() -> None:
    assert isinstance(from_dict(TINY.as_dict(), "a test", PoolRecipe), PoolRecipe)
    assert from_dict({"pool": {"units": 24}}, "a test", TINY).pool == replace(POOL, units=24)
    assert PoolConfig() == PoolRecipe("a", "b", "c", "d").pool
    assert len(jobs()) == 40
