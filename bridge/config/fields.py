"""What a field of a settings dataclass may hold and means: `Constraint`, in its ``Annotated`` type."""

import copy
import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from bridge.base import plugins, renamed


@dataclass(frozen=True)
class Constraint:
    """Constraints of a value beyond its type, and its spelling on the command line.

    An inner ``Constraint`` is completed by an outer one: ``Annotated[Count, Constraint(metavar="N")]``.

    Attributes:
        ge, le: inclusive bounds; of every item of a tuple.
        choices: the words that a text may be, or a function that lists them (a registry).
        open: other texts are welcome too (expressions, plug-ins): `choices` are for the help.
        plugin: a kind of rule that others may bring too (`bridge.base.plugins.GROUPS`), by its name or, where
            it is typed, as ``module:ATTR``.
        parse: called with the value; a ValueError refuses it and says why.
        made_of: the dataclass of a table that depends on earlier fields of the same table: called with their
            values; the field's own type is then not looked at.
        single: a tuple's only item may stand alone.
        remedy: what to write, if the type and the bounds do not say it all.
        metavar: what stands for the value in a command's help.
        key: the stored name, in files, records and digests, if it is not the field's own.
        option: the option's names if not the field's own, such as ``--backfill-order``; ``-`` is no option.
        help: of the option, if the docstring's line does not do.
        digest: of a name whose contents decide: what stands for it where results are keyed by contents.
    """

    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    lt: float | None = None
    choices: tuple[str, ...] | Callable[[], Iterable[str]] | None = None
    open: bool | None = None
    plugin: str | None = None
    parse: Callable[[Any], object] | None = None
    made_of: Callable[[Mapping[str, Any]], type[Any]] | None = None
    single: bool | None = None
    remedy: str | None = None
    metavar: str | None = None
    key: str | None = None
    option: str | None = None
    group: str | None = None
    help: str | None = None
    digest: Callable[[Any], str] | None = None

    def merge(self, outer: "Constraint") -> "Constraint":
        outer_values = {f.name: getattr(outer, f.name) for f in dataclasses.fields(Constraint)}
        return dataclasses.replace(self, **{k: v for k, v in outer_values.items() if v is not None})

    def words(self) -> tuple[str, ...]:
        return tuple(self.choices()) if callable(self.choices) else self.choices or ()

    def knows(self, word: str) -> bool:
        """Return whether a text is among the choices or names a rule of a package."""
        if not self.choices or self.open or word in self.words():
            return True
        return self.plugin is not None and plugins.find(self.plugin, word) is not None

    def is_in_bounds(self, number: float) -> bool:
        return not (
            (self.ge is not None and number < self.ge)
            or (self.le is not None and number > self.le)
            or (self.gt is not None and number <= self.gt)
            or (self.lt is not None and number >= self.lt)
        )

    def bounds(self) -> str:
        """Return the bounds in words, with a space in front; empty if there are none."""
        limits = {"at least": self.ge, "above": self.gt, "at most": self.le, "below": self.lt}
        words = [f"{word} {bound:g}" for word, bound in limits.items() if bound is not None]
        return f" {' and '.join(words)}" if words else ""


#: Whole numbers from 1 and from 0; numbers above 0, from 0, and from 0 to 1.
Count = Annotated[int, Constraint(ge=1)]
Natural = Annotated[int, Constraint(ge=0)]
Positive = Annotated[float, Constraint(gt=0)]
Unsigned = Annotated[float, Constraint(ge=0)]
Share = Annotated[float, Constraint(ge=0, le=1)]


@dataclass(frozen=True)
class SettingField:
    """One field of a settings dataclass.

    Attributes:
        key: its name in files, records, digests and on the command line.
        hint, of: its type without ``Annotated``, and what it may hold.
        default: ``dataclasses.MISSING`` if it has none.
    """

    name: str
    key: str
    hint: Any
    of: Constraint
    default: Any
    about: str


def fields_of(kind: Any) -> dict[str, SettingField]:
    """Return the fields of a dataclass that its maker can set, by their stored names (`SettingField.key`)."""
    return _fields(kind)


@cache
def _fields(kind: Any) -> dict[str, SettingField]:
    hints = typing.get_type_hints(kind, include_extras=True)
    about = attributes(kind)
    fields = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        hint, of = split(hints[field.name])
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        key = of.key or field.name
        fields[key] = SettingField(field.name, key, hint, of, default, about.get(field.name, ""))
    return fields


def record_of(value: Any) -> dict[str, Any]:
    """Return a dataclass as plain data by stored names, as `dataclasses.asdict` does by the fields' own."""
    kind: Any = type(value)
    keys = keys_of(kind)
    return {keys[f.name]: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return record_of(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return copy.deepcopy(value)


def keys_of(kind: Any) -> dict[str, str]:
    return _keys(kind)


@cache
def _keys(kind: Any) -> dict[str, str]:
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):  # as they stand: some name types that only type checkers import
        hints |= inspect.get_annotations(base)
    return {f.name: split(hints[f.name])[1].key or f.name for f in dataclasses.fields(kind)}


def split(hint: Any) -> tuple[Any, Constraint]:
    of = Constraint()
    if typing.get_origin(hint) is Annotated:
        hint, *more = typing.get_args(hint)
        for extra in more:
            of = of.merge(extra) if isinstance(extra, Constraint) else of
    return hint, of


def attributes(kind: Any) -> dict[str, str]:
    """Return each name's line of the ``Attributes:`` section of a class's docstring."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        section = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        names: list[str] = []
        for line in section.splitlines():
            if entry := re.match(r"    (\w+(?:, \w+)*): +(.*)", line):
                names = entry[1].split(", ")
                texts |= dict.fromkeys(names, _unquoted(entry[2]))
            else:
                more = _unquoted(line.strip())
                gap = "  " if more.startswith("[") else " "
                texts |= {name: f"{texts[name]}{gap}{more}" for name in names}
    return texts


def _unquoted(text: str) -> str:
    return text.replace("``", "").replace("`", "")


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
