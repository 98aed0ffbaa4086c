"""Numbers on the wire: JSON as Batsim writes it. `bridge.base.jsontext` reads them, exactly if asked."""

import json
from json.encoder import encode_basestring
from typing import Any

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


def dumps(value: Any) -> str:
    """Return ``value`` as compact JSON as Batsim writes it: integers stay integers, floats are ``%.6f``.

    Integers that fit no 64-bit type are written as floats, as Batsim's parser would have read them.
    """
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is float:
        return f"{value:f}"
    if kind is int:
        return str(value) if _SMALLEST <= value <= _LARGEST else f"{float(value):f}"
    if kind is dict:
        pairs = [f"{encode_basestring(key)}:{dumps(item)}" for key, item in value.items()]
        return "{" + ",".join(pairs) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value)
