"""The catalogue of archive logs, and where workloads lie: by path, bundled with bridge, or in the cache."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.base.cache import bundled_files, cache_root
from bridge.base.errors import BridgeError
from bridge.base.files import is_there, stem
from bridge.base.suggestions import did_you_mean
from bridge.config import read_toml

if TYPE_CHECKING:
    from bridge.workload.table import Workload


@dataclass(frozen=True)
class Log:
    """A log of the Parallel Workloads Archive.

    Attributes:
        name: the catalogue's short name, as in ``bridge workload fetch NAME``.
        title: site, machine and years.
        url: where the archive has it, gzipped.
        provided_by: whom to acknowledge; empty = see the log's header.
        citation, terms: how to cite the archive, and on what terms the log may be used.
        sha256, size: of the decompressed text, so that they hold however it is packed; None = unverified.
        jobs, nodes: records and machine size; None = unknown.
    """

    name: str
    title: str
    url: str
    citation: str
    terms: str
    provided_by: str = ""
    sha256: str | None = None
    size: int | None = None
    jobs: int | None = None
    nodes: int | None = None

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[1]

    @property
    def verified(self) -> bool:
        return self.sha256 is not None


@cache
def catalogue() -> dict[str, Log]:
    content = read_toml(Path(__file__).with_name("catalogue.toml"))

    def log(name: str, path: str, terms: str = "", **more: Any) -> Log:
        terms_text = " ".join(filter(None, (content["terms"], terms)))
        return Log(
            name, url=content["archive"] + path, citation=content["citation"], terms=terms_text, **more
        )

    return {name: log(name, **entry) for name, entry in content["log"].items()}


def find(name: str) -> Log:
    """Return the catalogue's log of this name (or file name), whatever its case. Raises BridgeError."""
    for log in catalogue().values():
        if name.lower() in (log.name, log.file.lower(), stem(Path(log.file)).lower()):
            return log
    close = get_close_matches(name.lower(), catalogue(), n=3)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    remedy = f"{hint}`bridge workload list` shows all names."
    raise BridgeError(f"the catalogue has no log {name!r}", remedy=remedy)


def cache_folder() -> Path:
    """Return the folder of downloaded logs: in ``$BRIDGE_CACHE``, or else in the user's cache."""
    return cache_root() / "workloads"


def bundled() -> dict[str, Path]:
    return bundled_files("workloads", ".swf.gz")


def resolve(name_or_path: str | Path) -> Path:
    """Return the file of a workload: a path, or a bundled or fetched log's name; else BridgeError.

    A log in the folder ``$BRIDGE_TRACES`` is found by its file name, with or without ``.swf.gz``.
    """
    path = Path(name_or_path)
    if is_there(path):
        return path
    text = str(name_or_path)
    if text in bundled():
        return bundled()[text]
    if (traces := os.environ.get("BRIDGE_TRACES")) and path.name == text:
        for own in (Path(traces) / text, Path(traces) / f"{text}.swf.gz"):
            if is_there(own, Path.is_file):
                return own
    if path.name != text or path.suffix in (".csv", ".parquet", ".json"):
        raise BridgeError("no such file", where=text, remedy=f"Check the path.{_there(path)}")
    try:
        log = find(text)
    except BridgeError as error:
        remedy = f"{error.remedy}{_there(path)}"
        raise BridgeError("is neither a file nor the name of a workload", where=text, remedy=remedy) from None
    fetched = cache_folder() / log.file
    if fetched.exists():
        return fetched
    remedy = f"Run `bridge workload fetch {log.name}`."
    raise BridgeError("the log is in the catalogue, but not on this machine", where=text, remedy=remedy)


def _there(path: Path) -> str:
    """Return sentences that name the logs that are there, one of a similar name first."""
    beside, places = _logs_in(path.parent), {}
    if path.name == str(path):
        traces = os.environ.get("BRIDGE_TRACES")
        places = {"Bundled": [*bundled()], "Fetched": _logs_in(cache_folder())}
        places["In $BRIDGE_TRACES"] = _logs_in(Path(traces)) if traces else []
    hint = did_you_mean(path.name, [*beside, *bundled()]).strip()
    sentences = [hint] if hint else []
    for place, names in {**places, f"In {path.parent}": beside}.items():
        if names:
            more = ", …" if len(names) > _MOST else ""
            sentences.append(f"{place}: {', '.join(names[:_MOST])}{more}.")
    return "".join(f" {sentence}" for sentence in sentences)


#: Logs of a folder that a message names, and how their names end.
_MOST, _ENDINGS = 8, (".swf", ".swf.gz", ".csv", ".parquet")


def _logs_in(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if path.name.lower().endswith(_ENDINGS))
    except OSError:
        return []


def read_log(
    name_or_path: str | Path,
    malformed: str = "refuse",
    format_name: str | None = None,
    leave: Collection[str] = (),
) -> "Workload":
    """Read a workload by path or by name; `malformed` lines: ``refuse`` it, or ``drop`` them.

    Fields to `leave` need not be kept.

    Raises BridgeError: see `resolve` and the formats' readers.
    """
    from bridge.workload.formats import read

    path = resolve(name_or_path)
    if path.is_dir():
        raise BridgeError("is a folder, not a log", where=str(name_or_path), remedy="Name a file in it.")
    return read(path, format_name, malformed="drop" if malformed == "drop" else "refuse", leave=leave)
