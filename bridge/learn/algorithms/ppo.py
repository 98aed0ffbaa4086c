"""Proximal policy optimisation (Schulman et al. 2017) of an actor and a critic, on packed decisions.

Rewards compare with the base policy; updates of the actor stop by KL divergence.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bridge.arrays import Floats, Ints
from bridge.encode.encoder import Encoder
from bridge.env.batch import Batch, View
from bridge.env.reward import rewards
from bridge.fast.episode import Prepared
from bridge.learn import checkpoint
from bridge.learn.advantages import advantages
from bridge.learn.algorithms.event import EventLearner
from bridge.learn.folder import Origin
from bridge.learn.learner import Assignment, Learnt, Losses, descend, tensors
from bridge.learn.network import asked_again, choices, critic_of, lean, log_softmax
from bridge.learn.recipe import Recipe, Training
from bridge.learn.rollout import Recorded, Trajectories, best, collect, joined, pick_rows, play
from bridge.scheduler.state import SECOND

#: Second word of the seed of imitation, which no epoch has.
_LESSON = 2**31
#: Episodes whose base values tell how large a typical one is.
_TYPICAL = 100


class Ppo(EventLearner):
    """Whole episodes, then a few passes of proximal policy optimisation over them."""

    def __init__(self, given: Assignment[Recipe]) -> None:
        super().__init__(given)
        recipe, training = self.recipe, self.recipe.training
        if training.teacher:
            with_teacher(recipe.encoder, training.teacher).compile(self.origin.constants)  # refuses it now
        self.critic = critic_of(recipe).to(given.device)
        self.adams = {
            "actor": torch.optim.Adam(self.actor.parameters(), training.learning_rate),
            "critic": torch.optim.Adam(self.critic.parameters(), training.critic_rate),
        }
        self._unit = 1.0  # a critic learns differences of thousands badly: count them in typical episodes
        if recipe.reward.form in ("native", "plain"):
            parts = (
                (one, np.linspace(one.part[0], one.part[1] - training.length, _TYPICAL))
                for one in self.sources
            )
            self._unit = max(np.mean([one.values(s.astype(np.int64)).mean() for one, s in parts]), 1e-9)

    def begin(self) -> None:
        """Give the actor a start: a leaning, good habits, or neither."""
        training = self.recipe.training
        rng = np.random.default_rng([self.origin.seed, _LESSON])
        if training.rejecting:
            lean(self.actor, training.rejecting)
        if training.teacher:
            lessons = [(source.prepared, source.draw(0, rng).starts) for source in self.sources]
            imitate(self.recipe, self.origin, lessons, self.actor, rng)

    def learn(self, epoch: int, rng: np.random.Generator) -> Learnt:
        training = self.recipe.training
        for which, rate in (("actor", training.learning_rate), ("critic", training.critic_rate)):
            self.adams[which].param_groups[0]["lr"] = rate * training.left(epoch)
        drawn = [source.draw(epoch, rng) for source in self.sources]
        seen = joined([collect(some.batch, self.actor, some.starts, rng) for some in drawn])
        if len(seen) == 0:
            raise self.nothing_to_decide()
        base = np.concatenate([some.base for some in drawn])
        given = self._rewards(seen, base)
        learns = replace(training, iterations=0) if epoch < training.warmup else training
        update = Update(seen, given, self.actor, self.critic, learns)
        losses = update.run(self.adams["actor"], self.adams["critic"], rng)
        return Learnt(
            train_mean=self.mean(seen.episodes),
            base_mean=float(base.mean()),
            reward_mean=float(given.sum() / len(base)),
            decisions=len(seen),
            losses=losses,
        )

    def _rewards(self, seen: Trajectories, base: Floats) -> Floats:
        ends = np.searchsorted(seen.episode, np.arange(len(seen.episodes) + 1))
        parts = [
            rewards(self.recipe.reward, episode, float(base[e]), seen.times[a:b], seen.late[a:b])
            for e, (episode, a, b) in enumerate(zip(seen.episodes, ends, ends[1:], strict=False))
        ]
        return np.concatenate(parts) / self._unit

    def extra(self) -> dict[str, torch.Tensor]:
        """Return the critic's weights."""
        return checkpoint.prefixed("critic.", self.critic.state_dict())

    def restore(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        checkpoint.fill(self.critic, tensors, "now.critic.", path)
        super().restore(tensors, path)


def lambdas(times: Ints, training: Training) -> Floats:
    """Return lam from each decision to the next (of its episode; behind an end it is not read), [D]."""
    if training.horizon <= 0:
        return np.full(len(times), training.lam)
    elapsed = np.diff(times, append=times[-1:]) / SECOND
    return np.exp(-np.maximum(elapsed, 0.0) / training.horizon)


def surrogate(ratio: Tensor, advantage: Tensor, clip: float) -> tuple[Tensor, float]:
    """Return PPO's clipped gain, and the share of decisions whose probability ratio was clipped."""
    bounded = ratio.clamp(1 - clip, 1 + clip)
    gain = torch.minimum(ratio * advantage, bounded * advantage).mean()
    return gain, float(((ratio.detach() - 1).abs() > clip).float().mean())


class _Part(NamedTuple):
    """What one step of an update looks at."""

    rows: Tensor
    offsets: Tensor
    context: Tensor
    chosen: Tensor
    logp: Tensor
    advantage: Tensor
    returns: Tensor


class Update:
    """One epoch's decisions with their rewards [D], from which actor and critic learn, changed in place."""

    def __init__(
        self, seen: Trajectories, rewards: Floats, actor: nn.Module, critic: nn.Module, training: Training
    ) -> None:
        self.seen, self.actor, self.critic, self.training = seen, actor, critic, training
        with torch.inference_mode():
            values = critic(*tensors(critic, seen.rows, seen.offsets, seen.context))[:, 0]
        values = values.double().cpu().numpy()
        advantage, returns = advantages(
            rewards, values, seen.episode, training.gamma, lambdas(seen.times, training)
        )
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        floats = (column.astype(np.float32) for column in (seen.logp, advantage, returns))
        self.columns = (seen.context, seen.actions, *floats)

    def _part(self, decisions: Ints) -> _Part:
        """Return some decisions, ascending."""
        index, offsets = pick_rows(self.seen.offsets, decisions)
        picked = (column[decisions] for column in self.columns)
        return _Part(*tensors(self.actor, np.take(self.seen.rows, index, 0), offsets, *picked))

    def _parts(self, rng: np.random.Generator) -> list[_Part]:
        size, n = self.training.minibatch, len(self.seen)
        if not 0 < size < n:
            return [self._part(np.arange(n))]
        pieces = np.array_split(rng.permutation(n), max(1, round(n / size)))
        return [self._part(np.sort(piece)) for piece in pieces]

    def run(
        self, actor_adam: torch.optim.Optimizer, critic_adam: torch.optim.Optimizer, rng: np.random.Generator
    ) -> Losses:
        """Update both networks; the actor's updates stop once it has moved far enough from where it was."""
        training = self.training
        whole = self._parts(rng) if training.minibatch == 0 else []
        policy_loss = value_loss = kl = entropy = clipped = 0.0
        iteration = 0
        for iteration in range(1, training.iterations + 1):  # noqa: B007
            parts = whole or self._parts(rng)
            kl = 0.0
            for part in parts:
                loss, moved, entropy, clipped = self._policy(part)
                kl += moved / len(parts)
                if len(parts) == 1 and kl > 1.5 * training.target_kl:
                    break
                policy_loss = descend(loss, actor_adam, self.actor)
            if kl > 1.5 * training.target_kl:
                break
        asked = list(self._asked(whole))
        for _ in range(training.critic_iterations):
            for returns, values in asked or self._asked(self._parts(rng)):
                value_loss = descend(((values()[:, 0] - returns) ** 2).mean(), critic_adam)
        return Losses(policy_loss, value_loss, kl, entropy, clipped, iteration)

    def _asked(self, parts: list[_Part]) -> Iterator[tuple[Tensor, Callable[[], Tensor]]]:
        """Return the returns of each part, and the critic's view of it."""
        for part in parts:
            yield part.returns, asked_again(self.critic, part.rows, part.offsets, part.context)

    def _policy(self, part: _Part) -> tuple[Tensor, float, float, float]:
        """Return the loss to go down, the divergence so far, the mean entropy, and the share clipped."""
        scores, offsets = choices(self.actor(part.rows, part.offsets, part.context), part.offsets)
        all_logp = log_softmax(scores, offsets)
        logp = all_logp[offsets[:-1] + part.chosen]
        ratio = (logp - part.logp).exp()
        gain, share = surrogate(ratio, part.advantage, self.training.clip)
        entropy = -(all_logp.exp() * all_logp).sum() / len(logp)
        loss = -gain - self.training.entropy * entropy if self.training.entropy else -gain
        with torch.no_grad():
            moved = float((part.logp - logp).mean())
        return loss, moved, float(entropy.detach()), share


# Imitation: the actor first learns to answer as a rule does, so that reinforcement begins with good habits.
# A rule is text, as features are. INSPECT: expressions, any of which above 0 rejects. Else one expression:
# the row with its largest value is the answer.

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
    lessons: Sequence[tuple[Prepared, Ints]],
    actor: nn.Module,
    rng: np.random.Generator,
) -> float:
    """Let the rule play an episode from each start, and bring the actor to its answers.

    `lessons`: of each log, the jobs under the recipe's policy, and first jobs; the origin has the constants
    of the rule's expressions. The actor is changed in place. Returns the share of decisions in which its best
    answer is the rule's, afterwards.
    """
    training, features, inspects = recipe.training, recipe.encoder.width, recipe.decision == "inspect"
    encoder = with_teacher(recipe.encoder, training.teacher).compile(origin.constants)
    lesson = Recorded(lambda view: taught(view, features, inspects))
    for prepared, starts in lessons:
        play(Batch(prepared, encoder, len(starts), training.length), lesson, starts)
    if not lesson.kept:
        return 1.0
    rows, offsets, context, actions = lesson.packed()
    adam = torch.optim.Adam(actor.parameters(), training.learning_rate)
    right = 0
    for _ in range(_PASSES):
        right = 0
        for part in np.array_split(rng.permutation(len(actions)), -(-len(actions) // _MINIBATCH)):
            part.sort()
            index, ends = pick_rows(offsets, part)
            seen = np.ascontiguousarray(rows[index, :features])
            shown, begins, around, told = tensors(actor, seen, ends, context[part], actions[part])
            scores, begins = choices(actor(shown, begins, around), begins)
            logp, chosen = log_softmax(scores, begins), begins[:-1] + told
            others = torch.segment_reduce(logp, "mean", lengths=begins.diff())
            descend(-((1 - DOUBT) * logp[chosen] + DOUBT * others).mean(), adam)
            highest = torch.segment_reduce(logp.detach(), "max", lengths=begins.diff())
            right += int((logp.detach()[chosen] >= highest).sum())
    return right / len(actions)
