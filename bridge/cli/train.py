"""`bridge train`: teach a policy in the fast world, watch it, stop it, and go on."""

import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.cli.options import ORDER_HELP, malformed_option, read_log, typed_options
from bridge.cli.progress import say_if_compiling, warn_about
from bridge.cli.slotted import TRAINS, refuse_options, slotted_training_options
from bridge.errors import BridgeError
from bridge.learn.folder import MAX_SEED

if TYPE_CHECKING:
    from bridge.learn.checkpoint import Origin
    from bridge.learn.recipe import AnyRecipe, Recipe
    from bridge.learn.trainer import Trainer

R = TypeVar("R", bound="AnyRecipe")

POLICY, WORKLOAD, SEED = "rlbackfilling", "bundled-128", 1
#: Options that change nothing, or only the last bits, of what is learnt.
_SILENT = frozenset({"out", "resume", "tensorboard", "device", "threads"})
#: Options that the slotted pool does not have.
_EVENT = frozenset({"workload", "protocol", "order", "backfill", "nodes", "malformed", "device"})
#: What to type behind a training.
_NEXT = (
    ("bridge evaluate {}", "judge it on held-out sequences"),
    ("bridge validate {} --platform FILE.xml", "let it decide for a detailed platform"),
    ("bridge explain {}", "see what it looks at"),
)


@click.command()
@click.argument("policy", default="", metavar="[POLICY]")
@click.option(
    "--fast", is_flag=True, help="In the fast world. It is the only one that trains, so this may be left out."
)
@click.option(
    "--setting", default="", help="The policy's setting.  [default: its first, see `bridge policies`]"
)
@click.option("--workload", metavar="LOG", help=f"A file, a bundled or a fetched log.  [default: {WORKLOAD}]")
@click.option(
    "--config",
    metavar="FILE.toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Values that replace the setting's, as `bridge policies show NAME --toml` prints them.",
)
@click.option("--seed", type=click.IntRange(0, MAX_SEED), help=f"Of weights and sampling.  [default: {SEED}]")
@click.option(
    "--epochs", type=click.IntRange(min=1), help="Rounds of training.  [default: the setting's own]"
)
@click.option(
    "--protocol",
    type=click.Choice(["standard", "cqsim", "schedgym"]),
    help="The exact rules.  [default: the setting's own]",
)
@click.option("--order", default="", help=ORDER_HELP + "  [default: the setting's own]")
@click.option(
    "--backfill",
    type=click.Choice(["none", "easy", "conservative"]),
    help="Backfilling rule.  [default: the setting's own]",
)
@click.option("--nodes", type=click.IntRange(min=1), help="Machine size, if not the log's.")
@malformed_option
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Of the networks' arithmetic; it decides the last bits. Small networks gain little from more.  "
    "[default: 1, or as before]",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The checkpoint.  [default: agents/POLICY-WORKLOAD-sSEED]",
)
@click.option("--resume", is_flag=True, help="Go on with the training in --out (on the CPU bit for bit).")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard's event files, too, to DIR/tensorboard.")
@slotted_training_options
@click.pass_context
def train(
    ctx: click.Context,
    /,
    policy: str,
    fast: bool,  # noqa: ARG001  (the only world that trains)
    setting: str,
    workload: str | None,
    config: Path | None,
    seed: int | None,
    epochs: int | None,
    protocol: str | None,
    order: str,
    backfill: str | None,
    nodes: int | None,
    malformed: str,
    device: str,
    threads: int | None,
    out: Path | None,
    resume: bool,
    tensorboard: bool,
    **pool: Any,  # noqa: ARG001  (of the slotted pool)
) -> None:
    """Train POLICY, by default rlbackfilling, on episodes of a log; the best validated weights are kept.

    Every finished epoch is saved. After Ctrl-C, a crash or a power cut, --resume goes on where it was.

    \b
    Examples:
      bridge train --fast
      bridge train --fast schedinspector --workload bundled-128 --order f1 --seed 2
      bridge train --resume --out agents/rlbackfilling-bundled-128-s1
      bridge train rlschert --data vasp_jobs.csv.gz --oracle-clamp
    """
    typed = typed_options(ctx)
    if _is_slotted(policy, setting, out if resume else None):
        from bridge.cli.train_slotted import train_slotted

        refuse_options(typed & _EVENT, "the slotted pool, whose jobs --data names,")
        train_slotted(ctx)
        return
    refuse_options(typed & {*TRAINS}, "the event-driven scheduler")
    options = {"protocol": protocol, "order": order, "backfill": backfill, "nodes": nodes}
    given = {name: value for name, value in options.items() if value}
    folder = out or folder_of(policy or POLICY, setting, workload or WORKLOAD, map(str, given.values()), seed)
    if not resume:
        refuse_existing(folder)

    from bridge.learn.checkpoint import Origin, load, read_agent, write_agent
    from bridge.learn.watch import report, run

    before = read_agent(folder) if resume else None
    recipe = _recipe(policy, setting, config, given, epochs, before[0] if before else None)
    _check_device(device)

    from bridge.env.source import constants_of
    from bridge.learn.heldout import digest_of
    from bridge.learn.origin import versions
    from bridge.learn.trainer import Trainer

    use_threads(threads, before[1] if before else None)
    name = workload or (before[1].workload if before else WORKLOAD)
    log = read_log(name, malformed)
    jobs = recipe.setup.select(log)
    recipe = recipe.for_resources(len(jobs.resources))
    origin = Origin(
        workload=name,
        workload_name=jobs.name,
        jobs=len(jobs),
        sha256=digest_of(log, name, before[1].sha256 if before else ""),
        seed=seed if seed is not None else before[1].seed if before else SEED,
        constants=constants_of(jobs),
        versions={**versions(), "device": device},
        command=command_of(ctx),
        resources=jobs.resources if len(jobs.resources) > 1 else (),
    )
    if before:
        refuse_another(folder, before, recipe, origin)
        origin = before[1]
    else:
        warn_about(jobs.tally)
    say_if_compiling()
    trainer = Trainer(recipe, jobs, origin, folder, device)
    go_on(trainer)
    make(folder)
    if before is None or before[0] != recipe:
        write_agent(folder, recipe, origin)
    run(trainer, tensorboard)
    report(trainer, load(folder).epoch, _NEXT)


def _is_slotted(policy: str, setting: str, folder: Path | None) -> bool:
    """Tell whether the agent is one of the slotted pool: the policy's, or the one in the folder.

    Raises:
        BridgeError: the policy is unknown, or of another scheduler than the agent in the folder.
    """
    from bridge.learn.folder import is_checkpoint

    asked = kept = None
    if policy:
        from bridge.learn.registry import find_recipe

        asked = find_recipe(policy, setting).scheduler == "pool"
    if folder is not None and is_checkpoint(folder):
        from bridge.learn.folder import is_of_pool

        kept = is_of_pool(folder)
    if asked is not None and kept is not None and asked != kept:
        raise BridgeError(
            f"was trained for another scheduler than {policy}'s",
            where=str(folder),
            remedy="Leave the policy out to go on with it, or train anew into another folder.",
        )
    return bool(asked or kept)


# What is to be trained.


def folder_of(policy: str, setting: str, workload: str, more: Iterable[str], seed: int | None) -> Path:
    """Return the folder's name: what was asked for, without what goes without saying."""
    from bridge.files import stem

    words = [policy, setting, stem(Path(workload)), *more]
    safe = [
        "".join(c if c.isalnum() or c in "._" else "-" for c in word).strip("-") for word in words if word
    ]
    return Path("agents") / "-".join([*safe, f"s{SEED if seed is None else seed}"])


def use_threads(threads: int | None, before: "Origin | None") -> None:
    """Let networks compute with so many threads; else as many as the training began with, 1 for a new one."""
    import torch

    began = before.versions.get("threads", "") if before else ""
    torch.set_num_threads(threads or (int(began) if began.isdecimal() else 1))


def go_on(trainer: "Trainer") -> None:
    """Go on where the training's folder says that it was, if it says anything.

    Raises:
        BridgeError: it is further than it is asked to get, or its file is damaged.
    """
    from bridge.learn.folder import RESUME

    if not (trainer.folder / RESUME).exists():
        return
    trainer.resume()
    if trainer.recipe.training.epochs < trainer.epoch:
        raise BridgeError(
            f"has learnt for {trainer.epoch} epochs already",
            where=str(trainer.folder),
            remedy="Ask for more.",
        )


def refuse_existing(folder: Path) -> None:
    """Refuse a folder that holds anything.

    Raises:
        BridgeError: it does.
    """
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        again = f"go on with it: `bridge train --resume --out {shlex.quote(str(folder))}`"
        raise BridgeError(
            "exists already",
            where=str(folder),
            remedy=f"Name another folder with --out, or {again}."
            if folder.is_dir()
            else "Name a folder with --out.",
        )


def _recipe(
    policy: str,
    setting: str,
    config: Path | None,
    given: Mapping[str, object],
    epochs: int | None,
    before: "Recipe | None",
) -> "Recipe":
    """Return the recipe: a policy's setting (or what was trained before), then the file, then the options."""
    from bridge.learn.recipe import from_dict
    from bridge.learn.registry import recipe_of
    from bridge.workload.rules import PRESETS

    recipe = base_recipe(recipe_of, policy, setting, config, before)
    if config is not None:
        recipe = from_dict(read_toml(config), str(config), recipe)
    setup: dict[str, object] = dict(given)
    if setup.get("protocol", recipe.setup.protocol) != recipe.setup.protocol:
        own = recipe.name if recipe.name in PRESETS else ""
        setup["preset"] = own if setup["protocol"] == "schedgym" else ""
    changes: dict[str, Any] = {"setup": setup, "training": {} if epochs is None else {"epochs": epochs}}
    return from_dict(changes, "the options", recipe)


def base_recipe(
    find: Callable[[str, str], R], policy: str, setting: str, config: Path | None, before: R | None
) -> R:
    """Return what a training begins with: a policy's setting, or what was trained before.

    Args:
        find: returns a recipe by policy and setting.
        policy, setting: empty = not asked for.
        config: a file that replaces values of the setting.
        before: what was trained in this folder.
    """
    if before is not None and not (policy or setting or config):
        return before
    same = before is not None and policy in ("", before.name)
    name = policy or (before.name if before else POLICY)
    return find(name, setting or (before.setting if before and same else ""))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of values.

    Raises:
        BridgeError: it is no TOML.
    """
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BridgeError(f"is not TOML: {error}", where=str(path)) from None


def command_of(ctx: click.Context) -> str:
    """Return the command line that repeats this training."""
    words = ["bridge", "train", "--fast"]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        typed = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if name == "fast" or name in _SILENT or not typed:
            continue
        value = ctx.params[name]
        words += [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        words += [] if value is True else [str(value)]
    return shlex.join(words)


def _check_device(device: str) -> None:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise BridgeError(
            "PyTorch sees no CUDA device",
            where="--device cuda",
            remedy="Use --device cpu, or install a PyTorch built for your GPU (https://pytorch.org).",
        )


def refuse_another(
    folder: Path, before: "tuple[AnyRecipe, Origin]", recipe: "AnyRecipe", origin: "Origin"
) -> None:
    """Refuse to go on with another training than the one in the folder; more epochs are welcome.

    Raises:
        BridgeError: it is another one.
    """
    old_recipe, old = before
    for name, was, asked in (
        ("the seed", old.seed, origin.seed),
        ("the log of digest", old.sha256[:12] or "none", origin.sha256[:12] or "none"),
        *_fields("", old_recipe.as_dict(), recipe.as_dict()),
    ):
        if was != asked and name not in ("training.epochs", "source", "summary"):
            raise BridgeError(
                f"was trained with {name} {was}, not {asked}",
                where=str(folder),
                remedy="Leave that option out to go on with it, or train anew into another folder.",
            )
    differing = [
        f"{k} {old.versions.get(k, '?')} instead of {v}"
        for k, v in origin.versions.items()
        if old.versions.get(k) != v
    ]
    if differing:
        click.echo(
            f"bridge: this training began with {', '.join(differing)}: it goes on, but not bit for bit",
            err=True,
        )


def _fields(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, old, new) of every value of two nested tables."""
    for name in dict.fromkeys([*old, *new]):
        was, asked = old.get(name), new.get(name)
        if isinstance(was, dict) and isinstance(asked, dict):
            yield from _fields(f"{prefix}{name}.", was, asked)
        else:
            yield f"{prefix}{name}", was, asked


def make(folder: Path) -> None:
    """Make a folder.

    Raises:
        BridgeError: it cannot be made.
    """
    from bridge.files import cannot_write

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
