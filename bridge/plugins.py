"""What others bring: entry points of installed packages, and ``module:ATTR`` as a user types it.

A reference ``module:ATTR`` runs the user's own code, so it is only taken from a command line or a call, never
from a file that is opened.
"""

import importlib
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from bridge.errors import BridgeError


def is_reference(name: str) -> bool:
    """Tell whether a name is ``module:ATTR`` and not the name of something installed."""
    return ":" in name


def load_reference(reference: str) -> Any:
    """Return what ``module:ATTR`` names; modules in the working folder are found, too.

    Raises:
        BridgeError: there is no such module or attribute, or the module fails.
    """
    module, _, attribute = reference.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except Exception as error:
        raise BridgeError(
            f"cannot be loaded: {type(error).__name__}: {error}",
            where=reference,
            remedy="It is written module:ATTR, as in `from module import ATTR`.",
        ) from error
    return found


def package_of(point: EntryPoint) -> str:
    """Return name and version of the package that an entry point comes from."""
    return "unknown" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def installed(group: str) -> list[EntryPoint]:
    """Return a group's entry points by name, then package; a package that is found twice counts once."""
    points = {(point.name, package_of(point)): point for point in entry_points(group=group)}
    return [points[key] for key in sorted(points)]


def load_named(group: str, name: str, what: str, ours: Iterable[str] = ()) -> Any:
    """Return what an installed package provides under a name.

    Args:
        group: of entry points.
        name: of one.
        what: is looked for, for errors.
        ours: names that are known besides.

    Raises:
        BridgeError: nobody provides it, or several packages do, or it cannot be loaded.
    """
    points = installed(group)
    found = [point for point in points if point.name == name]
    if len(found) == 1:
        try:
            return found[0].load()
        except Exception as error:
            raise BridgeError(
                f"the {what} is broken: {found[0].value}: {type(error).__name__}: {error}",
                where=name,
                remedy=f"It comes from {package_of(found[0])}: update or uninstall it.",
            ) from error
    if found:
        both = ", ".join(map(package_of, found))
        raise BridgeError(
            f"several packages provide this {what}: {both}", where=name, remedy="Uninstall one."
        )
    known = dict.fromkeys([*ours, *(point.name for point in points)])
    raise BridgeError(
        f"unknown {what}",
        where=repr(name),
        remedy=f"Choose {', '.join(known)}, or install the package that provides it.",
    )
