"""A column map: which column of any table, of jobs or of nodes, holds what; a TOML file, plain data.

Nothing of it is executed: a column is taken, scaled, divided by another one, or its texts are looked up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from bridge.base import files
from bridge.base.cache import bundled_files
from bridge.base.errors import BridgeError
from bridge.cluster.limits import Names
from bridge.config import Constraint, Count, from_tables, parse_toml
from bridge.config.toml_lines import TomlLines


def _one_letter(text: str) -> None:
    if len(text) != 1:
        raise ValueError("it is one character")


#: How cells are written.
Form = Literal["", "number", "text", "time", "duration", "memory"]
Letter = Annotated[str, Constraint(parse=_one_letter)]


@dataclass(frozen=True, kw_only=True)
class MappedColumn:
    """Where the values of one column come from.

    Attributes:
        column: the table's column.  [default: none, `value` counts for every row]
        value: the value of every row, where no column is named.
        form: number, text, time (a date, or seconds), duration (D-HH:MM:SS, or seconds), memory (16G, as
            MiB).  [default: as the column needs it]
        key: the amount behind this key in a list such as "1=20,2=1000" is the value.
        codes: what stands for a text of the table; texts that are not in it are `otherwise`.
        otherwise: value of a text that `codes` does not have.  [default: such a text is an error]
        times: the product with this column.
        per: the quotient by this column.
        scale: multiply by it.  [default: 1]
        round: a fraction is kept, or rounded up or to the nearest whole number.  [default: keep]
        empty: value of an empty cell.  [default: unknown]
        nothing: further texts that are empty cells.
        optional: the table may lack the column.
    """

    column: str = ""
    value: float | str | None = None
    form: Form = ""
    key: str = ""
    codes: Mapping[str, float | str] = field(default_factory=dict)
    otherwise: float | str | None = None
    times: str = ""
    per: str = ""
    scale: float = 1.0
    round: Literal["keep", "up", "nearest"] = "keep"
    empty: float | str | None = None
    nothing: Names = ()
    optional: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.column, self.times, self.per)))


@dataclass(frozen=True, kw_only=True)
class TableMap:
    """Which columns of a table hold what.

    Attributes:
        about: what table it is for, in a sentence.
        delimiter: between the cells of a text.  [default: ,]
        names: names of the columns, of a table whose first line is a row.
        ignore: columns that are known, and that tell nothing to a scheduler.
        clock: times are seconds since 1970, or since any instant.  [default: unix]
        capacity: what the machine has, where that is known; nodes are the unit of procs.
        jobs: column of a workload -> the table's column, or a table of `MappedColumn`.
        nodes: field of a group of nodes -> the same, of a table with a row for each node.
    """

    about: str = ""
    delimiter: Letter = ","
    names: Names = ()
    ignore: Names = ()
    clock: Literal["unix", "relative"] = "unix"
    capacity: Mapping[str, Count] = field(default_factory=dict)
    jobs: Mapping[str, str | MappedColumn] = field(default_factory=dict)
    nodes: Mapping[str, str | MappedColumn] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedMap:
    map: TableMap
    lines: TomlLines

    @cached_property
    def jobs(self) -> dict[str, MappedColumn]:
        return _whole(self.map.jobs)

    @cached_property
    def nodes(self) -> dict[str, MappedColumn]:
        return _whole(self.map.nodes)


def _whole(columns: Mapping[str, str | MappedColumn]) -> dict[str, MappedColumn]:
    return {name: MappedColumn(column=one) if isinstance(one, str) else one for name, one in columns.items()}


def open_map(name: str) -> OpenedMap:
    """Return a map: of a TOML file, or one that comes with bridge; BridgeError names file and line."""
    path = Path(name)
    if not files.is_there(path, Path.is_file):
        shipped = bundled_files("maps", ".toml")
        if name not in shipped:
            what = "is neither a file nor the name of a map that comes with bridge"
            raise BridgeError(what, where=f"map {name!r}", remedy=f"There are: {', '.join(shipped)}.")
        path = shipped[name]
    text = files.read_text(path)
    document = parse_toml(text.encode(), str(path))
    lines = TomlLines.of_text(text, str(path))
    opened = OpenedMap(from_tables(TableMap, document, lines), lines)
    for kind in ("jobs", "nodes"):
        for target, one in getattr(opened, kind).items():
            if bool(one.column) == (one.value is not None):
                what = f"{kind}.{target} names {'a column and a value' if one.column else 'no column'}"
                remedy = "Give column, or value for the same in every row."
                raise BridgeError(what, where=lines.place(f"{kind}.{target}"), remedy=remedy)
    return opened
