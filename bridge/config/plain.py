"""From a settings dataclass to plain data that TOML and JSON can hold, and that `build` takes back."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.config.fields import fields_of


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
    """Return the command-line options that make a dataclass of another one, tables' fields among the others.

    Args:
        value: a settings dataclass.
        unlike: an instance of the same one: what is the same in both needs no option.
    """
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
