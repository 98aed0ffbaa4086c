"""`bridge train`: teach a policy in the fast world, watch it, stop it, and go on."""

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from bridge.cli import options as shared
from bridge.cli.show import TERMINAL, made_bar
from bridge.config import Count, Of
from bridge.config.options import Command, group, options, typed
from bridge.errors import BridgeError
from bridge.fast.setup import Setup
from bridge.files import stem
from bridge.learn.folder import AGENT, MAX_SEED, RESUME, SEED, WORKLOADS, is_checkpoint, scheduler_of
from bridge.plugins import Typed
from bridge.pool.settings import Settings
from bridge.report.table import Table
from bridge.schedulers import scheduler

if TYPE_CHECKING:
    from bridge.learn.trainer import Progress, Trainer

POLICY = "rlbackfilling"
#: Options that change nothing, or only the last bits, of what is learnt.
_SILENT = frozenset({"out", "resume", "tensorboard", "device", "threads"})
_OWN = "  [default: the setting's own]"
#: Lines that a whole training leaves on a stderr that is no terminal, roughly.
_LINES = 20
#: What to type behind a training, by scheduler.
_NEXT = {
    "event": (
        ("bridge evaluate {}", "judge it on held-out sequences"),
        ("bridge validate {} --platform FILE.xml", "let it decide for a detailed platform"),
        ("bridge explain {}", "see what it looks at"),
    ),
    "pool": (("bridge evaluate {} --policy saf --policy saf+rule", "judge it beside a heuristic"),),
}


@dataclass(frozen=True)
class Training:
    """How an agent is trained, beside the rules and the pool.

    Attributes:
        setting: the policy's setting.  [default: its first, see `bridge policies`]
        config: values that replace the setting's, as `bridge policies show NAME --toml` prints them.
        algorithm: how it learns: a name, or module:ATTR.  [default: the setting's own]
        seed: of weights and sampling.  [default: 1]
        epochs: rounds of training.  [default: the setting's own]
        workload: a file, a bundled or a fetched log.  [default: bundled-128]
        data: job set (CSV), or `synthetic`.  [default: synthetic]
        teacher: the trained agent that a setting whose agent kills learns from.
        device: what the networks run on.
        threads: of the networks' arithmetic; it decides the last bits. Small networks gain little from more.
            [default: 1, or as before]
        out: the checkpoint.  [default: agents/POLICY-WORKLOAD-sSEED]
        resume: go on with the training in --out (on the CPU bit for bit).
        tensorboard: write TensorBoard's event files, too, to DIR/tensorboard.
    """

    setting: Annotated[str, Of(group="Policy")] = ""
    config: Annotated[Path | None, Of(group="Policy", metavar="FILE.toml")] = None
    algorithm: Annotated[str | None, Of(group="Policy", metavar="NAME")] = None
    seed: Annotated[int | None, Of(group="Policy", least=0, most=MAX_SEED)] = None
    epochs: Annotated[Count | None, Of(group="Policy")] = None
    workload: Annotated[str | None, Of(group=shared.RULES, metavar="LOG")] = None
    data: Annotated[str | None, Of(group=shared.POOL, metavar="FILE")] = None
    teacher: Annotated[Path | None, Of(group=shared.POOL, metavar="AGENT")] = None
    device: Literal["cpu", "cuda"] = "cpu"
    threads: Count | None = None
    out: Annotated[Path | None, Of(metavar="DIR")] = None
    resume: Annotated[bool, Of(option="--resume")] = False
    tensorboard: Annotated[bool, Of(option="--tensorboard")] = False


@click.command(cls=Command)
@click.argument("policy", default="", metavar="[POLICY]", type=shared.NAME)
@click.option("--fast", is_flag=True, help="In the fast world, the only one that trains: may be left out.")
@options(Training)
@group(
    shared.RULES,
    shared.told(
        Setup,
        protocol=f"The exact rules.{_OWN}",
        order=f"Queue order: a name, or an expression such as '(w/t)**3*n'.{_OWN}",
        backfill=f"Backfilling rule.{_OWN}",
    ),
    options(Setup, "nodes"),
    shared.malformed_option,
)
@group(shared.POOL, shared.told(Settings, objective=f"What is rewarded.{_OWN}", oracle_clamp=shared.CLAMP))
@click.pass_context
def train(ctx: click.Context, /, policy: str, **_: Any) -> None:
    """Train POLICY, by default rlbackfilling, on episodes of a log; the best validated weights are kept.

    Every finished epoch is saved. After Ctrl-C, a crash or a power cut, --resume goes on where it was; if
    nothing was saved yet, it begins.

    \b
    Examples:
      bridge train --fast
      bridge train --fast schedinspector --workload bundled-128 --order f1 --seed 2
      bridge train --resume --out agents/rlbackfilling-bundled-128-s1
      bridge train rlschert --data vasp_jobs.csv.gz --oracle-clamp
    """
    from bridge.learn.algorithms.pool import TEACHER
    from bridge.learn.checkpoint import load, read_agent
    from bridge.schedulers.train import begun, recipe_for

    given, asked = typed(ctx), Training(**typed(ctx, Training))
    if asked.algorithm is not None:
        given["algorithm"] = Typed(asked.algorithm)
    entry = scheduler(_scheduler(policy, asked.setting, asked.out if asked.resume else None))
    shared.refuse_options(entry.refused("train", given), entry.title)
    pool = entry.name == "pool"
    workload = asked.data if pool else asked.workload
    parts = {"pool": typed(ctx, Settings)} if pool else {"setup": typed(ctx, Setup)}
    words = (policy, asked.setting, workload or WORKLOADS[entry.name])
    folder = asked.out or _folder(*words, parts, asked.seed)
    if not asked.resume:
        _refuse_existing(folder)
    before = read_agent(folder)[0] if asked.resume and not _holds_nothing(folder) else None
    if asked.resume and before is None:
        TERMINAL.say(f"nothing was saved in {folder} before it was stopped: the training begins")
    recipe = recipe_for(policy or ("" if before else POLICY), given, before)
    if asked.resume and asked.teacher is not None and is_checkpoint(folder / TEACHER):
        raise click.UsageError("a training that goes on has its teacher in its folder: leave --teacher out")
    trainer = begun(entry, recipe, workload or "", folder, given, command=_command(ctx), watch=TERMINAL)
    if trainer.ended:
        done = f"{folder} has learnt for all its {trainer.epoch:,} epochs already: nothing was trained"
        TERMINAL.say(f"{done}; --epochs N asks for more")
    _run(trainer, asked.tensorboard)
    _report(trainer, load(folder, type(recipe)).epoch, _NEXT[entry.name])


# What is to be trained, and where.


def _scheduler(policy: str, setting: str, folder: Path | None) -> str:
    """Return whose agent is trained: the policy's, or, where both are named the same, that in the folder."""
    asked = kept = ""
    if policy:
        from bridge.learn.registry import find_recipe

        asked = find_recipe(policy, setting).scheduler
    if folder is not None and is_checkpoint(folder):
        kept = scheduler_of(folder)
    if asked and kept and asked != kept:
        what = f"was trained for another scheduler than {policy}'s"
        remedy = "Leave the policy out to go on with it, or train anew into another folder."
        raise BridgeError(what, where=str(folder), remedy=remedy)
    return asked or kept or "event"


def _folder(
    policy: str, setting: str, workload: str, parts: Mapping[str, Mapping[str, Any]], seed: int | None
) -> Path:
    """Return the folder's name: what was asked for, without what goes without saying."""
    given, pool = parts.get("setup") or {}, parts.get("pool") or {}
    more = [str(given[name]) for name in ("protocol", "order", "backfill", "nodes") if given.get(name)]
    more += [pool.get("objective", ""), "clamp" if pool.get("oracle_clamp") else ""]
    words = [policy or POLICY, setting, stem(Path(workload)), *more]
    safe = [re.sub(r"[^\w.]", "-", word).strip("-") for word in words if word]
    return Path("agents") / "-".join([*safe, f"s{SEED if seed is None else seed}"])


def _refuse_existing(folder: Path) -> None:
    """Refuse (BridgeError) a folder that holds anything."""
    if _holds_nothing(folder):
        return
    if folder.exists():
        again = f"go on with it: `bridge train --resume --out {shlex.quote(str(folder))}`"
        another = f"Name another folder with --out, or {again}."
        remedy = another if folder.is_dir() else "Name a folder with --out."
        raise BridgeError("exists already", where=str(folder), remedy=remedy)


def _holds_nothing(folder: Path) -> bool:
    """Tell whether this is an empty folder, or one whose training was killed before its first file."""
    return folder.is_dir() and all(path.name.startswith(f".{AGENT}.") for path in folder.iterdir())


def _command(ctx: click.Context) -> str:
    """Return the command line that repeats this training."""
    words, given = ["bridge", "train", "--fast"], typed(ctx)
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if name == "fast" or name in _SILENT or name not in given:
            continue
        words += [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        words += [] if given[name] is True else [str(given[name])]
    return shlex.join(words)


# What is shown while it learns: a bar or lines; at the end a table and the next commands.


def _run(trainer: "Trainer", tensorboard: bool) -> None:
    """Train to the end; after Ctrl-C say how to go on."""
    events: Any = None
    if tensorboard:
        from bridge.learn.trainer import Events

        events = Events(trainer.folder, trainer.epoch)
    try:
        with _watched(trainer) as show:

            def tell(entry: "Progress") -> None:
                if events is not None:
                    events.write(entry)
                show(entry)

            trainer.run(tell)
    except KeyboardInterrupt:
        from bridge.learn.checkpoint import read_tensors

        where, path = shlex.quote(str(trainer.folder)), trainer.folder / RESUME
        epochs = int(read_tensors(path)[1]["epoch"]) if path.exists() else 0  # that would not be repeated
        saved = f"{epochs} of {trainer.recipe.training.most} epochs are saved"
        TERMINAL.say(f"{saved}; go on with `bridge train --resume --out {where}`")
        raise
    finally:
        if events is not None:
            events.close()


@contextmanager
def _watched(trainer: "Trainer") -> "Iterator[Callable[[Progress], None]]":
    """Yield what shows an epoch: a bar on a terminal, else a line on stderr now and then."""
    total = trainer.recipe.training.most
    if not sys.stderr.isatty():
        every = max(1, total // _LINES)

        def line(entry: "Progress") -> None:
            if entry.epoch % every == 0 or entry.epoch == total:
                left = _clock((total - entry.epoch) * entry.seconds)
                text = f"{_state(trainer)}, {entry.seconds:.1f} s/epoch, {left} left"
                TERMINAL.say(f"epoch {entry.epoch}/{total}: {text}")

        yield line
        return
    with made_bar("") as bar:
        task = bar.add_task("first epoch…", total=total, completed=trainer.epoch)

        def show(entry: "Progress") -> None:
            text = f"{_state(trainer)}, {entry.seconds:.1f} s/epoch"
            bar.update(task, completed=entry.epoch, description=text)

        yield show


def _state(trainer: "Trainer") -> str:
    """Return the last epoch's metric beside the base's, and the last validation's."""
    last = trainer.history[-1]
    text = f"{trainer.recipe.metric} {_beside(last.train_mean, last.base_mean)}"
    validated = next((p for p in reversed(trainer.history) if p.valid_mean == p.valid_mean), None)
    return text + (f", valid {_beside(validated.valid_mean, validated.valid_base)}" if validated else "")


def _beside(value: float, base: float) -> str:
    return f"{value:,.4g} (base {base:,.4g}, ×{_ratio(value, base)})"


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.2f}" if base > 0 else "–"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _report(trainer: "Trainer", best: int, commands: Iterable[tuple[str, str]]) -> None:
    """Print what was reached, the weights of epoch `best`, and what to type next, ``{}`` being the folder."""
    last = trainer.history[-1]
    metric, epochs = trainer.recipe.metric, len(trainer.history)
    click.echo(f"{trainer.folder}: {metric}, {epochs} epochs, weights of epoch {best}")
    rows = [(f"training, epoch {last.epoch}", last.train_mean, last.base_mean)]
    rows += [
        (f"validation, epoch {p.epoch}", p.valid_mean, p.valid_base)
        for p in trainer.history
        if p.epoch == best and p.valid_mean == p.valid_mean
    ]
    table = Table(("sequences", "agent", "base", "ratio"))
    for name, value, base in rows:
        table.add(name, f"{value:,.2f}", f"{base:,.2f}", _ratio(value, base))
    table.print()
    where = shlex.quote(str(trainer.folder))
    click.echo("Next:")
    for command, what in commands:
        click.echo(f"  {command.format(where)}  # {what}")
