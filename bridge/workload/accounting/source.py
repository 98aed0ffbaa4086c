"""Reading an accounting from a file or from standard input, in the form that it turns out to have."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import IO, BinaryIO

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster import slurm_values as values
from bridge.cluster.description import Cluster as Site
from bridge.workload.accounting.assemble import assemble
from bridge.workload.accounting.choices import ImportConfig
from bridge.workload.accounting.forms import refuse_json_lines
from bridge.workload.accounting.jobcomp import read_jobcomp
from bridge.workload.accounting.lives import JobLife, RecordCounter
from bridge.workload.accounting.machine import AccountingMachine
from bridge.workload.accounting.pbs import read_pbs
from bridge.workload.accounting.sacct import read_sacct, read_sacct_json
from bridge.workload.ignored import note_ignored
from bridge.workload.requests import heeded_columns
from bridge.workload.table import Workload

#: Bytes that are read at a time, and of a line of text at most.
_BLOCK, _MOST_LINE = 1 << 20, 1 << 24


def import_accounting(
    path: str,
    form: str,
    zone: tzinfo,
    machine: AccountingMachine | None = None,
    choices: ImportConfig | None = None,
    columns: Sequence[str] = (),
    site: Site | None = None,
) -> Workload:
    """Return the workload of an accounting; `path` ``-`` is standard input, files may be compressed.

    `form`: ``sacct`` (text, or JSON if it begins with a brace), ``jobcomp`` or ``pbs``; `zone`: of times
    written as a date; `columns`: of a text of `sacct` without a line of their names; `site`: the cluster
    that jobs ask for. BridgeError: it cannot be read, is none, or no job has ended in it.
    """
    where = "standard input" if path == "-" else path
    text = _text(path, where)
    counted = RecordCounter()
    lives: Iterator[JobLife]
    if form == "jobcomp":
        lives = read_jobcomp(text, where, counted, zone)
    elif form == "pbs":
        lives = read_pbs(text, where, counted, zone)
    elif text.lstrip()[:1] == "{":
        refuse_json_lines(text, where)
        lives = read_sacct_json(files.json_in(text, where, "Write it again."), where, counted)
    else:
        lives = read_sacct(text, where, counted, zone, columns)
    name = "accounting" if path == "-" else files.stem(Path(path)).removesuffix(".txt")
    lives = _noting_doubles(lives, counted, zone)
    kind = "PBS" if form == "pbs" else "Slurm"
    imported = assemble(lives, name, where, counted, machine, choices or ImportConfig(), site, zone, kind)
    heeded = heeded_columns(imported) if site is not None else ()
    return replace(imported, tally={**imported.tally, **note_ignored(imported, heeded)})


def _noting_doubles(lives: Iterator[JobLife], counted: RecordCounter, zone: tzinfo) -> Iterator[JobLife]:
    """Pass lives on; count those with a time that comes twice because the clock is set back."""
    for life in lives:
        times = (life.submit, life.eligible, life.start, life.end)
        if zone is not UTC and any(t is not None and values.is_ambiguous(t, zone) for t in times):
            why = "a time that comes twice where the clock is set back: the first is taken"
            counted.note(why, life.number)
        yield life


def _text(path: str, where: str) -> str:
    """Return the text; names of jobs may be in any encoding: bytes that are no UTF-8 are shown as such."""
    with nullcontext(sys.stdin.buffer) if path == "-" else files.open_read(Path(path)) as file:
        raw = b"".join(_blocks(file, where))
    if not raw.strip():
        raise BridgeError("is empty", where=where, remedy="Check the command that should have written it.")
    return raw.decode("utf-8-sig", errors="backslashreplace")


def _blocks(file: BinaryIO | IO[bytes], where: str) -> Iterator[bytes]:
    """Yield the blocks of a file; BridgeError: it is too long or, unless it is JSON, a line of it is."""
    total, line, begin, is_json = 0, 1, 0, None
    while block := file.read(_BLOCK):
        if is_json is None:
            is_json = block.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
        total += len(block)
        line += block.count(b"\n")
        if (newline := block.rfind(b"\n")) >= 0:
            begin = total - len(block) + newline
        if total > files.MOST_TEXT:
            remedy = "List fewer months at a time, without steps (-X)."
            raise BridgeError(f"is longer than {files.MOST_TEXT:,} bytes", where=where, remedy=remedy)
        if not is_json and total - begin > _MOST_LINE:
            what, remedy = f"the line is longer than {_MOST_LINE:,} bytes", "Check what wrote it."
            raise BridgeError(what, where=f"{where}:{line}", remedy=remedy)
        yield block
