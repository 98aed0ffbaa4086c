"""`python -m papers rlschert`: heuristics and agents on the time-stepped pool, part by part."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.errors import BridgeError

if TYPE_CHECKING:
    from papers.rlschert.agents import Data
    from papers.rlschert.play import Wanted

SYNTHETIC = "synthetic"
#: Parts of the page, in the order in which they are run; only the last one does without the logged jobs.
PARTS = ("tables", "figure-6", "table-9", "convergence", "figure-12", "figure-13", "worlds", SYNTHETIC)
#: Parts that are run only if they are named: they take minutes.
NAMED = ("worlds",)
#: Parts that train, and seeds if nothing else is said. Where all parts are run, only the first trains.
TRAINS = {"tables": 3, SYNTHETIC: 1}


def runs() -> "dict[str, Callable[[Wanted, Data], None]]":
    """Return what runs each part of the logged jobs."""
    from papers.rlschert import play, running, worlds

    functions = (
        *(play.tables, running.run, play.shares, play.convergence, play.holes),
        *(play.killed, worlds.run),
    )
    return dict(zip(PARTS, functions, strict=False))


def run(wanted: "Wanted", parts: tuple[str, ...], seeds: int | None, path: Path | None) -> None:
    """Run some parts, or all: then whatever needs no training is done for the agents that exist.

    Args:
        wanted: who, and how; its seeds do not count.
        parts: names of `PARTS`; none = all.
        seeds: of agents that are to be trained.
        path: the logged jobs.

    Raises:
        BridgeError: there are no logged jobs, and a part needs them.
    """
    from bridge.pool.synthetic import synthetic
    from papers.rlschert import driven
    from papers.rlschert.agents import data_of
    from papers.rlschert.synthetic import run as run_synthetic

    chosen = [part for part in PARTS if (part in parts if parts else part not in NAMED)]
    data = data_of(path) if chosen != [SYNTHETIC] else None
    for part in chosen:
        trains = part in TRAINS and (part in parts or part == "tables")
        plan = replace(wanted, seeds=(TRAINS[part] if seeds is None else seeds) if trains else 0)
        if part == SYNTHETIC:
            made = synthetic()
            run_synthetic(plan, made)
            driven.run(plan, made)
        elif data is not None:
            runs()[part](plan, data)


@click.command()
@click.option("--row", "rows", multiple=True, help="Only methods whose name contains this. May be repeated.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="PART",
    help=f"Only this: {', '.join(PARTS)}. May be repeated.  "
    "[default: all but worlds, of which only the tables train]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=0),
    help="Train seeds 1 … N.  [default: 3 for the tables, 1 for synthetic]",
)
@click.option("--smoke", type=click.IntRange(min=1), metavar="EPOCHS", help="Train for so few epochs only.")
@click.option(
    "--label", "labels", multiple=True, type=click.Choice(["honest", "oracle clamp"]), help="Of agents."
)
@click.option(
    "--objective",
    "objectives",
    multiple=True,
    type=click.Choice(["slowdown", "completion"]),
    help="Only agents that were trained for this.",
)
@click.option("--sizes", is_flag=True, help="Train agents for pools of other sizes, too (Figure 11).")
@click.option(
    "--jobs",
    type=click.Choice(["logged", SYNTHETIC]),
    default="logged",
    show_default=True,
    help="synthetic: train and judge on jobs that a model made, as --part synthetic does.",
)
@click.option(
    "--data",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The logged jobs.  [default: vasp_jobs.csv.gz in $BRIDGE_DATA, or in ../data beside $BRIDGE_TRACES]",
)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
def rlschert(
    rows: tuple[str, ...],
    parts: tuple[str, ...],
    seeds: int | None,
    smoke: int | None,
    labels: tuple[str, ...],
    objectives: tuple[str, ...],
    sizes: bool,
    jobs: str,
    data: Path | None,
    threads: int,
) -> None:
    """Heuristics and agents on RLSchert's time-stepped pool: docs/results/rlschert.md.

    Parts that train nobody judge the agents that exist.
    """
    if unknown := set(parts) - set(PARTS):
        raise BridgeError(
            "no such part", where=", ".join(sorted(unknown)), remedy=f"Parts: {', '.join(PARTS)}."
        )
    if jobs == SYNTHETIC and set(parts) - {SYNTHETIC}:
        raise BridgeError(
            "this part needs the logged jobs", where=", ".join(parts), remedy="Leave --jobs out."
        )
    from bridge.learn.training import use_threads
    from papers import store
    from papers.rlschert.page import write
    from papers.rlschert.play import Wanted
    from papers.rlschert.study import LABELS, METHODS, OBJECTIVES

    chosen = tuple(m for m in METHODS if not rows or any(word in m.row for word in rows))
    if not chosen:
        known = ", ".join(m.row for m in METHODS)
        raise BridgeError("no such row", where=", ".join(rows), remedy=f"Rows: {known}.")
    use_threads(threads)
    wanted = Wanted(
        chosen,
        smoke=smoke,
        labels=labels or LABELS,
        objectives=objectives or OBJECTIVES,
        sizes=sizes,
        say=lambda text: click.echo(text, err=True),
    )
    run(wanted, (SYNTHETIC,) if jobs == SYNTHETIC else parts, seeds, data)
    for path in write():
        click.echo(path.relative_to(store.ROOT))
