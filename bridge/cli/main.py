"""The `bridge` command: loads a command's module only when that command is called."""

import gc
import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from bridge.base.errors import BridgeError, bounded
from bridge.base.streams import print_utf8
from bridge.base.suggestions import did_you_mean
from bridge.base.version import __version__


class LazyGroup(click.Group):
    """A group of commands, some imported when they are called only: `--help` stays instant.

    `lazy`: name -> module in `bridge.cli` and attribute (``accounting:machine``), and the line of help.
    `headings`: heading of the help -> names of the commands under it; all others come last.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, tuple[str, str]],
        headings: Mapping[str, Sequence[str]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._lazy = lazy
        self._headings = headings or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"bridge.cli.{module}"), name)
        if ctx.resilient_parsing:  # a shell completes
            from bridge.cli.completion import add_completions

            add_completions(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {name: self.commands[name].get_short_help_str(80) for name in super().list_commands(ctx)}
        lines |= {name: help_text for name, (_, help_text) in self._lazy.items()}
        width = max(map(len, lines))
        rest = [name for name in lines if not any(name in names for names in self._headings.values())]
        for heading, names in (*self._headings.items(), ("More" if self._headings else "Commands", rest)):
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), lines[name]) for name in names if name in lines])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; of a misspelt one, the error names the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = did_you_mean(args[0], self.list_commands(ctx)).strip()
            if not hint:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx) from error


# Arrow reads this when it is imported: its own pools keep what is freed (90 MB on a log of 300,000 jobs).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

#: Commands: name -> one line of help. The module of that name in `bridge.cli` holds the click command.
COMMANDS: dict[str, str] = {
    "replay": "Replay a log under one policy and judge the schedule.",
    "evaluate": "Judge policies on sampled sequences of a log, with intervals.",
    "fidelity": "Compare the starts in a replay with the starts that the log records.",
    "bound": "Estimate how much better a schedule of a log could be, and why.",
    "train": "Train an agent on a log.",
    "policies": "List the policies that are installed, or describe one.",
    "study": "Run many policies on many logs with many seeds, and write tables.",
    "predict": "Predict the run times of a log's jobs from jobs that had ended before.",
    "state": "Write the jobs, free nodes and estimates at one time of a run.",
    "forecast": "Forecast when waiting jobs will start, and judge such forecasts on a log.",
    "whatif": "Play the same futures of a machine under several rules.",
    "explain": "Show what an agent has learnt, feature by feature.",
    "compare": "Compare run folders with the first one.",
    "check": "Verify a schedule against the machine and the log.",
    "why": "Explain why a job of a run started when it did.",
    "workload": "Inspect, convert, generate and fetch job logs.",
    "cluster": "Import, check and show a site: nodes, partitions, limits.",
    "platform": "Make, check, show and try platform descriptions.",
    "run": "Run one experiment: fast, on the embedded platform model, or on Batsim.",
    "validate": "Run policies in the fast world and on a detailed platform, and compare.",
    "decide": "Decide for Batsim, or for the embedded platform model, through a socket.",
    "simgrid": "Simulate a platform for a decision process, in place of Batsim.",
    "batsim": "Replay sessions that were recorded between a Batsim and a decision process.",
    "slurm": "Prepare a Slurm for an agent, and check its state.",
    "serve": "Show a live Slurm's queue and predicted starts in a browser.",
    "report": "Write one HTML page about runs, validations and agents.",
    "doctor": "List what this machine has, and how to install what is missing.",
}

#: Headings of `bridge --help`, and the commands under them; a command without one comes last.
HEADINGS: dict[str, tuple[str, ...]] = {
    "Replay and judge": ("replay", "evaluate", "bound", "compare", "check", "why", "fidelity", "report"),
    "Learn": ("train", "policies", "explain", "study"),
    "Predict and forecast": ("predict", "state", "forecast", "whatif"),
    "Worlds": ("run", "validate", "decide", "simgrid", "batsim"),
    "Live": ("slurm", "serve"),
    "Data": ("workload", "cluster", "platform"),
}

#: Options of `bridge` itself, which people write behind the command, too.
_OF_ALL_COMMANDS = ("-q", "--quiet", "-v", "--verbose")
#: What the extra ``learn`` brings.
LEARNING = ("gymnasium", "safetensors", "torch")
#: What the extra ``report`` brings.
DRAWING = ("matplotlib", "plotly")


@click.group(
    cls=LazyGroup,
    lazy={name: (f"{name}:{name}", help_text) for name, help_text in COMMANDS.items()},
    headings=HEADINGS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("-q", "--quiet", is_flag=True, help="Print results and errors only: no notes, no progress.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Print the stack of an error, and how long the command took."
)
@click.version_option(__version__, prog_name="bridge")
def cli(quiet: bool, verbose: bool) -> None:
    """Replay job logs under a scheduling policy, and judge the schedules.

    -q and -v stand before the command: bridge -q replay bundled-128.
    """
    from bridge.cli.terminal import TERMINAL

    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose contradict each other: choose one")
    TERMINAL.quiet, TERMINAL.verbose = quiet, verbose


def main(argv: Sequence[str] | None = None, run: Callable[..., Any] = cli.main, name: str = "bridge") -> int:
    """Run the command line; every expected failure ends in one message and a non-zero exit status.

    `name`: how it was called, for usage and help.
    """
    # To load modules makes many objects and no garbage: to look for it as often as by default takes 0.15 s of
    # a replay's 1.05 s, and 0.4 s of the 2.4 s of whatever loads PyTorch.
    gc.set_threshold(50_000, 25, 25)
    print_utf8()
    started_at = time.monotonic()
    try:
        _refuse_bytes(sys.argv[1:] if argv is None else argv)
        status = run(args=argv, prog_name=name, standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and (option := error.option_name) in _OF_ALL_COMMANDS:
            message = f"No such option {option!r}. It stands before the command: {name} {option} …"
            error = click.UsageError(message, error.ctx)
        error.show()
        return error.exit_code
    except click.Abort as abort:
        cause = abort.__cause__
        if isinstance(cause, EOFError) and not _hides_interrupt(cause):  # click takes it for a Ctrl-D
            click.echo(f"bridge: error: {_message_of(cause)}", err=True)
            return 1
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except ModuleNotFoundError as error:
        if error.name not in {*LEARNING, *DRAWING}:
            raise
        if error.name in LEARNING:
            subject, remedy = "agents", "pip install 'hpc-bridge[learn]'"
        else:
            subject, remedy = "pictures and reports", "pip install 'hpc-bridge[report]'"
        message = f"{subject} need {error.name}, which is not installed. Install it: {remedy}"
        click.echo(f"bridge: error: {message}", err=True)
        return 1
    except (BridgeError, OSError, MemoryError) as error:
        _print_stack(error)
        click.echo(f"bridge: error: {_message_of(error)}", err=True)
        return 1
    except Exception as error:  # the compiler answers Ctrl-C with errors of its own
        if not _hides_interrupt(error):
            raise
        return _interrupted()
    _print_time(time.monotonic() - started_at)
    return status if isinstance(status, int) else 0


def _is_verbose() -> bool:
    terminal = sys.modules.get("bridge.cli.terminal")  # without it no command was called
    return terminal is not None and bool(terminal.TERMINAL.verbose)


def _print_stack(error: BaseException) -> None:
    if _is_verbose():
        import traceback

        traceback.print_exception(error)


def _print_time(seconds: float) -> None:
    if _is_verbose():
        click.echo(f"bridge: it took {seconds:,.1f} s", err=True)


def _interrupted() -> int:
    click.echo("bridge: interrupted", err=True)
    return 130


def _hides_interrupt(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _refuse_bytes(words: Sequence[str]) -> None:
    """Refuse (UsageError) words that are no text: they could not be written to any record."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            printable = word.encode("utf-8", "backslashreplace").decode()
            if sys.getfilesystemencoding() != "utf-8":
                what = f"{printable} cannot be named in this locale"
                raise click.UsageError(f"{what}; set LC_ALL=C.UTF-8, or PYTHONUTF8=1")
            raise click.UsageError(f"{printable} is no text in UTF-8; rename the file")


def _message_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{bounded(str(error.filename or 'input or output'))}: {error.strerror}"
    if isinstance(error, EOFError):
        return "something that was read ended too early; `bridge doctor` looks at what this machine has"
    return bounded(str(error)) if isinstance(error, OSError) else str(error) or "out of memory"


if __name__ == "__main__":
    sys.exit(main())
