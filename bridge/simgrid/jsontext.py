"""JSON as Batsim reads and writes it: integers stay integers, floats are written ``%.6f``."""

import json
from typing import Any, NoReturn

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


def dumps(value: Any) -> str:
    """Return ``value`` as compact JSON with Batsim's numbers.

    Integers that fit no 64-bit type are written as floats, as Batsim's parser would have read them.
    """
    kind = type(value)
    if kind is str:
        return json.dumps(value, ensure_ascii=False)
    if kind is float:
        return f"{value:f}"
    if kind is int:
        return str(value) if _SMALLEST <= value <= _LARGEST else f"{float(value):f}"
    if kind is dict:
        members = (f"{json.dumps(key, ensure_ascii=False)}:{dumps(item)}" for key, item in value.items())
        return "{" + ",".join(members) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value)


def loads(text: str | bytes) -> Any:
    """Parse JSON strictly: no NaN, no infinity, no key twice in one object.

    Raises:
        ValueError: the text is not such JSON.
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)


def loads_message(text: str | bytes) -> Any:
    """Parse a message of the decision process: strict about numbers, the first of two equal keys counts.

    Raises:
        ValueError: the text is not such JSON.
    """
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' stands twice in one object")
    return seen
