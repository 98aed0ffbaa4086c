"""Training on the slotted pool: lessons, imitation that fades, reinforcement; and a file to go on from."""

import copy
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from bridge.errors import BridgeError
from bridge.learn import checkpoint
from bridge.learn.checkpoint import Course, Origin, course_of
from bridge.learn.folder import PROGRESS, RESUME, is_checkpoint
from bridge.learn.learner import adam_tensors, restore_adam
from bridge.learn.rollout import Mode
from bridge.learn.slotted_checkpoint import (
    SlottedCheckpoint,
    load,
    require_pool,
    write_agent,
    write_weights,
)
from bridge.learn.slotted_network import ActorCritic, network_of
from bridge.learn.slotted_ppo import advantages, update
from bridge.learn.slotted_recipe import AGENT_TEACHER, SlottedRecipe, SlottedTraining
from bridge.learn.slotted_rollout import Answer, by_rule, collect, deciding, play, teaching
from bridge.pool.jobset import JobSet, believing
from bridge.pool.pools import Pools
from bridge.pool.sequences import Sequences, draw

#: The heuristic that progress is compared with.
BASE = "saf"
#: The folder of the teacher's copy.
TEACHER = "teacher"


@dataclass(frozen=True)
class SlottedProgress:
    """One epoch, as `progress.parquet` has it; NaN where nothing was validated or nobody taught.

    `train_mean` is the objective's mean over the jobs of all sequences as they were played (in lessons by the
    teacher), `base_mean` that of the heuristic `BASE`; `reward_mean` the sum of rewards of a sequence. Others
    as in `bridge.learn.slotted_ppo.SlottedLosses`.
    """

    epoch: int
    seconds: float
    train_mean: float
    base_mean: float
    reward_mean: float
    valid_mean: float
    valid_base: float
    kl: float
    entropy: float
    policy_loss: float
    value_loss: float
    imitation_loss: float
    agreement: float
    clip_fraction: float
    iterations: int
    decisions: int
    kills: int


class SlottedTrainer:
    """Trains one agent on one set of jobs.

    Args:
        recipe: what to train.
        jobs: what sequences are drawn from, with their predictions.
        origin: where they come from, and the seed.
        folder: an existing folder for the checkpoint.
        teacher: another agent, if the recipe's teacher is ``agent``; of the same kind of pool. The folder
            keeps a copy, from which a resumed training goes on.

    Attributes:
        epoch: epochs done.
        history: one entry per epoch.

    Raises:
        BridgeError: the recipe cannot be trained, a job cannot run in its pool, or the teacher does not fit.
    """

    def __init__(
        self,
        recipe: SlottedRecipe,
        jobs: JobSet,
        origin: Origin,
        folder: Path,
        teacher: SlottedCheckpoint | None = None,
    ) -> None:
        recipe.check()
        self.recipe, self.origin, self.folder = recipe, origin, folder
        training = recipe.training
        self.jobs = believing(jobs, recipe.estimator)
        self._set = self._draw(training.draw_seed, training.sequences)
        self._valid = self._draw(training.valid_seed, training.valid_sequences)
        size = max(training.sequences, training.valid_sequences)
        self.pools = Pools(self._set, size, recipe.pool, recipe.kill, most=training.steps)
        teacher = self._kept(teacher) if training.teacher == AGENT_TEACHER else None
        self._teacher = self._answers(teacher)
        torch.manual_seed(origin.seed)
        self.network = network_of(recipe)
        if training.inherit and teacher is not None:
            inherit(self.network, teacher)
        self.deployed = copy.deepcopy(self.network)
        self.adam = self._optimiser()
        self._rates = [group["lr"] for group in self.adam.param_groups]
        self.epoch = 0
        self.history: list[SlottedProgress] = []
        self._best = float("inf")
        self._best_epoch = -1
        self._best_mode: Mode = "sample" if recipe.deploy == "sample" else "greedy"
        self._best_weights: dict[str, torch.Tensor] = {}
        self._valid_base = self._base(self._valid)
        self._unit = self._typical()
        if teacher is not None:
            self._keep(teacher)

    def _optimiser(self) -> torch.optim.Adam:
        """Return Adam of the network, and with a rate of its own of its critic, if it has one."""
        rate, critic = self._training.learning_rate, self.network.critic
        mine = [p for name, p in self.network.named_parameters() if not name.startswith("critic.")]
        groups = [{"params": mine, "lr": rate}]
        if critic is not None:
            groups.append({"params": list(critic.parameters()), "lr": rate * self._training.critic_rate})
        return torch.optim.Adam(groups, fused=True)

    def _draw(self, seed: int, sequences: int) -> Sequences:
        training = self.recipe.training
        drawn = draw(self.jobs, seed, rate=training.rate, steps=training.steps, sequences=sequences)
        if not drawn.most:
            raise BridgeError("no job arrives", remedy="Use a higher arrival rate or more steps.")
        return drawn

    def _kept(self, teacher: SlottedCheckpoint | None) -> SlottedCheckpoint:
        """Return the agent that teaches: the folder's copy, if there is one."""
        copied = self.folder / TEACHER
        if is_checkpoint(copied):
            teacher = load(copied)
        if teacher is None:
            raise BridgeError(
                "this recipe learns from another agent",
                where="training.teacher",
                remedy="Name its checkpoint, or let a heuristic teach.",
            )
        require_pool(teacher, self.recipe.pool)
        return teacher

    def _keep(self, teacher: SlottedCheckpoint) -> None:
        """Copy the agent that teaches to the folder, so that the training can go on without it."""
        copied = self.folder / TEACHER
        if not is_checkpoint(copied):
            copied.mkdir(parents=True, exist_ok=True)
            write_weights(copied, teacher.network.state_dict(), teacher.epoch, teacher.mode)
            write_agent(copied, teacher.recipe, teacher.origin)

    def _answers(self, teacher: SlottedCheckpoint | None) -> Answer | None:
        """Return how the teacher answers, if there is one."""
        name = self._training.teacher
        if not name:
            return None
        answer = by_rule(name) if teacher is None else deciding(teacher.recipe, teacher.network, "greedy", 0)
        return teaching(answer, self.recipe)

    def _base(self, sequences: Sequences) -> float:
        play(self.pools, by_rule(BASE), sequences)
        return self._mean(len(sequences))

    def _mean(self, n: int) -> float:
        """Return the mean of the objective over all jobs of the first n pools."""
        objective = self.recipe.pool.objective
        return float(np.concatenate([self.pools.values(b, objective) for b in range(n)]).mean())

    def _typical(self) -> float:
        """Return the size of a return under the base: rewards count in it, so that values are near 1."""
        base, rng = by_rule(BASE), np.random.default_rng(0)
        seen = collect(self.pools, self.recipe, self.network, self._set, rng, base, lesson=True)
        returns = advantages(replace(seen, values=np.zeros(len(seen))), replace(self._training, lam=1.0))[1]
        return max(float(np.sqrt(np.mean(returns**2))), 1e-9)

    @property
    def _training(self) -> SlottedTraining:
        return self.recipe.training

    # One epoch.

    def step(self) -> SlottedProgress:
        """Play one epoch's sequences, learn from them, and save."""
        begun = time.perf_counter()
        training = self._training
        rng = np.random.default_rng([self.origin.seed, self.epoch])
        left = 1.0 - 0.9 * self.epoch / max(training.epochs - 1, 1) if training.anneal else 1.0
        for group, rate in zip(self.adam.param_groups, self._rates, strict=True):
            group["lr"] = rate * left
        lesson, imitation = self.epoch < training.lessons, self._imitation()
        teacher = self._teacher if lesson or imitation else None
        n, sequences = training.sequences, self._set
        if training.fresh:
            sequences = self._draw(int(rng.integers(2**32)), n)
        seen = collect(self.pools, self.recipe, self.network, sequences, rng, teacher, lesson=lesson)
        reward_mean, train_mean = float(seen.rewards.sum() / n), self._mean(n)
        kills = int(self.pools.state.env.n_kills[:n].sum())
        losses = update(
            replace(seen, rewards=seen.rewards / self._unit),
            self.network,
            self.adam,
            training,
            rng,
            imitation=imitation,
            lesson=lesson,
        )
        self._average()
        self.epoch += 1
        base_mean = self._base(sequences)
        validated = float("nan")
        if self.epoch % training.validate_every == 0 or self.epoch == training.epochs:
            validated = self._validate()
        entry = SlottedProgress(
            epoch=self.epoch,
            seconds=time.perf_counter() - begun,
            train_mean=train_mean,
            base_mean=base_mean,
            reward_mean=reward_mean,
            valid_mean=validated,
            valid_base=self._valid_base if validated == validated else float("nan"),
            decisions=len(seen),
            kills=kills,
            **asdict(losses),
        )
        self.history.append(entry)
        self._save()
        return entry

    def _imitation(self) -> float:
        """Return the weight of the teacher's answers in this epoch."""
        training = self._training
        behind = self.epoch - training.lessons
        span = (training.epochs - training.lessons) * training.imitated
        return training.imitation * max(0.0, 1.0 - behind / span) if behind >= 0 and span > 0 else 0.0

    def _average(self) -> None:
        keep = self._training.average if self.epoch >= self._training.lessons else 0.0
        with torch.no_grad():
            for mean, now in zip(self.deployed.parameters(), self.network.parameters(), strict=True):
                mean.lerp_(now, 1.0 - keep)

    def _validate(self) -> float:
        """Play the validation sequences as it would be deployed; the best weights so far are kept."""
        how = self.recipe.deploy
        modes: tuple[Mode, ...] = ("greedy", "sample") if how == "validated" else (how,)
        values = []
        for mode in modes:
            play(self.pools, deciding(self.recipe, self.deployed, mode, self.origin.seed), self._valid)
            values.append(self._mean(len(self._valid)))
        best = int(np.argmin(values))
        if values[best] <= self._best:
            self._best, self._best_epoch, self._best_mode = values[best], self.epoch, modes[best]
            self._best_weights = {k: v.clone() for k, v in self.deployed.state_dict().items()}
        return float(values[best])

    # Files.

    def _save(self) -> None:
        """Write everything; a kill between two files loses nothing: each is whole, and resume reads one."""
        tensors = {f"now.{k}": v for k, v in self.deployed.state_dict().items()}
        tensors |= {f"trained.{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self._best_weights.items()}
        tensors |= adam_tensors("network", self.adam)
        course = Course(self.epoch, self._best, self._best_epoch, self._best_mode, self.history)
        self._write_rest()
        checkpoint.write_tensors(self.folder / RESUME, tensors, course.texts())  # last: where it is, all are

    def _write_rest(self) -> None:
        weights = self._best_weights or self.deployed.state_dict()
        epoch = self._best_epoch if self._best_weights else self.epoch
        write_weights(self.folder, weights, epoch, self._best_mode)
        checkpoint.write_progress(self.folder / PROGRESS, self.history)

    def resume(self) -> None:
        """Go on where `folder` says the training was.

        Raises:
            BridgeError: its file is missing, damaged, or of another training.
        """
        path = self.folder / RESUME
        tensors, meta = checkpoint.read_tensors(path)
        course = course_of(meta, SlottedProgress, path)
        self.epoch, self.history = course.epoch, course.history
        self._best, self._best_epoch, self._best_mode = course.best, course.best_epoch, course.best_mode
        checkpoint.fill(self.network, tensors, "trained.", path)
        checkpoint.fill(self.deployed, tensors, "now.", path)
        self._best_weights = {k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")}
        restore_adam("network", self.adam, tensors)
        self._write_rest()

    def run(self, report: Callable[[SlottedProgress], None] = lambda _: None) -> None:
        """Train until the recipe's last epoch; every finished epoch is saved."""
        while self.epoch < self._training.epochs:
            report(self.step())


def inherit(network: ActorCritic, teacher: SlottedCheckpoint) -> None:
    """Give a network the weights of another one of the same shape; a critic of its own stays.

    Raises:
        BridgeError: it is of another shape.
    """
    own = network.state_dict()
    given = {k: v for k, v in teacher.network.state_dict().items() if not k.startswith("critic.")}
    if any(k not in own or own[k].shape != v.shape for k, v in given.items()):
        raise BridgeError(
            "its network is of another shape",
            where=str(teacher.folder),
            remedy="Set training.inherit = false, or use the same network.",
        )
    network.load_state_dict(own | given)
    if teacher.recipe.kill != "learned":  # what it would say of kills, it has never learnt
        none = teacher.recipe.pool.slots
        with torch.no_grad():
            network.policy.weight[none + 1 :] = network.policy.weight[none]
            network.policy.bias[none + 1 :] = network.policy.bias[none]
