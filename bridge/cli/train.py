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

from bridge.base.cache import AGENT, is_checkpoint
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import stem
from bridge.base.interrupts import ends_anyway, interrupts_once, raise_if_interrupted
from bridge.base.plugins import Typed
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, new_progress_bar, print_interrupted, show
from bridge.commands.request import scheduler
from bridge.config import Constraint, Count, command_line, spell
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.learn.checkpoint_files import MAX_SEED, RESUME, SEED, WORKLOADS, scheduler_of
from bridge.pool.settings import PoolConfig
from bridge.report.table import Table
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.learn.trainer import EpochRecord, Trainer

POLICY = "rlbackfilling"
#: Options that change nothing, or only the last bits, of what is learnt.
_SILENT = frozenset({"out", "resume", "tensorboard", "device", "threads", "as_json"})
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
class TrainOptions:
    """How an agent is trained, beside the rules and the pool.

    Attributes:
        setting: a setting of the policy, see `bridge policies`.  [default: the first]
        config: a file of values that replace those of the setting, in the form that `bridge policies show
            NAME --toml` prints.
        algorithm: the learning algorithm: a name, or module:ATTR.  [default: the setting's own]
        seed: random seed of the first weights and of the sampling.  [default: 1]
        epochs: rounds of training.  [default: the setting's own]
        workload: the log: a file, a bundled workload or a fetched log.  [default: bundled-128]
        data: job set (CSV), or `synthetic`.  [default: synthetic]
        teacher: a trained agent that is the teacher; only for settings in which the agent kills jobs.
        device: the device for the networks.
        threads: number of threads for simulation and networks. With another number, the last bits of
            results may differ, because networks add up in another order.
            Small networks gain little from more threads.  [default: 1, or as before]
        out: the folder of the agent.  [default: agents/POLICY-WORKLOAD-sSEED]
        resume: continue the training in --out. On the CPU the result is the same as without a break, to the
            last bit.
        tensorboard: also write TensorBoard's event files, to DIR/tensorboard.
    """

    setting: Annotated[str, Constraint(group="Policy")] = ""
    config: Annotated[Path | None, Constraint(group="Policy", metavar="FILE.toml")] = None
    algorithm: Annotated[str | None, Constraint(group="Policy", metavar="NAME")] = None
    seed: Annotated[int | None, Constraint(group="Policy", ge=0, le=MAX_SEED)] = None
    epochs: Annotated[Count | None, Constraint(group="Policy")] = None
    workload: Annotated[str | None, Constraint(group=shared.RULES, metavar="LOG")] = None
    data: Annotated[str | None, Constraint(group=shared.POOL, metavar="FILE")] = None
    teacher: Annotated[Path | None, Constraint(group=shared.POOL, metavar="AGENT")] = None
    device: Literal["cpu", "cuda"] = "cpu"
    threads: Count | None = None
    out: Annotated[Path | None, Constraint(metavar="DIR")] = None
    resume: Annotated[bool, Constraint(option="--resume")] = False
    tensorboard: Annotated[bool, Constraint(option="--tensorboard")] = False


@click.command(cls=Command)
@click.argument("policy", default="", metavar="[POLICY]", type=shared.NAME)
@click.option("--fast", is_flag=True, help="No effect: agents are always trained in the fast world.")
@options(TrainOptions)
@group(
    shared.RULES,
    shared.field_options(
        SchedulerConfig,
        protocol=f"The exact rules.{_OWN}",
        order=f"Queue order: a name, or an expression such as '(w/t)**3*n'.{_OWN}",
        backfill=f"Backfilling rule.{_OWN}",
    ),
    options(SchedulerConfig, "nodes", "cluster"),
    shared.malformed_option,
)
@group(
    shared.POOL,
    shared.field_options(
        PoolConfig, objective=f"The objective that is rewarded.{_OWN}", oracle_clamp=shared.CLAMP
    ),
)
@shared.json_option
@click.pass_context
def train(ctx: click.Context, /, policy: str, as_json: bool, **_: Any) -> None:
    """Train an agent with POLICY (default: rlbackfilling) on episodes of a log; the best weights are kept.

    The best weights are those of the epoch with the best result on validation jobs. Every finished epoch is
    saved. After Ctrl-C, a crash or a power cut, --resume continues after the last saved epoch. If no epoch
    was saved, the training starts from the beginning.

    \b
    Examples:
      bridge train --fast
      bridge train --fast schedinspector --workload bundled-128 --order f1 --seed 2
      bridge train --resume --out agents/rlbackfilling-bundled-128-s1
      bridge train rlschert --data vasp_jobs.csv.gz --oracle-clamp
    """
    from bridge.commands.train import recipe_for, start_or_resume
    from bridge.learn.checkpoint import load, read_agent
    from bridge.pool.training import TEACHER

    typed_options, train_options = (
        given_on_command_line(ctx),
        TrainOptions(**given_on_command_line(ctx, TrainOptions)),
    )
    typed_options.pop("as_json", None)
    if train_options.algorithm is not None:
        typed_options["algorithm"] = Typed(train_options.algorithm)
    entry = scheduler(
        _scheduler(policy, train_options.setting, train_options.out if train_options.resume else None)
    )
    shared.refuse_options(entry.unsupported_options("train", typed_options), entry.title)
    pool = entry.name == "pool"
    workload = train_options.data if pool else train_options.workload
    parts = (
        {"pool": given_on_command_line(ctx, PoolConfig)}
        if pool
        else {"setup": given_on_command_line(ctx, SchedulerConfig)}
    )
    words = (policy, train_options.setting, workload or WORKLOADS[entry.name])
    folder = train_options.out or _folder(*words, parts, train_options.seed)
    if not train_options.resume:
        _refuse_existing(folder)
    before = read_agent(folder)[0] if train_options.resume and not _holds_nothing(folder) else None
    if train_options.resume and before is None:
        TERMINAL.say(f"nothing was saved in {folder} before it was stopped: the training begins")
    recipe = recipe_for(policy or ("" if before else POLICY), typed_options, before)
    if train_options.resume and train_options.teacher is not None and is_checkpoint(folder / TEACHER):
        raise click.UsageError("a training that goes on has its teacher in its folder: leave --teacher out")
    trainer = start_or_resume(
        entry, recipe, workload or "", folder, typed_options, command=_command(ctx), watch=TERMINAL
    )
    if trainer.ended:
        done = (
            f"{folder} has learnt for all its {counted(trainer.epoch, 'epoch')} already: nothing was trained"
        )
        TERMINAL.say(f"{done}; --epochs N asks for more")
    _run(trainer, train_options.tensorboard)
    best = load(folder, type(recipe)).epoch
    show(_document(trainer, best), _report(trainer, best, _NEXT[entry.name]), as_json)


# What is to be trained, and where.


def _scheduler(policy: str, setting: str, folder: Path | None) -> str:
    """Return whose agent is trained: the policy's, or, where both are named the same, that in the folder."""
    by_option = kept = ""
    if policy:
        from bridge.learn.registry import find_recipe

        by_option = find_recipe(policy, setting).scheduler
    if folder is not None and is_checkpoint(folder):
        kept = scheduler_of(folder)
    if by_option and kept and by_option != kept:
        what = f"was trained for another scheduler than {policy}'s"
        remedy = "Leave the policy out to go on with it, or train anew into another folder."
        raise BridgeError(what, where=str(folder), remedy=remedy)
    return by_option or kept or "event"


def _folder(
    policy: str, setting: str, workload: str, parts: Mapping[str, Mapping[str, Any]], seed: int | None
) -> Path:
    """Return the folder's name: what was asked for, without what goes without saying."""
    setup_table, pool = parts.get("setup") or {}, parts.get("pool") or {}
    more = [
        str(setup_table[name]) for name in ("protocol", "order", "backfill", "nodes") if setup_table.get(name)
    ]
    more += [pool.get("objective", ""), "clamp" if pool.get("oracle_clamp") else ""]
    words = [policy or POLICY, setting, stem(Path(workload)), *more]
    safe = [re.sub(r"[^\w.]", "-", word).strip("-") for word in words if word]
    return Path("agents") / "-".join([*safe, f"s{SEED if seed is None else seed}"])


def _refuse_existing(folder: Path) -> None:
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
    words, options = ["--fast"], given_on_command_line(ctx)
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if name == "fast" or name in _SILENT or name not in options:
            continue
        argument = isinstance(parameter, click.Argument)
        words += [str(options[name])] if argument else spell(parameter.opts[0], options[name])
    return command_line("train", *words)


# What is shown while it learns: a bar or lines; at the end a table and the next commands.


def _run(trainer: "Trainer", tensorboard: bool) -> None:
    """Train to the end; after Ctrl-C say how to go on."""
    from bridge.base.compile_notice import on_compile_progress

    def end() -> None:
        _say_what_is_saved(trainer)
        print_interrupted()

    events: Any = None
    if tensorboard:
        from bridge.learn.trainer import TensorBoardWriter

        events = TensorBoardWriter(trainer.folder, trainer.epoch)
    try:
        with interrupts_once(), ends_anyway(end) as in_compiler, _watched(trainer) as show_epoch:
            on_compile_progress(lambda _, over: in_compiler(not over))

            def tell(entry: "EpochRecord") -> None:
                raise_if_interrupted()
                if events is not None:
                    events.write(entry)
                show_epoch(entry)

            trainer.run(tell)
    except KeyboardInterrupt:
        _say_what_is_saved(trainer)
        raise
    finally:
        if events is not None:
            events.close()


def _say_what_is_saved(trainer: "Trainer") -> None:
    from bridge.learn.checkpoint import read_tensors

    where, path = shlex.quote(str(trainer.folder)), trainer.folder / RESUME
    epochs = int(read_tensors(path)[1]["epoch"]) if path.exists() else 0  # that would not be repeated
    saved = f"{epochs} of {trainer.recipe.training.epoch_limit} epochs are saved"
    TERMINAL.say(f"{saved}; go on with `bridge train --resume --out {where}`")


@contextmanager
def _watched(trainer: "Trainer") -> "Iterator[Callable[[EpochRecord], None]]":
    """Yield what shows an epoch: a bar on a terminal, else a line on stderr now and then."""
    total = trainer.recipe.training.epoch_limit
    if TERMINAL.quiet:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        every = max(1, total // _LINES)

        def line(entry: "EpochRecord") -> None:
            if entry.epoch % every == 0 or entry.epoch == total:
                left = _clock((total - entry.epoch) * entry.seconds)
                text = f"{_state(trainer)}, {entry.seconds:.1f} s/epoch, {left} left"
                TERMINAL.say(f"epoch {entry.epoch}/{total}: {text}")

        yield line
        return
    with new_progress_bar("") as bar:
        task = bar.add_task("first epoch…", total=total, completed=trainer.epoch)

        def advance(entry: "EpochRecord") -> None:
            text = f"{_state(trainer)}, {entry.seconds:.1f} s/epoch"
            bar.update(task, completed=entry.epoch, description=text)

        yield advance


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


def _rows(trainer: "Trainer", best: int) -> list[tuple[str, int, float, float]]:
    """Return what was reached: sequences, epoch, the agent's metric, the base's."""
    last = trainer.history[-1]
    rows = [("training", last.epoch, last.train_mean, last.base_mean)]
    return rows + [
        ("validation", p.epoch, p.valid_mean, p.valid_base)
        for p in trainer.history
        if p.epoch == best and p.valid_mean == p.valid_mean
    ]


def _document(trainer: "Trainer", best: int) -> dict[str, Any]:
    """Return what was reached with the weights of epoch `best`, as plain data."""
    reached = {
        name: {"epoch": epoch, "agent": value, "base": base}
        for name, epoch, value, base in _rows(trainer, best)
    }
    folder, metric, epochs = str(trainer.folder), trainer.recipe.metric, len(trainer.history)
    return {"folder": folder, "metric": metric, "epochs": epochs, "best_epoch": best, **reached}


def _report(trainer: "Trainer", best: int, commands: Iterable[tuple[str, str]]) -> list[Any]:
    """Return what was reached, the weights of epoch `best`, and what to type next."""
    metric, epochs = trainer.recipe.metric, len(trainer.history)
    table = Table(("sequences", "agent", "base", "ratio"))
    for name, epoch, value, base in _rows(trainer, best):
        table.add(f"{name}, epoch {epoch}", f"{value:,.2f}", f"{base:,.2f}", _ratio(value, base))
    where = shlex.quote(str(trainer.folder))
    lines = [f"  {command.format(where)}  # {what}" for command, what in commands]
    return [
        f"{trainer.folder}: {metric}, {counted(epochs, 'epoch')}, weights of epoch {best}",
        table,
        "Next:",
        *lines,
    ]
