"""JSON from outside, read within limits; numbers become floats, or exact decimals."""

import json
import math
import re
from collections.abc import Callable
from decimal import Clamped, Context, Decimal, InvalidOperation, Overflow, Rounded
from typing import Any, NoReturn

#: Arrays and objects within each other, at most.
MOST_LEVELS = 100
#: Digits (and sign, point, exponent) of a number, at most: a double has 309 before its point.
MOST_DIGITS = 400
#: A message of the other side of the socket, in bytes, at most.
MOST_BYTES = 1 << 30

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Characters of a text in which no number is out of range but by its exponent.
_FEW = 300


def loads(text: str | bytes, *, exact: bool = False, unique: bool = False, most_bytes: int = 0) -> Any:
    """Return the value of a JSON text (UTF-8, UTF-16 or UTF-32), which may come from anybody.

    `exact`: numbers with a point or an exponent become Decimal, otherwise float. `unique`: refuse an object
    that has a key twice; otherwise the last one counts. `most_bytes`: refuse a longer text; 0: any length.
    Raises ValueError, in one line: it is no JSON; a number is beyond the range of a double or longer than
    `MOST_DIGITS`; it is nested deeper than `MOST_LEVELS`; a string holds half a surrogate pair, which no file
    can take.
    """
    if most_bytes and len(text) > most_bytes:
        raise ValueError(f"{len(text)} bytes are more than the {most_bytes} that are read")
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        value = _short(text) if exact and not unique and len(text) <= _FEW else None
        if value is None:
            value = _DECODERS[exact, unique].decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if len(text) > MOST_LEVELS and text.count("[") + text.count("{") > MOST_LEVELS:
        _check_levels(value)
    if not text.isascii() and _SURROGATE.search(text):
        raise ValueError("the text holds half a surrogate pair")
    if "\\" in text and _SURROGATE_ESCAPE.search(text):
        _check_strings(value)
    return value


_TOO_DEEP = f"arrays and objects are nested deeper than {MOST_LEVELS} levels"


def _float(text: str) -> float:
    value = float(text)
    if len(text) > MOST_DIGITS or math.isinf(value):
        raise ValueError(f"the number {shortened(text)} is out of range")
    return value


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
        if len(text) > MOST_DIGITS or value.adjusted() >= 308:
            _float(text)
        return value
    except ArithmeticError:  # an exponent of twenty digits
        raise ValueError(f"the number {shortened(text)} is out of range") from None


def _whole(text: str) -> int:
    if len(text) > 300:  # far beyond what Batsim knows as whole, but within a double's range it is a number
        _float(text)
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' stands twice in one object")
    return members


_DECODERS = {
    (exact, unique): json.JSONDecoder(
        parse_float=_decimal if exact else _float,
        parse_int=_whole,
        parse_constant=_no_constant,
        object_pairs_hook=_unique if unique else None,
    )
    for exact in (False, True)
    for unique in (False, True)
}
_TRAPS = [InvalidOperation, Overflow, Clamped, Rounded]
_SHORT: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    parse_float=Context(prec=_FEW, Emax=307, traps=_TRAPS).create_decimal, parse_constant=_no_constant
).scan_once  # type: ignore[attr-defined]


def _short(text: str) -> Any:
    """Return the value of a short text, in a third of the time; None: see who says what is wrong with it."""
    try:
        value, end = _SHORT(text, 0)
    except (ArithmeticError, ValueError, StopIteration):
        return None
    return value if end == len(text) else None


def _children(containers: list[Any]) -> list[Any]:
    return [
        child
        for one in containers
        for child in (one.values() if type(one) is dict else one)
        if type(child) is dict or type(child) is list
    ]


def _check_levels(value: Any) -> None:
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(MOST_LEVELS):
        if not level:
            return
        level = _children(level)
    if level:
        raise ValueError(_TOO_DEEP)


def _check_strings(value: Any) -> None:
    """Refuse half surrogate pairs; the value is nested no deeper than `MOST_LEVELS`."""
    if type(value) is str:
        if _SURROGATE.search(value):
            raise ValueError(f"the string {shortened(value)!a} holds half a surrogate pair")
    elif type(value) is dict or type(value) is list:
        for item in (*value, *value.values()) if type(value) is dict else value:
            _check_strings(item)


def shortened(text: str, most: int = 40) -> str:
    """Return a text of the user as an error can show it: at most ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
