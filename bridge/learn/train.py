"""Training: epochs of an algorithm, validation, logs, and a file to go on from after any end."""

import copy
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bridge.env.batch import Batch
from bridge.env.outcome import episode_of
from bridge.env.source import constants_of as constants_of
from bridge.learn import checkpoint
from bridge.learn.by_gradient import PolicyGradient, with_reward
from bridge.learn.by_ppo import Ppo
from bridge.learn.by_prediction import FuturePrediction
from bridge.learn.checkpoint import Course, Origin, course_of
from bridge.learn.curriculum import Source
from bridge.learn.folder import PROGRESS, RESUME, WEIGHTS
from bridge.learn.learner import Learner
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import Mode, decided, deciding, play
from bridge.workload.select import Jobs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Sequences of a validation.
VALIDATION = 100
_ALGORITHMS: dict[str, Callable[[Recipe, Origin, Source, str], Learner]] = {
    "ppo": Ppo,
    "gradient": PolicyGradient,
    "prediction": FuturePrediction,
}


@dataclass(frozen=True)
class Progress:
    """One epoch, as `progress.parquet` has it. Means over episodes; NaN where nothing was validated."""

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
    clip_fraction: float
    iterations: int
    decisions: int


class Trainer:
    """Trains one agent on one workload.

    Args:
        recipe: what to train.
        jobs: the workload, as the recipe's rules select it.
        origin: where it comes from.
        folder: an existing folder for the checkpoint.
        device: ``cpu`` or ``cuda``.

    Attributes:
        epoch: epochs done.
        history: one entry per epoch.
    """

    def __init__(self, recipe: Recipe, jobs: Jobs, origin: Origin, folder: Path, device: str = "cpu") -> None:
        recipe.check()
        self.recipe, self.origin, self.folder = recipe, origin, folder
        training = recipe.training
        if recipe.algorithm == "gradient":  # it also sees rewards, validation does not
            together = training.trajectories
            self.source = Source(recipe, jobs, origin.constants, together, with_reward(recipe))
            compiled = recipe.encoder.compile(origin.constants)
            self.batch = Batch(self.source.prepared, compiled, VALIDATION, training.length)
        else:
            together = max(training.trajectories, VALIDATION)
            self.source = Source(recipe, jobs, origin.constants, together)
            self.batch = self.source.batch
        torch.manual_seed(origin.seed)
        self.learner: Learner = _ALGORITHMS[recipe.algorithm](recipe, origin, self.source, device)
        self.deployed = copy.deepcopy(self.learner.actor)
        self.epoch = 0
        self.history: list[Progress] = []
        self._best = float("inf")
        self._best_epoch = -1
        self._best_mode: Mode = "sample" if recipe.deploy == "sample" else "greedy"
        self._best_weights: dict[str, torch.Tensor] = {}
        low, high = self.source.valid
        starts = np.linspace(low, high - training.length, VALIDATION) if high > low else np.zeros(0)
        self._valid_starts = np.unique(starts.astype(np.int64))
        self._valid_base = float("nan")
        if len(self._valid_starts):
            self._valid_base = float(self.source.values(self._valid_starts).mean())

    # One epoch.

    def step(self) -> Progress:
        """Collect one epoch's episodes, learn from them, and save."""
        begun = time.perf_counter()
        training = self.recipe.training
        if self.epoch == 0:
            self.learner.begin()
            self.deployed.load_state_dict(self.learner.actor.state_dict())
        learnt = self.learner.learn(self.epoch, np.random.default_rng([self.origin.seed, self.epoch]))
        self._average()
        self.epoch += 1
        validated = float("nan")
        if self.epoch % training.validate_every == 0 or self.epoch == training.epochs:
            validated = self._validate()
        entry = Progress(
            epoch=self.epoch,
            seconds=time.perf_counter() - begun,
            train_mean=learnt.train_mean,
            base_mean=learnt.base_mean,
            reward_mean=learnt.reward_mean,
            valid_mean=validated,
            valid_base=self._valid_base if validated == validated else float("nan"),
            decisions=learnt.decisions,
            **asdict(learnt.losses),
        )
        self.history.append(entry)
        self._save()
        return entry

    def _validate(self) -> float:
        """Play the validation sequences as it would be deployed; the best weights so far are kept."""
        if not len(self._valid_starts):
            self._keep(0.0, "sample" if self.recipe.deploy == "sample" else "greedy")
            return float("nan")
        how = self.recipe.deploy
        modes: tuple[Mode, ...] = ("greedy", "sample") if how == "validated" else (how,)
        values = [self._validated(mode) for mode in modes]
        best = int(np.argmin(values))
        self._keep(values[best], modes[best])
        return values[best]

    def _validated(self, mode: Mode) -> float:
        play(self.batch, deciding(decided(self.deployed), mode, self.origin.seed), self._valid_starts)
        metric = self.recipe.reward.metric
        return float(
            np.mean([episode_of(self.batch, b).value(metric) for b in range(len(self._valid_starts))])
        )

    def _keep(self, value: float, mode: Mode) -> None:
        if value <= self._best or not len(self._valid_starts):
            self._best, self._best_epoch, self._best_mode = value, self.epoch, mode
            self._best_weights = {k: v.clone() for k, v in self._weights().items()}

    def _average(self) -> None:
        keep = self.recipe.training.average
        with torch.no_grad():
            for mean, now in zip(self.deployed.parameters(), self.learner.actor.parameters(), strict=True):
                mean.lerp_(now, 1.0 - keep)

    def _weights(self) -> dict[str, torch.Tensor]:
        """Return what is deployed, and what belongs to it."""
        actor = {f"actor.{k}": v for k, v in self.deployed.state_dict().items()}
        return actor | self.learner.extra()

    # Files.

    def _save(self) -> None:
        """Write everything; a kill between two files loses nothing: each is whole, and resume reads one."""
        tensors = {f"now.{k}": v for k, v in self._weights().items()}
        tensors |= {f"trained.{k}": v for k, v in self.learner.actor.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self._best_weights.items()}
        tensors |= self.learner.tensors()
        course = Course(self.epoch, self._best, self._best_epoch, self._best_mode, self.history)
        self._write_rest()
        checkpoint.write_tensors(self.folder / RESUME, tensors, course.texts())  # last: where it is, all are

    def _write_rest(self) -> None:
        weights, epoch = self._best_weights or self._weights(), self._best_epoch
        meta = {"epoch": str(epoch if self._best_weights else self.epoch), "mode": self._best_mode}
        checkpoint.write_tensors(self.folder / WEIGHTS, weights, meta)
        checkpoint.write_progress(self.folder / PROGRESS, self.history)

    def resume(self) -> None:
        """Go on where `folder` says the training was.

        Raises:
            BridgeError: its file is missing, damaged, or of another training.
        """
        path = self.folder / RESUME
        tensors, meta = checkpoint.read_tensors(path)
        course = course_of(meta, Progress, path)
        self.epoch, self.history = course.epoch, course.history
        self._best, self._best_epoch, self._best_mode = course.best, course.best_epoch, course.best_mode
        checkpoint.fill(self.learner.actor, tensors, "trained.", path)
        checkpoint.fill(self.deployed, tensors, "now.actor.", path)
        self._best_weights = {k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")}
        self.learner.restore(tensors, path)
        self._write_rest()

    def run(self, report: Callable[[Progress], None] = lambda _: None) -> None:
        """Train until the recipe's last epoch; every finished epoch is saved."""
        while self.epoch < self.recipe.training.epochs:
            report(self.step())


def sha256_of(path: Path) -> str:
    """Return the digest of a log file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Return what decides the bits of a training."""
    import numba

    import bridge

    return {
        "bridge": bridge.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "threads": str(torch.get_num_threads()),
    }


def with_training(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """Return the recipe with other training values."""
    return replace(recipe, training=replace(recipe.training, **changes))
