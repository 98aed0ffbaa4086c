"""A JSON object whose fields are checked as they are read."""

import math
from decimal import Decimal
from typing import Any, TypeVar

from bridge.base import jsontext
from bridge.base.errors import BridgeError
from bridge.wire import hosts
from bridge.wire.hosts import Hosts

_MISSING: Any = object()
_NUMBERS: tuple[type[Any], ...] = (int, float, Decimal)
_T = TypeVar("_T")


class Fields:
    """The members of a JSON object; `what` is what to call another value.

    Every reader raises BridgeError where a field is missing (and has no default) or is not what it should be;
    the place is for the caller to add, by `bridge.base.errors.add_location`.
    """

    def __init__(self, value: Any, what: str = "is") -> None:
        if type(value) is not dict:
            raise BridgeError(f"{what} not an object")
        self.values: dict[str, Any] = value

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def only(self, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        for key in needed:
            self.any(key)
        for key in self.values:
            if key not in needed and key not in optional:
                raise BridgeError(f"'{key}' does not belong here", remedy="Batsim refuses such an event.")

    def any(self, key: str) -> Any:
        if key not in self.values:
            raise BridgeError(f"'{key}' is missing")
        return self.values[key]

    def _of(self, types: tuple[type[_T], ...], named: str, key: str, default: Any) -> _T:
        value: _T = self.values.get(key, default)
        if type(value) not in types:
            raise BridgeError(f"'{key}' is {'missing or ' if default is _MISSING else ''}not {named}")
        return value

    def text(self, key: str, default: str = _MISSING) -> str:
        return self._of((str,), "a string", key, default)

    def integer(self, key: str, default: int = _MISSING) -> int:
        """Return an integer; true and false are none."""
        return self._of((int,), "an integer", key, default)

    def number(self, key: str, default: float = _MISSING) -> float:
        return float(self._of(_NUMBERS, "a number", key, default))

    def amount(self, key: str, default: float = _MISSING, positive: bool = False) -> float:
        """Return a number that is at least 0, or positive."""
        value = self.number(key, default)
        if not 0 <= value < math.inf or (positive and value == 0):
            wanted = "positive" if positive else "at least 0"
            raise BridgeError(f"'{key}' is {value:g}", remedy=f"It must be {wanted}.")
        return value

    def array(self, key: str, default: list[Any] = _MISSING) -> list[Any]:
        return self._of((list,), "an array", key, default)

    def amounts(self, key: str, size: int | None) -> list[float]:
        """Return so many numbers (None: at least one) that are at least 0."""
        values = self.array(key)
        if not all(type(value) in _NUMBERS and 0 <= value < math.inf for value in values):
            raise BridgeError(f"'{key}' is not an array of numbers that are at least 0")
        if not values or (size is not None and len(values) != size):
            needed = size or "at least 1"
            raise BridgeError(f"the array '{key}' has {len(values)} numbers", remedy=f"Give it {needed}.")
        return [float(value) for value in values]

    def texts(self, key: str) -> list[str]:
        """Return an array, not empty, of strings."""
        values = self.array(key)
        if not values or not all(type(value) is str for value in values):
            raise BridgeError(f"'{key}' is not a non-empty array of strings")
        return values

    def mapping(self, key: str) -> dict[str, Any]:
        return self._of((dict,), "an object", key, _MISSING)

    def hosts(self, key: str) -> Hosts:
        """Return a set of machine ids, not empty, as Batsim writes it; they may be beyond the machine."""
        try:
            host_set = hosts.merged([hosts.intervals(self.text(key))])
        except ValueError as error:
            raise BridgeError(f"'{key}': {error}") from None
        if not host_set:
            raise BridgeError(f"'{key}' names no machine", remedy="Write it like '0-1 5'.")
        return host_set


def read_json(text: str | bytes, *, unique: bool = True, most_bytes: int = 0) -> Fields:
    """Return the JSON object that a text is (else BridgeError), within `bridge.base.jsontext`'s limits."""
    try:
        value = jsontext.loads(text, unique=unique, most_bytes=most_bytes)
    except ValueError as error:
        raise BridgeError(f"is not JSON: {error}") from None
    if type(value) is not dict:
        raise BridgeError("is not a JSON object")
    return Fields(value)
