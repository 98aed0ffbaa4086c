"""The lines of slurm.conf, with what it includes, and the records of `scontrol show`: settings by name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError

#: What only `scontrol show node` tells of nodes.
_OF_SCONTROL = re.compile(r"^(?!\s*#).*\bCPUTot=", re.IGNORECASE | re.MULTILINE)
#: A record of `scontrol` goes on in each line that does not begin another one.
_GOES_ON = re.compile(
    r"\n[ \t]*(?=\S)(?!(?:NodeName|PartitionName|ReservationName|LicenseName)=)", re.IGNORECASE
)
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_PAIR = re.compile(r"([A-Za-z][\w/:]*)\s*=\s*(\"[^\"]*\"|\S*)")
#: So many files are included at most, each no longer than so many bytes.
_MOST_FILES, _MOST_BYTES = 100, 1 << 24

#: The place of a line, ``file:line``, and its settings, names in small letters.
Line = tuple[str, dict[str, str]]


def is_settings(text: str) -> bool:
    """Tell whether a text is a slurm.conf or what `scontrol show` prints, by how its lines begin."""
    names = r"NodeName\s*=|PartitionName\s*=|NodeSet\s*=|ClusterName\s*=|include\s+\S"
    return re.search(rf"^\s*(?:{names})", text, re.MULTILINE | re.IGNORECASE) is not None


def settings(path: Path, text: str) -> Iterator[Line]:
    """Yield the settings of each line of a file, and of what it includes; BridgeError names the line."""
    if _OF_SCONTROL.search(text):
        yield from scontrol_records(path, text)
    else:
        yield from _Conf(path.parent).lines(path, text)


def scontrol_records(path: Path, text: str) -> Iterator[Line]:
    """Yield the records of `scontrol show`, on one line or on many; ``#`` is no comment there."""
    number = 1
    for record in _GOES_ON.sub("\0", text).split("\n"):
        yield f"{path}:{number}", dict(_pairs(record.replace("\0", " ")))
        number += 1 + record.count("\0")


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    for pair in _PAIR.finditer(line):
        yield pair[1].lower(), pair[2].strip('"')


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # its name is too long
        return False


@dataclass
class _Conf:
    """Reads slurm.conf as Slurm does: indentation is nothing, comments end before a line is continued."""

    folder: Path
    open_files: list[Path] = field(default_factory=list)
    included: int = 0
    cluster: str = ""

    def lines(self, path: Path, text: str) -> Iterator[Line]:
        self.open_files.append(path.resolve())
        whole, first = "", 0
        for number, raw in enumerate(text.split("\n"), start=1):
            line = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
            first = first or number
            if (len(line) - len(line.rstrip("\\"))) % 2:
                whole += line[:-1]
                continue
            yield from self._line(path, first, whole + line)
            whole, first = "", 0
        yield from self._line(path, first, whole)
        self.open_files.pop()

    def _line(self, path: Path, number: int, line: str) -> Iterator[Line]:
        place = f"{path}:{number}"
        if match := _INCLUDE.match(line):
            other = self._find(match[1].strip('"'), path, place)
            yield from self.lines(other, files.read_text(other, _MOST_BYTES))
            return
        pairs = dict(_pairs(line))
        self.cluster = pairs.get("clustername", self.cluster)
        yield place, pairs

    def _find(self, name: str, path: Path, place: str) -> Path:
        """Return the file of an ``Include``: where Slurm has it, else one of that name beside `path`."""
        if "%c" in name and not self.cluster:
            remedy = "Put ClusterName above it, as Slurm needs it, too."
            raise BridgeError(f"includes {name}, and no ClusterName stands above", where=place, remedy=remedy)
        # Slurm takes the cluster's name in small letters.
        names = dict.fromkeys(name.replace("%c", of) for of in (self.cluster.lower(), self.cluster))
        beside = dict.fromkeys((path.parent, self.folder))
        places = [folder / other for other in names for folder in beside]
        places += [folder / Path(other).name for other in names for folder in beside]
        file_found = next(filter(_is_file, places), None)
        if file_found is None:
            what = f"includes {places[0]}, and there is no such file"
            remedy = f"Put a copy of it beside {path.name}: {places[-1]}."
            raise BridgeError(what, where=place, remedy=remedy)
        self.included += 1
        if file_found.resolve() in self.open_files or self.included > _MOST_FILES:
            remedy = f"Leave it out; at most {_MOST_FILES} files are included, and none by itself."
            raise BridgeError("includes files without end", where=place, remedy=remedy)
        return file_found
