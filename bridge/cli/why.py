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
    """Explain why JOB of the run folder RUN started when it did.

    Lists the jobs that used the nodes, the start that was reserved for JOB, the blocked job that JOB was
    started before, and the jobs that were started before JOB.
    """
    from bridge.judge.run import read_run
    from bridge.judge.why import describe_reason, explain

    run = read_run(run_folder)
    reason = explain(run, job)
    document = record_of(reason)
    if not reason.reasons:  # no run on a cluster
        del document["reasons"]
    show(document, describe_reason(reason, run.capacity["nodes"]), as_json)
