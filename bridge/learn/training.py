"""A training as a whole: from its first epoch, or from where an earlier one was, to its last."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from bridge.base.cache import is_checkpoint
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.source import digest_of_cluster
from bridge.config import verify
from bridge.env.episode_starts import constants_of
from bridge.learn import algorithms
from bridge.learn.checkpoint import Agent, load, read_agent, write_agent
from bridge.learn.checkpoint_files import RESUME, Provenance, digest_of_agent, versions
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import AnyRecipe, R, Recipe
from bridge.learn.trainer import EpochRecord, Trainer, written
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read


@dataclass(frozen=True)
class TrainingData:
    """What an agent learns on.

    Attributes:
        recipe: as it is for these jobs.
        jobs: what episodes are made of, see `bridge.learn.learner.TrainingContext`.
        sha256: digest of the jobs' contents; empty if a model made them.
        resources: their names, if there are more than nodes.
    """

    recipe: AnyRecipe
    jobs: Any
    sha256: str
    constants: Mapping[str, float] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    tally: Any = field(default_factory=dict)

    @classmethod
    def of(cls, recipe: AnyRecipe, log: Any, sha256: str) -> "TrainingData":
        """Return the training data: a workload, or jobs of the time-stepped pool, of this digest."""
        if not isinstance(recipe, Recipe):
            return cls(recipe, log, sha256)
        jobs = recipe.setup.select(log)
        resources = jobs.resources if len(jobs.resources) > 1 else ()
        own = recipe.for_resources(len(jobs.resources))
        return cls(own, jobs, sha256, constants_of(jobs), resources, jobs.tally)

    def origin(self, workload: str, seed: int, *, device: str = "cpu", command: str = "") -> Provenance:
        """Return the `Provenance` of an agent that learns on this; `device`: ``cpu``, ``cuda``."""
        provenance = Provenance(
            workload=workload,
            workload_name=self.jobs.name,
            jobs=len(self.jobs),
            sha256=self.sha256,
            seed=seed,
            constants=self.constants,
            versions={**versions(), "device": device},
            command=command,
            resources=self.resources,
            extra_log_digests={
                name: read(resolve(name)).digest() for name in getattr(self.recipe.training, "logs", ())
            },
            cluster_sha256=cluster_digest_of(self.recipe),
            picks_sha256=digest_of_agent(getattr(self.recipe, "picks", "")),
        )
        verify(provenance, "training")  # before a folder is made that nobody could read
        return provenance


def cluster_digest_of(recipe: AnyRecipe) -> str:
    name = recipe.setup.cluster if isinstance(recipe, Recipe) else None
    return "" if name is None else digest_of_cluster(name)


def use_threads(threads: int | None, before: Provenance | None = None) -> None:
    """Simulate and compute with so many threads; else as many as the training began with, 1 for a new one."""
    began = before.versions.get("threads", "") if before else ""
    torch.set_num_threads(threads or (int(began) if began.isdecimal() else 1))


def open_trainer(context: TrainingContext[Any], *, say: Callable[[str], None] = lambda _: None) -> Trainer:
    """Return a training that is ready to run, from where the one in the folder was, if there is one.

    `say` takes a line where a training will not go on bit for bit. BridgeError: the folder holds another
    training, or one that is further; the recipe cannot be trained, or not on these jobs.
    """
    folder, recipe = context.folder, context.recipe
    before = read_agent(folder) if is_checkpoint(folder) else None
    if before:
        _refuse_another(folder, before, recipe, context.origin, say)
        context = replace(context, origin=before[1])
    if context.device == "cuda" and not torch.cuda.is_available():
        remedy = "Use --device cpu, or install a PyTorch built for your GPU (https://pytorch.org)."
        raise BridgeError("PyTorch sees no CUDA device", where="--device cuda", remedy=remedy)
    trainer = Trainer(context, algorithms.find(recipe.algorithm))
    if (folder / RESUME).exists():
        trainer.resume()
        if recipe.training.epoch_limit < trainer.epoch:
            raise BridgeError(
                f"has learnt for {counted(trainer.epoch, 'epoch')} already",
                where=str(folder),
                remedy="Ask for more.",
            )
    with written(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if before is None or before[0] != recipe:
        write_agent(folder, recipe, context.origin)
    return trainer


def train_or_resume(
    context: TrainingContext[R], report: Callable[[EpochRecord], None] = lambda _: None
) -> Agent[R]:
    """Return an agent, trained as far as its recipe says; a training that broke off goes on.

    Arguments and errors are those of `open_trainer`; `report` is called with every epoch.
    """
    open_trainer(context).run(report)
    return load(context.folder, type(context.recipe))


def _refuse_another(
    folder: Path,
    before: tuple[AnyRecipe, Provenance],
    recipe: AnyRecipe,
    origin: Provenance,
    say: Callable[[str], None],
) -> None:
    """Refuse to go on with another training than the one in the folder; more epochs are welcome."""
    old_recipe, old = before
    for name, was, after in (
        ("the seed", old.seed, origin.seed),
        ("the log of digest", old.sha256[:12] or "none", origin.sha256[:12] or "none"),
        ("the cluster of digest", old.cluster_sha256[:12] or "none", origin.cluster_sha256[:12] or "none"),
        ("the picks of digest", old.picks_sha256[:12] or "none", origin.picks_sha256[:12] or "none"),
        ("further logs of digests", dict(old.extra_log_digests), dict(origin.extra_log_digests)),
        *_fields("", old_recipe.as_dict(), recipe.as_dict()),
    ):
        if was != after and name not in ("training.epochs", "training.longest", "source", "summary"):
            remedy = "Leave that option out to go on with it, or train anew into another folder."
            raise BridgeError(f"was trained with {name} {was}, not {after}", where=str(folder), remedy=remedy)
    now = origin.versions.items()
    differing = [f"{k} {old.versions[k]} instead of {v}" for k, v in now if old.versions.get(k, v) != v]
    if differing:
        say(f"this training began with {', '.join(differing)}: it goes on, but not bit for bit")


def _fields(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*old, *new]):
        was, after = old.get(name), new.get(name)
        if isinstance(was, dict) and isinstance(after, dict):
            yield from _fields(f"{prefix}{name}.", was, after)
        else:
            yield f"{prefix}{name}", was, after
