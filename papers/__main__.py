"""`python -m papers`: run rows of the papers' tables, and write the tables.

Everything is additive: what is there is not done again, a training that broke off goes on, more seeds add to
what was measured. Logs are found in $BRIDGE_TRACES, or among those that `bridge workload fetch` fetched.
"""

import sys

import click

from bridge.cli.main import main
from bridge.errors import BridgeError
from papers import store, study
from papers.rlschert.command import rlschert


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.group()
def cli() -> None:
    """Repeat published experiments, seed by seed."""


cli.add_command(rlschert)


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
    from bridge.learn.training import use_threads
    from papers.run import run as run_row

    use_threads(threads)
    chosen = [(t, r) for t, r in study.chosen(tables, rows) if r.headline or not headline]
    for seed in range(1, max(seeds or r.seeds for _, r in chosen) + 1):  # every row once, then the next seed
        for table, row in chosen:
            if seed <= (seeds or row.seeds) and (row.policy or seed == 1):
                run_row(table, row, seed, smoke=smoke, say=_say)


@cli.command()
def report() -> None:
    """Write docs/results from what was measured."""
    from papers.pages import write

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
@click.argument("pages", nargs=-1, type=click.Choice(["both-worlds", "mrsch-both-worlds"]))
def worlds(pages: tuple[str, ...]) -> None:
    """Validate agents on detailed platforms: the zoo's with contention, MRSch's with staging and power."""
    from papers.worlds import PAGES, write

    for page in pages or PAGES:
        click.echo(write(page).relative_to(store.ROOT))


@cli.command()
@click.option("--again", is_flag=True, help="Measure again what has been measured.")
def sem(again: bool) -> None:
    """What SEM shows of running jobs, and the time that saves: docs/results/sem-encoding.md."""
    from papers.sem.encoding import write

    for path in write(again=again, say=_say):
        click.echo(path.relative_to(store.ROOT))


@cli.command(name="list")
def list_rows() -> None:
    """Name all tables and rows."""
    for table in study.tables():
        click.echo(f"{table.name}: {table.title}")
        for row in table.rows:
            click.echo(f"  {row.name}" + (" (headline)" if row.headline else ""))


if __name__ == "__main__":
    sys.exit(main(run=cli.main))
