"""What `bridge train` shows: a bar or lines while it learns; at the end a table and the next commands."""

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bridge.learn.trainer import Progress, Trainer

#: Lines that a whole training leaves on a stderr that is no terminal, roughly.
LINES = 20


def run(trainer: "Trainer", tensorboard: bool) -> None:
    """Train to the end; after Ctrl-C say how to go on."""
    events: Any = None
    if tensorboard:
        from bridge.learn.tensorboard import Events

        events = Events(trainer.folder, trainer.epoch)
    try:
        with _watched(trainer) as show:

            def tell(entry: "Progress") -> None:
                if events is not None:
                    events.write(entry)
                show(entry)

            trainer.run(tell)
    except KeyboardInterrupt:
        where = shlex.quote(str(trainer.folder))
        saved = f"{_saved(trainer)} of {trainer.recipe.training.epochs} epochs are saved"
        click.echo(f"bridge: {saved}; go on with `bridge train --resume --out {where}`", err=True)
        raise
    finally:
        if events is not None:
            events.close()


def _saved(trainer: "Trainer") -> int:
    """Return how many epochs a resumed training would not repeat."""
    from bridge.learn.checkpoint import read_tensors
    from bridge.learn.folder import RESUME

    path = trainer.folder / RESUME
    return int(read_tensors(path)[1]["epoch"]) if path.exists() else 0


@contextmanager
def _watched(trainer: "Trainer") -> "Iterator[Callable[[Progress], None]]":
    """Yield what shows an epoch: a bar on a terminal, else a line on stderr now and then."""
    total = trainer.recipe.training.epochs
    if not sys.stderr.isatty():
        every = max(1, total // LINES)

        def line(entry: "Progress") -> None:
            if entry.epoch % every == 0 or entry.epoch == total:
                left = _clock((total - entry.epoch) * entry.seconds)
                text = _state(trainer)
                click.echo(
                    f"bridge: epoch {entry.epoch}/{total}: {text}, {entry.seconds:.1f} s/epoch, {left} left",
                    err=True,
                )

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("first epoch…", total=total, completed=trainer.epoch)

        def show(entry: "Progress") -> None:
            text = f"{_state(trainer)}, {entry.seconds:.1f} s/epoch"
            bar.update(task, completed=entry.epoch, description=text)

        yield show


def _state(trainer: "Trainer") -> str:
    """Return the last epoch's metric beside the base's, and the last validation's."""
    history: Sequence[Progress] = trainer.history
    last = history[-1]
    text = f"{trainer.recipe.metric} {_beside(last.train_mean, last.base_mean)}"
    validated = next((p for p in reversed(history) if p.valid_mean == p.valid_mean), None)
    return text + (f", valid {_beside(validated.valid_mean, validated.valid_base)}" if validated else "")


def _beside(value: float, base: float) -> str:
    return f"{value:,.4g} (base {base:,.4g}, ×{_ratio(value, base)})"


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.2f}" if base > 0 else "–"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def report(trainer: "Trainer", best: int, commands: Iterable[tuple[str, str]]) -> None:
    """Print what was reached, and what to type next.

    Args:
        trainer: that has finished.
        best: the epoch whose weights are kept.
        commands: with ``{}`` for the folder, and what each is good for.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    history: Sequence[Progress] = trainer.history
    console = Console()
    words = f"{trainer.recipe.metric}, {len(history)} epochs, weights of epoch {best}"
    console.print(escape(f"{trainer.folder}: {words}"), highlight=False, soft_wrap=True)
    table = Table()
    table.add_column("sequences", no_wrap=True)
    for column in ("agent", "base", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    rows = [(f"training, epoch {history[-1].epoch}", history[-1].train_mean, history[-1].base_mean)]
    rows += [
        (f"validation, epoch {p.epoch}", p.valid_mean, p.valid_base)
        for p in history
        if p.epoch == best and p.valid_mean == p.valid_mean
    ]
    for name, value, base in rows:
        table.add_row(name, f"{value:,.2f}", f"{base:,.2f}", _ratio(value, base))
    console.print(table)
    where = shlex.quote(str(trainer.folder))
    click.echo("Next:")
    for command, what in commands:
        click.echo(f"  {command.format(where)}  # {what}")
