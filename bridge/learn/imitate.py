"""Imitation: an actor first learns to answer as a rule does, so that reinforcement begins with good habits.

A rule is text, as features are. INSPECT: expressions, any of which above 0 rejects. Else one expression: the
row with its largest value is the answer.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bridge.encode.encoder import Encoder
from bridge.env.batch import Batch, View
from bridge.fast.episode import Prepared
from bridge.learn.folder import Origin
from bridge.learn.network import choices, log_softmax
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import best, pick_rows, play

Ints = npt.NDArray[np.int64]

#: Probability left to all other answers than the rule's: what reinforcement can still try.
DOUBT = 0.1
#: Passes over the rule's decisions, and decisions a step.
_PASSES, _MINIBATCH = 10, 2048


def with_teacher(encoder: Encoder, teacher: tuple[str, ...]) -> Encoder:
    """Return the encoder with the rule's expressions as its last features."""
    more = {f"teacher {k}": text for k, text in enumerate(teacher)}
    return replace(encoder, features={**encoder.features, **more}, padding=())


def taught(view: View, features: int, inspects: bool) -> Ints:
    """Return the rule's answers; its expressions stand behind the features."""
    judged = view.rows[:, features:].astype(np.float64)
    if inspects:
        return np.asarray((judged > 0).any(1), np.int64)
    return best(judged[:, 0], np.diff(view.offsets))


def imitate(
    recipe: Recipe,
    origin: Origin,
    prepared: Prepared,
    actor: nn.Module,
    starts: Ints,
    rng: np.random.Generator,
) -> float:
    """Let the rule play an episode from each start, and bring the actor to its answers.

    Args:
        recipe: with a `training.teacher`.
        origin: for the constants of its expressions.
        prepared: the workload under the recipe's policy.
        actor: changed in place.
        starts: first jobs.
        rng: the only source of randomness.

    Returns:
        The share of decisions in which the actor's best answer is the rule's, afterwards.
    """
    encoder = with_teacher(recipe.encoder, recipe.training.teacher)
    batch = Batch(prepared, encoder.compile(origin.constants), len(starts), recipe.training.length)
    features, inspects = recipe.encoder.width, recipe.decision == "inspect"
    rows: list[npt.NDArray[np.float32]] = []
    sizes: list[Ints] = []
    answers: list[Ints] = []
    contexts: list[npt.NDArray[np.float32]] = []

    def noted(view: View) -> Ints:
        actions = taught(view, features, inspects)
        rows.append(view.rows[:, :features].copy())
        sizes.append(np.diff(view.offsets))
        answers.append(actions)
        contexts.append(view.context)
        return actions

    play(batch, noted, starts)
    if not rows:
        return 1.0
    seen, actions, context = np.concatenate(rows), np.concatenate(answers), np.concatenate(contexts)
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
    adam = torch.optim.Adam(actor.parameters(), recipe.training.learning_rate)
    device = next(actor.parameters()).device
    right = 0
    for _ in range(_PASSES):
        right = 0
        for part in np.array_split(rng.permutation(len(actions)), -(-len(actions) // _MINIBATCH)):
            index, ends = pick_rows(offsets, np.sort(part))
            begins = torch.from_numpy(ends).to(device)
            around = torch.from_numpy(context[np.sort(part)]).to(device)
            scores, begins = choices(actor(torch.from_numpy(seen[index]).to(device), begins, around), begins)
            logp = log_softmax(scores, begins)
            chosen = begins[:-1] + torch.from_numpy(actions[np.sort(part)]).to(device)
            others = torch.segment_reduce(logp, "mean", lengths=begins.diff())
            loss = -((1 - DOUBT) * logp[chosen] + DOUBT * others).mean()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
            highest = torch.segment_reduce(logp.detach(), "max", lengths=begins.diff())
            right += int((logp.detach()[chosen] >= highest).sum())
    return right / len(actions)
