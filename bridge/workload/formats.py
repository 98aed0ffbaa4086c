"""The formats a workload can have in a file, found from the file's name."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.base.errors import BridgeError
from bridge.base.files import MAGIC, compression

if TYPE_CHECKING:
    from bridge.workload.swf import Malformed
    from bridge.workload.table import Workload


@dataclass(frozen=True)
class Format:
    """One file format: name, suffix, the module that reads and writes it, and whether it may be packed.

    A suffix of two formats means the first; what reads that reads both.
    """

    name: str
    suffix: str
    module: str
    packed: bool = True

    def load(self, what: str) -> Callable[..., Any]:
        """Return the function that does ``read`` or ``write``, importing its module on first use."""
        module = import_module(f"bridge.workload.{self.module}")
        function: Callable[..., Any] = getattr(module, f"{what}_{self.name}")
        return function


FORMATS: dict[str, Format] = {
    "swf": Format("swf", ".swf", "swf"),
    "csv": Format("csv", ".csv", "columns"),
    "parquet": Format("parquet", ".parquet", "columns", packed=False),
    "batsim": Format("batsim", ".json", "batsim"),
    "batsim5": Format("batsim5", ".json", "batsim"),
}


def format_of(path: str | Path, name: str | None = None) -> Format:
    """Return a file's format: the one of `FORMATS` that is named, or by suffix; else BridgeError."""
    path = Path(path)
    if name is not None:
        if name not in FORMATS:
            raise BridgeError(f"unknown format {name!r}", remedy=f"Known formats: {', '.join(FORMATS)}.")
        return FORMATS[name]
    packed = compression(path)
    text = path.name.lower().removesuffix(packed)
    for file_format in FORMATS.values():
        if text.endswith(file_format.suffix) and (file_format.packed or not packed):
            return file_format
    suffixes = ", ".join(dict.fromkeys(file_format.suffix for file_format in FORMATS.values()))
    remedy = f"Known endings: {suffixes}; all but .parquet also with {', '.join(MAGIC)}."
    raise BridgeError("the name's ending tells no workload format", where=str(path), remedy=remedy)


def read(
    path: str | Path,
    format: str | None = None,  # noqa: A002
    *,
    malformed: "Malformed" = "refuse",
    capacity: Mapping[str, int] | None = None,
    leave: Collection[str] = (),
) -> "Workload":
    """Read a workload in any known format, told by its name if not by `format`. Errors as the readers'.

    `malformed`: of SWF: refuse a line that is no record, or drop and count it. `capacity` overrules what the
    file says of the machine. `leave`: fields that need not be kept.
    """
    chosen = format_of(path, format)
    options: dict[str, dict[str, Any]] = {"swf": {"malformed": malformed}, "parquet": {"leave": leave}}
    more = options.get(chosen.name, {})
    workload: Workload = chosen.load("read")(path, **more)
    return workload if capacity is None else replace(workload, capacity=dict(capacity))


def write(workload: "Workload", path: str | Path, format: str | None = None) -> None:  # noqa: A002
    """Write a workload in any known format, whole or not at all. Raises BridgeError: see the writers."""
    chosen = format_of(path, format)
    chosen.load("write")(workload, path)
