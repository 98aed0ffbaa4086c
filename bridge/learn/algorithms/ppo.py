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

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.env.reward import compute_rewards
from bridge.env.slurm_batch import open_batch
from bridge.learn import checkpoint
from bridge.learn.advantages import compute_gae
from bridge.learn.algorithms.log_learner import EpisodeSource, LogLearner
from bridge.learn.checkpoint_files import Provenance
from bridge.learn.learner import EpochResult, Losses, TrainingContext, optimizer_step, tensors
from bridge.learn.network import (
    action_scores,
    cached_forward,
    critic_of,
    log_softmax,
    set_initial_reject_rate,
)
from bridge.learn.recipe import Recipe, TrainingConfig
from bridge.learn.rollout import (
    DecisionRecorder,
    Rollout,
    argmax_actions,
    collect,
    concatenate_rollouts,
    is_unfinished,
    keep_episodes,
    pick_rows,
    play,
)
from bridge.scheduler.state import SECOND
from bridge.worlds.fast.episode import Scenario

#: Second word of the seed of imitation, which no epoch has.
_LESSON = 2**31
#: How often an epoch's episodes are drawn for those that had too many decisions.
_ROUNDS = 100
#: Episodes whose base values tell how large a typical one is.
_TYPICAL = 100


class Ppo(LogLearner):
    """Whole episodes, then a few passes of proximal policy optimisation over them."""

    def __init__(self, context: TrainingContext[Recipe]) -> None:
        super().__init__(context)
        recipe, training = self.recipe, self.recipe.training
        if training.teacher:
            with_teacher(recipe.encoder, training.teacher).compile(self.origin.constants)  # refuses it now
        self.critic = critic_of(recipe).to(context.device)
        self.optimizers = {
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
        """Initialize the actor: set its reject rate, imitate the teacher, or neither."""
        training = self.recipe.training
        rng = np.random.default_rng([self.origin.seed, _LESSON])
        if training.initial_reject_rate:
            set_initial_reject_rate(self.actor, training.initial_reject_rate)
        if training.teacher:
            lessons = [(source.prepared, source.draw(0, rng).starts) for source in self.sources]
            imitate(self.recipe, self.origin, lessons, self.actor, rng)

    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        training = self.recipe.training
        for which, rate in (("actor", training.learning_rate), ("critic", training.critic_rate)):
            self.optimizers[which].param_groups[0]["lr"] = rate * training.rate_fraction(epoch)
        parts = [self._collect(source, epoch, rng) for source in self.sources]
        rollout = concatenate_rollouts([part for part, _ in parts])
        if len(rollout) == 0:
            raise self.nothing_to_decide()
        base = np.concatenate([values for _, values in parts])
        rewards = self._rewards(rollout, base)
        learns = replace(training, iterations=0) if epoch < training.warmup else training
        update = PpoUpdate(rollout, rewards, self.actor, self.critic, learns)
        losses = update.run(self.optimizers["actor"], self.optimizers["critic"], rng)
        return EpochResult(
            train_mean=self.mean(rollout.episodes),
            base_mean=float(base.mean()),
            reward_mean=float(rewards.sum() / len(base)),
            decisions=len(rollout),
            losses=losses,
            more={"rejected": float(rollout.actions.mean())} if self.recipe.decision == "inspect" else {},
        )

    def _collect(self, source: EpisodeSource, epoch: int, rng: np.random.Generator) -> tuple[Rollout, Floats]:
        """Play an epoch's episodes of a log; returns them and what each costs under the base policy.

        Those of too many decisions are left out, and others drawn, until there are as many as there shall be:
        each time as many as shall do, by the share of those that were kept so far.
        """
        limit, parts, bases, missing = self.recipe.training.max_decisions, [], [], source.share
        tried = 0
        for _ in range(_ROUNDS if limit else 1):
            episodes = source.draw(epoch, rng)
            enough = -(-missing * tried // max(source.share - missing, 1)) if tried else missing
            starts, base = episodes.starts[:enough], episodes.base[:enough]
            rollout = collect(episodes.batch, self.actor, starts, rng, limit)
            tried += len(starts)
            if limit:
                kept = ~is_unfinished(rollout)
                kept &= np.cumsum(kept) <= missing
                rollout, base = keep_episodes(rollout, kept), base[kept]
            parts.append(rollout)
            bases.append(base)
            missing -= len(base)
            if missing <= 0:
                return concatenate_rollouts(parts), np.concatenate(bases)
        raise BridgeError(
            f"{missing} of {source.share} episodes have more than {limit} decisions, again and again",
            where=source.prepared.jobs.name,
            remedy="The policy only rejects: train with another seed, or raise training.max_decisions.",
        )

    def _rewards(self, rollout: Rollout, base: Floats) -> Floats:
        ends = np.searchsorted(rollout.episode, np.arange(len(rollout.episodes) + 1))
        parts = [
            compute_rewards(
                self.recipe.reward, episode, float(base[e]), rollout.times[a:b], rollout.late[a:b]
            )
            for e, (episode, a, b) in enumerate(zip(rollout.episodes, ends, ends[1:], strict=False))
        ]
        return np.concatenate(parts) / self._unit

    def extra(self) -> dict[str, torch.Tensor]:
        return checkpoint.add_prefix("critic.", self.critic.state_dict())

    def restore(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        checkpoint.load_weights_into(self.critic, tensors, "now.critic.", path)
        super().restore(tensors, path)


def lambdas(times: Ints, training: TrainingConfig) -> Floats:
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
    rows: Tensor
    offsets: Tensor
    context: Tensor
    chosen: Tensor
    logp: Tensor
    advantage: Tensor
    returns: Tensor


class PpoUpdate:
    """One epoch's decisions with their rewards [D], from which actor and critic learn, changed in place."""

    def __init__(
        self, rollout: Rollout, rewards: Floats, actor: nn.Module, critic: nn.Module, training: TrainingConfig
    ) -> None:
        self.rollout, self.actor, self.critic, self.training = rollout, actor, critic, training
        with torch.inference_mode():
            values = critic(*tensors(critic, rollout.rows, rollout.offsets, rollout.context))[:, 0]
        values = values.double().cpu().numpy()
        advantage, returns = compute_gae(
            rewards, values, rollout.episode, training.gamma, lambdas(rollout.times, training)
        )
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        floats = (column.astype(np.float32) for column in (rollout.log_prob, advantage, returns))
        self.columns = (rollout.context, rollout.actions, *floats)

    def _part(self, decisions: Ints) -> _Part:
        index, offsets = pick_rows(self.rollout.offsets, decisions)
        picked = (column[decisions] for column in self.columns)
        return _Part(*tensors(self.actor, np.take(self.rollout.rows, index, 0), offsets, *picked))

    def _parts(self, rng: np.random.Generator) -> list[_Part]:
        size, n = self.training.minibatch, len(self.rollout)
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
                loss, approx_kl, entropy, clipped = self._policy(part)
                kl += approx_kl / len(parts)
                if len(parts) == 1 and kl > 1.5 * training.target_kl:
                    break
                policy_loss = optimizer_step(loss, actor_adam, self.actor)
            if kl > 1.5 * training.target_kl:
                break
        value_batches = list(self._value_batches(whole))
        for _ in range(training.critic_iterations):
            for returns, values in value_batches or self._value_batches(self._parts(rng)):
                value_loss = optimizer_step(((values()[:, 0] - returns) ** 2).mean(), critic_adam)
        return Losses(policy_loss, value_loss, kl, entropy, clipped, iteration)

    def _value_batches(self, parts: list[_Part]) -> Iterator[tuple[Tensor, Callable[[], Tensor]]]:
        """Return the returns of each part, and the critic's view of it."""
        for part in parts:
            yield part.returns, cached_forward(self.critic, part.rows, part.offsets, part.context)

    def _policy(self, part: _Part) -> tuple[Tensor, float, float, float]:
        """Return policy loss, approximate KL divergence, mean entropy and clip fraction."""
        scores, offsets = action_scores(self.actor(part.rows, part.offsets, part.context), part.offsets)
        all_logp = log_softmax(scores, offsets)
        logp = all_logp[offsets[:-1] + part.chosen]
        ratio = (logp - part.logp).exp()
        gain, share = surrogate(ratio, part.advantage, self.training.clip)
        entropy = -(all_logp.exp() * all_logp).sum() / len(logp)
        loss = -gain - self.training.entropy * entropy if self.training.entropy else -gain
        with torch.no_grad():
            approx_kl = float((part.logp - logp).mean())
        return loss, approx_kl, float(entropy.detach()), share


# Imitation: the actor first learns to answer as a rule does, so that reinforcement begins with good habits.
# A rule is text, as features are. INSPECT: expressions, any of which above 0 rejects. Else one expression:
# the row with its largest value is the answer.

#: Probability left to all other answers than the rule's: what reinforcement can still try.
LABEL_SMOOTHING = 0.1
#: Passes over the rule's decisions, and decisions a step.
_PASSES, _MINIBATCH = 10, 2048


def with_teacher(encoder: Encoder, teacher: tuple[str, ...]) -> Encoder:
    """Return the encoder with the rule's expressions as its last features."""
    more = {f"teacher {k}": text for k, text in enumerate(teacher)}
    return replace(encoder, features={**encoder.features, **more}, padding=())


def teacher_actions(view: PackedObservations, features: int, inspects: bool) -> Ints:
    """Return the rule's answers; its expressions stand behind the features."""
    judged = view.rows[:, features:].astype(np.float64)
    if inspects:
        return np.asarray((judged > 0).any(1), np.int64)
    return argmax_actions(judged[:, 0], np.diff(view.offsets))


def imitate(
    recipe: Recipe,
    origin: Provenance,
    lessons: Sequence[tuple[Scenario, Ints]],
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
    lesson = DecisionRecorder(lambda view: teacher_actions(view, features, inspects))
    for prepared, starts in lessons:
        play(open_batch(prepared, encoder, len(starts), training.length), lesson, starts)
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
            features_of_rows = np.ascontiguousarray(rows[index, :features])
            rows_tensor, begins, around, targets = tensors(
                actor, features_of_rows, ends, context[part], actions[part]
            )
            scores, begins = action_scores(actor(rows_tensor, begins, around), begins)
            logp, chosen = log_softmax(scores, begins), begins[:-1] + targets
            others = torch.segment_reduce(logp, "mean", lengths=begins.diff())
            optimizer_step(-((1 - LABEL_SMOOTHING) * logp[chosen] + LABEL_SMOOTHING * others).mean(), adam)
            highest = torch.segment_reduce(logp.detach(), "max", lengths=begins.diff())
            right += int((logp.detach()[chosen] >= highest).sum())
    return right / len(actions)
