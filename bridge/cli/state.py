"""`bridge state`: a machine's state at a time of a run, as a file."""

from pathlib import Path

import click

from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL


@click.command()
@click.argument("run_folder", metavar="RUN", type=shared.FILE)
@click.option("--at", type=float, required=True, metavar="TIME", help="Seconds on the run's clock.")
@shared.file_option("--out", "The file of the state to write.", required=True)
@shared.policy_option("The policy of the state.  [default: the policy of the run]", default="")
@shared.flag("--requested", "Assume that jobs run as long as they request.")
@shared.flag("--force", "Replace FILE if it exists.")
def state(run_folder: Path, at: float, out: Path, policy: str, requested: bool, force: bool) -> None:
    """Write the running and waiting jobs, the free nodes and the estimates at a TIME of the run RUN.

    Estimates of run times are learned from jobs that had ended at this time. `bridge forecast` and `bridge
    whatif` read the file. Other programs may write such a file, see the page "Forecasts".

    \b
      bridge state runs/sp2 --at 2592000 --out now.json
    """
    from bridge.forecasting.run_state import state_of_run
    from bridge.forecasting.statefile import write_state
    from bridge.judge.run import read_run

    shared.check_output(out, force)
    run = read_run(run_folder)
    with TERMINAL.bar("earlier forecasts", 1200, "forecasts") as progress:
        state_document = state_of_run(run, at, policy, learn=not requested, progress=progress)
    write_state(state_document, out)
    waiting = len(state_document) - state_document.n_running
    free = f"nodes free: {state_document.free[0]:,}"
    click.echo(f"wrote {out}: jobs running: {state_document.n_running:,}, waiting: {waiting:,}; {free}")
