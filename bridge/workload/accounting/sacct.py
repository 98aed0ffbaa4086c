"""The text of `sacct -P` (or `-p`), any columns in any order, as lives of jobs; what is no row is counted.

Job names may hold line breaks and the delimiter. Such a row can be put together again where one column of
free text is listed; if that is the last one, a name cannot shift anything.
"""

import re
from collections.abc import Iterator
from datetime import UTC, tzinfo

from bridge.errors import BridgeError
from bridge.workload.accounting.cells import FREE, NEEDED, life
from bridge.workload.accounting.lives import Counted, Life

#: What `sacct` is asked for: free text last, so that no name can shift a column.
COLUMNS = (
    *("JobID", "JobIDRaw", "User", "Account", "Partition", "State", "ExitCode", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "ReqCPUS", "AllocCPUS"),
    *("ReqMem", "ReqTRES", "AllocTRES", "QOS", "Reason", "Flags", "NodeList", "JobName"),
)
#: Delimiters, in the order in which a header is tried for them.
DELIMITERS = ("\x1f", "|", "\t", ";", ",")
_BEGIN = re.compile(r"\d+(?:_(?:\d+|\[[^\]]*\])|\+\d+)?(?:\.\w+)?")
_NEEDED = (
    "Needed are JobID, State, Submit and Start; `bridge workload import command` prints the line to run."
)


def command(begin: str, end: str) -> str:
    """Return the line to run on the cluster, for the jobs between two dates (``2026-01-01``)."""
    return (
        f"TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -X -P --noconvert --delimiter=$'\\x1f' -S {begin} -E {end} "
        f"--format={','.join(COLUMNS)} > sacct.txt"
    )


def read_sacct(text: str, where: str, counted: Counted, zone: tzinfo = UTC) -> Iterator[Life]:
    """Yield the lives of jobs of a listing with a line of column names. Steps are left out.

    Args:
        text: the listing; lines that begin with ``#`` before the names are comments.
        where: where it stands, for messages.
        counted: takes rows that are no record, with their line.
        zone: of times that are written as a date.

    Raises:
        BridgeError: there is no line of column names, or it lacks one of `NEEDED`.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begin = next((n for n, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    head = lines[begin] if begin < len(lines) else ""
    delimiter = next((d for d in DELIMITERS if d in head), "|")
    names = [name.strip().lower() for name in head.removesuffix(delimiter).split(delimiter)]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        what = f"no column {', '.join(missing)} in the first line: {head[:60]!r}"
        raise BridgeError(what, where=f"{where}:{begin + 1}", remedy=_NEEDED)
    for number, cells in _rows(lines, begin + 1, names, delimiter, head):
        label = cells["jobid"] if cells is not None else ""
        if "." in label:
            continue
        try:
            if cells is None:
                raise ValueError("it has not as many cells as the first line has names")
            yield life(cells, zone)
        except (ValueError, OverflowError) as error:
            counted.drop(f"no record ({_kind(str(error))}; examples are lines)", number)


def _kind(error: str) -> str:
    """Return a message without what differs from row to row, so that rows are counted together."""
    return re.sub(r"^['\"].*['\"] (is|names)", r"a cell \1", error, flags=re.DOTALL)


def _rows(
    lines: list[str], begin: int, names: list[str], delimiter: str, head: str
) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield line numbers and cells by column; None for what is no row."""
    first, last = names.index("jobid") == 0, names[-1] in FREE
    number = begin
    while number < len(lines):
        row, at = lines[number], number + 1
        number += 1
        if not row or row == head:
            continue
        # A name's line break: what follows is no beginning of a row, and this one is short or ends in a name.
        while number < len(lines) and (
            row.count(delimiter) < len(names) - 1 or (last and lines[number] and lines[number] != head)
        ):
            follows = lines[number].split(delimiter, 1)
            if first and _BEGIN.fullmatch(follows[0]) and len(follows) == 2:
                break
            if not first and lines[number].count(delimiter) >= len(names) - 1:
                break
            row += f"\n{lines[number]}"
            number += 1
        yield at, _split(row, names, delimiter)


def _split(row: str, names: list[str], delimiter: str) -> dict[str, str] | None:
    """Return the cells of a row by column; of a row with too many, one column of free text takes the rest."""
    found = row.split(delimiter)
    if len(found) == len(names) + 1 and not found[-1]:
        found.pop()  # of `sacct -p`, which ends each row in a delimiter
    more = len(found) - len(names)
    if more < 0:
        return None
    if more:
        free = [place for place, name in enumerate(names) if name in FREE]
        if len(free) != 1:
            return None
        place = free[0]
        found[place : place + more + 1] = [delimiter.join(found[place : place + more + 1])]
    cells = zip(names, found, strict=True)
    return {name: cell if name in FREE else cell.strip() for name, cell in cells}
