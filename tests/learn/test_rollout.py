"""Rollouts: drawn as softmax says, the best is the first among equals, order is (episode, time)."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import TINY, some_jobs

from bridge.env.batch import Batch, PackedObservations
from bridge.env.episode_starts import constants_of
from bridge.env.reward import Reward, base_costs, episode_of
from bridge.learn.network import actor_of, log_softmax
from bridge.learn.recipe import NetworkConfig
from bridge.learn.rollout import (
    argmax_actions,
    collect,
    copy_for_inference,
    make_action_function,
    pick_rows,
    play,
    sample_actions,
    scores_of,
    uniform_from_keys,
)

SIZES = np.array([2, 1, 3])


def test_draw_has_the_probabilities_of_softmax() -> None:
    n = 40_000
    one = np.log([0.2, 0.5, 0.3]) + 700.0  # too large to be taken to the power of
    answers, logp = sample_actions(np.tile(one, n), np.full(n, 3), np.random.default_rng(1))
    shares = np.bincount(answers, minlength=3) / n
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.01)  # 4 standard deviations
    assert logp == pytest.approx(np.log([0.2, 0.5, 0.3])[answers])


def test_draw_stays_within_each_decision() -> None:
    scores = np.array([0.0, 60.0, -3.0, 1.0, 90.0, 2.0])
    answers, logp = sample_actions(scores, SIZES, np.random.default_rng(0))
    assert answers.tolist() == [1, 0, 1]
    assert logp == pytest.approx([0.0, 0.0, 0.0])


def test_the_same_generator_draws_the_same() -> None:
    scores, sizes = np.zeros(300), np.full(100, 3)
    first = sample_actions(scores, sizes, np.random.default_rng(5))[0]
    assert first.tolist() == sample_actions(scores, sizes, np.random.default_rng(5))[0].tolist()
    assert first.tolist() != sample_actions(scores, sizes, np.random.default_rng(6))[0].tolist()


def test_best_is_the_first_of_the_highest() -> None:
    assert argmax_actions(np.array([1.0, 2.0, -5.0, 3.0, 3.0, 1.0]), SIZES).tolist() == [1, 0, 0]
    nearly = np.array([1.0, 1.0 + 1e-12, 0.0, 2.0, 2.0 + 1e-8, 0.0])
    assert argmax_actions(nearly, SIZES).tolist() == [0, 0, 1]


def test_pick_rows() -> None:
    rows, offsets = pick_rows(np.array([0, 2, 3, 6]), np.array([2, 0]))
    assert (rows.tolist(), offsets.tolist()) == ([3, 4, 5, 0, 1], [0, 3, 5])


@pytest.fixture
def batch() -> Batch:
    jobs = some_jobs()
    prepared = TINY.setup.build_scenario(jobs, TINY.policy())
    return Batch(prepared, TINY.encoder.compile(constants_of(jobs)), 4, 64)


STARTS = np.array([0, 50, 300])


def test_collect_packs_by_episode_and_time(batch: Batch) -> None:
    torch.manual_seed(1)
    actor = actor_of(TINY)
    seen = collect(batch, actor, STARTS, np.random.default_rng(1))
    assert len(seen) > 30
    assert set(seen.episode) == {0, 1, 2}
    assert (np.diff(seen.episode) >= 0).all()
    for e in range(3):
        assert (np.diff(seen.times[seen.episode == e]) >= 0).all()
    sizes = np.diff(seen.offsets)
    assert (sizes >= 2).all()
    assert (seen.actions < sizes).all()
    assert seen.offsets[-1] == len(seen.rows)
    # the last row of each decision is the head's, and only that one's
    assert (seen.rows[seen.offsets[1:] - 1, 3] == 1).all()
    assert seen.rows[:, 3].sum() == len(seen)
    with torch.inference_mode():
        offsets = torch.from_numpy(seen.offsets)
        logp = log_softmax(
            actor(torch.from_numpy(seen.rows), offsets, torch.from_numpy(seen.context))[:, 0], offsets
        ).numpy()
    assert logp[seen.offsets[:-1] + seen.actions] == pytest.approx(seen.log_prob, abs=1e-5)
    assert [len(e.start) for e in seen.episodes] == [64, 64, 64]
    assert all((e.start >= e.submit).all() for e in seen.episodes)


def test_collect_is_the_same_for_the_same_generator(batch: Batch) -> None:
    torch.manual_seed(1)
    actor = actor_of(TINY)
    one, two, other = (collect(batch, actor, STARTS, np.random.default_rng(s)) for s in (1, 1, 2))
    assert one.rows.tobytes() == two.rows.tobytes()
    assert one.actions.tolist() == two.actions.tolist()
    assert one.actions.tolist() != other.actions.tolist()


def test_a_greedy_agent_that_takes_what_is_safe_plays_easy(batch: Batch) -> None:
    # score: 10 for a safe row, 5 for stopping, 0 for others: the first safe candidate, else stop
    actor = actor_of(replace(TINY, actor=NetworkConfig("kernel", ())))
    with torch.no_grad():
        actor.layers[0].weight[:] = torch.tensor([[0.0, 0.0, 10.0, 5.0]])
        actor.layers[0].bias[:] = 0
    play(batch, make_action_function(copy_for_inference(actor), "greedy", 1), STARTS)
    got = [episode_of(batch, b).value("bsld") for b in range(3)]
    assert got == pytest.approx(base_costs(TINY.setup.build_scenario(some_jobs()), STARTS, 64, Reward()))


def test_deciding_is_done_in_double_precision_on_a_copy() -> None:
    actor = actor_of(TINY)
    copy = copy_for_inference(actor)
    assert {p.dtype for p in copy.parameters()} == {torch.float64}
    assert {p.dtype for p in actor.parameters()} == {torch.float32}
    none = np.zeros((2, 0), np.float32)
    seen = PackedObservations(np.ones((3, 4), np.float32), np.array([0, 2, 3]), np.zeros(3, np.int64), none)
    scores, sizes = scores_of(copy, seen)
    assert (scores.dtype, sizes.tolist()) == (np.float64, [2, 1])


def test_a_sampling_agent_draws_the_same_for_the_same_keys_wherever_they_come_up() -> None:
    keys = np.arange(60_000)
    numbers = uniform_from_keys(keys, 1)
    assert 0 < numbers.min() < numbers.max() < 1
    assert np.bincount((numbers * 10).astype(int), minlength=10) / 60_000 == pytest.approx(
        [0.1] * 10, abs=0.006
    )
    assert uniform_from_keys(keys[5:7], 1).tolist() == numbers[5:7].tolist()
    assert uniform_from_keys(keys[:100], 2).tolist() != numbers[:100].tolist()


#: First outputs of Vigna's splitmix64.c begun with 1234567; the k-th is the mixture of 1234567 + k·φ.
SPLITMIX64 = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)
PHI, WORD = 0x9E3779B97F4A7C15, 2**64 - 1


def test_uniform_is_splitmix64() -> None:
    for seed, word in enumerate(SPLITMIX64):
        assert uniform_from_keys(np.array([1234567]), seed).tolist() == [((word >> 11) + 0.5) / 2**53]


def undone(word: int) -> int:
    """Return what SplitMix64 mixes to this word."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        word ^= word >> shift ^ word >> 2 * shift  # three shifts reach beyond 64 bits
        word = word * pow(factor, -1, 2**64) & WORD
    return word


@pytest.mark.parametrize(("word", "number"), [(0, 2.0**-54), (WORD, 1 - 2.0**-53)])
def test_uniform_is_never_0_and_never_1(word: int, number: float) -> None:
    key = (undone(word) - PHI) & WORD
    assert uniform_from_keys(np.array([key], np.uint64).view(np.int64), 0).tolist() == [number]


def view_of(
    rows: "list[list[float]] | np.ndarray", sizes: list[int], keys: "np.ndarray"
) -> PackedObservations:  # type: ignore[type-arg]
    none = np.zeros((len(sizes), 0), np.float32)
    return PackedObservations(
        np.asarray(rows, np.float32), np.concatenate(([0], np.cumsum(sizes))), keys, none
    )


class Sums(torch.nn.Module):
    """Scores a row by the sum of its features, or answer k by feature k."""

    def __init__(self, answers: int = 1) -> None:
        super().__init__()
        self.answers = answers
        self.nothing = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows: torch.Tensor, offsets: torch.Tensor, context: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return scores [N, answers]."""
        return rows.sum(1, keepdim=True) if self.answers == 1 else rows[:, : self.answers]


def test_a_greedy_agent_takes_the_best() -> None:
    answer = make_action_function(copy_for_inference(Sums()), "greedy", 1)
    seen = view_of([[1, 1], [0, 3], [2, 0], [5, 5], [4, 6], [4, 5]], [3, 1, 2], np.arange(6))
    assert answer(seen).tolist() == [1, 0, 0]
    inspects = make_action_function(copy_for_inference(Sums(2)), "greedy", 1)
    assert inspects(view_of([[1, 2], [2, 1], [3, 3]], [1, 1, 1], np.arange(3))).tolist() == [1, 0, 0]


@pytest.mark.parametrize("answers", [1, 2])
def test_a_sampling_agent_answers_as_often_as_softmax_says(answers: int) -> None:
    n = 40_000
    if answers == 1:
        one, sizes = np.log([[0.2], [0.5], [0.3]]), [3] * n
    else:
        one, sizes = np.log([[0.2, 0.8]]), [1] * n
    shares = np.exp(one).reshape(-1)
    rows = np.tile(one, (n, 1))
    seen = view_of(rows, sizes, np.arange(len(rows)))
    answer = make_action_function(copy_for_inference(Sums(answers)), "sample", 1)
    taken = answer(seen)
    assert np.bincount(taken) / n == pytest.approx(shares, abs=0.01)  # 4 standard deviations
    assert answer(seen).tolist() == taken.tolist()
    assert (
        make_action_function(copy_for_inference(Sums(answers)), "sample", 2)(seen).tolist() != taken.tolist()
    )


def test_a_decision_is_drawn_the_same_alone_and_among_others() -> None:
    rng = np.random.default_rng(1)
    sizes, rows, keys = [3, 1, 4, 2], rng.normal(size=(10, 2)), rng.integers(0, 2**60, 10)
    answer = make_action_function(copy_for_inference(Sums()), "sample", 7)
    together = answer(view_of(rows, sizes, keys)).tolist()
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    alone = [answer(view_of(rows[p], [p.stop - p.start], keys[p])).tolist() for p in parts]
    assert alone == [[k] for k in together]


def test_a_sampling_agent_plays_the_same_whatever_else_is_played(batch: Batch) -> None:
    torch.manual_seed(1)
    answer = make_action_function(copy_for_inference(actor_of(TINY)), "sample", 3)
    play(batch, answer, STARTS)
    together = [batch.starts_of(b).tolist() for b in range(3)]
    for b, first in enumerate(STARTS):
        play(batch, answer, np.array([first]))
        assert batch.starts_of(0).tolist() == together[b]
    play(batch, make_action_function(copy_for_inference(actor_of(TINY)), "sample", 4), STARTS)
    assert [batch.starts_of(b).tolist() for b in range(3)] != together
