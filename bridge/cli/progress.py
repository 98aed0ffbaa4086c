"""Progress bars: shown only when work takes more than a second and someone is watching."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import click

from bridge.watch import Watch

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Work shorter than this shows no bar, seconds.
PATIENCE = 1.0


@contextmanager
def progress_bar(title: str, total: int, unit: str) -> Iterator[Callable[..., None]]:
    """Yield a function to be called with the number of units done so far, and the total if that is news."""
    begun = time.monotonic()
    bar: Progress | None = None
    task: TaskID | None = None

    def advance(done: int, of: int | None = None) -> None:
        nonlocal bar, task
        if bar is None:
            if time.monotonic() - begun < PATIENCE or not sys.stderr.isatty():
                return
            bar = _make(unit)
            bar.start()
            task = bar.add_task(title, total=total, completed=done)
        assert task is not None
        bar.update(task, completed=done, total=of or total)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _make(unit: str) -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units per second."""

        def render(self, task: object) -> Text:
            speed = getattr(task, "speed", None)
            return Text(f"{speed:,.0f} {unit}/s" if speed else f"? {unit}/s")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def examples_of(reason: Any) -> str:
    """Return the ids of a few records, with dots if there are more."""
    more = ", …" if reason.count > len(reason.examples) else ""
    return ", ".join(map(str, reason.examples)) + more


def warn_about(tally: Any) -> None:
    """Say on stderr which records were dropped or repaired, in one line each."""
    for why, reason in tally.items():
        if reason.kind == "dropped":
            noun = "record" if reason.count == 1 else "records"
            told = f"{reason.count:,} {noun} dropped: {why} (job {examples_of(reason)})"
            click.echo(f"bridge: {told}", err=True)
    repaired = [f"{r.count:,} {why}" for why, r in tally.items() if r.kind != "dropped"]
    if repaired:
        click.echo(f"bridge: {'; '.join(repaired)}", err=True)


class Terminal(Watch):
    """The terminal that a command was called in: bars and lines on stderr."""

    def say(self, text: str) -> None:
        """Print one line."""
        click.echo(f"bridge: {text}", err=True)

    def dropped(self, tally: Any) -> None:
        """See `warn_about`."""
        warn_about(tally)

    def compiling(self) -> None:
        """See `say_if_compiling`."""
        say_if_compiling()

    def bar(self, title: str, total: int, unit: str) -> AbstractContextManager[Callable[[int], None]]:
        """See `progress_bar`."""
        return progress_bar(title, total, unit)


def say_if_compiling() -> None:
    """Tell on stderr that the first start compiles, so that nobody thinks it hangs."""
    from bridge.jit import forget_old_kernels, is_compiled

    if not is_compiled():
        forget_old_kernels()
        sys.stderr.write("bridge: compiling the scheduler, once on this machine (about half a minute)…\n")
        sys.stderr.flush()
