"""`bridge why`: why a job of a run started when it did."""

from dataclasses import asdict
from pathlib import Path

import click

from bridge.cli.options import json_option
from bridge.cli.show import show_json


@click.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("job")
@json_option
def why(run_folder: Path, job: str, as_json: bool) -> None:
    """Tell why JOB of the run folder RUN started when it did.

    Who held the nodes, what it was promised, whom it was backfilled past, and who overtook it.
    """
    from bridge.judge.run import read_run
    from bridge.judge.why import explain, sentences

    run = read_run(run_folder)
    reason = explain(run, job)
    if as_json:
        show_json(asdict(reason))
        return
    for sentence in sentences(reason, run.capacity["nodes"]):
        click.echo(sentence)
