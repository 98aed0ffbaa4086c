"""A validation as `bridge validate --out` writes it, checked, with the runs that lie beside it."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.judge.run import Run

#: Version of the layout, see `bridge.judge.agreement`.
FORMAT = 1
_AGAIN = "Validate anew."


@dataclass(frozen=True)
class Validation:
    """A `validation.json`, and the runs that lie beside it.

    Attributes:
        document: as `bridge.judge.agreement.as_dict` makes it.
        runs: policy → (fast, detailed); policies without run folders are missing.
    """

    document: dict[str, Any]
    runs: "dict[str, tuple[Run, Run]]"


def is_validation(document: Any) -> bool:
    """Tell whether a JSON document looks like a validation."""
    policies = document.get("policies") if isinstance(document, dict) else None
    return isinstance(policies, list) and any(isinstance(p, dict) and "detailed" in p for p in policies)


def checked(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a validation in which everything that the page reads is there.

    Raises:
        BridgeError: another format, a part is missing, or something else stands where a number should.
    """
    if document.get("format") != FORMAT:
        raise BridgeError(
            f"format {document.get('format')!r} is unknown, this version of bridge reads {FORMAT}",
            where=where,
            remedy=_AGAIN,
        )
    _check_kinds(document, {"inputs": dict, "ranks": dict}, where)
    for key, rank in document["ranks"].items():
        _check_kinds(document["ranks"], {key: dict}, f"{where}: ranks")
        _check_numbers(rank, ("tau",), f"{where}: ranks: {key}")
    for k, one in enumerate(document["policies"], 1):
        place = f"{where}: policy {k}"
        parts = ("fast", "detailed", "differences", "jobs")
        _check_kinds(one, {"policy": str} | dict.fromkeys(parts, dict), place)
        for part in parts[:-1]:
            _check_numbers(one[part], one[part], f"{place}: {part}")
        _check_numbers(one["jobs"], ("common", "differing_starts", "wait_mean"), f"{place}: jobs")
        _check_numbers(one, ("longer",), place)
        stretch = one.get("stretch")
        if stretch is not None and not (isinstance(stretch, list) and len(stretch) == 2):
            raise BridgeError("stretch is not two numbers", where=place, remedy=_AGAIN)
        _check_numbers(dict(enumerate(stretch or ())), (0, 1), f"{place}: stretch")
        if one["jobs"].get("first") is not None:
            _check_kinds(one["jobs"], {"first": dict}, f"{place}: jobs")
    return document


def _check_kinds(part: Any, kinds: Mapping[Any, type], where: str) -> None:
    for key, kind in kinds.items():
        if not isinstance(part, dict) or not isinstance(part.get(key), kind):
            raise BridgeError(f"{key} is missing or not a {kind.__name__}", where=where, remedy=_AGAIN)


def _check_numbers(part: Mapping[Any, Any], keys: Iterable[Any], where: str) -> None:
    for key in keys:
        value = part.get(key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if value is not None and not number:
            raise BridgeError(f"{key} is no finite number", where=where, remedy=_AGAIN)


def runs_beside(document: Mapping[str, Any], folder: Path) -> "dict[str, tuple[Run, Run]]":
    """Read the runs that `bridge validate --out` wrote beside the document, as far as they are there.

    Raises:
        BridgeError: a run is there, but broken.
    """
    from bridge.judge.run import read_run

    found = {}
    for policy, place in _places(document, folder):
        worlds = [place / "fast", place / str(document["inputs"].get("world"))]
        if all((world / "run.toml").is_file() for world in worlds):
            found[policy] = read_run(worlds[0]), read_run(worlds[1])
    return found


def _places(document: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, Path]]:
    for one in document["policies"]:
        name = re.sub(r"[^\w.+-]+", "_", one["policy"])  # as `bridge validate` names the folders
        if name.strip("."):
            yield one["policy"], folder / name
