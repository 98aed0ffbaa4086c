"""Playing time-stepped pools with a network: to learn from it, or as it is deployed; and who teaches it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bridge.learn.learner import Mode
from bridge.learn.pool.network import ActorCritic, log_probabilities
from bridge.learn.pool.recipe import PoolRecipe
from bridge.learn.rollout import TIE, decided, uniform
from bridge.pool.picture import Picture, View
from bridge.pool.pools import Pools
from bridge.pool.rules import Answer, Asking, by_rule, kill, suspects
from bridge.pool.state import Flags, Floats, Ints, State
from bridge.pool.world import Sequences

__all__ = ["Answer", "Seen", "allowed", "by_rule", "collect", "deciding", "play", "teaching"]


@dataclass(frozen=True)
class Seen:
    """Decisions of E episodes, D in all, in the order in which they were taken, all episodes side by side.

    Attributes:
        view: the pictures.
        places: int64 [D] whose decision it is.
        ends: int64 [T] where the decisions of each round of answers end.
        outlooks: float32 [D, NUMBERS] what the critic knew; 0 columns without such a critic.
        masks: bool [D, A] the answers it had.
        actions: int64 [D].
        taught: int64 [D] the teacher's answers; empty if nobody teaches.
        logp: float64 [D] log probability of the action.
        values: float64 [D] what the network expected.
        rewards: float64 [D].
        moved: int64 [D] steps that passed behind it, 0 or 1.
    """

    view: View
    places: Ints
    ends: Ints
    outlooks: Picture
    masks: Flags
    actions: Ints
    taught: Ints
    logp: Floats
    values: Floats
    rewards: Floats
    moved: Ints

    def __len__(self) -> int:
        return len(self.actions)


def allowed(recipe: PoolRecipe, pools: Asking, live: Ints) -> Flags:
    """Return the answers that an agent has at some places, [D, A]."""
    none = recipe.pool.slots
    legal = pools.masks[live]
    answers = legal.copy() if recipe.mask else np.ones_like(legal)
    if recipe.kill != "learned":
        answers[:, none + 1 :] = False
    elif recipe.most_kills or recipe.suspicion:
        answers[:, none + 1 :] &= _may_be_killed(recipe, pools.state, live)
    if not recipe.idle:
        answers[:, none] = ~(pools.idle[live] & legal[:, :none].any(1))
    return answers


def _may_be_killed(recipe: PoolRecipe, state: State, live: Ints) -> Flags:
    """Return which kill slots hold a job that may be killed, or none, [D, K]."""
    running = state.running[live]
    may = np.ones(running.shape, np.bool_)
    if recipe.suspicion:
        suspects(state, live, recipe.suspicion, may)
    if recipe.most_kills:
        may &= state.jobs.kills[live[:, None], np.maximum(running, 0)] < recipe.most_kills
    return may | (running < 0)


def collect(
    pools: Pools,
    recipe: PoolRecipe,
    network: ActorCritic,
    sequences: Sequences,
    rng: np.random.Generator,
    teacher: Answer | None = None,
    *,
    lesson: bool = False,
) -> Seen:
    """Play every sequence once, drawing from the network's probabilities.

    Args:
        pools: at least as many as sequences.
        recipe: of the agent.
        network: who answers.
        sequences: what is played.
        rng: the only source of randomness.
        teacher: whose answers are noted.
        lesson: the teacher answers.
    """
    network.fix()
    view = pools.play(sequences)
    kept: list[tuple[npt.NDArray[np.generic], ...]] = []
    actions = np.zeros(len(pools), np.int64)
    while pools.waiting.any():
        live = np.flatnonzero(pools.waiting)
        masks = allowed(recipe, pools, live)
        outlooks = pools.outlooks(live) if network.critic else np.zeros((len(live), 0), np.float32)
        with torch.inference_mode():
            scores, values = network(view, live, outlooks)
            logp = log_probabilities(scores, masks).double().numpy()
        taught = teacher(pools, view, live) if teacher else np.zeros(0, np.int64)
        noisy = logp + rng.gumbel(size=logp.shape)  # the largest is distributed as softmax says
        chosen = taught if lesson else noisy.argmax(1)
        actions[live] = chosen
        pictures = view.cells.copy(), view.values.copy(), np.diff(view.offsets)[live]
        taken = logp[np.arange(len(live)), chosen]
        view = pools.step(actions)
        after = pools.rewards[live], pools.moved[live]
        numbers = outlooks, masks, chosen, taught, taken, values.double().numpy(), *after
        kept.append((*pictures, live, np.array([len(live)]), *numbers))
    network.fix(False)
    cells, corners, sizes, places, counts, *rest = (np.concatenate(part) for part in zip(*kept, strict=True))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return Seen(View(cells, corners, offsets, pools.settings), places, np.cumsum(counts), *rest)


def play(pools: Pools, answer: Answer, sequences: Sequences) -> None:
    """Play every sequence once; read the outcome from the pools."""
    view = pools.play(sequences)
    actions = np.zeros(len(pools), np.int64)
    while pools.waiting.any():
        live = np.flatnonzero(pools.waiting)
        actions[live] = answer(pools, view, live)
        view = pools.step(actions)


def deciding(recipe: PoolRecipe, actor: nn.Module, how: Mode, seed: int) -> Answer:
    """Return how a trained network answers, alike in every world, from now on.

    ``greedy`` takes the best answer, the first among equals. ``sample`` draws from its probabilities, with
    random numbers that depend on the seed and the number of the decision within its episode only. Ask for a
    new one for new episodes.
    """
    network = decided(actor)
    assert isinstance(network, ActorCritic)
    network.fix()
    taken: dict[int, int] = {}

    def answer(pools: Asking, view: View, live: Ints) -> Ints:
        with torch.inference_mode():
            logp = log_probabilities(network(view, live)[0], allowed(recipe, pools, live)).numpy()
        if how == "sample":
            numbers = np.array([taken.get(b, 0) for b in live.tolist()], np.int64)
            taken.update(zip(live.tolist(), (numbers + 1).tolist(), strict=True))
            keys = numbers[:, None] * logp.shape[1] + np.arange(logp.shape[1])
            logp = logp - np.log(-np.log(uniform(keys, seed)))
        return np.asarray((logp >= logp.max(1, keepdims=True) - TIE).argmax(1), np.int64)

    return answer


def teaching(teacher: Answer, recipe: PoolRecipe) -> Answer:
    """Return what a teacher tells an agent.

    If the agent is to kill, the paper's rule speaks first. An answer that the agent does not have is replaced
    by the first one that it has.
    """

    def answer(pools: Asking, view: View, live: Ints) -> Ints:
        actions, answers = teacher(pools, view, live), allowed(recipe, pools, live)
        if recipe.kill == "learned":
            for i, b in enumerate(live.tolist()):
                action = kill(pools.state, b)
                if action >= 0 and answers[i, action]:
                    actions[i] = action
        return np.where(answers[np.arange(len(live)), actions], actions, answers.argmax(1))

    return answer
