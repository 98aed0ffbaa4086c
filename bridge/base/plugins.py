"""What others bring: entry points of packages, ``module:ATTR`` as a user types it, what a program registers.

A reference ``module:ATTR`` runs the user's own code, so it is only taken from a command line or a call, never
from a file that is opened: a file can name a rule, but never make one load that its user has not installed,
registered or typed. Where a name comes from is part of it: the command line and the public calls mark theirs
as `Typed`, and nothing else is ever imported.
"""

import importlib
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened
from bridge.base.suggestions import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Rules of the scheduler that others can bring -> their group of entry points, see docs/scheduling.md.
GROUPS: Mapping[str, str] = {
    "order": "bridge.orders",
    "backfill": "bridge.backfills",
    "estimator": "bridge.estimators",
    "feature": "bridge.features",
    "rule": "bridge.rules",
}
_registered: dict[tuple[str, str], object] = {}


class Typed(str):
    """A name that a user has typed, or a program has passed in a call: it may be code of their own.

    What a file names is a plain text, and so is whatever is cut out of a `Typed` one.
    """

    __slots__ = ()


def is_reference(name: str) -> bool:
    """Tell whether a name is ``module:ATTR`` and not the name of something installed, or an expression."""
    return ":" in name and not any(letter.isspace() for letter in name)


def load_reference(reference: str, option: str = "--policy") -> Any:
    """Import the object that ``module:ATTR`` names, also from the working folder; else BridgeError.

    `option`: where a user can type it. BridgeError: it cannot be loaded, or nobody has typed it: it is not
    `Typed`, so that it may come from a file.
    """
    if not isinstance(reference, Typed):
        what = "is code of your own, which a file cannot load"
        remedy = f"Code is loaded only where it is typed. Name it on the command line: {option} {reference}"
        raise BridgeError(what, where=reference, remedy=remedy)
    module, _, attribute = reference.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    remedy = "It is written module:ATTR, as in `from module import ATTR`."
    try:
        target: Any = importlib.import_module(module)
    except Exception as error:
        is_absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        if not is_absent:
            remedy = "The module fails when it is imported: mend it."
        raise BridgeError(f"cannot be loaded: {describe(error)}", where=reference, remedy=remedy) from error
    for name in attribute.split("."):
        try:
            target = getattr(target, name)
        except AttributeError as error:
            what = f"cannot be loaded: {describe(error)}"
            hint = did_you_mean(name, (one for one in dir(target) if not one.startswith("_")))
            raise BridgeError(what, where=reference, remedy=hint + remedy) from error
    return target


def describe(error: Exception) -> str:
    """Return an error's kind and text, and the line of the user's own code in which it arose."""
    here = Path.cwd()
    frames = traceback.extract_tb(error.__traceback__)
    files = [
        (Path(frame.filename), frame.lineno) for frame in frames if "site-packages" not in frame.filename
    ]
    own = [f"{file.relative_to(here)}:{line}" for file, line in files if here in file.parents]
    place = f" ({own[-1]})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def package_of(point: "EntryPoint") -> str:
    return "unknown" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def installed(group: str) -> "list[EntryPoint]":
    """Return a group's entry points by name, then package; a package that is found twice counts once."""
    from importlib.metadata import entry_points

    points = {(point.name, package_of(point)): point for point in entry_points(group=group)}
    return [points[key] for key in sorted(points)]


def load_named(group: str, name: str, what: str, ours: Iterable[str] = ()) -> Any:
    """Load the object that an installed package provides in a group of entry points under a name.

    `what` is looked for, `ours` are names known besides: for the BridgeError that nobody provides it, several
    packages do, or it cannot be loaded.
    """
    points = installed(group)
    matches = [point for point in points if point.name == name]
    if len(matches) == 1:
        try:
            return matches[0].load()
        except Exception as error:
            raise BridgeError(
                f"the {what} is broken: {matches[0].value}: {type(error).__name__}: {error}",
                where=name,
                remedy=f"It comes from {package_of(matches[0])}: update or uninstall it.",
            ) from error
    if matches:
        both = ", ".join(map(package_of, matches))
        raise BridgeError(
            f"several packages provide this {what}: {both}", where=name, remedy="Uninstall one."
        )
    valid_names = dict.fromkeys([*ours, *(point.name for point in points)])
    remedy = f"Choose {', '.join(valid_names)}, or install the package that provides it."
    raise BridgeError(f"unknown {what}", where=repr(name), remedy=remedy)


def register(kind: str, name: str, rule: object) -> None:
    """Make a rule of one of `GROUPS` known in this process, before an installed one of the name.

    What a rule is: see docs/scheduling.md.
    """
    _registered[kind, name] = rule


def allow_reference(kind: str, text: Typed) -> Typed:
    """Make the rule known that a user typed as ``module:ATTR``; any text is returned as it is."""
    if is_reference(text) and (kind, text) not in _registered:
        register(kind, text, load_reference(text, f"--{kind}"))
    return text


def find(kind: str, name: str) -> object | None:
    """Return the rule of this name; None if no package has one. Raises BridgeError: as `load_named`."""
    if (kind, name) not in _registered and name in (point.name for point in installed(GROUPS[kind])):
        register(kind, name, load_named(GROUPS[kind], name, kind))
    return _registered.get((kind, name))


def names(kind: str) -> tuple[str, ...]:
    registered_names = {name for of, name in _registered if of == kind}
    return tuple(sorted(registered_names | {point.name for point in installed(GROUPS[kind])}))


def unknown(kind: str, name: str, built_in: Iterable[str], more: str = "") -> BridgeError:
    """Return the error for an unknown rule; it lists the valid names: `built_in` and those of packages.

    `kind`: a word of `GROUPS` begins it. `more`: what else may be written, as a sentence.
    """
    there = [*built_in, *names(next(group for group in GROUPS if kind.startswith(group)))]
    hint = did_you_mean(name, there)
    if is_reference(name):
        hint = "Code is loaded only where it is typed on the command line, never from a file. "
    remedy = f"Choose {', '.join(there)}." if there else "Install the package that brings it."
    return BridgeError(
        f"unknown {kind}",
        where=f"{kind} {shortened(name, 200)!r}",
        remedy=hint + remedy + (f" {more}" if more else ""),
    )
