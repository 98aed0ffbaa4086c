"""What makes two results the same one: a digest of plain data, in which defaults do not count."""

import dataclasses
import hashlib
import json
from typing import Any


def digest(*parts: Any, letters: int = 12) -> str:
    """Return a short digest of plain data."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:letters]


def unusual(value: Any) -> Any:
    """Return a dataclass as plain data without the fields that have their defaults.

    A field that is added later, with a default that changes nothing, leaves old results valid.
    """
    if not dataclasses.is_dataclass(value):
        return value
    found = {}
    for field in dataclasses.fields(value):
        here = getattr(value, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if here != default:
            found[field.name] = unusual(here)
    return found
