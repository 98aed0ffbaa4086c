"""`bridge state`: a machine's state at a time of a run, as a file."""

from pathlib import Path

import click

from bridge.cli import options as shared
from bridge.cli.progress import TERMINAL


@click.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--at", type=float, required=True, metavar="TIME", help="Seconds on the run's clock.")
@click.option("--out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="Write it here.")
@click.option(
    "--policy", metavar="POLICY", type=shared.POLICY, help="Rule, if not the run's own.", default=""
)
@click.option("--requested", is_flag=True, help="Believe that jobs run as long as they request.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def state(run_folder: Path, at: float, out: Path, policy: str, requested: bool, force: bool) -> None:
    """Write what ran, waited and was free at a TIME of the run folder RUN, and what was believed then.

    The beliefs are learnt from jobs that had ended by then. `bridge forecast` and `bridge whatif` read the
    file; other programs may write one, see the page "Forecasts".

    \b
      bridge state runs/sp2 --at 2592000 --out now.json
    """
    from bridge.futures.of_run import state_of_run
    from bridge.futures.statefile import write_state
    from bridge.judge.run import read_run

    shared.check_output(out, force)
    run = read_run(run_folder)
    TERMINAL.compiling()
    with TERMINAL.bar("earlier forecasts", 1200, "forecasts") as progress:
        found = state_of_run(run, at, policy, learn=not requested, progress=progress)
    write_state(found, out)
    waiting = len(found) - found.n_running
    click.echo(
        f"wrote {out}: {found.n_running:,} jobs run, {waiting:,} wait, {found.free[0]:,} nodes are free"
    )
