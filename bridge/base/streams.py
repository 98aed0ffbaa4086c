"""What a process prints is UTF-8, whatever its locale; the standard library alone."""

import codecs
import io
import sys
from typing import TextIO


def print_utf8() -> None:
    """Let stdout and stderr take every letter: as UTF-8, or on a terminal of another encoding escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=_encoding(stream), errors="backslashreplace")


def _encoding(stream: TextIO) -> str:
    """Return UTF-8, or a terminal's own encoding; that it is ASCII is only what the locale C says."""
    is_ascii = codecs.lookup(stream.encoding).name == "ascii"
    return stream.encoding if stream.isatty() and not is_ascii else "utf-8"
