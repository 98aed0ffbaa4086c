"""A click group whose commands are imported on first use, so that `--help` stays instant."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group of commands, some of which are imported when they are called.

    Args:
        lazy: name -> module in `bridge.cli` and attribute (``accounting:machine``), and the line of help.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"bridge.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        here = {name: self.commands[name].get_short_help_str(80) for name in super().list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([*here.items(), *((name, told) for name, (_, told) in self._lazy.items())])
