"""`bridge simgrid`: the embedded platform model, with Batsim's own command line."""

import os
import sys

import click

from bridge.worlds.simgrid import command as model_command
from bridge.worlds.simgrid.options import parse


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
    options_metavar="-p PLATFORM.xml -w WORKLOAD.json [-s ENDPOINT] [-e PREFIX] [BATSIM OPTIONS]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="")
def simgrid(arguments: tuple[str, ...]) -> None:
    """Simulate a platform for a decision process, in place of Batsim.

    The options are Batsim 4's; see them with `bridge simgrid --help`. The model runs under an interpreter
    that has SimGrid's Python bindings, found by itself or named in BRIDGE_SIMGRID_PYTHON.
    """
    if not {"-h", "--help"}.isdisjoint(arguments):
        parse(list(arguments), "")  # in this process, which may lack SimGrid
    command = [*model_command(), *arguments]
    sys.stdout.flush()
    # In place of this process, which would only stand between the model and who started it.
    os.execvp(command[0], command)
