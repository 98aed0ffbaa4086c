"""What `bridge slurm demo` shows while it goes on, and at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bridge.cli.show import show

if TYPE_CHECKING:
    from bridge.slurm.trial.demo import Demo
    from bridge.slurm.trial.watching import Watching

#: Seconds between lines where no terminal is there to be drawn on.
_QUIET = 10.0


def carry_out(demo: Demo, as_json: bool) -> None:
    """Carry a demo out, show it, and write its page."""
    from bridge.judge.compare import compare_runs
    from bridge.report.page import read_inputs, write_page
    from bridge.report.tables import comparison_table

    who = f"first {demo.policy}, then Slurm's own backfill"
    click.echo(f"{demo.jobs} jobs on {demo.nodes} fake nodes: {who}", err=True)
    with _shown() as see:
        live = demo.live(see)
    with _shown() as see:
        backfill = demo.backfill(see)
    names = ("live", "fast", "slurm-backfill")
    runs, told = demo.write(live, backfill)
    page, inputs = demo.folder / "demo.html", read_inputs([demo.folder / name for name in names])
    write_page(inputs, page, f"{demo.policy} beside a real Slurm")
    table = comparison_table(compare_runs(runs, names))
    shown = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in told.items()}
    lines = [f"{name}: {value}" for name, value in shown.items()]
    told["page"] = str(page)
    show(told, [table, *lines, f"Look at {page}"], as_json)


@contextmanager
def _shown() -> Iterator[Callable[[Watching, str], None]]:
    """Yield what shows a trial: a table that lives, or a line now and then."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as drawn:
            yield lambda watching, title: drawn.update(watching.table(title), refresh=True)
        return
    last = 0.0

    def say(watching: Watching, title: str) -> None:
        nonlocal last
        if time.monotonic() > last + _QUIET:
            last = time.monotonic()
            click.echo(f"{title}: {watching.line()}", err=True)

    yield say
