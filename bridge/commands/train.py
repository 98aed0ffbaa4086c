"""`bridge train` and `bridge.train`: which recipe is trained, and the training that is ready to run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge.base.cache import is_checkpoint
from bridge.base.progress import SILENT, ProgressReporter
from bridge.commands.request import CommandBackend, CommandRequest
from bridge.config import merged, read_toml
from bridge.config.fields import fields_of
from bridge.learn.checkpoint import read_agent
from bridge.learn.checkpoint_files import SEED, WORKLOADS
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import AnyRecipe, Recipe, from_dict
from bridge.learn.registry import find_recipe
from bridge.learn.trainer import Trainer
from bridge.learn.training import open_trainer, use_threads
from bridge.workload.rules import PRESETS


def recipe_for(policy: str, options: Mapping[str, Any], before: AnyRecipe | None = None) -> AnyRecipe:
    """Return the recipe to train: a policy's setting or an earlier one, with options applied.

    `policy`: its name, or ``module:ATTR``; empty = as `before` in this folder. `options`: those of `bridge
    train`, by name: ``setting``, ``config``, ``epochs``, ``algorithm``, and fields of the scheduler's
    settings.
    """
    setting, config = options.get("setting", ""), options.get("config")
    if before is not None and not (policy or setting or config):
        recipe = before
    else:
        same = before is not None and policy in ("", before.name)
        name = policy or (before.name if before else "")
        recipe = find_recipe(name, setting or (before.setting if before and same else ""))
    if config is not None:
        recipe = from_dict(read_toml(config), str(config), recipe)
    part = recipe.part
    rules = fields_of(type(getattr(recipe, part)))
    changes: dict[str, Any] = {part: {name: options[name] for name in rules if name in options}}
    if "epochs" in options:
        changes["training"] = {"epochs": options["epochs"]}
    if "algorithm" in options:
        changes["algorithm"] = options["algorithm"]
    if isinstance(recipe, Recipe) and changes[part].get("protocol", recipe.protocol) != recipe.protocol:
        fits = changes[part]["protocol"] in ("schedgym", "schedgym-code") and recipe.name in PRESETS
        changes = merged({part: {"preset": recipe.name if fits else ""}}, changes)
        changed = from_dict(changes, "the options", recipe)
        assert isinstance(changed, Recipe)
        return replace(changed, setup=changed.setup.with_usual_policy({*changes[part]}))
    return from_dict(changes, "the options", recipe)


def start_or_resume(
    scheduler: CommandBackend,
    recipe: AnyRecipe,
    workload: str,
    folder: Path,
    options: Mapping[str, Any],
    *,
    command: str = "",
    watch: ProgressReporter = SILENT,
) -> Trainer:
    """Return a new training, or the folder's to resume, as `bridge train` does.

    `recipe`: see `recipe_for`; `workload`: what is learnt on, empty = as before, or the scheduler's own;
    `options`: of `bridge train`, by name (``seed``, ``device``, ``threads``, ``teacher``, …); `command`
    repeats it. Errors as `open_trainer`.
    """
    before = read_agent(folder)[1] if is_checkpoint(folder) else None
    use_threads(options.get("threads"), before)
    name = workload or (before.workload if before else WORKLOADS[scheduler.name])
    training_data = scheduler.load_training_data(
        recipe, CommandRequest((), name, options), before.sha256 if before else ""
    )
    seed = options.get("seed", before.seed if before else SEED)
    device, teacher = options.get("device", "cpu"), options.get("teacher")
    origin = training_data.origin(name, seed, device=device, command=command)
    if before is None:
        watch.dropped(training_data.tally)
    learns_from = None if teacher is None else Path(teacher)
    context = TrainingContext(training_data.recipe, training_data.jobs, origin, folder, device, learns_from)
    return open_trainer(context, say=watch.say)
