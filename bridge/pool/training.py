"""Learning on the time-stepped pool (RLSchert): lessons, imitation that fades, reinforcement."""

from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bridge.base.arrays import Floats, Ints
from bridge.base.cache import is_checkpoint
from bridge.base.errors import BridgeError
from bridge.learn import advantages as general
from bridge.learn.algorithms.ppo import surrogate
from bridge.learn.checkpoint import add_prefix, load, write_agent, write_weights
from bridge.learn.learner import EpochResult, Learner, Losses, Mode, TrainingContext, optimizer_step, tensors
from bridge.learn.recipe import AGENT_TEACHER
from bridge.pool.batch import PoolBatch
from bridge.pool.heuristics import PoolActionFunction, heuristic_actions
from bridge.pool.jobset import with_estimates
from bridge.pool.network import ActorCritic, PoolCheckpoint, log_probabilities, network_of
from bridge.pool.recipe import PoolRecipe, PoolTrainingConfig
from bridge.pool.rollout import PoolRollout, collect, deciding, make_teacher, play, require_pool
from bridge.pool.world import Sequences, draw_sequences

#: The heuristic that progress is compared with.
BASE = "saf"
#: The folder of the teacher's copy.
TEACHER = "teacher"


class PoolPpo(Learner):
    """Plays drawn sequences side by side, and learns from a teacher, from rewards, or from both.

    Beside the columns of every training, progress has ``imitation_loss`` and ``agreement`` (NaN if nobody
    teaches) and ``kills``; `train_mean` is the objective's mean over the jobs of all sequences as they were
    played (in lessons by the teacher).

    Sequences are drawn from the jobs that are `context`, with their predictions. If the recipe's teacher is
    ``agent``, the one given is of the same kind of pool; the folder keeps a copy, from which a resumed
    training goes on. BridgeError: a job cannot run in its pool, or the teacher does not fit.
    """

    def __init__(self, context: TrainingContext[PoolRecipe]) -> None:
        self.recipe, self.origin, self.folder = context.recipe, context.origin, context.folder
        self.training = training = context.recipe.training
        self._teacher = self._kept(context.teacher)
        self.jobs = with_estimates(context.jobs, self.recipe.estimator)
        self.sequences = self._draw(training.draw_seed, training.sequences)
        self._valid = self._draw(training.valid_seed, training.valid_sequences)
        size = max(training.sequences * training.episodes, training.valid_sequences)
        self.pools = PoolBatch(self.sequences, size, self.recipe.pool, self.recipe.kill, most=training.steps)
        self._answer = self._answers(self._teacher)
        torch.manual_seed(self.origin.seed)  # a teacher's network was made in between
        self.actor: ActorCritic = network_of(self.recipe)
        if training.inherit and self._teacher is not None:
            copy_teacher_weights(self.actor, self._teacher)
        self.adam = self._optimiser()
        self.optimizers = {"network": self.adam}
        self._rates = [group["lr"] for group in self.adam.param_groups]
        self.base = self._saf(self._valid)
        self._unit = self._typical() if training.scaled else 1.0

    def _optimiser(self) -> torch.optim.Adam:
        rate, critic = self.training.learning_rate, self.actor.critic
        mine = [p for name, p in self.actor.named_parameters() if not name.startswith("critic.")]
        groups = [{"params": mine, "lr": rate}]
        if critic is not None:
            groups.append({"params": list(critic.parameters()), "lr": rate * self.training.critic_rate})
        return torch.optim.Adam(groups, fused=True)

    def _draw(self, seed: int, sequences: int) -> Sequences:
        training = self.training
        pool_sequences = draw_sequences(
            self.jobs, seed, rate=training.rate, steps=training.steps, sequences=sequences
        )
        if not pool_sequences.most:
            raise BridgeError("no job arrives", remedy="Use a higher arrival rate or more steps.")
        return pool_sequences

    def _kept(self, folder_given: Path | None) -> PoolCheckpoint | None:
        """Return the agent that teaches, if the recipe wants one: the folder's copy, if there is one."""
        recipe, copied = self.recipe, self.folder / TEACHER
        wanted, which = self.training.teacher == AGENT_TEACHER, f"{recipe.name}/{recipe.setting}"
        folder = copied if wanted and is_checkpoint(copied) else folder_given
        if wanted and folder is None:
            remedy = f"Train one, `bridge train {recipe.name} --setting rule-kill`; give it with --teacher."
            raise BridgeError("learns from a trained agent", where=which, remedy=remedy)
        if folder is None:
            return None
        if not wanted:
            raise BridgeError("does not learn from an agent", where=which, remedy="Leave --teacher out.")
        teacher = load(folder, PoolRecipe)
        require_pool(teacher, self.recipe.pool)
        return teacher

    def begin(self) -> None:
        """Copy the agent that teaches to the folder, so that the training can go on without it."""
        copied, teacher = self.folder / TEACHER, self._teacher
        if teacher is not None and not is_checkpoint(copied):
            copied.mkdir(parents=True, exist_ok=True)
            weights = add_prefix("actor.", teacher.actor.state_dict())
            write_weights(copied, weights, teacher.epoch, teacher.mode)
            write_agent(copied, teacher.recipe, teacher.origin)

    def _answers(self, teacher: PoolCheckpoint | None) -> PoolActionFunction | None:
        name = self.training.teacher
        if not name:
            return None
        answer = (
            heuristic_actions(name)
            if teacher is None
            else deciding(teacher.recipe, teacher.actor, "greedy", 0)
        )
        return make_teacher(answer, self.recipe)

    def _saf(self, sequences: Sequences) -> float:
        play(self.pools, heuristic_actions(BASE), sequences)
        return self._mean(len(sequences))

    def _mean(self, n: int) -> float:
        """Return the mean of the objective over all jobs of the first n pools."""
        objective = self.recipe.pool.objective
        return float(np.concatenate([self.pools.values(b, objective) for b in range(n)]).mean())

    def _typical(self) -> float:
        """Return the size of a return under the base: rewards count in it, so that values are near 1."""
        base, rng = heuristic_actions(BASE), np.random.default_rng(0)
        rollout = collect(self.pools, self.recipe, self.actor, self.sequences, rng, base, lesson=True)
        returns = advantages(
            replace(rollout, values=np.zeros(len(rollout))), replace(self.training, lam=1.0)
        )[1]
        return max(float(np.sqrt(np.mean(returns**2))), 1e-9)

    def validate(self, actor: nn.Module, mode: Mode) -> float:
        play(self.pools, deciding(self.recipe, actor, mode, self.origin.seed), self._valid)
        return self._mean(len(self._valid))

    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        training = self.training
        for group, rate in zip(self.adam.param_groups, self._rates, strict=True):
            group["lr"] = rate * training.rate_fraction(epoch)
        lesson, imitation = epoch < training.lessons, self.imitation(epoch)
        teacher = self._answer if lesson or imitation else None
        sequences = self.sequences
        if training.fresh:
            sequences = self._draw(int(rng.integers(2**32)), training.sequences)
        played = sequences.repeat(training.episodes)
        n = len(played)
        rollout = collect(self.pools, self.recipe, self.actor, played, rng, teacher, lesson=lesson)
        train_mean, kills = self._mean(n), int(self.pools.state.env.n_kills[:n].sum())
        counted = replace(rollout, rewards=rollout.rewards / self._unit)
        losses, taught = PoolPpoUpdate(counted, self.actor, training, imitation, lesson).run(self.adam, rng)
        return EpochResult(
            train_mean=train_mean,
            base_mean=self._saf(sequences),
            reward_mean=float(rollout.rewards.sum() / n),
            decisions=len(rollout),
            losses=losses,
            more={**taught, "kills": kills},
            averages=epoch >= training.lessons,
        )

    def imitation(self, epoch: int) -> float:
        """Return the weight of the teacher's answers in an epoch."""
        training = self.training
        behind = epoch - training.lessons
        span = (training.epochs - training.lessons) * training.imitated
        return training.imitation * max(0.0, 1.0 - behind / span) if behind >= 0 and span > 0 else 0.0


def copy_teacher_weights(network: ActorCritic, teacher: PoolCheckpoint) -> None:
    """Give a network the weights of another one, whose shape must be the same; a critic of its own stays."""
    own = network.state_dict()
    weights = {k: v for k, v in teacher.actor.state_dict().items() if not k.startswith("critic.")}
    if any(k not in own or own[k].shape != v.shape for k, v in weights.items()):
        remedy = "Set training.inherit = false, or use the same network."
        raise BridgeError("its network is of another shape", where=str(teacher.folder), remedy=remedy)
    network.load_state_dict(own | weights)
    if teacher.recipe.kill != "learned":  # what it would say of kills, it has never learnt
        none = teacher.recipe.pool.slots
        with torch.no_grad():
            network.policy.weight[none + 1 :] = network.policy.weight[none]
            network.policy.bias[none + 1 :] = network.policy.bias[none]


#: How many updates in a row tell how far the policy has moved.
_RECENT = 8
#: What updates tell, means over the last pass: those of `Losses`; and, NaN if nobody teaches, minus the log
#: probability of the teacher's answer and the share of decisions whose most probable answer is the teacher's.
_NUMBERS = (
    *("policy_loss", "value_loss", "imitation_loss", "agreement"),
    *("kl", "entropy", "clip_fraction"),
)
_KL = _NUMBERS.index("kl")


def advantages(rollout: PoolRollout, training: PoolTrainingConfig) -> tuple[Floats, Floats]:
    """Return generalised advantages and the returns they imply, [D] each.

    Where time does not move, gamma is 1 with ``discount = "step"``.
    """
    gamma = np.where((training.discount == "step") & (rollout.elapsed_steps == 0), 1.0, training.gamma)
    advantage, _ = general.compute_gae(rollout.rewards, rollout.values, rollout.places, gamma, training.lam)
    return advantage, advantage + rollout.values


def value_error(values: Tensor, returns: Tensor, loss: str) -> Tensor:
    """Return how far expected values are from returns: the mean of squares, or smooth L1 (Huber, δ = 1)."""
    if loss == "smooth":
        return nn.functional.smooth_l1_loss(values, returns)
    return ((values - returns) ** 2).mean()


class PoolPpoUpdate:
    """One epoch's decisions, from which the network learns.

    Rewards count in the value's unit; the network is changed in place. `imitation`: weight of the teacher's
    answers. `lesson`: only these and the value are learnt, and nothing stops the passes.
    """

    def __init__(
        self,
        rollout: PoolRollout,
        network: ActorCritic,
        training: PoolTrainingConfig,
        imitation: float,
        lesson: bool,
    ) -> None:
        self.rollout, self.network, self.training = rollout, network, training
        self.imitation, self.lesson = imitation, lesson
        advantage, returns = advantages(rollout, training)
        if training.normalised:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        columns = (column.astype(np.float32) for column in (advantage, returns, rollout.logp))
        self.advantage, self.returns, self.logp = tensors(network, *columns)
        self.actions, self.taught = tensors(network, rollout.actions, rollout.teacher_actions)

    def run(self, adam: torch.optim.Optimizer, rng: np.random.Generator) -> tuple[Losses, dict[str, float]]:
        """Update the network; return the losses, and numbers of the pool's learners only."""
        training, rollout = self.training, self.rollout
        passes = 1 if training.algorithm == "pg" and not self.lesson else training.iterations
        recent: deque[float] = deque(maxlen=_RECENT)

        def far() -> bool:
            mean = sum(recent) / _RECENT
            return not self.lesson and len(recent) == _RECENT and mean > 1.5 * training.target_kl

        done = 0
        statistics: list[tuple[float, ...]] = []
        while done < passes and not far():
            done += 1
            statistics = []
            order = rng.permutation(len(rollout))
            for part in np.array_split(order, max(1, round(len(rollout) / training.minibatch))):
                loss, numbers = self._loss(np.sort(part))
                statistics.append(numbers)
                recent.append(numbers[_KL])
                if far():
                    break
                optimizer_step(loss, adam, self.network)
        means: dict[str, float] = dict(zip(_NUMBERS, np.mean(statistics, axis=0).tolist(), strict=True))
        taught = {name: means.pop(name) for name in ("imitation_loss", "agreement")}
        return Losses(**means, iterations=done), taught

    def _loss(self, part: Ints) -> tuple[Tensor, tuple[float, ...]]:
        """Return the loss to go down, and `_NUMBERS`."""
        training = self.training
        scores, values = self.network(self.rollout.view, part, self.rollout.outlooks[part])
        every = log_probabilities(scores, self.rollout.masks[part])
        logp = every.gather(1, self.actions[part][:, None])[:, 0]
        moved = logp - self.logp[part]
        ratio, advantage = moved.exp(), self.advantage[part]
        gain, clipped = surrogate(ratio, advantage, training.clip)
        policy = -(logp * advantage).mean() if training.algorithm == "pg" else -gain
        value = value_error(values, self.returns[part], training.value_loss)
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
        numbers = (float(policy.detach()), float(value.detach()), imitation, agreement, kl)
        return total, (*numbers, float(entropy.detach()), clipped)
