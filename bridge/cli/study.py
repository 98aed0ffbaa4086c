"""`bridge study`: rows × logs × seeds, carried out once each on processes or Ray, and their tables."""

import copy
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.interrupts import interrupts_once
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.config import command_line, spell
from bridge.config.options import Command, group

if TYPE_CHECKING:
    from bridge.study.cells import Cell
    from bridge.study.runner import StudyRun
    from bridge.study.spec import Study
    from bridge.study.store import Store

_FILE = click.argument("file", metavar="FILE.toml", type=shared.FILE)
_STORE = "Folder of the results (cells). Several studies may share it, also on a shared file system."
_CLUSTER = "The site of all rows: cluster.toml, slurm.conf, or one that comes with bridge."
_USUAL = Path("runs/studies")
_of_study = group(
    "",
    _FILE,
    shared.number("--seeds", "For a trial: use N seeds.", metavar="N"),
    shared.number("--epochs", "For a trial: epochs of every training.", metavar="N"),
    shared.number("--sequences", "For a trial: sequences of every test.", metavar="N"),
    click.option("--cluster", metavar="FILE", help=_CLUSTER),
    click.option("--table", metavar="NAME", default="", help="Only this table of the file."),
    click.option("--row", metavar="TEXT", default="", help="Only rows whose name contains this."),
    shared.folder_option("--store", _STORE, default=_USUAL, show_default=True),
)


def _opened(
    file: Path,
    store: Path,
    table: str = "",
    row: str = "",
    *,
    looks: bool = True,
    plans: bool = False,
    **trial: Any,
) -> "tuple[list[tuple[Study, list[Cell]]], Store]":
    from bridge.study import archive
    from bridge.study.cells import cells_of, load_log, prefer_shorter_trainings
    from bridge.study.check import check_on_logs
    from bridge.study.reading import read_studies
    from bridge.study.store import Store

    studies = read_studies(file, **trial)
    if table and table not in (names := [one.name for one in studies]):
        raise BridgeError(f"has no table {table!r}", where=str(file), remedy=f"Choose {', '.join(names)}.")
    studies = tuple(one for one in studies if table in ("", one.name))
    rows = dict.fromkeys(one.name for study in studies for one in study.rows)
    if not any(row in name for name in rows):
        raise BridgeError(f"has no row {row!r}", where=str(file), remedy=f"Choose {', '.join(rows)}.")
    kept = Store(store, make=not looks or bool(archive.paths(studies, file)))
    if kept.missing and not plans:
        raise BridgeError("there is no such store", where=str(store), remedy="`bridge study run` makes it.")
    digests = archive.unpack_all(studies, file, kept)
    known_digests = digests if looks else {}
    cells_left = []
    for one in studies:
        cells = [cell for cell in cells_of(one, known_digests) if row in cell.row]
        cells_left.append((one, prefer_shorter_trainings(cells, kept, for_now=not plans)))
    if plans:
        done = kept.done()
        left = (cell for _, mine in cells_left for cell in mine if cell.key not in done)
        for log, tallies in check_on_logs(left, load_log).items():
            for tally in tallies:
                TERMINAL.dropped(tally, of=f"{log}: ")
    return cells_left, kept


def _command(file: Path, store: Path, **settings: Any) -> str:
    """Return the command that carries out what a page shows, a trial with all that makes it one."""
    settings["store"] = "" if store == _USUAL else store
    names = ("seeds", "epochs", "sequences", "cluster", "table", "row", "store")
    options = (spell(f"--{name}", settings[name]) for name in names if settings[name])
    return command_line("study run", str(file), *chain.from_iterable(options))


@click.group()
def study() -> None:
    """Run many policies (rows) on many logs with many seeds, each once, and write tables."""


@study.command(cls=Command)
@_of_study
@shared.number("--workers", "Processes on this machine.  [default: its cores]", metavar="N")
@click.option("--ray", metavar="ADDRESS|local", default="", help="Run cells on a Ray cluster.")
@click.pass_context
def run(ctx: click.Context, /, file: Path, store: Path, workers: int | None, ray: str, **trial: Any) -> None:
    """Run the cells of a study that are not done. A cell is one row on one log with one seed.

    Ctrl-C keeps everything. A training that was interrupted continues; its result is the same as without a
    break. Several runs of one study may work at the same time on one store.

    \b
    Examples:
      bridge study run study.toml --workers 4
      bridge study run study.toml --seeds 1 --epochs 2 --sequences 10 --store runs/trial
      bridge study run study.toml --ray local

    The exit status is 0, or 1 if a cell failed, or 130 if the run was interrupted.
    """
    from bridge.study.executor import Executor, Processes, Ray
    from bridge.study.runner import StudyRun, format_duration

    if ray and workers is not None:
        raise click.UsageError("--workers counts processes on this machine; leave it out with --ray")
    studies, kept = _opened(file, store, looks=False, plans=True, **trial)
    cells = [cell for _, mine in studies for cell in mine]
    started_at = time.monotonic()
    with _watched() as tick:
        job = StudyRun(cells, kept, TERMINAL.say, tick)
        with interrupts_once():
            try:
                if ray:
                    executor: Executor = Ray(kept, job.token, cells, ray)
                else:
                    executor = Processes(kept, job.token, workers or os.cpu_count() or 1)
                job.carry_out(executor)
            finally:
                state = job.state
                new = len(state.done) - state.before
                over = f"{len(state.done)} of {len(state.cells)} cells done ({new} now)"
                took = format_duration(time.monotonic() - started_at)
                TERMINAL.say(f"{over}, {len(state.failed)} failed, in {took}; kept in {store}")
    for key, error in state.failed.items():
        TERMINAL.say(f"failed: {state.cells[key].title}: {error}")
    if state.failed:
        ctx.exit(1)


@contextmanager
def _watched() -> "Iterator[Callable[[StudyRun], None]]":
    """Yield what shows a line for each running cell, where somebody is watching; other lines stay above."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        yield lambda run: live.update(Text("\n".join(_lines(run))), refresh=True)


def _lines(run: "StudyRun") -> list[str]:
    lines = []
    for key, (cell, _) in run.state.running.items():
        claim = run.store.claimed(key)
        if claim is not None:  # else it is still on its way
            epoch = f"epoch {claim.epoch}/{claim.epochs}" if claim.epochs else ""
            lines.append(f"  {cell.title}: {time.time() - claim.since:.0f} s {epoch}")
    if run.state.elsewhere:
        lines.append(f"  in the hands of other runs: {counted(len(run.state.elsewhere), 'cell')}")
    return [*lines, f"{len(run.state.done)}/{len(run.state.cells)} done; {run.left()}"]


@study.command("show", cls=Command)
@_of_study
@shared.json_option
def show_study(file: Path, store: Path, as_json: bool, **trial: Any) -> None:
    """Show what a study would run, how much of it is done, and the cost of the rest.

    \b
    Example:
      bridge study show study.toml
    """
    from bridge.report.table import Table
    from bridge.study.runner import CostModel, format_duration

    studies, kept = _opened(file, store, plans=True, **trial)
    cells = list({cell.key: cell for _, mine in studies for cell in mine}.values())
    costs, done = CostModel(cells, kept), kept.done()
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.row, cell.log), []).append(cell)
    table = Table(["row", "log", "epochs", "cells", "done", "failed", "left, CPU"], words=(1,))
    rest = [cell for cell in cells if cell.key not in done]
    prices = {c.key: cost for c, cost in zip(rest, costs.of_all(rest), strict=True)}
    total, unknown = 0.0, 0
    for (row, log), mine in rows.items():
        left = [cell for cell in mine if cell.key in prices]
        known_costs = [cost for cell in left if (cost := prices[cell.key]) is not None]
        total, unknown = total + sum(known_costs), unknown + len(left) - len(known_costs)
        failed = sum(bool(kept.failed.reason(cell.key)) for cell in left)
        price = (
            "–"
            if not left
            else format_duration(sum(known_costs))
            if len(known_costs) == len(left)
            else "not known yet"
        )
        table.add(row, log, mine[0].epochs or "–", len(mine), len(mine) - len(left), failed, price)
    many = sum(cell.key in done for cell in cells)
    summary = f"{many} of {len(cells)} cells done"
    if unknown and unknown == len(cells) - many:
        summary += "; what the rest costs is not known yet"
    elif many < len(cells):
        summary += f"; the rest takes about {format_duration(total)} of one core"
        summary += f", and {counted(unknown, 'cell')} whose cost is not known yet" if unknown else ""
    if kept.missing:
        summary += f"; there is no store {store}: `bridge study run` makes it"
    errors = [f"failed: {cell.title}: {why}" for cell in rest if (why := kept.failed.reason(cell.key))]
    names = ("row", "log", "seed", "key")
    cell_rows = [{n: getattr(cell, n) for n in names} | {"done": cell.key in done} for cell in cells]
    show({"cells": cell_rows, "seconds_left": total, "unknown": unknown}, [table, summary, *errors], as_json)


@study.command(cls=Command)
@_of_study
@shared.folder_option(
    "--out", "Folder for the pages: Markdown, HTML, SVG and JSON.  [default: beside FILE, under its name]"
)
@shared.json_option
def report(file: Path, store: Path, out: Path | None, as_json: bool, **trial: Any) -> None:
    """Write the pages of a study from the cells that are done.

    \b
    Example:
      bridge study report study.toml --out runs/my-study
    """
    from bridge.study.report import document_of, notes_of, tables_of, write

    studies, kept = _opened(file, store, **trial)
    command = _command(file, store, **trial)
    documents, files, output = [], [], []
    for of, cells in studies:
        document = document_of(of, cells, kept)
        files += write(document, of.name, out or file.with_suffix(""), command)
        output += [*tables_of(document), *notes_of(document)]
        documents.append(document)
    whole = documents[0] if len(documents) == 1 else {"tables": documents}
    show(whole, [*output, f"written: {', '.join(map(str, files))}"], as_json)


@study.command("archive", cls=Command)
@_FILE
@shared.folder_option("--store", _STORE, default=_USUAL, show_default=True)
def archive_cells(file: Path, store: Path) -> None:
    """Write the cells that are done into the study's record, a file that travels with it.

    A study does not run the cells of its record again, on any machine. The study's file names the record:
    `record = "results.parquet"`. The record has the cells of the whole file as it is now, and no others.

    \b
    Example:
      bridge study archive study.toml
    """
    from bridge.study.archive import pack, path_of

    studies, kept = _opened(file, store)
    files: dict[Path, list[Cell]] = {}
    for of, cells in studies:
        if (path := path_of(of, file)) is None:
            remedy = 'Add to the file: record = "results.parquet"'
            raise BridgeError("names no record", where=str(file), remedy=remedy)
        files.setdefault(path, []).extend(cells)
    for path, mine in files.items():
        click.echo(f"{counted(pack(mine, kept, path), 'cell')} kept in {path}")


#: The command under its former name, which goes with the next release.
_keep = copy.copy(archive_cells)
_keep.hidden = True
study.add_command(_keep, "keep")


@study.command(cls=Command)
@_FILE
@click.option("--log", metavar="LOG", required=True, help="The log, by name or path.")
@shared.force_option
def new(file: Path, log: str, force: bool) -> None:
    """Write a study of your own log: a commented template that runs.

    \b
    Example:
      bridge study new study.toml --log bundled-128
    """
    from bridge.base.files import atomic_write
    from bridge.study.template import template_for

    shared.check_output(file, force)
    text = template_for(log)
    with atomic_write(file) as out:
        out.write(text.encode())
    click.echo(f"written: {file}; look at it, then: bridge study run {file}")
