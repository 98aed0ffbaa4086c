"""`bridge report`: runs, validations, evaluations and checkpoints on one self-contained HTML page."""

from pathlib import Path

import click

from bridge.cli import options as shared
from bridge.cli.terminal import show


@click.command()
@click.argument("inputs", metavar="INPUT…", nargs=-1, required=True, type=shared.FILE)
@shared.file_option(
    "--html", "The page to write (.html); an existing one is replaced.", to="page", required=True
)
@click.option("--title", default="bridge report", show_default=True, help="Heading of the page.")
@shared.json_option
def report(inputs: tuple[Path, ...], page: Path, title: str, as_json: bool) -> None:
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
    document = {"page": str(page), "inputs": [str(path) for path in inputs], "bytes": page.stat().st_size}
    show(document, [f"page written to {page}"], as_json)
