"""`bridge report`: runs, validations, evaluations and checkpoints on one self-contained HTML page."""

from pathlib import Path

import click


@click.command()
@click.argument("inputs", metavar="INPUT…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--html",
    "page",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The page to write (.html); an existing one is replaced.",
)
@click.option("--title", default="bridge report", show_default=True, help="Heading of the page.")
def report(inputs: tuple[Path, ...], page: Path, title: str) -> None:
    """Put INPUTs on one HTML page that opens from disk, without a network.

    An INPUT is a run folder (replay --out, run --out), a validation folder (validate --out), an evaluation
    (evaluate --json > FILE.json), a bound (bound --json > FILE.json), a picture (forecast --plot FILE.svg)
    or a checkpoint folder.

    \b
    Examples:
      bridge report runs/demo/fcfs-easy runs/demo/sjf-easy --html runs.html
      bridge evaluate bundled-128 --order fcfs --order sjf --json > e.json
      bridge report e.json runs/agent --html agent.html
    """
    from bridge.report.page import read_inputs, write_page

    write_page(read_inputs(inputs), page, title)
    click.echo(f"page written to {page}")
