"""Examines an SWF log line by line: says what is wrong with a line, and repairs what can be repaired.

Slow next to the fast parser of `bridge.workload.swf`, and called only once that one has given up.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from bridge import files
from bridge.errors import BridgeError
from bridge.workload.table import FLOAT_COLUMNS, SWF_COLUMNS, Reason, tally

#: What to do about a line that is no record.
Malformed = Literal["refuse", "drop"]

#: Fields that every record must have: all but the think time, which some old logs lack.
FEWEST = len(SWF_COLUMNS) - 1
#: Memory is a mean in some logs and then has a fraction, which is cut off (KB).
_CUT_COLUMNS = frozenset({"memory", "req_memory"})
_INT64 = np.iinfo(np.int64)
#: A line of nothing but whole numbers that are surely not too large: nothing to examine.
_PLAIN = re.compile(r"-?\d{1,18}(?: -?\d{1,18})*", re.ASCII)
_SKIP = 'Pass --malformed drop (malformed="drop") to leave such lines out, or mend the file.'


@dataclass
class Lines:
    """Every line of a log examined one by one: slow, so only once the fast parser has given up."""

    path: Path
    good: list[bytes] = field(default_factory=list)
    fields: int = 0

    def settle(self, malformed: Malformed) -> dict[str, Reason]:
        """Keep the lines that are records in `good`, count the others; refuse them unless told to drop."""
        rows: list[tuple[int, list[str], bool]] = []
        bad: list[tuple[int, str]] = []
        for number, tokens in self._tokens():
            if len(tokens) >= FEWEST and _PLAIN.fullmatch(" ".join(tokens)):
                rows.append((number, tokens, False))
                continue
            cells, cut, why = _examine(tokens)
            if why:
                bad.append((number, why))
            else:
                rows.append((number, cells, cut))
        self.fields = max((len(cells) for _, cells, _ in rows), default=0)
        # Without the think time only if no record has it: otherwise 17 fields are half a line.
        fewest = min(max(self.fields, FEWEST), len(SWF_COLUMNS))
        bad += [(n, _short(len(cells), fewest)) for n, cells, _ in rows if len(cells) < fewest]
        rows = [row for row in rows if len(row[1]) >= fewest]
        if bad and malformed == "refuse":
            number, why = min(bad)
            more = f" ({len(bad) - 1} more such lines)" if len(bad) > 1 else ""
            raise BridgeError(f"{why}{more}", where=f"{self.path}:{number}", remedy=_SKIP)
        if not rows:
            raise BridgeError(
                "no line is a job record", where=str(self.path), remedy="Check that this is an SWF log."
            )
        self.good = [" ".join(cells + ["-1"] * (self.fields - len(cells))).encode() for _, cells, _ in rows]
        return {
            **tally("dropped", "malformed line (examples are line numbers)", sorted(n for n, _ in bad)),
            **tally(
                "repaired", "fraction of a KB of memory cut off", [int(c[0]) for _, c, cut in rows if cut]
            ),
            **tally(
                "repaired",
                "missing extension fields set to -1",
                [int(cells[0]) for _, cells, _ in rows if len(cells) < self.fields],
            ),
        }

    def _tokens(self) -> Iterator[tuple[int, list[str]]]:
        with files.open_read(self.path) as stream:
            for number, raw in enumerate(stream, start=1):
                tokens = raw.decode("utf-8", errors="replace").split(";")[0].split()
                if tokens:
                    yield number, tokens


def _short(found: int, fewest: int) -> str:
    return f"{found} fields instead of {fewest}: half a line"


def _examine(tokens: list[str]) -> tuple[list[str], bool, str]:
    """Return a record's cells as the fast parser wants them, whether memory was cut, and what is wrong."""
    cells: list[str] = []
    cut = False
    for place, token in enumerate(tokens):
        name = SWF_COLUMNS[place] if place < len(SWF_COLUMNS) else ""
        whole = bool(name) and name not in FLOAT_COLUMNS
        cell = _number(token, whole=whole, cut=name in _CUT_COLUMNS)
        if cell is None:
            label = f"field {place + 1}" + (f" ({name})" if name else "")
            return cells, cut, f"{label} is {token[:40]!r}, which is no {_kind(name)}"
        cut |= name in _CUT_COLUMNS and float(cell) != float(token)
        cells.append(cell)
    # After the tokens, because a word in place of a number says more than a count.
    return cells, cut, "" if len(cells) >= FEWEST else _short(len(cells), len(SWF_COLUMNS))


def _kind(name: str) -> str:
    return "whole number" if name and name not in FLOAT_COLUMNS | _CUT_COLUMNS else "number"


_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _number(token: str, *, whole: bool, cut: bool) -> str | None:
    """Return the token as the fast parser wants it, or None if it is no such number."""
    if re.fullmatch(r"[+-]?\d+", token, re.ASCII):
        return token if len(token) <= 300 and _INT64.min <= int(token) <= _INT64.max else None
    if not _DECIMAL.fullmatch(token) or not token.isascii():
        return None
    value = float(token)
    if not np.isfinite(value):
        return None
    if not whole:
        return token
    if abs(value) < 2**53 and (cut or value.is_integer()):
        return str(int(value))
    return None
