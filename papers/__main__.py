"""`python -m papers`: run rows of the papers' tables, and write the tables.

Everything is additive: what is there is not done again, a training that broke off goes on, more seeds add to
what was measured. Logs are found in $BRIDGE_TRACES, or among those that `bridge workload fetch` fetched.
"""

import sys
from pathlib import Path

import click

from bridge.errors import BridgeError
from papers import store
from papers.rows import TABLES, Row, Table


def _say(text: str) -> None:
    click.echo(text, err=True)


def _chosen(names: tuple[str, ...], rows: tuple[str, ...]) -> list[tuple[Table, Row]]:
    known = {table.name: table for table in TABLES}
    for name in names:
        if name not in known:
            raise BridgeError("unknown table", where=repr(name), remedy=f"Choose {', '.join(known)}.")
    tables = [known[name] for name in names] or list(TABLES)
    found = [(t, r) for t in tables for r in t.rows if not rows or any(word in r.name for word in rows)]
    if not found:
        raise BridgeError("no such row", where=", ".join(rows), remedy="See `python -m papers list`.")
    return found


@click.group()
def cli() -> None:
    """Repeat published experiments, seed by seed."""


@cli.command()
@click.argument("tables", nargs=-1)
@click.option("--row", "rows", multiple=True, help="Only rows whose name contains this. May be repeated.")
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Seeds 1 … N.  [default: as many as the row asks for]"
)
@click.option("--smoke", type=click.IntRange(min=1), metavar="EPOCHS", help="Train for so few epochs only.")
@click.option("--headline", is_flag=True, help="Only the headline rows.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
def run(
    tables: tuple[str, ...],
    rows: tuple[str, ...],
    seeds: int | None,
    smoke: int | None,
    headline: bool,
    threads: int,
) -> None:
    """Train and judge the rows of TABLES, or of all tables."""
    from papers.run import run as run_row
    from papers.run import use_threads

    use_threads(threads)
    chosen = [(t, r) for t, r in _chosen(tables, rows) if r.headline or not headline]
    for seed in range(1, max(seeds or r.seeds for _, r in chosen) + 1):  # every row once, then the next seed
        for table, row in chosen:
            if seed <= (seeds or row.seeds) and (row.policy or seed == 1):
                run_row(table, row, seed, smoke=smoke, say=_say)


@cli.command()
def report() -> None:
    """Write docs/results from what was measured."""
    from papers.report import write

    for path in write():
        click.echo(path.relative_to(store.ROOT))


@cli.command()
def zoo() -> None:
    """Copy the headline rows' agents to zoo/, and judge each as a user would."""
    from papers.pictures import explained
    from papers.zoo import write

    for path in write():
        click.echo(path.relative_to(store.ROOT))
        try:
            click.echo(explained(path).relative_to(store.ROOT))
        except BridgeError as error:  # an agent that rejects nothing
            _say(f"{error}")


@cli.command()
def worlds() -> None:
    """Validate the zoo's agents on a detailed platform: docs/results/both-worlds.md."""
    from papers.worlds import write

    write()


@cli.command()
@click.option("--again", is_flag=True, help="Measure again what has been measured.")
def sem(again: bool) -> None:
    """What SEM shows of running jobs, and the time that saves: docs/results/sem-encoding.md."""
    from papers.sem.encoding import write

    for path in write(again=again, say=_say):
        click.echo(path.relative_to(store.ROOT))


@cli.command()
@click.option("--row", "rows", multiple=True, help="Only methods whose name contains this. May be repeated.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="PART",
    help="Only this: tables, held-out, table-9, convergence, figure-12, figure-13, worlds, table-3, or "
    "synthetic. May be repeated.  [default: all but worlds, of which only the tables train]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=0),
    help="Train seeds 1 … N.  [default: 3 for the tables, 1 for table-3 and synthetic]",
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
    type=click.Choice(["logged", "synthetic"]),
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
    """Heuristics and agents on RLSchert's slotted pool: docs/results/rlschert.md.

    Parts that train nobody judge the agents that exist.
    """
    from papers.rlschert import parts as rlschert_parts

    if unknown := set(parts) - set(rlschert_parts.PARTS):
        raise BridgeError(
            "no such part",
            where=", ".join(sorted(unknown)),
            remedy=f"Parts: {', '.join(rlschert_parts.PARTS)}.",
        )
    from papers.rlschert.page import write
    from papers.rlschert.play import OBJECTIVES, Wanted
    from papers.rlschert.rows import LABELS, METHODS, NETWORKS
    from papers.run import use_threads

    everybody = (*METHODS, *NETWORKS)
    chosen = tuple(m for m in everybody if not rows or any(word in m.row for word in rows))
    if not chosen:
        known = ", ".join(m.row for m in everybody)
        raise BridgeError("no such row", where=", ".join(rows), remedy=f"Rows: {known}.")
    if jobs == "synthetic":
        if set(parts) - {rlschert_parts.SYNTHETIC}:
            raise BridgeError(
                "this part needs the logged jobs", where=", ".join(parts), remedy="Leave --jobs out."
            )
        parts = (rlschert_parts.SYNTHETIC,)
    use_threads(threads)
    wanted = Wanted(
        chosen,
        smoke=smoke,
        labels=labels or LABELS,
        objectives=objectives or OBJECTIVES,
        sizes=sizes,
        say=_say,
    )
    rlschert_parts.run(wanted, parts, seeds, data)
    for path in write():
        click.echo(path.relative_to(store.ROOT))


@cli.command(name="mrsch-worlds")
def mrsch_worlds() -> None:
    """Validate MRSch's agents with staging and power: docs/results/mrsch-both-worlds.md."""
    from papers.worlds import write_many

    write_many()


@cli.command(name="list")
def list_rows() -> None:
    """Name all tables and rows."""
    for table in TABLES:
        click.echo(f"{table.name}: {table.title}")
        for row in table.rows:
            click.echo(f"  {row.name}" + (" (headline)" if row.headline else ""))


if __name__ == "__main__":
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted; run the same command again to go on")
        sys.exit(130)
    except BridgeError as error:
        _say(f"error: {error}")
        sys.exit(1)
