"""From a settings dataclass to plain data that TOML and JSON can hold, and that `build` takes back."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
