"""Settings as plain data: dataclasses with bounds, TOML to dataclass and back, command-line options of them.

A setting is stated once, as a field of a dataclass: its type, what its value may be (`Constraint`, in
``Annotated``), its default, and what it means (its line under ``Attributes:`` in the class's docstring).
`build` reads it from plain data, `plain` writes it, `bridge.config.options` offers it on the command line.
Nothing here imports NumPy or pandas.
"""

from typing import TYPE_CHECKING

from bridge.base import renamed
from bridge.config.convert import (
    command_line,
    from_tables,
    merged,
    parse_toml,
    read_toml,
    spell,
    to_arguments,
    to_tables,
    verify,
)
from bridge.config.fields import Constraint, Count, Natural, Positive, Share, Unsigned

__all__ = [
    "Constraint",
    "Count",
    "Natural",
    "Positive",
    "Share",
    "Unsigned",
    "command_line",
    "from_tables",
    "merged",
    "parse_toml",
    "read_toml",
    "spell",
    "to_arguments",
    "to_tables",
    "verify",
]


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
