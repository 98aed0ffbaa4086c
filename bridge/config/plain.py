"""Settings as plain data, which `build` takes: a dataclass as the tables of TOML and JSON, and TOML files."""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.config.fields import fields_of
from bridge.errors import BridgeError


def plain(value: Any, unlike: Any = None) -> Any:
    """Return nested tables without unset values, tuples as lists, paths as texts.

    Args:
        value: a dataclass, or anything that one may hold.
        unlike: an instance of the same dataclass: what is the same in both is left out.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {}
        for field in dataclasses.fields(value):
            own = getattr(value, field.name)
            usual = getattr(unlike, field.name) if type(unlike) is type(value) else None
            if own is None or (type(unlike) is type(value) and own == usual):
                continue
            found[field.name] = plain(own, usual)
        return found
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def words(value: Any, unlike: Any) -> list[str]:
    """Return the command-line options that make the dataclass `value` of `unlike`, inner tables included."""
    found: list[str] = []
    for name, field in fields_of(type(value)).items():
        own, usual = getattr(value, name), getattr(unlike, name)
        option = (field.of.option or f"--{name.replace('_', '-')}").split()[0]
        if dataclasses.is_dataclass(own):
            found += words(own, usual)
        elif own == usual or own is None:
            continue
        elif isinstance(own, bool):
            found.append(option if own else f"--no-{option[2:]}")
        elif isinstance(own, tuple):
            found += [f"{option}={item}" for item in own]
        else:
            found += [option, str(own)]
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises BridgeError: it cannot be read, or is no TOML."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise BridgeError(what, where=str(path), remedy="Check the path.") from error
    return parse_toml(raw, str(path))


def parse_toml(raw: bytes, where: str) -> dict[str, Any]:
    """Return the tables of a TOML text in UTF-8; `where` is the file, for errors.

    Raises:
        BridgeError: it is no TOML, or one nested or as large as no settings are.
    """
    said, remedy, line = "nested too deep", "Mend the file.", ""
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        said, remedy = "no text in UTF-8", "Save the file as UTF-8."
        line = ":" + str(raw.count(b"\n", 0, error.start) + 1)
    except RecursionError:
        pass
    except ValueError as error:  # tomllib's own, and numbers of thousands of digits
        found = re.search(r"line (\d+)", str(error))
        said, line = str(error).partition("; ")[0], f":{found[1]}" if found else ""
    raise BridgeError(f"not valid TOML: {said}", where=f"{where}{line}", remedy=remedy)
