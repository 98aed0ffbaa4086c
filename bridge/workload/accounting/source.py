"""Reading an accounting from a file or from standard input, in the form that it turns out to have."""

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, tzinfo
from pathlib import Path

from bridge import files
from bridge.errors import BridgeError
from bridge.workload.accounting import values
from bridge.workload.accounting.assemble import assemble
from bridge.workload.accounting.choices import Choices
from bridge.workload.accounting.jobcomp import read_jobcomp
from bridge.workload.accounting.lives import Counted, Life
from bridge.workload.accounting.machine import Machine
from bridge.workload.accounting.sacct import read_sacct, read_sacct_json
from bridge.workload.table import Workload

_TEXTS: Mapping[str, Callable[[str, str, Counted, tzinfo], Iterator[Life]]] = {
    "sacct": read_sacct,
    "jobcomp": read_jobcomp,
}


def import_accounting(
    path: str, form: str, zone: tzinfo, machine: Machine | None = None, choices: Choices | None = None
) -> Workload:
    """Return the workload of an accounting; `path` ``-`` is standard input, files may be compressed.

    `form`: ``sacct`` (text, or JSON if it begins with a brace) or ``jobcomp``; `zone`: of times written as a
    date. BridgeError: it cannot be read, is none, or no job has ended in it.
    """
    where = "standard input" if path == "-" else path
    text = _text(path, where)
    counted = Counted()
    if form == "sacct" and text.lstrip()[:1] == "{":
        lives = read_sacct_json(files.json_in(text, where, "Write it again."), where, counted)
    else:
        lives = _TEXTS[form](text, where, counted, zone)
    name = "accounting" if path == "-" else files.stem(Path(path)).removesuffix(".txt")
    lives = _noting_doubles(lives, counted, zone)
    return assemble(lives, name, where, counted, machine, choices or Choices())


def _noting_doubles(lives: Iterator[Life], counted: Counted, zone: tzinfo) -> Iterator[Life]:
    """Pass lives on; count those with a time that comes twice because the clock is set back."""
    for life in lives:
        times = (life.submit, life.eligible, life.start, life.end)
        if zone is not UTC and any(t is not None and values.is_ambiguous(t, zone) for t in times):
            why = "a time that comes twice where the clock is set back: the first is taken"
            counted.note(why, life.number)
        yield life


def _text(path: str, where: str) -> str:
    """Return the text; names of jobs may be in any encoding: bytes that are no UTF-8 are shown as such."""
    if path == "-":
        raw = sys.stdin.buffer.read(files.MOST_TEXT + 1)
    else:
        with files.open_read(Path(path)) as file:
            raw = file.read(files.MOST_TEXT + 1)
    if len(raw) > files.MOST_TEXT:
        remedy = "List fewer months at a time, without steps (-X)."
        raise BridgeError(f"is longer than {files.MOST_TEXT:,} bytes", where=where, remedy=remedy)
    if not raw.strip():
        raise BridgeError("is empty", where=where, remedy="Check the command that should have written it.")
    return raw.decode("utf-8-sig", errors="backslashreplace")
