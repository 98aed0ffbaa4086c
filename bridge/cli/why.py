"""`bridge why`: why a job of a run started when it did."""

from pathlib import Path

import click

from bridge.cli import options as shared
from bridge.cli.terminal import show
from bridge.config.fields import record_of


@click.command()
@click.argument("run_folder", metavar="RUN", type=shared.FILE)
@click.argument("job")
@shared.json_option
def why(run_folder: Path, job: str, as_json: bool) -> None:
    """Tell why JOB of the run folder RUN started when it did.

    Who held the nodes, what it was promised, whom it was backfilled past, and who overtook it.
    """
    from bridge.judge.run import read_run
    from bridge.judge.why import describe_reason, explain

    run = read_run(run_folder)
    reason = explain(run, job)
    document = record_of(reason)
    if not reason.reasons:  # no run on a cluster
        del document["reasons"]
    show(document, describe_reason(reason, run.capacity["nodes"]), as_json)
