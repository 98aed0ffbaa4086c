"""Rollouts: an actor plays a batch of episodes; what it saw and did comes back packed."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bridge.base.arrays import Flags, Floats, Floats32, Ints
from bridge.base.interrupts import raise_if_interrupted
from bridge.env.batch import Batch, PackedObservations
from bridge.env.reward import EpisodeOutcome, broken_off, episode_of
from bridge.learn.learner import Mode, tensors
from bridge.worlds.fast.world import DONE

#: Answers the decisions of a step, none of which is empty: actions [D].
ActionFunction = Callable[[PackedObservations], Ints]
#: Scores nearer than this are equal, and the first answer wins: a sum in another order must not decide.
TIE = 1e-9


@dataclass(frozen=True)
class Rollout:
    """Decisions of E episodes, D in all, in the order of (episode, time).

    Attributes:
        rows: float32 [N, F].
        offsets: int64 [D + 1] where each decision's rows begin.
        context: float32 [D, C].
        actions: [D] the row taken; INSPECT: 0 accepted, 1 rejected.
        log_prob: float64 [D] its log probability.
        episode: [D] whose decision it is, ascending.
        times: [D] microseconds.
        late: [D] whether it started a job that EASY would not have.
        episodes: what became of each episode's jobs.
    """

    rows: Floats32
    offsets: Ints
    context: Floats32
    actions: Ints
    log_prob: Floats
    episode: Ints
    times: Ints
    late: Flags
    episodes: list[EpisodeOutcome]

    def __len__(self) -> int:
        return len(self.actions)


def pick_rows(offsets: Ints, decisions: Ints) -> tuple[Ints, Ints]:
    """Return the rows of some decisions one after the other, and their new offsets."""
    sizes = np.diff(offsets)[decisions]
    fresh = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.arange(fresh[-1]) + np.repeat(offsets[decisions] - fresh[:-1], sizes)
    return rows, fresh


def scores_of(actor: nn.Module, view: PackedObservations) -> tuple[Floats, Ints]:
    """Return the scores of all answers of non-empty decisions, and how many each has."""
    rows, offsets, context = tensors(actor, view.rows, view.offsets, view.context)
    dtype = next(actor.parameters()).dtype
    with torch.inference_mode():
        scores = actor(rows.to(dtype), offsets, context.to(dtype)).cpu().numpy()
    return scores.reshape(-1).astype(np.float64), np.diff(view.offsets) * scores.shape[1]


def sample_actions(scores: Floats, sizes: Ints, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Draw an answer per decision with probability softmax(scores); returns answers and log probabilities."""
    begins = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    highest = np.maximum.reduceat(scores, begins)
    shifted = scores - np.repeat(highest, sizes)
    total = np.log(np.add.reduceat(np.exp(shifted), begins))
    noisy = scores + rng.gumbel(size=len(scores))  # the largest is distributed as softmax says
    taken = np.flatnonzero(noisy == np.repeat(np.maximum.reduceat(noisy, begins), sizes))
    if len(taken) != len(sizes):  # two equal sums of 53 bits: the first
        taken = taken[np.searchsorted(taken, begins)]
    return taken - begins, shifted[taken] - total


def argmax_actions(scores: Floats, sizes: Ints) -> Ints:
    """Return the answer with the highest score per decision, the first among equals (see `TIE`)."""
    begins = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    good = np.flatnonzero(scores >= np.repeat(np.maximum.reduceat(scores, begins), sizes) - TIE)
    return good[np.searchsorted(good, begins)] - begins


def select_waiting(view: PackedObservations) -> tuple[Ints, PackedObservations]:
    sizes = np.diff(view.offsets)
    live = np.flatnonzero(sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes[live])))
    return live, PackedObservations(view.rows, offsets, view.keys, view.context[live])


def collect(
    batch: Batch, actor: nn.Module, starts: Ints, rng: np.random.Generator, limit: int = 0
) -> Rollout:
    return collect_by(batch, lambda view: sample_actions(*scores_of(actor, view), rng), starts, limit)


def collect_by(
    batch: Batch,
    choose: Callable[[PackedObservations], tuple[Ints, Floats]],
    starts: Ints,
    limit: int = 0,
) -> Rollout:
    """Play an episode from each start (as many as places, at most), and return all decisions.

    `choose` returns the answers of a step, and their log probabilities. Episodes that want more decisions
    than a `limit` above 0 break off there: jobs that have not started start at NaN then, see `is_unfinished`.
    """
    view, shape = batch.reset(starts), batch.encoder.encoder
    none = np.zeros(0, np.int64)
    rows, context = np.zeros((0, shape.width), np.float32), np.zeros((0, shape.context), np.float32)
    kept = [(rows, none, context, none, np.zeros(0), none, none, np.zeros(0, np.bool_))]
    actions, broken = np.zeros(len(batch.decision_kinds), np.int64), set[int]()
    while len(view.rows):
        raise_if_interrupted()
        live, waiting_view = select_waiting(view)
        if limit and len(kept) > limit:  # each of them has decided in every step
            batch.decision_kinds[live] = DONE
            broken = {*live.tolist()}
            break
        answers, log_prob = choose(waiting_view)
        actions[live] = answers
        rows, times = waiting_view.rows.copy(), batch.now[live].copy()
        view = batch.step(actions)
        late = batch.delays_head[live].copy()
        kept.append(
            (rows, np.diff(waiting_view.offsets), waiting_view.context, answers, log_prob, live, times, late)
        )
    episodes = [
        broken_off(episode) if b in broken else episode
        for b, episode in enumerate(episode_of(batch, b) for b in range(len(starts)))
    ]
    rows, sizes, *each = (np.concatenate(part) for part in zip(*kept, strict=True))
    order = np.argsort(each[3], kind="stable")  # by episode, then time
    index, offsets = pick_rows(np.concatenate(([0], np.cumsum(sizes))), order)
    context, actions, log_prob, owner, times, late = (column[order] for column in each)
    return Rollout(rows[index], offsets, context, actions, log_prob, owner, times, late, episodes)


def concatenate_rollouts(parts: Sequence[Rollout]) -> Rollout:
    if len(parts) == 1:
        return parts[0]
    rows = np.cumsum([0, *(len(part.rows) for part in parts)])
    begins = np.cumsum([0, *(len(part.episodes) for part in parts)])
    ends = [part.offsets[1:] + before for part, before in zip(parts, rows, strict=False)]
    owners = [part.episode + before for part, before in zip(parts, begins, strict=False)]
    names = ("rows", "context", "actions", "log_prob", "times", "late")
    return Rollout(
        offsets=np.concatenate([[0], *ends]),
        episode=np.concatenate(owners),
        episodes=[episode for part in parts for episode in part.episodes],
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
    )


def is_unfinished(rollout: Rollout) -> Flags:
    """Tell of each episode whether it broke off, see `collect_by`."""
    return np.array([bool(np.isnan(episode.start).any()) for episode in rollout.episodes], np.bool_)


def keep_episodes(rollout: Rollout, kept: Flags) -> Rollout:
    """Return the rollout without the other episodes' decisions; `kept`: bool [E]."""
    decisions = np.flatnonzero(kept[rollout.episode])
    rows, offsets = pick_rows(rollout.offsets, decisions)
    numbers = np.cumsum(kept) - 1
    return Rollout(
        rollout.rows[rows],
        offsets,
        episode=numbers[rollout.episode[decisions]],
        episodes=[episode for episode, keeps in zip(rollout.episodes, kept, strict=True) if keeps],
        **{
            name: getattr(rollout, name)[decisions]
            for name in ("context", "actions", "log_prob", "times", "late")
        },
    )


def copy_for_inference(actor: nn.Module) -> nn.Module:
    """Return a float64 copy of the actor, so that it decides alike in all worlds."""
    return copy.deepcopy(actor).cpu().double().eval()


def play(batch: Batch, answer: ActionFunction, starts: Ints) -> None:
    """Play an episode from each start (as many as places, at most); read the outcome from the batch."""
    view = batch.reset(starts)
    actions = np.zeros(len(batch.decision_kinds), np.int64)
    while len(view.rows):
        raise_if_interrupted()
        live, waiting_view = select_waiting(view)
        actions[live] = answer(waiting_view)
        view = batch.step(actions)


class DecisionRecorder:
    """Wraps an action function, and keeps rows, rows of each decision, context and actions, step by step."""

    def __init__(self, answer: ActionFunction) -> None:
        self._answer = answer
        self.kept: list[tuple[npt.NDArray[Any], ...]] = []

    def __call__(self, view: PackedObservations) -> Ints:
        actions = self._answer(view)
        self.kept.append((view.rows.copy(), np.diff(view.offsets), view.context, actions))
        return actions

    def packed(self) -> tuple[Floats32, Ints, Floats32, Ints]:
        """Return rows [N, F], offsets [D + 1], context [D, C] and actions [D] of all decisions."""
        rows, sizes, context, actions = (np.concatenate(part) for part in zip(*self.kept, strict=True))
        return rows, np.concatenate(([0], np.cumsum(sizes))), context, actions


def make_action_function(actor: nn.Module, how: Mode, seed: int) -> ActionFunction:
    """Return how a trained actor answers, alike in every world; give it an actor from `copy_for_inference`.

    ``greedy`` takes the best answer. ``sample`` draws from its probabilities, with random numbers that depend
    on the seed and the keys of the rows only, so that a decision is drawn the same wherever it comes up.
    """
    if how == "greedy":
        return lambda view: argmax_actions(*scores_of(actor, view))

    def act(view: PackedObservations) -> Ints:
        scores, sizes = scores_of(actor, view)
        each = len(scores) // len(view.rows)  # answers a row
        keys = np.repeat(view.keys, each) * each + np.tile(np.arange(each), len(view.rows))
        return argmax_actions(scores - np.log(-np.log(uniform_from_keys(keys, seed))), sizes)

    return act


def uniform_from_keys(keys: Ints, seed: int) -> Floats:
    """Return a number in (0, 1) per key: SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) of key and seed."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        x ^= x >> np.uint64(31)
    numbers = ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return np.minimum(numbers, 1.0 - 2.0**-53)  # the largest of all rounds to 1
