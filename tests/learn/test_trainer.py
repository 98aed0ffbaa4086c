"""Training: the same seed gives the same bits, also after an end in the middle; what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny_training import TINY, assert_resumes, assert_seeds_differ, bits, some_jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.env.reward import Reward, base_costs
from bridge.judge.sequences import compute_sequence_metric
from bridge.learn.agent import play_sequences
from bridge.learn.checkpoint import load, read_tensors, write_tensors
from bridge.learn.checkpoint_files import PROGRESS, RESUME, best_epoch_of, epochs_of
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import collect
from bridge.learn.training import open_trainer

#: What an unpatient test waits for a process at most, s.
PATIENCE = 120.0


def trained(folder: Path, seed: int = 1) -> Path:
    trainer(folder, seed=seed).run()
    return folder


def test_the_same_seed_gives_the_same_bits_and_another_one_others(tmp_path: Path) -> None:
    assert_seeds_differ(tmp_path, TINY, "now.actor.layers.0.weight")


@pytest.mark.parametrize("done", [1, 2, 3])
def test_going_on_after_an_end_gives_the_same_bits(tmp_path: Path, done: int) -> None:
    assert_resumes(tmp_path, TINY, done)


SCRIPT = """\
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tiny_training import tiny, trainer
made = trainer(Path(sys.argv[1]), tiny(epochs=200))
if len(sys.argv) > 3:
    made.resume()
made.run()
"""


def test_going_on_after_kill_9_gives_the_same_bits(tmp_path: Path) -> None:
    folder, here = tmp_path / "killed", str(Path(__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), here])
    deadline = time.monotonic() + PATIENCE
    while not (folder / RESUME).exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    after = trainer(folder, tiny(epochs=200))
    after.resume()
    done = after.epoch
    assert 1 <= done < 200
    after.step()
    straight = trainer(tmp_path / "straight", tiny(epochs=200))
    while straight.epoch <= done:
        straight.step()
    assert bits(folder) == bits(tmp_path / "straight")


def test_what_is_logged(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a")
    base = base_costs(TINY.setup.build_scenario(some_jobs()), training.learner.valid_starts, 64, Reward())
    training.run()
    table = pq.read_table(tmp_path / "a" / PROGRESS).to_pydict()
    assert table["epoch"] == [1, 2, 3, 4]
    assert np.isnan(table["valid_mean"]).tolist() == [True, False, True, False]
    assert table["valid_base"][1] == pytest.approx(base.mean())
    assert min(table["decisions"]) > 100
    assert all(1 <= i <= 3 for i in table["iterations"])
    assert [entry.epoch for entry in training.history] == table["epoch"]
    validated = {e: v for e, v in zip(table["epoch"], table["valid_mean"], strict=True) if v == v}
    assert load(tmp_path / "a").epoch == min(validated, key=lambda e: (validated[e], -e))


def test_validation_can_be_left_out(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", tiny(validation=(0.5, 0.5), epochs=2))
    training.run()
    assert np.isnan([entry.valid_mean for entry in training.history]).all()
    assert load(tmp_path / "a").epoch == 2


def test_a_part_without_room_for_an_episode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="the part of 60 jobs holds no episode of 64"):
        trainer(tmp_path / "a", tiny(part=(0.0, 0.1)))


def test_a_workload_without_decisions_is_refused(tmp_path: Path) -> None:
    idle = replace(TINY, setup=replace(TINY.setup, nodes=100_000))
    jobs = replace(some_jobs(), capacity=np.array([100_000]))
    with pytest.raises(BridgeError, match="no decision had to be taken in a whole epoch"):
        trainer(tmp_path / "a", idle, jobs=jobs).step()


@pytest.mark.parametrize("text", ["x", "[" * 100_000])
@pytest.mark.parametrize("key", ["epoch", "best", "history"])
def test_a_damaged_resume_file_is_refused(tmp_path: Path, key: str, text: str) -> None:
    trainer(tmp_path / "a").step()
    tensors, meta = read_tensors(tmp_path / "a" / RESUME)
    write_tensors(tmp_path / "a" / RESUME, tensors, {**meta, key: text})
    with pytest.raises(BridgeError, match="is damaged"):
        trainer(tmp_path / "a").resume()


def test_a_resume_file_of_another_network_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path / "a").step()
    wider = replace(TINY, actor=replace(TINY.actor, hidden=(9,)))
    with pytest.raises(BridgeError, match="not of the network"):
        trainer(tmp_path / "a", wider).resume()


def parameters(network: torch.nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in network.parameters()]


def equal(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_what_is_deployed_is_the_running_mean(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", tiny(average=0.75, validate_every=1))
    mean = parameters(training.learner.actor)
    means = []
    for _ in range(4):
        training.step()
        mean = [0.75 * m + 0.25 * p for m, p in zip(mean, parameters(training.learner.actor), strict=True)]
        means.append(mean)
        for expected, deployed in zip(mean, parameters(training.deployed), strict=True):
            assert deployed.numpy() == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-6)
    assert not equal(parameters(training.deployed), parameters(training.learner.actor))
    agent = load(tmp_path / "a")  # the best validated mean, not what was trained
    for expected, kept in zip(means[agent.epoch - 1], parameters(agent.actor), strict=True):
        assert kept.numpy() == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-6)


def test_without_averaging_what_is_trained_is_deployed(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a")
    training.step()
    assert equal(parameters(training.deployed), parameters(training.learner.actor))


def test_going_on_with_averaging_and_a_lesson_gives_the_same_bits(tmp_path: Path) -> None:
    changes = {"average": 0.5, "teacher": ("safe",), "warmup": 1, "min_base_metric": 1.5}
    recipe = replace(tiny(**changes, validate_every=1), deploy="validated")
    assert_resumes(tmp_path, recipe, 2)


def test_while_it_warms_up_only_the_critic_learns(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", tiny(warmup=2))
    actor, critic = parameters(training.learner.actor), parameters(training.learner.critic)
    for _ in range(2):
        assert training.step().iterations == 0
        assert equal(actor, parameters(training.learner.actor))
        assert equal(actor, parameters(training.deployed))
        assert not equal(critic, parameters(training.learner.critic))
        critic = parameters(training.learner.critic)
    assert training.step().iterations >= 1
    assert not equal(actor, parameters(training.learner.actor))


def test_only_busy_windows_are_drawn_where_there_are_enough(tmp_path: Path) -> None:
    everywhere = trainer(tmp_path / "a")
    low, high = everywhere.learner.source.part
    values = everywhere.learner.source.values(np.arange(low, high - 64 + 1))
    busy = float(np.quantile(values, 0.5))
    training = trainer(tmp_path / "b", tiny(min_base_metric=busy))
    for seed in range(5):
        drawn = np.random.default_rng(seed).integers(low, high - 64 + 1, 16)
        good = drawn[values[drawn - low] >= busy][:4]
        assert len(good) == 4  # of 16, half of which are: in these seeds there are
        found = training.learner.source.draw(0, np.random.default_rng(seed))
        starts, base = found.starts, found.base
        assert starts.tolist() == good.tolist()
        assert base.tolist() == values[starts - low].tolist()
    training.step()
    assert training.history[0].base_mean >= busy


def test_where_too_few_windows_are_busy_others_fill_up(tmp_path: Path) -> None:
    everywhere = trainer(tmp_path / "a")
    low, high = everywhere.learner.source.part
    values = everywhere.learner.source.values(np.arange(low, high - 64 + 1))
    drawn = np.random.default_rng(3).integers(low, high - 64 + 1, 16)
    largest = float(values[drawn - low].max())
    most = drawn[values[drawn - low] >= largest].tolist()
    source = trainer(tmp_path / "b", tiny(min_base_metric=largest)).learner.source
    starts = source.draw(0, np.random.default_rng(3)).starts
    others = [first for first in drawn.tolist() if first not in most]
    assert starts.tolist() == (most + others)[:4]


def inspecting(**training: object) -> Recipe:
    """Return a recipe that inspects the picks of FCFS without backfilling."""
    return replace(
        tiny(**training),
        setup=replace(TINY.setup, backfill="none"),
        encoder=Encoder("inspect", {"fits": "fits", "length": "log10(1 + t)/5"}),
    )


def test_an_inspector_begins_by_rejecting_as_often_as_it_is_told(tmp_path: Path) -> None:
    shares = []
    for name, rejecting in (("a", 0.05), ("b", 0.95)):
        training = trainer(tmp_path / name, inspecting(initial_reject_rate=rejecting))
        training.learner.begin()
        actor = training.learner.actor
        with torch.no_grad():
            bias = list(actor.parameters())[-1].clone()
            scores = actor(torch.zeros(1, 2), torch.tensor([0, 1]), torch.zeros(1, 0))
            hidden = scores[0] - bias  # what the layers before say where all features are 0
        chances = torch.softmax(bias, 0)
        assert chances.numpy() == pytest.approx([1 - rejecting, rejecting], rel=1e-5)
        assert hidden.abs().max() < 1
        seen = collect(
            training.learner.validations[0].batch, actor, np.array([0, 90, 200]), np.random.default_rng(1)
        )
        shares.append(seen.actions.mean())
    assert shares[0] < 0.2 < 0.8 < shares[1]


@pytest.mark.parametrize(
    ("values", "mode", "epoch"),
    [
        ({"greedy": [5.0, 4.0, 6.0], "sample": [4.5, 7.0, 4.1]}, "greedy", 2),
        ({"greedy": [5.0, 4.0, 6.0], "sample": [4.5, 7.0, 3.0]}, "sample", 3),
        ({"greedy": [5.0, 4.0, 6.0], "sample": [3.0, 7.0, 5.0]}, "sample", 1),
        ({"greedy": [5.0, 4.0, 4.0], "sample": [5.0, 4.0, 4.0]}, "greedy", 3),  # ties: greedy, the latest
    ],
)
def test_the_better_way_to_answer_is_validated_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, list[float]], mode: str, epoch: int
) -> None:
    recipe = replace(tiny(validate_every=1, epochs=3), deploy="validated")
    training = trainer(tmp_path / "a", recipe)
    monkeypatch.setattr(training.learner, "validate", lambda _, how: values[how][training.epoch - 1])
    training.run()
    agent = load(tmp_path / "a")
    assert (agent.mode, agent.epoch) == (mode, epoch)
    assert [e.valid_mean for e in training.history] == [min(p) for p in zip(*values.values(), strict=True)]
    again = trainer(tmp_path / "a", recipe)
    again.resume()
    assert (again._best_mode, again._best_epoch) == (mode, epoch)


@pytest.mark.parametrize(
    ("longest", "values", "epochs"),
    [
        (0, [3, 4, 5, 1], 4),  # the last is the best: nobody asked for more
        (3, [3, 4, 5, 1], 4),  # fewer than it learns anyhow
        (20, [3, 1, 5, 2], 4),  # 2 of 4 is none of the last
        (20, [5, 4, 3, 2, 1, 6, 6, 6], 7),  # 5 of 6 is one of the last fifth, 5 of 7 is not
        (6, [6, 5, 4, 3, 2, 1], 6),  # better and better
        (20, [4, 3, 2, 1, 5, 5, 5], 5),  # 4 of 5 is behind no more than four fifths
        (20, [4, 1, 1, 1], 4),  # an equal one is no progress: the best one is the second
        (20, [4, 3, 2, 1, 1, 1], 5),
    ],
)
def test_it_trains_on_while_the_best_epoch_is_one_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int, values: list[float], epochs: int
) -> None:
    recipe = replace(tiny(validate_every=1, max_epochs=longest), deploy="greedy")
    training = trainer(tmp_path / "a", recipe)
    monkeypatch.setattr(training.learner, "validate", lambda *_: values[training.epoch - 1])
    training.run()
    assert training.epoch == epochs_of(tmp_path / "a") == epochs
    best = [k for k, value in enumerate(values[:epochs], 1) if value == min(values[:epochs])]
    assert (best_epoch_of(tmp_path / "a"), load(tmp_path / "a").epoch) == (best[0], best[-1])
    again = open_trainer(TrainingContext(recipe, some_jobs(), training.origin, tmp_path / "a"))
    assert (again.epoch, again.ended) == (epochs, True)


def test_without_validation_nothing_says_to_train_on(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", tiny(validation=(0.5, 0.5), epochs=2, max_epochs=9))
    training.run()
    assert (training.epoch, training.recipe.training.epoch_limit) == (2, 2)
    assert best_epoch_of(tmp_path / "a") == 2, "without validation the last one is"


def test_rates_stay_at_a_tenth_where_it_trains_on() -> None:
    training = tiny(epochs=3, max_epochs=9, anneal=True).training
    assert [training.rate_fraction(epoch) for epoch in range(5)] == pytest.approx([1.0, 0.55, 0.1, 0.1, 0.1])


@pytest.mark.parametrize("deploy", ["greedy", "sample"])
def test_a_way_to_answer_that_is_told_is_kept(tmp_path: Path, deploy: Literal["greedy", "sample"]) -> None:
    training = trainer(tmp_path / "a", replace(tiny(epochs=2), deploy=deploy))
    training.run()
    agent = load(tmp_path / "a")
    assert (agent.mode, agent.epoch) == (deploy, 2)
    played = play_sequences(agent, training.learner.source.prepared, training.learner.valid_starts, 64)
    values = [
        compute_sequence_metric(training.learner.source.prepared, s, int(f), "bsld")
        for s, f in zip(played, training.learner.valid_starts, strict=True)
    ]
    assert training.history[1].valid_mean == pytest.approx(np.mean(values))
