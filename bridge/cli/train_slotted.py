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
    from bridge.learn.pool.recipe import PoolRecipe

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

    from bridge.learn.checkpoint import Origin, load, read_agent, write_agent
    from bridge.learn.origin import sha256_of, versions
    from bridge.learn.pool.recipe import PoolRecipe
    from bridge.learn.trainer import Trainer
    from bridge.learn.watch import report, run
    from bridge.pool.evaluate import jobs_of

    before = read_agent(folder, PoolRecipe) if resume else None
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
        trainer = Trainer(recipe, jobs, origin, folder, teacher=teacher)
    except BridgeError:
        with contextlib.suppress(OSError):  # it holds something
            if new:
                folder.rmdir()
        raise
    go_on(trainer)
    if before is None or before[0] != recipe:
        write_agent(folder, recipe, origin)
    run(trainer, asked["tensorboard"])
    report(trainer, load(folder, PoolRecipe).epoch, _NEXT)


def _recipe(asked: dict[str, Any], before: "PoolRecipe | None") -> "PoolRecipe":
    """Return the recipe: a policy's setting (or what was trained before), then the file, then the options."""
    from bridge.learn.pool.recipe import PoolRecipe
    from bridge.learn.recipe import from_dict
    from bridge.learn.registry import recipe_of

    config = asked["config"]
    recipe = base_recipe(
        lambda n, s: recipe_of(n, s, PoolRecipe), asked["policy"], asked["setting"], config, before
    )
    if config is not None:
        recipe = from_dict(read_toml(config), str(config), recipe)
    changes = {
        "pool": {k: asked[k] for k in ("objective", "oracle_clamp") if asked[k]},
        "training": {"epochs": asked["epochs"]} if asked["epochs"] else {},
    }
    return from_dict(changes, "the options", recipe)


def _teacher(recipe: "PoolRecipe", folder: Path | None) -> Path | None:
    """Return the agent that teaches, if the recipe asks for one.

    Raises:
        BridgeError: it does and there is none, or it does not.
    """
    from bridge.learn.pool.recipe import AGENT_TEACHER

    taught, which = recipe.training.teacher == AGENT_TEACHER, f"{recipe.name}/{recipe.setting}"
    if taught and folder is None:
        raise BridgeError(
            "learns from a trained agent",
            where=which,
            remedy=f"Train one, `bridge train {recipe.name} --setting rule-kill`; give it with --teacher.",
        )
    if folder is not None and not taught:
        raise BridgeError("does not learn from an agent", where=which, remedy="Leave --teacher out.")
    return folder
