"""Updates on the time-stepped pool: clipped policy gradient, value, entropy, and what a teacher says."""

from collections import deque

import numpy as np
import torch
from torch import Tensor, nn

from bridge.learn.learner import Losses
from bridge.learn.pool.network import ActorCritic, log_probabilities
from bridge.learn.pool.recipe import PoolTraining
from bridge.learn.pool.rollout import Seen
from bridge.pool.state import Floats, Ints

#: Longest gradient.
_NORM = 1.0
#: How many updates in a row tell how far the policy has moved.
_RECENT = 8


#: What updates tell, means over the last pass: those of `Losses`; and, NaN if nobody teaches, minus the log
#: probability of the teacher's answer and the share of decisions whose most probable answer is the teacher's.
_NUMBERS = (
    *("policy_loss", "value_loss", "imitation_loss", "agreement"),
    *("kl", "entropy", "clip_fraction"),
)
_KL = _NUMBERS.index("kl")


def advantages(seen: Seen, training: PoolTraining) -> tuple[Floats, Floats]:
    """Return generalised advantages (Schulman et al. 2016) and the returns they imply, [D] each.

    Nothing follows the end of an episode. Where time does not move, gamma is 1 with ``discount = "step"``.
    """
    gamma = np.full(len(seen), training.gamma)
    if training.discount == "step":
        gamma[seen.moved == 0] = 1.0
    advantage = np.zeros(len(seen))
    size = int(seen.places.max()) + 1
    next_value, after = np.zeros(size), np.zeros(size)
    begins = np.concatenate(([0], seen.ends[:-1]))
    for begin, end in zip(begins[::-1].tolist(), seen.ends[::-1].tolist(), strict=True):
        at, who = slice(begin, end), seen.places[begin:end]
        delta = seen.rewards[at] + gamma[at] * next_value[who] - seen.values[at]
        after[who] = delta + gamma[at] * training.lam * after[who]
        advantage[at] = after[who]
        next_value[who] = seen.values[at]
    return advantage, advantage + seen.values


def update(
    seen: Seen,
    network: ActorCritic,
    adam: torch.optim.Optimizer,
    training: PoolTraining,
    rng: np.random.Generator,
    *,
    imitation: float,
    lesson: bool,
) -> tuple[Losses, dict[str, float]]:
    """Learn from an epoch's decisions; return how it went, and what only the pool's learners have.

    Args:
        seen: the decisions; rewards count in the value's unit.
        network: changed in place.
        adam: of its parameters.
        training: hyper-parameters.
        rng: order of decisions.
        imitation: weight of the teacher's answers.
        lesson: only the teacher's answers and the value are learnt, and nothing stops the passes.
    """
    learner = _Learner(seen, network, training, imitation, lesson)
    passes = 1 if training.algorithm == "pg" and not lesson else training.iterations
    recent: deque[float] = deque(maxlen=_RECENT)

    def far() -> bool:
        return not lesson and len(recent) == _RECENT and sum(recent) / _RECENT > 1.5 * training.target_kl

    done = 0
    told: list[tuple[float, ...]] = []
    while done < passes and not far():
        done += 1
        told = []
        order = rng.permutation(len(seen))
        for part in np.array_split(order, max(1, round(len(seen) / training.minibatch))):
            loss, numbers = learner.loss(np.sort(part))
            told.append(numbers)
            recent.append(numbers[_KL])
            if far():
                break
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), _NORM)
            adam.step()
    means: dict[str, float] = dict(zip(_NUMBERS, np.mean(told, axis=0).tolist(), strict=True))
    taught = {name: means.pop(name) for name in ("imitation_loss", "agreement")}
    return Losses(**means, iterations=done), taught


class _Learner:
    """The loss of some decisions of an epoch."""

    def __init__(
        self, seen: Seen, network: ActorCritic, training: PoolTraining, imitation: float, lesson: bool
    ) -> None:
        self.seen, self.network, self.training = seen, network, training
        self.imitation, self.lesson = imitation, lesson
        advantage, returns = advantages(seen, training)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        self.advantage, self.returns, self.logp = (
            torch.from_numpy(column.astype(np.float32)) for column in (advantage, returns, seen.logp)
        )
        self.actions, self.taught = torch.from_numpy(seen.actions), torch.from_numpy(seen.taught)

    def loss(self, part: Ints) -> tuple[Tensor, tuple[float, ...]]:
        """Return the loss to go down, and `_NUMBERS`."""
        training = self.training
        scores, values = self.network(self.seen.view, part, self.seen.outlooks[part])
        every = log_probabilities(scores, self.seen.masks[part])
        logp = every.gather(1, self.actions[part][:, None])[:, 0]
        moved = logp - self.logp[part]
        ratio, advantage = moved.exp(), self.advantage[part]
        if training.algorithm == "pg":
            policy = -(logp * advantage).mean()
        else:
            bounded = ratio.clamp(1 - training.clip, 1 + training.clip)
            policy = -torch.minimum(ratio * advantage, bounded * advantage).mean()
        value = ((values - self.returns[part]) ** 2).mean()
        entropy = -(every.exp() * every.clamp(min=torch.finfo(every.dtype).min)).sum(1).mean()
        total = training.value * value
        if not self.lesson:
            total = total + policy - training.entropy * entropy
        imitation = agreement = float("nan")
        if len(self.taught):
            taught = self.taught[part]
            doubt = -every.gather(1, taught[:, None]).mean()
            total = total + (1.0 if self.lesson else self.imitation) * doubt
            imitation = float(doubt.detach())
            agreement = float((every.argmax(1) == taught).float().mean())
        with torch.no_grad():
            kl = float((ratio - 1 - moved).mean())
            clipped = float(((ratio - 1).abs() > training.clip).float().mean())
        told = (float(policy.detach()), float(value.detach()), imitation, agreement, kl)
        return total, (*told, float(entropy.detach()), clipped)
