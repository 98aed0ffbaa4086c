"""A cluster that was read from another form, with what of that form has no place in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.config.toml_lines import around


@dataclass(frozen=True)
class ImportedCluster:
    """Result of an import.

    Attributes:
        cluster: what was read.
        unhonoured: what the files say and no scheduler here honours -> how often, or for how many nodes.
        notes: what was decided in reading.
        places: field, as in ``partitions[2]`` -> where it stands, ``file:line``.
        where: the file.
    """

    cluster: Cluster
    unhonoured: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    places: dict[str, str] = field(default_factory=dict)
    where: str = ""

    def place(self, path: str) -> str:
        """Return where a field stands, or the nearest one around it that is known: ``file:line``."""
        while path and path not in self.places:
            path = around(path)
        return self.places[path] if path else self.where


@dataclass
class ImportNotes:
    unhonoured: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def leave(self, what: str, count: int = 1) -> None:
        """Count a setting that no scheduler honours."""
        self.unhonoured[what] = self.unhonoured.get(what, 0) + count

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


@contextmanager
def mending(place: str, remedy: str = "Mend the line.") -> Iterator[None]:
    """Context that turns a wrong cell's ValueError into a BridgeError with this place."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise BridgeError(str(error), where=place, remedy=remedy) from error
