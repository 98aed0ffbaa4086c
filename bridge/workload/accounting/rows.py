"""The rows of a listing: cells by column, also where free text holds line breaks and the delimiter.

A row with too many cells is put together again: cells of free text are joined such that each other column
has what it can hold, and its cells stand in one place only.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bridge.workload.accounting.lives import FREE, STATES

_BEGIN = re.compile(r"\d+(?:_(?:\d+|\[[^\]]*\])|\+\d+)?(?:\.\w+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d+|Unknown|None|N/A|", re.IGNORECASE)
_LENGTH = re.compile(r"[\d:.-]*|UNLIMITED|Partition_Limit|INVALID", re.IGNORECASE)
_NUMBER = re.compile(r"\d*[KMG]?")
_TRES = re.compile(r"(?:[\w/:.-]+=[\w.]+,?)*")
#: A row has at most so many cells too many.
_MOST_EXTRA = 1000
#: What a cell of a column can be; the first one of free text. Other columns hold any one cell.
_CELLS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("jobid", "jobidraw"), _BEGIN),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("elapsed", "elapsedraw", "suspended", "timelimit", "timelimitraw"), _LENGTH),
    **dict.fromkeys(("nnodes", "ncpus", "reqcpus", "alloccpus", "reqnodes", "allocnodes"), _NUMBER),
    **dict.fromkeys(("uid", "gid", "priority", "cputimeraw"), _NUMBER),
    **dict.fromkeys(("reqtres", "alloctres"), _TRES),
    "state": re.compile(rf"(?:{STATES.pattern})\+?"),
    "exitcode": re.compile(r"\d+:\d+|"),
    "reqmem": re.compile(r"[\d.]+[KMGTP]?[nc]?|\?|", re.IGNORECASE),
    "workdir": re.compile(r"/.*|", re.DOTALL),
    "constraints": re.compile(r"\S*"),
}


@dataclass(frozen=True)
class Layout:
    """Names of columns in small letters, their delimiter, whether it ends each row, and the line of names."""

    names: tuple[str, ...]
    delimiter: str
    ends: bool
    head: str


def rows(lines: Sequence[str], begin: int, layout: Layout) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield line numbers and cells by column, from line `begin` (from 0) on; None for what is no row."""
    names, delimiter = layout.names, layout.delimiter
    first, last, whole = names.index("jobid") == 0, names[-1] in FREE, len(names) - 1 + layout.ends
    number = begin
    while number < len(lines):
        row, at = lines[number], number + 1
        number += 1
        if not row or row == layout.head:
            continue
        parts, count = [row], row.count(delimiter)
        # A name's line break: what follows is no beginning of a row, and this one is short or ends in a name.
        while number < len(lines) and (
            count < whole or (last and lines[number] and lines[number] != layout.head)
        ):
            follows = lines[number].split(delimiter, 1)
            if first and _BEGIN.fullmatch(follows[0]) and len(follows) == 2:
                break
            if not first and lines[number].count(delimiter) >= whole:
                break
            parts.append(lines[number])
            count += lines[number].count(delimiter)
            number += 1
        yield at, _cells("\n".join(parts), layout)


def _cells(row: str, layout: Layout) -> dict[str, str] | None:
    names, cells = layout.names, row.split(layout.delimiter)
    if layout.ends and not cells[-1]:
        cells.pop()
    if len(cells) != len(names):
        places = _places(cells, names)
        if places is None:
            return None
        pairs = zip(places, [*places[1:], len(cells)], strict=True)
        cells = [layout.delimiter.join(cells[begin:end]) for begin, end in pairs]
    return {name: cell if name in FREE else cell.strip() for name, cell in zip(names, cells, strict=True)}


def _places(cells: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """Return at which cell each column begins; None if there is no way, or a typed column has several.

    By how many cells a column can be shifted is a set of bits. One pass from the left finds which shifts can
    be, a second one from the right which of them lead to the end.
    """
    more = len(cells) - len(names)
    if not 0 <= more <= _MOST_EXTRA:
        return None
    whole = (1 << (more + 1)) - 1
    shifts, reached = [], 1
    for column, name in enumerate(names):
        shifts.append(reached := _holding(name, column, cells, reached))
        if name in FREE:  # it takes any number of cells
            reached = whole & -(reached & -reached)
    possible, ahead = [0] * len(names), 1 << more
    for column in reversed(range(len(names))):
        if names[column] in FREE:
            ahead = shifts[column] & ((1 << ahead.bit_length()) - 1)
        else:
            ahead &= shifts[column]
            if ahead & (ahead - 1):
                return None
        possible[column] = ahead
    if not possible[0]:
        return None
    # Of several columns of free text side by side the first takes as much as it can.
    return [column + shift.bit_length() - 1 for column, shift in enumerate(possible)]


def _holding(name: str, column: int, cells: Sequence[str], shifts: int) -> int:
    """Return those shifts of a column at which it can hold the cell that it begins with."""
    pattern = _CELLS.get(name)
    if pattern is None:
        return shifts
    count = 0
    while shifts:
        lowest = shifts & -shifts
        cell = cells[column + lowest.bit_length() - 1]
        if pattern.fullmatch(cell if name in FREE else cell.strip()):
            count |= lowest
        shifts ^= lowest
    return count
