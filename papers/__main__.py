"""`python -m papers`: the papers' studies (`study` is `bridge study`, with their rules), and their pages.

What is in a study's record is not done again. Logs are found in $BRIDGE_TRACES, or among those that `bridge
workload fetch` fetched.
"""

import sys
from pathlib import Path

import click

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.cli.main import main
from bridge.cli.study import study
from bridge.workload.mrsch import SETTINGS
from papers import store
from papers.logs import trace_file
from papers.mrsch.optimise import Optimise
from papers.rlbackfilling.rules import RULES
from papers.rlschert.command import rlschert
from papers.studies import PAPERS


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.group()
def cli() -> None:
    """Repeat published experiments, seed by seed."""


cli.add_command(rlschert)


cli.add_command(study)
plugins.register("rule", "optimise", Optimise)
for name, rule in RULES.items():
    plugins.register("rule", name, rule)


@cli.command()
@click.option("--thetagpu", "table", type=Path, help="ThetaGPU's table, as lumos has it: makes its log, too.")
def workloads(table: Path | None) -> None:
    """Make what studies read from runs/papers/workloads: MRSch's logs, RLSchert's jobs, a planted log."""
    from papers.acting.planted import write_planted
    from papers.rlschert.synthetic import write_mixed
    from papers.sites.thetagpu import write_thetagpu

    click.echo(write_mixed())
    click.echo(write_planted())
    if table:
        click.echo(write_thetagpu(table))
    for trace in SETTINGS:
        click.echo(trace_file(trace))


@cli.command()
@click.argument("papers", nargs=-1, type=click.Choice(PAPERS))
def report(papers: tuple[str, ...]) -> None:
    """Write docs/results from what was measured, of some papers or of all."""
    from papers import pages
    from papers.rlschert import page

    for path in (*pages.write(papers), *(page.write() if "rlschert" in (papers or PAPERS) else ())):
        click.echo(path.relative_to(store.ROOT))


@cli.command()
@click.argument("names", nargs=-1)
def zoo(names: tuple[str, ...]) -> None:
    """Copy the headline rows' agents to zoo/, or those of some NAMES, and judge each as a user would."""
    from papers.pictures import explained
    from papers.zoo import write

    for path in write(names):
        click.echo(path.relative_to(store.ROOT))
        try:
            click.echo(explained(path).relative_to(store.ROOT))
        except BridgeError as error:  # an agent that rejects nothing, or one of the pool
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


if __name__ == "__main__":
    sys.exit(main(run=cli.main, name="python -m papers"))
