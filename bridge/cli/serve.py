"""`bridge serve`: a live partition as a small read-only page and JSON API."""

import math
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click

from bridge.base.errors import BridgeError
from bridge.cli import decide_slurm
from bridge.cli import options as shared
from bridge.config.options import Command


@click.command(cls=Command)
@decide_slurm.observed_options
@shared.policy_option(
    "The policy that is assumed to start the queue's jobs.  [default: Slurm's own schedulers]"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@shared.number("--port", "Port to listen on; 0: any free port.", 0, 65535, default=8017)
@click.option(
    "--name",
    "names",
    metavar="HOST",
    multiple=True,
    help="A further host name under which the page may be requested. May be repeated.",
)
@shared.number(
    "--every",
    "Seconds between two queries of Slurm, at least.",
    type=click.FloatRange(1),
    default=10.0,
    metavar="S",
)
@shared.number("--futures", "Number of futures for each forecast.", 2, 1000, default=100)
def serve(
    slurm: bool,
    partition: str | None,
    history: Path | None,
    policy: str | None,
    host: str,
    port: int,
    names: tuple[str, ...],
    every: float,
    futures: int,
) -> None:
    """Serve a page and JSON about a partition of Slurm: queue, predicted starts, next hours, what-if.

    The page changes nothing and runs no scripts. It listens on this machine only; --host changes that.
    Everyone who can reach the address can read it. If the cluster keeps jobs private, it shows totals only.

    \b
      bridge serve --slurm --partition batch --history log.parquet
      curl 'http://127.0.0.1:8017/api/forecast?job=4711'
    """
    try:
        import uvicorn

        from bridge.serve.app import app
        from bridge.serve.snapshot import SnapshotCache
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        what = f"the page needs {error.name}, which is not installed"
        raise BridgeError(what, remedy="pip install starlette uvicorn") from error
    if not slurm:
        raise click.UsageError("say what to serve: --slurm --partition P")
    if not math.isfinite(every):
        raise click.UsageError("--every must be a number of seconds")
    with closing(decide_slurm.open_observer(partition, policy or "", history)) as observer:
        observer.warm_up()
        snapshots = SnapshotCache(observer, every, futures)
        with suppress(BridgeError):  # the page says what is wrong
            snapshots.now().forecast()  # nobody waits for the compiler
        hosts = ["localhost", "127.0.0.1", host, *names]
        web_app = app(snapshots, refresh=max(every, 5.0), hosts=hosts)
        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(web_app, host=host, port=port, **quiet)
        with config.bind_socket() as sock:
            click.echo(f"http://{host}:{sock.getsockname()[1]}/", err=True)
            uvicorn.Server(config).run([sock])
