"""Training: epochs of collecting and updating, validation, logs, and a file to go on from after any end."""

import copy
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bridge.env.batch import Batch
from bridge.env.outcome import base_values, episode_of
from bridge.env.reward import rewards
from bridge.env.source import constants_of as constants_of
from bridge.env.source import span
from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.learn import checkpoint
from bridge.learn.checkpoint import Origin
from bridge.learn.folder import PROGRESS, RESUME, WEIGHTS
from bridge.learn.imitate import imitate, with_teacher
from bridge.learn.network import actor_of, critic_of, lean
from bridge.learn.ppo import Update
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import Mode, Trajectories, collect, decided, deciding, play
from bridge.workload.select import Jobs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Sequences of a validation.
VALIDATION = 100
#: Second word of the seed of imitation, which no epoch has.
_LESSON = 2**31
#: How many draws an episode that must be busy has.
_DRAWS = 4


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
        self.prepared = recipe.setup.prepare(jobs, recipe.policy())
        self.base = recipe.setup.prepare(jobs)
        self.part, self.valid = span(len(jobs), training.part), span(len(jobs), training.validation)
        for name, (low, high) in (("part", self.part), ("validation", self.valid)):
            if high - low < training.length and not (name == "validation" and low == high):
                raise BridgeError(
                    f"the {name} of {high - low:,} jobs holds no episode of {training.length}",
                    where=jobs.name,
                    remedy="Use a longer log or a smaller training.length.",
                )
        compiled = recipe.encoder.compile(origin.constants)
        if training.teacher:
            with_teacher(recipe.encoder, training.teacher).compile(origin.constants)  # refuses it now
        self.batch = Batch(self.prepared, compiled, max(training.trajectories, VALIDATION), training.length)
        torch.manual_seed(origin.seed)
        self.actor, self.critic = actor_of(recipe).to(device), critic_of(recipe).to(device)
        self.deployed = copy.deepcopy(self.actor)
        self.adams = (
            torch.optim.Adam(self.actor.parameters(), training.learning_rate),
            torch.optim.Adam(self.critic.parameters(), training.critic_rate),
        )
        self.epoch = 0
        self.history: list[Progress] = []
        self._best = float("inf")
        self._best_epoch = -1
        self._best_mode: Mode = "sample" if recipe.deploy == "sample" else "greedy"
        self._best_weights: dict[str, torch.Tensor] = {}
        low, high = self.valid
        starts = np.linspace(low, high - training.length, VALIDATION) if high > low else np.zeros(0)
        self._valid_starts = np.unique(starts.astype(np.int64))
        self._valid_base = float("nan")
        self._unit = 1.0  # a critic learns differences of thousands badly: count them in typical episodes
        if recipe.reward.form in ("native", "plain"):
            low, high = self.part
            typical = np.linspace(low, high - training.length, VALIDATION).astype(np.int64)
            self._unit = max(float(self._base(typical).mean()), 1e-9)
        if len(self._valid_starts):
            self._valid_base = float(self._base(self._valid_starts).mean())

    def _base(self, starts: Ints) -> Floats:
        return base_values(self.base, starts, self.recipe.training.length, self.recipe.reward.metric)

    # One epoch.

    def step(self) -> Progress:
        """Collect one epoch's episodes, learn from them, and save."""
        begun = time.perf_counter()
        training, metric = self.recipe.training, self.recipe.reward.metric
        rng = np.random.default_rng([self.origin.seed, self.epoch])
        self._anneal()
        if self.epoch == 0:
            self._begin()
        starts, base = self._draw(rng)
        seen = collect(self.batch, self.actor, starts, rng)
        if len(seen) == 0:
            raise BridgeError(
                "no decision had to be taken in a whole epoch",
                where=self.prepared.jobs.name,
                remedy="The machine is never busy: use another log, or raise its load.",
            )
        given = self._rewards(seen, base)
        learns = replace(training, iterations=0) if self.epoch < training.warmup else training
        losses = Update(seen, given, self.actor, self.critic, learns).run(*self.adams, rng)
        self._average()
        self.epoch += 1
        validated = float("nan")
        if self.epoch % training.validate_every == 0 or self.epoch == training.epochs:
            validated = self._validate()
        entry = Progress(
            epoch=self.epoch,
            seconds=time.perf_counter() - begun,
            train_mean=float(np.mean([e.value(metric) for e in seen.episodes])),
            base_mean=float(base.mean()),
            reward_mean=float(given.sum() / len(starts)),
            valid_mean=validated,
            valid_base=self._valid_base if validated == validated else float("nan"),
            decisions=len(seen),
            **asdict(losses),
        )
        self.history.append(entry)
        self._save()
        return entry

    def _draw(self, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Return an epoch's first jobs, and the base policy's values there."""
        training, (low, high) = self.recipe.training, self.part
        n = training.trajectories
        if training.busy <= 0:
            starts = rng.integers(low, high - training.length + 1, n)
            return starts, self._base(starts)
        starts = rng.integers(low, high - training.length + 1, _DRAWS * n)
        base = self._base(starts)
        chosen = np.argsort(base < training.busy, kind="stable")[:n]  # the busy ones first, as drawn
        return starts[chosen], base[chosen]

    def _begin(self) -> None:
        """Give the actor a start: a leaning, good habits, or neither."""
        training, seed = self.recipe.training, self.origin.seed
        rng = np.random.default_rng([seed, _LESSON])
        if training.rejecting:
            lean(self.actor, training.rejecting)
        if training.teacher:
            starts, _ = self._draw(rng)
            imitate(self.recipe, self.origin, self.prepared, self.actor, starts, rng)
        self.deployed.load_state_dict(self.actor.state_dict())

    def _anneal(self) -> None:
        training = self.recipe.training
        left = 1.0 - 0.9 * self.epoch / max(training.epochs - 1, 1) if training.anneal else 1.0
        for adam, rate in zip(self.adams, (training.learning_rate, training.critic_rate), strict=True):
            adam.param_groups[0]["lr"] = rate * left

    def _rewards(self, seen: Trajectories, base: Floats) -> Floats:
        ends = np.searchsorted(seen.episode, np.arange(len(seen.episodes) + 1))
        parts = [
            rewards(self.recipe.reward, episode, float(base[e]), seen.times[a:b], seen.late[a:b])
            for e, (episode, a, b) in enumerate(zip(seen.episodes, ends, ends[1:], strict=False))
        ]
        return np.concatenate(parts) / self._unit

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
            for mean, now in zip(self.deployed.parameters(), self.actor.parameters(), strict=True):
                mean.lerp_(now, 1.0 - keep)

    def _weights(self) -> dict[str, torch.Tensor]:
        """Return what is deployed, and the critic."""
        actor = {f"actor.{k}": v for k, v in self.deployed.state_dict().items()}
        return actor | {f"critic.{k}": v for k, v in self.critic.state_dict().items()}

    # Files.

    def _save(self) -> None:
        """Write everything; a kill between two files loses nothing: each is whole, and resume reads one."""
        tensors = {f"now.{k}": v for k, v in self._weights().items()}
        tensors |= {f"trained.{k}": v for k, v in self.actor.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self._best_weights.items()}
        for which, adam in zip(("actor", "critic"), self.adams, strict=True):
            for place, state in adam.state_dict()["state"].items():
                tensors |= {f"adam.{which}.{place}.{k}": torch.as_tensor(v) for k, v in state.items()}
        meta = {
            "epoch": str(self.epoch),
            "best": checkpoint.as_json([self._best, self._best_epoch, self._best_mode]),
            "history": checkpoint.as_json([asdict(p) for p in self.history]),
        }
        self._write_rest()
        checkpoint.write_tensors(self.folder / RESUME, tensors, meta)  # last: where it is, all are

    def _write_rest(self) -> None:
        weights, epoch = self._best_weights or self._weights(), self._best_epoch
        meta = {"epoch": str(epoch if self._best_weights else self.epoch), "mode": self._best_mode}
        checkpoint.write_tensors(self.folder / WEIGHTS, weights, meta)
        write_progress(self.folder / PROGRESS, self.history)

    def resume(self) -> None:
        """Go on where `folder` says the training was.

        Raises:
            BridgeError: its file is missing, damaged, or of another training.
        """
        path = self.folder / RESUME
        tensors, meta = checkpoint.read_tensors(path)
        try:
            self.epoch = int(meta["epoch"])
            self._best, self._best_epoch, self._best_mode = json.loads(meta["best"])
            self.history = [Progress(**entry) for entry in json.loads(meta["history"])]
        except (KeyError, ValueError, TypeError) as error:
            raise BridgeError(f"is damaged: {error!r}", where=str(path)) from None
        checkpoint.fill(self.actor, tensors, "trained.", path)
        checkpoint.fill(self.deployed, tensors, "now.actor.", path)
        checkpoint.fill(self.critic, tensors, "now.critic.", path)
        self._best_weights = {k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")}
        for which, adam in zip(("actor", "critic"), self.adams, strict=True):
            state: dict[int, dict[str, torch.Tensor]] = {}
            for name, tensor in tensors.items():
                if name.startswith(f"adam.{which}."):
                    place, key = name.removeprefix(f"adam.{which}.").split(".")
                    state.setdefault(int(place), {})[key] = tensor
            adam.load_state_dict({**adam.state_dict(), "state": state})
        self._write_rest()

    def run(self, report: Callable[[Progress], None] = lambda _: None) -> None:
        """Train until the recipe's last epoch; every finished epoch is saved."""
        while self.epoch < self.recipe.training.epochs:
            report(self.step())


def write_progress(path: Path, history: list[Progress]) -> None:
    """Write the training curve as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(path) as out:
        pq.write_table(pa.Table.from_pylist([asdict(p) for p in history]), out)


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
