"""What commands print: JSON, lines and tables, a run's metrics; progress bars where someone is watching."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.compile_notice import announce_by, on_compile_progress
from bridge.base.counted import counted, counted_text
from bridge.base.interrupts import ends_anyway, raise_if_interrupted
from bridge.base.progress import ProgressReporter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from bridge.judge.run import Run


def show(document: Any, output: Sequence[Any], as_json: bool) -> None:
    """Print a document as JSON, or what people see of it: lines, and tables as wide as the terminal."""
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    for item in output:
        if isinstance(item, str):
            click.echo(item)
        else:
            item.print()


def print_run(result: "Run", out: Path | None, as_json: bool, by: Sequence[str] = ()) -> None:
    """Print a run's metrics, broken down by groups of jobs too, and where it was written."""
    output: list[Any] = []
    if not as_json:
        from bridge.judge.metrics import breakdown, note_without_waits
        from bridge.report.tables import breakdown_table, metrics_table

        threshold = result.config["experiment"].get("threshold", 10.0)
        groups = (breakdown(result.jobs, group, bsld_threshold=threshold) for group in by)
        output = [metrics_table(result), *map(breakdown_table, groups)]
        output += filter(None, [note_without_waits([result.metrics.get("wait.max")])])
    show({"oracle": result.oracle, **result.metrics}, output, as_json)
    if out is not None and not as_json:
        click.echo(f"run written to {out}; repeat it with: {result.config['command']}")


#: Commands that write nothing before their end, so that Ctrl-C need not wait for the compiler.
KILLABLE = frozenset({"bound", "fidelity", "forecast", "infer", "predict", "replay", "whatif"})
#: Work shorter than this shows no bar, seconds.
PATIENCE = 1.0


def print_interrupted() -> None:
    """Say that a command ends at a signal; a bar may have hidden the cursor."""
    if sys.stderr.isatty():
        click.echo("\033[?25h", err=True, nl=False)
    click.echo("bridge: interrupted", err=True)


def new_progress_bar(unit: str) -> "Progress":
    """Return a bar on stderr, gone at its end; with a unit it tells how many of them a second takes."""
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
        def render(self, task: object) -> Text:
            speed = getattr(task, "speed", None)
            return Text(f"{speed:,.0f} {unit}/s" if speed else f"? {unit}/s")

    title, done = TextColumn("{task.description}"), MofNCompleteColumn()
    columns = (title, BarColumn(), done, Rate()) if unit else (BarColumn(bar_width=20), done, title)
    ends = (TextColumn("ETA"), TimeRemainingColumn())
    return Progress(*columns, *ends, console=Console(stderr=True), transient=True)


def _compiling_bar() -> Callable[[int, bool], None]:
    """Return what shows a bar while functions are compiled: how many are, and whether all that are needed."""
    from rich.console import Console
    from rich.file_proxy import FileProxy
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.completed} functions compiled"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4)
    task = bar.add_task("", total=None)

    def tell(done: int, over: bool) -> None:
        bar.update(task, completed=done)
        if over:
            bar.stop()
        elif not isinstance(sys.stderr, FileProxy):  # else the work's own bar is on the screen
            bar.start()

    return tell


class Terminal(ProgressReporter):
    """The terminal that a command was called in: bars and lines on stderr.

    Attributes:
        quiet: neither bars nor lines are shown; results and errors are.
        verbose: errors come with their stack, and the time that a command took is told.
    """

    quiet = False
    verbose = False

    def say(self, text: str) -> None:
        if not self.quiet:
            click.echo(f"bridge: {text}", err=True)

    def dropped(self, tally: Any, of: str = "") -> None:
        """Say which records were dropped, repaired or ignored; `of` comes first: whose they are."""
        for why, reason in tally.items():
            if reason.kind == "dropped":
                self.say(f"{of}{counted(reason.count, 'record')} dropped: {why} (job {reason.examples_text})")
        for kinds, label in (
            (("repaired", "noted"), ""),
            (("ignored",), "no scheduler uses what the log says of these jobs: "),
        ):
            if texts := [
                counted_text(reason.count, why) for why, reason in tally.items() if reason.kind in kinds
            ]:
                self.say(of + label + "; ".join(texts))

    def announce_compiling(self, text: str) -> None:
        """Say that a kernel is compiled; on a terminal a bar counts its functions, unless there is a bar."""
        self.say(text)
        if sys.stderr.isatty() and not self.quiet:
            on_compile_progress(_compiling_bar())
        command = click.get_current_context(silent=True)
        if command is not None and command.info_name in KILLABLE:
            in_compiler = command.with_resource(ends_anyway(print_interrupted))
            on_compile_progress(lambda _, over: in_compiler(not over))

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Callable[..., None]]:
        """Yield what to call with the number of units done so far, and the total if that is news."""
        started_at = time.monotonic()
        bar: Progress | None = None
        task: TaskID | None = None

        def advance(done: int, of: int | None = None) -> None:
            nonlocal bar, task
            raise_if_interrupted()
            if bar is None:
                if time.monotonic() - started_at < PATIENCE or not sys.stderr.isatty() or self.quiet:
                    return
                bar = new_progress_bar(unit)
                bar.start()
                task = bar.add_task(title, total=total, completed=done)
            assert task is not None
            bar.update(task, completed=done, total=of or total)

        try:
            yield advance
        finally:
            if bar is not None:
                bar.stop()


TERMINAL = Terminal()
announce_by(TERMINAL.announce_compiling)
