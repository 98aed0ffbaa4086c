"""`python -m papers rlschert`: what RLSchert's page has beside its tables, part by part."""

import sys
from collections.abc import Callable, Mapping

import click

from bridge.base.errors import BridgeError
from papers.output import Say

#: Parts of the page, in the order in which they are run.
PARTS = ("predictors", "figure-5", "figure-6", "figure-12", "figure-13", "driven", "worlds")
#: One that is run only if it is named: it takes minutes.
_NAMED = "worlds"


def runs() -> Mapping[str, Callable[[Say], None]]:
    """Return what runs each part, unless that has been done."""
    from bridge.pool.synthetic import synthetic
    from papers.rlschert import (
        contestants,
        figures,
        job_sizes,
        measures,
        page,
        predictor_runs,
        running,
        worlds,
    )
    from papers.rlschert.synthetic import accuracies

    functions: tuple[Callable[[Say], None], ...] = (
        lambda say: accuracies(synthetic(), say),
        lambda say: job_sizes.run(contestants.jobs(), say),
        lambda say: running.run(contestants.jobs(), say),
        lambda say: contestants.judge(page.HOLES, figures.WITH_HOLES, measures.holes, say),
        lambda say: contestants.judge(page.KILLED, figures.WITH_KILLS, measures.killed, say),
        lambda say: predictor_runs.run(synthetic(), say),
        worlds.run,
    )
    return dict(zip(PARTS, functions, strict=True))


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
def rlschert(parts: tuple[str, ...]) -> None:
    """Measure what docs/results/rlschert.md has, all PARTS but the worlds, and write it.

    Agents are those that `bridge study run papers/rlschert/study.toml` has trained here. A part that cannot
    be measured is named, and the exit status is 1.
    """
    from papers import store
    from papers.rlschert.page import write

    failed = False
    for part, run in runs().items():
        if part in (parts or set(PARTS) - {_NAMED}):
            try:
                run(lambda text: click.echo(text, err=True))
            except BridgeError as error:  # such as no logged jobs: others go on
                failed = True
                click.echo(f"{part}: {error}", err=True)
    for path in write():
        click.echo(path.relative_to(store.ROOT))
    sys.exit(failed)
