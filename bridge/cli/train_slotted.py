"""`bridge train` of agents of the slotted pool: what they learn on, and from whom."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.progress import say_if_compiling
from bridge.cli.train import (
    SEED,
    base_recipe,
    command_of,
    folder_of,
    go_on,
    make,
    read_toml,
    refuse_another,
    refuse_existing,
    use_threads,
)
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.learn.slotted_checkpoint import SlottedCheckpoint
    from bridge.learn.slotted_recipe import SlottedRecipe

#: What to type behind a training.
_NEXT = (("bridge evaluate {} --policy saf --kill none --kill rule", "judge it beside a heuristic"),)
SYNTHETIC = "synthetic"


def train_slotted(ctx: click.Context) -> None:
    """Train an agent of the slotted pool as the options of `bridge train` say.

    Raises:
        BridgeError: an option has a wrong value, or does not go with the training in the folder.
    """
    asked = ctx.params
    data, seed, resume = asked["data"], asked["seed"], asked["resume"]
    objective, clamp = asked["objective"], asked["oracle_clamp"]
    words = [objective or "", "clamp" if clamp else ""]
    folder = asked["out"] or folder_of(asked["policy"], asked["setting"], data or SYNTHETIC, words, seed)
    if resume and asked["teacher"]:
        raise click.UsageError("a training that goes on has its teacher in its folder: leave --teacher out")
    if not resume:
        refuse_existing(folder)

    from bridge.cli.training import report, run
    from bridge.learn.checkpoint import Origin
    from bridge.learn.slotted_checkpoint import load, read_agent, write_agent
    from bridge.learn.slotted_train import SlottedTrainer
    from bridge.learn.train import sha256_of, versions
    from bridge.pool.evaluate import jobs_of

    before = read_agent(folder) if resume else None
    recipe = _recipe(asked, before[0] if before else None)
    teacher = None if before else _teacher(recipe, asked["teacher"])
    use_threads(asked["threads"], before[1] if before else None)
    name = data or (before[1].workload if before else SYNTHETIC)
    jobs = jobs_of(name)
    origin = Origin(
        workload=name,
        workload_name=jobs.name,
        jobs=len(jobs),
        sha256="" if jobs.synthetic else sha256_of(Path(name)),
        seed=seed if seed is not None else before[1].seed if before else SEED,
        constants={},
        versions=versions(),
        command=command_of(ctx),
    )
    if before:
        refuse_another(folder, before, recipe, origin)
        origin = before[1]
    say_if_compiling()
    new = not folder.exists()
    make(folder)
    try:
        trainer = SlottedTrainer(recipe, jobs, origin, folder, teacher)
    except BridgeError:
        with contextlib.suppress(OSError):  # it holds something
            if new:
                folder.rmdir()
        raise
    go_on(trainer)
    if before is None or before[0] != recipe:
        write_agent(folder, recipe, origin)
    run(trainer, asked["tensorboard"])
    report(trainer, load(folder).epoch, _NEXT)


def _recipe(asked: dict[str, Any], before: "SlottedRecipe | None") -> "SlottedRecipe":
    """Return the recipe: a policy's setting (or what was trained before), then the file, then the options."""
    from bridge.learn.registry import slotted_recipe_of
    from bridge.learn.slotted_recipe import from_dict

    config = asked["config"]
    recipe = base_recipe(slotted_recipe_of, asked["policy"], asked["setting"], config, before)
    if config is not None:
        recipe = from_dict(read_toml(config), str(config), recipe)
    changes = {
        "pool": {k: asked[k] for k in ("objective", "oracle_clamp") if asked[k]},
        "training": {"epochs": asked["epochs"]} if asked["epochs"] else {},
    }
    return from_dict(changes, "the options", recipe)


def _teacher(recipe: "SlottedRecipe", folder: Path | None) -> "SlottedCheckpoint | None":
    """Return the agent that teaches, if the recipe asks for one.

    Raises:
        BridgeError: it does and there is none, or it does not.
    """
    from bridge.learn.slotted_checkpoint import load
    from bridge.learn.slotted_recipe import AGENT_TEACHER

    taught, which = recipe.training.teacher == AGENT_TEACHER, f"{recipe.name}/{recipe.setting}"
    if taught and folder is None:
        raise BridgeError(
            "learns from a trained agent",
            where=which,
            remedy=f"Train one, `bridge train {recipe.name} --setting rule-kill`; give it with --teacher.",
        )
    if folder is not None and not taught:
        raise BridgeError("does not learn from an agent", where=which, remedy="Leave --teacher out.")
    return load(folder) if folder is not None else None
