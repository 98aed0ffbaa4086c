"""From plain data (TOML, JSON) to a settings dataclass, what does not fit being refused, and back."""

import dataclasses
import re
import shlex
import sys
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean, did_you_mean_file
from bridge.config.fields import Constraint, fields_of, keys_of, split
from bridge.config.toml_lines import TomlLines

T = TypeVar("T")
#: Where a document comes from: a text, or the lines of a TOML file, by which an error names the line.
Source = str | TomlLines


def _at(where: Source, path: str) -> str:
    return where if isinstance(where, str) else where.place(path)


def from_tables(kind: type[T], document: object, where: Source, base: T | None = None) -> T:
    """Return a dataclass from nested tables, as TOML, JSON and YAML have them, within its fields' bounds.

    Instances of dataclasses may stand for their tables; `base` has what is not in the document, else the
    fields' defaults. Raises BridgeError at `where`, in its line where that is known: an unknown or missing
    field, or a value of another type or out of its range.
    """
    return _instance(kind, _values(kind, document, "", where, base))


def _instance(kind: type[T], values: Mapping[str, Any]) -> T:
    return kind(**{field.name: values[key] for key, field in fields_of(kind).items()})


def verify(settings: object, where: str, names: Iterable[str] = ()) -> None:
    """Raise BridgeError for settings made in Python that `from_tables` would not make; or these fields."""
    document = {name: getattr(settings, name) for name in names}
    _values(type(settings), document or settings, "", where, settings if document else None)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    tables = dict(below)
    for name, value in above.items():
        under = tables.get(name)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        tables[name] = merged(under, value) if both else value  # type: ignore[arg-type]
    return tables


def _values(kind: Any, document: object, path: str, where: Source, base: Any) -> dict[str, Any]:
    fields = fields_of(kind)
    if isinstance(document, kind):
        document = {key: getattr(document, field.name) for key, field in fields.items()}
    if not isinstance(document, Mapping):
        remedy = f"Write [{path}]." if path else f"Its fields: {', '.join(fields)}."
        raise BridgeError(f"{path or 'this'} is no table", where=_at(where, path), remedy=remedy)
    for name in document:
        if name not in fields:
            remedy = f"{did_you_mean(str(name), fields)}Known: {', '.join(fields)}."
            inside = f" in {path}" if path else ""
            place = _at(where, f"{path}.{name}" if path else str(name))
            raise BridgeError(f"unknown field {name!r}{inside}", where=place, remedy=remedy)
    values: dict[str, Any] = {}
    for name, field in fields.items():
        place = f"{path}.{name}" if path else name
        before = getattr(base, field.name) if base is not None else field.default
        if name in document:
            of_kind = field.of.made_of(values) if field.of.made_of else field.hint
            values[name] = _value(of_kind, field.of, document[name], place, where, before)
        elif before is dataclasses.MISSING:
            remedy = f"Add it: {_wanted(field.hint)}."
            raise BridgeError(f"{place} is missing", where=_at(where, path), remedy=remedy)
        else:
            values[name] = before
    return values


def _value(hint: Any, of: Constraint, value: Any, path: str, where: Source, base: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in args:
            return None
        options = [split(option) for option in args if option is not type(None)]
        fitting = [(one, more) for one, more in options if _fits(one, value)]
        if not fitting and len(options) > 1 and not of.single:
            raise _refused(hint, of, value, path, where)
        inner, more = (fitting or options)[0]
        return _value(inner, more.merge(of), value, path, where, base)
    if dataclasses.is_dataclass(hint):
        table = typing.cast("type", hint)
        return _instance(table, _values(table, value, path, where, base if isinstance(base, table) else None))
    if origin is tuple:
        return _items(args, of, value, path, where)
    if not _fits(hint, value):
        raise _refused(hint, of, value, path, where)
    if isinstance(value, Mapping):
        item, more = split(args[1]) if args else (Any, Constraint())
        return {str(key): _value(item, more, v, f"{path}.{key}", where, None) for key, v in value.items()}
    if hint in (float, Path):
        value = hint(value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (number and not of.is_in_bounds(value)) or (isinstance(value, str) and not of.knows(value)):
        raise _refused(hint, of, value, path, where)
    if of.parse is not None:
        try:
            of.parse(value)
        except ValueError as error:
            what = f"{path} cannot be {value!r}: {error}"
            raise BridgeError(what, where=_at(where, path), remedy=of.remedy or "Mend it.") from error
    return value


def _items(args: tuple[Any, ...], of: Constraint, value: Any, path: str, where: Source) -> tuple[Any, ...]:
    """Return a list as a tuple of as many items as its type says."""
    hint = tuple.__class_getitem__(args)
    value = [value] if of.single and not isinstance(value, (list, tuple)) else value
    if not _fits(hint, value):
        raise _refused(hint, of, value, path, where)
    kinds = [args[0]] * len(value) if args[-1:] == (...,) else args
    inner = [(kind, more.merge(of)) for kind, more in map(split, kinds)]
    pairs = enumerate(zip(inner, value, strict=True))
    return tuple(_value(*hinted, item, f"{path}[{k}]", where, None) for k, (hinted, item) in pairs)


def _fits(hint: Any, value: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in args)
    if origin is tuple:
        return isinstance(value, (list, tuple)) and (args[-1:] == (...,) or len(value) == len(args))
    if dataclasses.is_dataclass(hint) or (origin is not None and issubclass(origin, Mapping)):
        return isinstance(value, (Mapping, typing.cast("type", hint) if origin is None else Mapping))
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
    if hint is Path:
        return isinstance(value, (str, Path))
    return isinstance(hint, type) and isinstance(value, hint)


def _refused(hint: Any, of: Constraint, value: Any, path: str, where: Source) -> BridgeError:
    value_text = repr(value) if isinstance(value, (str, Path)) or value is None else str(value)
    value_text = f"{value_text[:100]}…" if len(value_text) > 100 else value_text
    remedy = of.remedy or f"Write {_wanted(hint, of)}."
    return BridgeError(f"{path} cannot be {value_text}", where=_at(where, path), remedy=remedy)


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}


def _wanted(hint: Any, of: Constraint | None = None) -> str:
    of = of or Constraint()
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return f"one of {', '.join(map(repr, args))}"
    if of.choices and hint is str:
        return f"one of {', '.join(map(repr, of.words()))}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_wanted(one, of) for one, _ in map(split, args) if one is not type(None))
    if origin is tuple:
        number = "" if args[-1:] == (...,) else f" of {len(args)}"
        return f"a list{number}, each {_wanted(split(args[0])[0], of)}"
    if hint in _WORDS:
        return f"{_WORDS[hint]}{of.bounds()}"
    return "a table"


def to_tables(value: Any, defaults: Any = None) -> Any:
    """Convert a dataclass to nested tables; omit unset values and those equal to `defaults`.

    Tuples become lists, paths texts; `defaults` is an instance of the same dataclass.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        table = {}
        keys = keys_of(type(value))
        for field in dataclasses.fields(value):
            own = getattr(value, field.name)
            usual = getattr(defaults, field.name) if type(defaults) is type(value) else None
            if own is None or (type(defaults) is type(value) and own == usual):
                continue
            table[keys[field.name]] = to_tables(own, usual)
        return table
    if isinstance(value, Mapping):
        return {str(key): to_tables(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [to_tables(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def sparse_tables(value: Any) -> Any:
    """Convert a dataclass to nested tables without default values, at any depth."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        table = {}
        fields = fields_of(type(value))
        for key in sorted(fields, key=lambda key: key != "name"):  # what it is called comes first
            own = getattr(value, fields[key].name)
            if own is not None and own != fields[key].default:
                table[key] = sparse_tables(own)
        return table
    if isinstance(value, Mapping):
        return {str(key): sparse_tables(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [sparse_tables(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def to_arguments(value: Any, defaults: Any) -> list[str]:
    """Return the command-line options that make `value` of `defaults`, inner tables included."""
    arguments: list[str] = []
    for key, field in fields_of(type(value)).items():
        own, usual = getattr(value, field.name), getattr(defaults, field.name)
        option = (field.of.option or f"--{key.replace('_', '-')}").split()[0]
        if dataclasses.is_dataclass(own):
            arguments += to_arguments(own, usual)
        elif own == usual or own is None:
            continue
        else:
            arguments += spell(option, own)
    return arguments


def spell(option: str, value: Any) -> list[str]:
    """Return an option of a command line with its value; a switch has none, a tuple repeats it."""
    if isinstance(value, bool):
        return [option if value else f"--no-{option[2:]}"]
    if isinstance(value, tuple):
        return [f"{option}={item}" for item in value]
    return [option, str(value)]


def command_line(command: str, *rest: str) -> str:
    """Return a command line of bridge, as a shell reads it."""
    return shlex.join(["bridge", *command.split(), *rest])


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises BridgeError: it cannot be read, or is no TOML."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        remedy = f"{did_you_mean_file(path)}Check the path."
        raise BridgeError(what, where=str(path), remedy=remedy) from error
    return parse_toml(raw, str(path))


def parse_toml(raw: bytes, where: str) -> dict[str, Any]:
    """Return the tables of a TOML text; BridgeError names `where` it is no UTF-8, no TOML, or too large."""
    message, remedy, line = "nested too deep", "Mend the file.", ""
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        message, remedy = "no text in UTF-8", "Save the file as UTF-8."
        line = ":" + str(raw.count(b"\n", 0, error.start) + 1)
    except RecursionError:
        pass
    except ValueError as error:  # tomllib's own, and numbers of thousands of digits
        match = re.search(r"line (\d+)", str(error))
        message, line = str(error).partition("; ")[0], f":{match[1]}" if match else ""
    raise BridgeError(f"not valid TOML: {message}", where=f"{where}{line}", remedy=remedy)
