"""The formats a workload can have in a file, found from the file's name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import BridgeError
from bridge.files import MAGIC

if TYPE_CHECKING:
    from bridge.workload.swf import Malformed
    from bridge.workload.table import Workload


@dataclass(frozen=True)
class Format:
    """One file format: its suffix, and the module and functions that read and write it."""

    suffix: str
    module: str
    reader: str
    writer: str
    packed: bool = True

    def load(self, name: str) -> Callable[..., Any]:
        """Return one of the format's functions, importing its module on first use."""
        function: Callable[..., Any] = getattr(import_module(self.module), name)
        return function


FORMATS: dict[str, Format] = {
    "swf": Format(".swf", "bridge.workload.swf", "read_swf", "write_swf"),
    "csv": Format(".csv", "bridge.workload.columns", "read_csv", "write_csv"),
    "parquet": Format(".parquet", "bridge.workload.columns", "read_parquet", "write_parquet", packed=False),
    "batsim": Format(".json", "bridge.workload.batsim", "read_batsim", "write_batsim"),
}


def format_of(path: str | Path, name: str | None = None) -> Format:
    """Return a file's format: the one named (``swf``, ``csv``, ``parquet``, ``batsim``), or by suffix.

    Raises:
        BridgeError: no such format, or the suffix tells none.
    """
    path = Path(path)
    if name is not None:
        if name not in FORMATS:
            raise BridgeError(f"unknown format {name!r}", remedy=f"Known formats: {', '.join(FORMATS)}.")
        return FORMATS[name]
    text = path.name.lower()
    packed = next((suffix for suffix in MAGIC if text.endswith(suffix)), "")
    for known in FORMATS.values():
        if text.removesuffix(packed).endswith(known.suffix) and (known.packed or not packed):
            return known
    suffixes = [f.suffix for f in FORMATS.values()]
    raise BridgeError(
        "the name's ending tells no workload format",
        where=str(path),
        remedy=f"Known endings: {', '.join(suffixes)}; all but .parquet also with {', '.join(MAGIC)}.",
    )


def read(
    path: str | Path,
    format: str | None = None,  # noqa: A002
    *,
    malformed: "Malformed" = "refuse",
    capacity: Mapping[str, int] | None = None,
) -> "Workload":
    """Read a workload in any known format.

    Args:
        path: the file.
        format: its format, if its name does not tell.
        malformed: for SWF: refuse a log with a line that is no record, or drop the line and count it.
        capacity: the machine's capacity per resource, if the file does not state it (or to overrule it).

    Raises:
        BridgeError: see the readers.
    """
    chosen = format_of(path, format)
    more = {"malformed": malformed} if chosen is FORMATS["swf"] else {}
    workload: Workload = chosen.load(chosen.reader)(path, **more)
    return workload if capacity is None else replace(workload, capacity=dict(capacity))


def write(workload: "Workload", path: str | Path, format: str | None = None) -> None:  # noqa: A002
    """Write a workload in any known format, whole or not at all.

    Raises:
        BridgeError: see the writers.
    """
    chosen = format_of(path, format)
    chosen.load(chosen.writer)(workload, path)
