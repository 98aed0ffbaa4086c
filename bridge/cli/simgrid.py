"""`bridge simgrid`: the embedded platform model, with Batsim's own command line."""

import os
import signal
import subprocess
from typing import Any

import click

from bridge.simgrid import interpreter


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
    options_metavar="-p PLATFORM.xml -w WORKLOAD.json [-s ENDPOINT] [-e PREFIX] [BATSIM OPTIONS]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.pass_context
def simgrid(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Simulate a platform for a decision process, in place of Batsim.

    The options are Batsim 4's; see them with `bridge simgrid --help`. The model runs under an interpreter
    that has SimGrid's Python bindings, found by itself or named in BRIDGE_SIMGRID_PYTHON.
    """
    child = subprocess.Popen([*interpreter.command(), *arguments])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _pass_on(child))
    ctx.exit(_status(child.wait()))


def _pass_on(child: subprocess.Popen[bytes]) -> Any:
    def forward(number: int, _frame: Any) -> None:
        if child.poll() is None:
            os.kill(child.pid, number)

    return forward


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code
