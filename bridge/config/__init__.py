"""Settings as plain data: dataclasses with bounds, TOML to dataclass and back, command-line options of them.

A setting is stated once, as a field of a dataclass: its type, what its value may be (`Of`, in
``Annotated``), its default, and what it means (its line under ``Attributes:`` in the class's docstring).
`build` reads it from plain data, `plain` writes it, `bridge.config.options` offers it on the command line.
Nothing here imports NumPy or pandas.
"""

from bridge.config.build import (
    build,
    command_line,
    merged,
    parse_toml,
    plain,
    read_toml,
    spell,
    verify,
    words,
)
from bridge.config.fields import Count, Natural, Of, Positive, Share, Unsigned

__all__ = [
    "Count",
    "Natural",
    "Of",
    "Positive",
    "Share",
    "Unsigned",
    "build",
    "command_line",
    "merged",
    "parse_toml",
    "plain",
    "read_toml",
    "spell",
    "verify",
    "words",
]
