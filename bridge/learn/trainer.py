"""The trainer: epochs of an algorithm, validation, logs, and a file to go on from after any end."""

import copy
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write, cannot_write
from bridge.config.fields import record_of
from bridge.learn import algorithms, checkpoint
from bridge.learn.checkpoint_files import PROGRESS, RESUME, first_best
from bridge.learn.learner import NAN, Algorithm, Mode, TrainingContext
from bridge.learn.recipe import AnyRecipe


@dataclass(frozen=True)
class EpochRecord:
    """One epoch, as `progress.parquet` has it: means over episodes; NaN where nothing was validated."""

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
    more: Mapping[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        columns = record_of(self)
        more: dict[str, float] = columns.pop("more")
        return columns | more

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "EpochRecord":
        own = {name: row[name] for name in cls.__dataclass_fields__ if name != "more"}
        return cls(**own, more={name: value for name, value in row.items() if name not in own})


class Trainer:
    """Trains one agent, into a folder that exists; an `algorithm` may stand in for the recipe's.

    `deployed`: the network that a checkpoint holds, the running mean of the one that is trained. Raises
    BridgeError: the recipe cannot be trained, or not on these jobs.
    """

    def __init__(self, context: TrainingContext[Any], algorithm: Algorithm | None = None) -> None:
        context.recipe.check()
        self.recipe: AnyRecipe = context.recipe
        self.origin, self.folder = context.origin, context.folder
        algorithm_class = algorithm or algorithms.find(self.recipe.algorithm)
        torch.manual_seed(context.origin.seed)
        self.learner = algorithm_class(context)
        self.deployed = copy.deepcopy(self.learner.actor)
        self.epoch = 0
        self.history: list[EpochRecord] = []
        self._best = float("inf")
        self._best_epoch = -1
        self._best_mode: Mode = "sample" if context.recipe.deploy == "sample" else "greedy"
        self._best_weights: dict[str, torch.Tensor] = {}

    # One epoch.

    def step(self) -> EpochRecord:
        """Collect one epoch's episodes, learn from them, and save."""
        started_at = time.perf_counter()
        training = self.recipe.training
        if self.epoch == 0:
            self.learner.begin()
            self.deployed.load_state_dict(self.learner.actor.state_dict())
        learnt = self.learner.learn(self.epoch, np.random.default_rng([self.origin.seed, self.epoch]))
        keep = training.average if learnt.averages else 0.0
        with torch.no_grad():
            for mean, now in zip(self.deployed.parameters(), self.learner.actor.parameters(), strict=True):
                mean.lerp_(now, 1.0 - keep)
        self.epoch += 1
        validated = NAN
        if self.epoch % training.validate_every == 0 or self.epoch == training.epochs:
            validated = self._validate()
        entry = EpochRecord(
            epoch=self.epoch,
            seconds=time.perf_counter() - started_at,
            train_mean=learnt.train_mean,
            base_mean=learnt.base_mean,
            reward_mean=learnt.reward_mean,
            valid_mean=validated,
            valid_base=self.learner.base if validated == validated else NAN,
            decisions=learnt.decisions,
            more=learnt.more,
            **record_of(learnt.losses),
        )
        self.history.append(entry)
        self._save()
        return entry

    def _validate(self) -> float:
        """Play the validation sequences as it would be deployed; the best weights so far are kept."""
        how = self.recipe.deploy
        modes: tuple[Mode, ...] = ("greedy", "sample") if how == "validated" else (how,)
        if self.learner.base != self.learner.base:  # nothing to validate on: the last weights are the best
            self._remember_best(0.0, modes[0])
            return NAN
        values = [self.learner.validate(self.deployed, mode) for mode in modes]
        best = int(np.argmin(values))
        if values[best] <= self._best:
            self._remember_best(values[best], modes[best])
        return values[best]

    def _remember_best(self, value: float, mode: Mode) -> None:
        self._best, self._best_epoch, self._best_mode = value, self.epoch, mode
        self._best_weights = {k: v.clone() for k, v in self._weights().items()}

    def _weights(self) -> dict[str, torch.Tensor]:
        """Return what is deployed, and what belongs to it."""
        return checkpoint.add_prefix("actor.", self.deployed.state_dict()) | self.learner.extra()

    # Files.

    def _save(self) -> None:
        """Write everything; a kill between two files loses nothing: each is whole, and resume reads one."""
        trained = self.learner.actor.state_dict()
        groups = (("now.", self._weights()), ("trained.", trained), ("best.", self._best_weights))
        tensors = self.learner.tensors()
        for prefix, group in groups:
            tensors |= checkpoint.add_prefix(prefix, group)
        texts = {
            "epoch": str(self.epoch),
            "best": _json([self._best, self._best_epoch, self._best_mode]),
            "history": _json([entry.row() for entry in self.history]),
        }
        self._write_rest()
        checkpoint.write_tensors(self.folder / RESUME, tensors, texts)  # last: where it is, all are

    def _write_rest(self) -> None:
        epoch = self._best_epoch if self._best_weights else self.epoch
        weights = self._best_weights or self._weights()
        checkpoint.write_weights(self.folder, weights, epoch, self._best_mode)
        with atomic_write(self.folder / PROGRESS) as out:
            pq.write_table(pa.Table.from_pylist([entry.row() for entry in self.history]), out)

    def resume(self) -> None:
        """Go on where `folder` says the training was; BridgeError: a file is damaged, or of another."""
        path = self.folder / RESUME
        tensors, meta = checkpoint.read_tensors(path)
        try:
            self.epoch = int(meta["epoch"])
            self.history = [EpochRecord.of(row) for row in json.loads(meta["history"])]
            self._best, self._best_epoch, self._best_mode = json.loads(meta["best"])
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise BridgeError(f"is damaged: {error!r}", where=str(path)) from None
        checkpoint.load_weights_into(self.learner.actor, tensors, "trained.", path)
        checkpoint.load_weights_into(self.deployed, tensors, "now.actor.", path)
        self._best_weights = checkpoint.strip_prefix("best.", tensors)
        self.learner.restore(tensors, path)
        self._write_rest()

    def run(self, report: Callable[[EpochRecord], None] = lambda _: None) -> None:
        """Train until the recipe says that it is enough; every finished epoch is saved."""
        while not self.ended:
            report(self.step())

    @property
    def ended(self) -> bool:
        """Whether it has learnt for as long as its recipe says; an equal validation is no progress."""
        best = first_best([entry.valid_mean for entry in self.history])
        return self.recipe.training.ended(self.epoch, min(best, self._best_epoch))


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


#: TensorBoard: its folder beside the checkpoint, and Progress's fields by the name of their curve.
FOLDER = "tensorboard"
CURVES = {
    "metric/train": "train_mean",
    "metric/train base": "base_mean",
    "metric/validation": "valid_mean",
    "metric/validation base": "valid_base",
    "reward": "reward_mean",
    "update/kl": "kl",
    "update/entropy": "entropy",
    "update/clip fraction": "clip_fraction",
    "update/iterations": "iterations",
    "loss/policy": "policy_loss",
    "loss/value": "value_loss",
    "time/decisions": "decisions",
    "time/seconds": "seconds",
}


class TensorBoardWriter:
    """TensorBoard's event files of a training, one step per epoch, in the checkpoint's folder.

    Steps behind the epochs `done`, of an earlier, killed training, are not shown. Raises BridgeError:
    TensorBoard is not installed, or the folder cannot be written.
    """

    def __init__(self, folder: Path, done: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise BridgeError(
                "TensorBoard is not installed",
                where="--tensorboard",
                remedy="Run `pip install tensorboard`, or leave the option out: "
                "progress.parquet has the same curves.",
            ) from None
        self._path = folder / FOLDER
        with written(self._path):
            self._writer = SummaryWriter(str(self._path), purge_step=done + 1)

    def write(self, entry: EpochRecord) -> None:
        with written(self._path):
            for curve, name in CURVES.items():
                value = float(getattr(entry, name))
                if not math.isnan(value):
                    self._writer.add_scalar(curve, value, entry.epoch)
            self._writer.flush()

    def close(self) -> None:
        with written(self._path):
            self._writer.close()


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Context that raises BridgeError if a path cannot be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error
