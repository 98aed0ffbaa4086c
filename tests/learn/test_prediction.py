"""Future prediction: targets and replay by hand, a task of one step, the same bits again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import TINY, assert_resumes, assert_seeds_differ, crowded_jobs, trainer

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.learn.agent import play_sequences
from bridge.learn.algorithms.prediction import FuturePrediction, ReplayBuffer, targets
from bridge.learn.checkpoint import load
from bridge.learn.checkpoint_files import RESUME
from bridge.learn.recipe import FuturePredictionConfig, NetworkConfig, Recipe
from bridge.learn.rollout import Rollout, argmax_actions
from bridge.worlds.fast.scheduler_config import SchedulerConfig

# Targets.


def test_targets_are_differences_within_the_episode() -> None:
    measured = np.array([[1, 10], [2, 30], [4, 60], [8, 100], [5, 5], [6, 4]], np.float32)
    episode = np.array([0, 0, 0, 0, 1, 1])
    changes, known = targets(measured, episode, (1, 2, 4, 8))
    assert changes.shape == (6, 2, 4)
    assert changes[:, :, 0].tolist() == [[1, 20], [2, 30], [4, 40], [0, 0], [1, -1], [0, 0]]
    assert changes[:, :, 1].tolist() == [[3, 50], [6, 70], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert not changes[:, :, 2:].any()
    assert known.T.tolist() == [
        [True, True, True, False, True, False],
        [True, True, False, False, False, False],
        [False] * 6,
        [False] * 6,
    ]


@given(
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    offsets=st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True).map(sorted),
)
def test_targets_of_any_episodes(sizes: list[int], offsets: list[int]) -> None:
    episode = np.repeat(np.arange(len(sizes)), sizes)
    measured = np.random.default_rng(len(episode)).random((len(episode), 2)).astype(np.float32)
    changes, known = targets(measured, episode, tuple(offsets))
    for d in range(len(episode)):
        for k, ahead in enumerate(offsets):
            inside = d + ahead < len(episode) and episode[d + ahead] == episode[d]
            assert known[d, k] == inside
            expected = measured[d + ahead] - measured[d] if inside else [0, 0]
            assert changes[d, :, k].tolist() == list(expected)


def test_targets_may_be_the_values_themselves() -> None:
    measured = np.array([[1, 10], [2, 30], [4, 60], [5, 5]], np.float32)
    found, known = targets(measured, np.array([0, 0, 0, 1]), (0, 1), values=True)
    assert found[:, :, 0].tolist() == measured.tolist()
    assert found[:, :, 1].tolist() == [[2, 30], [4, 60], [0, 0], [0, 0]]
    assert known.tolist() == [[True, True], [True, True], [True, False], [True, False]]


# Replay.


def decisions(*first: int) -> tuple[Rollout, np.ndarray, np.ndarray]:
    """Return decisions of 1, 2, 3, 1, … rows; all that is seen of one is made of its number."""
    numbers = np.array(first)
    sizes = 1 + (numbers - 1) % 3
    owner = np.repeat(numbers, sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    place = np.arange(len(owner)) - np.repeat(offsets[:-1], sizes)
    n = len(numbers)
    seen = Rollout(
        rows=np.stack((owner, place), 1).astype(np.float32),
        offsets=offsets,
        context=np.repeat(numbers, 2).reshape(-1, 2).astype(np.float32),
        actions=sizes - 1,
        log_prob=np.zeros(n),
        episode=np.zeros(n, np.int64),
        times=np.zeros(n, np.int64),
        late=np.zeros(n, np.bool_),
        episodes=[],
    )
    changes = np.tile(numbers[:, None, None].astype(np.float32), (1, 2, 3))
    return seen, changes, np.repeat(numbers[:, None] % 2 == 0, 3, 1)


def replay(size: int) -> ReplayBuffer:
    return ReplayBuffer(size, window=4, features=2, context=2, shape=(2, 3))


def held(memory: ReplayBuffer) -> list[int]:
    """Return the numbers of the remembered decisions by place, and check that all else belongs to them."""
    numbers = memory.context[: memory.filled, 0].astype(np.int64)
    for place, number in enumerate(numbers.tolist()):
        rows, offsets, context = memory.packed(np.array([place]))
        size = 1 + (number - 1) % 3
        assert rows.tolist() == [[number, k] for k in range(size)]
        assert (offsets.tolist(), context.tolist()) == ([0, size], [[number, number]])
        assert memory.actions[place] == size - 1
        assert (memory.changes[place] == number).all()
        assert (memory.is_valid[place] == (number % 2 == 0)).all()
    return numbers.tolist()


def test_a_replay_forgets_the_oldest_decisions() -> None:
    memory = replay(5)
    memory.add(*decisions(1, 2, 3))
    assert held(memory) == [1, 2, 3]
    memory.add(*decisions(4, 5, 6, 7))
    assert held(memory) == [6, 7, 3, 4, 5]
    memory.add(*decisions(8))
    assert held(memory) == [6, 7, 8, 4, 5]


def test_of_more_decisions_than_it_holds_a_replay_remembers_the_last() -> None:
    memory = replay(3)
    memory.add(*decisions(1))
    memory.add(*decisions(2, 3, 4, 5, 6, 7, 8))
    assert held(memory) == [8, 6, 7]
    memory.add(*decisions(9, 10, 11))
    assert sorted(held(memory)) == [9, 10, 11]


def test_decisions_are_packed_one_after_the_other_and_as_often_as_asked() -> None:
    memory = replay(6)
    memory.add(*decisions(1, 2, 3, 4))
    rows, offsets, context = memory.packed(np.array([2, 0, 2, 1]))
    assert offsets.tolist() == [0, 3, 4, 7, 9]
    assert rows[:, 0].tolist() == [3, 3, 3, 1, 3, 3, 3, 2, 2]
    assert rows[:, 1].tolist() == [0, 1, 2, 0, 0, 1, 2, 0, 1]
    assert context[:, 0].tolist() == [3, 1, 3, 2]


@given(first=st.lists(st.integers(1, 9), max_size=4), second=st.lists(st.integers(1, 9), max_size=4))
def test_a_replay_goes_on_where_it_was(first: list[int], second: list[int]) -> None:
    before, after = replay(5), replay(5)
    for number in [*first, *range(1, 4)]:
        before.add(*decisions(number))
    after.restore({name: values.copy() for name, values in before.arrays().items()})
    assert after.filled == before.filled
    for number in second:
        before.add(*decisions(number))
        after.add(*decisions(number))
    assert held(after) == held(before)
    assert {k: v.tolist() for k, v in after.arrays().items()} == {
        k: v.tolist() for k, v in before.arrays().items()
    }


# Learning.


def predicting(prediction: dict[str, Any] | None = None, **training: Any) -> Recipe:
    """Return a recipe that picks among jobs of two resources by the next measurement."""
    changes = {"offsets": (1,), "weights": (1.0,), "replay": 500, "batch": 32, "every": 2, "decay": 0.98}
    return replace(
        TINY,
        setup=SchedulerConfig(blocked="held"),
        encoder=Encoder(
            "pick",
            {"share": "share[r]", "fits": "fits"},
            window=6,
            machine={"used": "used[r]", "goal": "goal[r]"},
            resources=2,
        ),
        actor=NetworkConfig("future", (32,), (), (8,)),
        critic=NetworkConfig("none", ()),
        algorithm="prediction",
        prediction=FuturePredictionConfig(**{**changes, **(prediction or {})}),
        training=replace(TINY.training, **{"learning_rate": 3e-3, **training}),
    )


def learner_of(folder: Path, recipe: Recipe) -> FuturePrediction:
    learner = trainer(folder, recipe, jobs=crowded_jobs()).learner
    assert isinstance(learner, FuturePrediction)
    return learner


def test_epsilon_falls_with_the_updates_to_its_least(tmp_path: Path) -> None:
    learner = learner_of(tmp_path / "a", predicting({"decay": 0.5, "least": 0.2}))
    found = []
    for learner.updates in range(4):
        found.append(learner.epsilon)
    assert found == [1.0, 0.5, 0.25, 0.2]


def test_epsilon_may_fall_linearly_with_the_decisions(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, predicting({"linear": 200, "least": 0.1, "decay": 0.5}))
    found = []
    for decisions in (0, 50, 100, 179, 180, 200, 500):
        learner.decisions, learner.updates = decisions, 9
        found.append(learner.epsilon)
    assert found == pytest.approx([1.0, 0.75, 0.5, 0.105, 0.1, 0.1, 0.1])


def test_decisions_are_counted_and_kept(tmp_path: Path) -> None:
    one = trainer(tmp_path / "a", predicting({"linear": 200}), jobs=crowded_jobs())
    entry = one.step()
    assert isinstance(one.learner, FuturePrediction)
    assert one.learner.decisions == entry.decisions > 0
    again = trainer(tmp_path / "a", predicting({"linear": 200}), jobs=crowded_jobs())
    again.resume()
    assert isinstance(again.learner, FuturePrediction)
    assert again.learner.decisions == entry.decisions


def test_a_batch_may_be_of_decisions_that_followed_one_another() -> None:
    memory, rng = replay(8), np.random.default_rng(1)
    memory.add(*decisions(1, 2, 3, 4, 5))
    drawn = {tuple(memory.draw(rng, 3, consecutive=True).tolist()) for _ in range(100)}
    assert drawn == {(0, 1, 2), (1, 2, 3), (2, 3, 4)}
    assert memory.draw(rng, 9, consecutive=True).tolist() == [0, 1, 2, 3, 4]
    memory.add(*decisions(6, 7, 8, 9, 10))  # 9 and 10 lie where 1 and 2 were: 3 is the oldest
    drawn = {tuple(memory.draw(rng, 6, consecutive=True).tolist()) for _ in range(100)}
    assert drawn == {(2, 3, 4, 5, 6, 7), (3, 4, 5, 6, 7, 0), (4, 5, 6, 7, 0, 1)}
    plain, same = memory.draw(np.random.default_rng(2), 5), np.random.default_rng(2).integers(0, 8, 5)
    assert plain.tolist() == same.tolist()


def test_the_mean_over_the_answers_may_stay(tmp_path: Path) -> None:
    inputs = (torch.rand(4, 2), torch.tensor([0, 1, 4]), torch.rand(2, 4))
    networks = []
    for dueling in (True, False):
        network = learner_of(tmp_path / str(dueling), predicting({"dueling": dueling})).network
        rows = torch.rand(4, network.features, generator=torch.Generator().manual_seed(1))
        around = torch.rand(
            2, network.context_size + 2 * network.measured, generator=torch.Generator().manual_seed(2)
        )
        networks.append(network.predict(rows, inputs[1], around).detach())
    difference = networks[1] - networks[0]  # the same weights: what is missing is the same for all answers
    assert torch.allclose(difference, difference[:, :1].expand_as(difference), atol=1e-6)
    assert difference.abs().max() > 1e-4


def test_an_update_for_every_few_decisions(tmp_path: Path) -> None:
    learner = learner_of(tmp_path / "a", predicting({"every": 7}))
    learnt = learner.learn(0, np.random.default_rng(1))
    assert learnt.decisions > 100
    assert learner.updates == learnt.losses.iterations == learnt.decisions // 7
    assert learner.replay.filled == min(learnt.decisions, 500)
    rare = learner_of(tmp_path / "b", predicting({"every": 10**6}))
    assert rare.learn(0, np.random.default_rng(1)).losses.iterations == 1


def test_what_is_remembered_is_what_came_of_the_answers(tmp_path: Path) -> None:
    learner = learner_of(tmp_path / "a", predicting({"replay": 10_000}))
    learnt = learner.learn(0, np.random.default_rng(1))
    memory = learner.replay
    n = learnt.decisions
    used, goal = memory.context[:n, :2], memory.context[:n, 2:]
    assert goal.sum(1) == pytest.approx(np.ones(n))
    assert learnt.reward_mean == pytest.approx(float(used.mean()))
    chosen = memory.rows[np.arange(n), memory.actions[:n]]
    known, change = memory.is_valid[:n, 0], memory.changes[:n, :, 0]
    assert (~known).sum() == 4  # the last decision of each episode
    # behind a job that starts, the next one is picked at the same instant: its demand is the change
    fits = known & (chosen[:, 2] == 1)
    assert 20 < fits.sum() < n
    assert change[fits] == pytest.approx(chosen[fits, :2], abs=1e-6)
    assert change[~known].tolist() == [[0, 0]] * 4


def test_random_answers_are_among_the_rows(tmp_path: Path) -> None:
    learner = learner_of(tmp_path / "a", predicting({"decay": 1.0, "replay": 10_000}))
    n = learner.learn(0, np.random.default_rng(1)).decisions
    counts, actions = learner.replay.counts[:n], learner.replay.actions[:n]
    assert ((actions >= 0) & (actions < counts)).all()
    full = actions[counts == 6]
    assert len(full) > 60
    assert np.bincount(full, minlength=6).min() > 0.08 * len(full)


def test_its_errors_fall(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", predicting(epochs=4, validate_every=4), jobs=crowded_jobs())
    training.run()
    losses = [entry.policy_loss for entry in training.history]
    assert losses[-1] < 0.6 * losses[0]


def test_it_learns_what_an_answer_does_and_picks_what_the_goal_wants(tmp_path: Path) -> None:
    # a task of one step: the measurements change by the demand of the chosen one of three jobs
    recipe = predicting({"replay": 3000, "batch": 128})
    recipe = replace(recipe, encoder=replace(recipe.encoder, features={"share": "share[r]"}, window=3))
    learner = learner_of(tmp_path / "a", recipe)
    rng = np.random.default_rng(2)
    rows = rng.random((3000, 3, 2)).astype(np.float32)
    actions = rng.integers(0, 3, 3000)
    goal = rng.random((3000, 1)).astype(np.float32)
    none = np.zeros(3000, np.int64)
    seen = Rollout(
        rows=rows.reshape(-1, 2),
        offsets=np.arange(0, 9001, 3),
        context=np.concatenate((np.zeros((3000, 2), np.float32), goal, 1 - goal), 1),
        actions=actions,
        log_prob=np.zeros(3000),
        episode=none,
        times=none,
        late=none.astype(np.bool_),
        episodes=[],
    )
    learner.replay.add(seen, rows[np.arange(3000), actions][..., None], np.ones((3000, 1), np.bool_))
    losses = [learner._update(rng) for _ in range(600)]
    assert np.mean(losses[-20:]) < 0.1 * np.mean(losses[:20])
    fresh = rng.random((200, 3, 2)).astype(np.float32)
    wanted = np.repeat(np.array([[0, 0, 1, 0], [0, 0, 0, 1]], np.float32), 100, 0)
    with torch.no_grad():
        scores = learner.actor(
            torch.from_numpy(fresh.reshape(-1, 2)), torch.arange(0, 601, 3), torch.from_numpy(wanted)
        )
    chosen = argmax_actions(scores[:, 0].double().numpy(), np.full(200, 3))
    right = [fresh[:100, :, 0].argmax(1), fresh[100:, :, 1].argmax(1)]
    assert (chosen == np.concatenate(right)).mean() > 0.85


def test_the_loss_counts_only_what_is_known(tmp_path: Path) -> None:
    learner = learner_of(tmp_path / "a", predicting({"offsets": (1, 4), "weights": (0.5, 1.0), "batch": 64}))
    learner.learn(0, np.random.default_rng(1))
    memory, rng = learner.replay, np.random.default_rng(7)
    which = np.random.default_rng(7).integers(0, memory.filled, 64)
    rows, offsets, context = (torch.from_numpy(a) for a in memory.packed(which))
    with torch.no_grad():
        predicted = learner.network.predict(rows, offsets, context).numpy()
    errors = []
    for d, place in enumerate(which.tolist()):
        difference = predicted[d, memory.actions[place]] - memory.changes[place]
        errors += [difference[:, k] ** 2 for k in range(2) if memory.is_valid[place, k]]
    assert 0 < len(errors) < 128
    updates = learner.updates
    assert learner._update(rng) == pytest.approx(float(np.mean(errors)), rel=1e-4)
    assert learner.updates == updates + 1


CURRICULUM: dict[str, Any] = {
    "curriculum": ("sampled:1", "real:1", "synthetic:1"),
    "epochs": 3,
    "validate_every": 2,
}


def test_the_same_seed_gives_the_same_bits_and_another_one_others(tmp_path: Path) -> None:
    changing = ("trained.state.0.weight", "replay.actions")
    assert_seeds_differ(tmp_path, predicting(**CURRICULUM), *changing, jobs=crowded_jobs())


@pytest.mark.parametrize("done", [1, 2])
def test_going_on_after_an_end_gives_the_same_bits(tmp_path: Path, done: int) -> None:
    assert_resumes(tmp_path, predicting(**CURRICULUM), done, crowded_jobs())


@pytest.mark.parametrize("missing", ["updates", "replay.counts", "replay.next"])
def test_a_file_that_lacks_what_is_remembered_is_refused(tmp_path: Path, missing: str) -> None:
    from bridge.learn.checkpoint import read_tensors, write_tensors

    trainer(tmp_path / "a", predicting(), jobs=crowded_jobs()).step()
    tensors, meta = read_tensors(tmp_path / "a" / RESUME)
    write_tensors(tmp_path / "a" / RESUME, {k: v for k, v in tensors.items() if k != missing}, meta)
    with pytest.raises(BridgeError, match="does not hold what this training remembers") as error:
        trainer(tmp_path / "a", predicting(), jobs=crowded_jobs()).resume()
    assert error.value.where == str(tmp_path / "a" / RESUME)


def test_a_replay_of_another_size_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path / "a", predicting(), jobs=crowded_jobs()).step()
    with pytest.raises(BridgeError, match="does not hold what this training remembers"):
        trainer(tmp_path / "a", predicting({"replay": 50}), jobs=crowded_jobs()).resume()


def test_a_trained_agent_is_read_and_decides(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", predicting(epochs=2), jobs=crowded_jobs())
    training.run()
    agent = load(tmp_path / "a")
    assert (agent.recipe, agent.mode) == (predicting(epochs=2), "greedy")
    starts = training.learner.valid_starts[:3]
    waits = [
        float(np.mean(s.start - crowded_jobs().submit[f : f + 64])) / 1e6
        for s, f in zip(
            play_sequences(agent, training.learner.source.prepared, starts, 64), starts, strict=True
        )
    ]
    assert min(waits) > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": (1.0, 1.0)}, "prediction.weights cannot be (1.0, 1.0)"),
        ({"weights": (0.0,)}, "prediction.weights cannot be (0.0,)"),
        ({"offsets": (2, 1), "weights": (1.0, 1.0)}, "prediction.offsets cannot be (2, 1)"),
        ({"offsets": (1, 1), "weights": (1.0, 1.0)}, "prediction.offsets cannot be (1, 1)"),
        ({"offsets": (0,)}, "prediction.offsets cannot be (0,)"),
        ({"every": 0}, "prediction.every cannot be 0"),
        ({"decay": 0.0}, "prediction.decay cannot be 0.0"),
        ({"least": 1.5}, "prediction.least cannot be 1.5"),
    ],
)
def test_what_cannot_be_predicted_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError) as error:
        predicting(changes).check()
    assert error.value.what.startswith(said)


def test_another_network_cannot_predict() -> None:
    with pytest.raises(BridgeError, match=r"actor\.kind cannot be kernel"):
        replace(predicting(), actor=NetworkConfig("kernel", (4,))).check()
