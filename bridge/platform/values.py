"""Values of attributes: text made into numbers as SimGrid makes them; a finding for everything odd."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge.base.suggestions import did_you_mean, nearest
from bridge.platform import units
from bridge.platform.findings import FindingCollector
from bridge.platform.schema import ATTRIBUTES, check_profile
from bridge.wire.platform_xml import Element

#: More hosts than this in one `radical` is a mistake, not a machine.
MAX_RADICAL = 1_000_000

#: kind -> table of units, unit if none is written, value after a finding, remedy.
_BYTES = "Write bytes as 'GBps' and bits as 'Gbps'; kilo is a small k: 'kBps'."
_QUANTITIES: Mapping[str, tuple[Mapping[str, float], str, float, str]] = {
    "bandwidth": (units.BANDWIDTH, "Bps", 1.0, _BYTES),
    "time": (units.TIME, "s", 0.0, "Write 's', 'ms', 'us' or 'ns'."),
    "speed": (units.SPEED, "f", 1e9, "Write flop/s as 'f', e.g. '1Gf'."),
}
#: Smallest whole number that makes sense.
_LEAST = {"core": 1, "pstate": 0}


#: Attributes that give something a name, by tag.
_DECLARES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("host", "router", "peer", "link", "zone", "AS"), ("id",)),
    "cluster": ("id", "router_id"),
}


class StopError(Exception):
    """This element cannot be used; the finding has been made."""


class AttributeReader:
    """Reads attributes of elements into typed values; mistakes become findings."""

    def __init__(self, path: str) -> None:
        self.findings = FindingCollector(path)
        self.folder = Path(path).parent
        self.left_out: dict[str, int] = {}  # names of elements that could not be used -> their lines
        self.profiles: set[str] = set()  # names of availability profiles; SimGrid takes each once

    def add_finding(self, element: Element, key: str, *, loads: bool = False, **words: Any) -> None:
        self.findings.add(element.line, key, loads=loads, **({"tag": element.tag} | words))

    def stop(self, element: Element, key: str, **words: Any) -> StopError:
        """A finding at which SimGrid stops, and the exception to raise if the element is to be left out."""
        self.add_finding(element, key, **words)
        for inner in element.walk():
            for attribute in _DECLARES.get(inner.tag, ()):
                if name := inner.attributes.get(attribute):
                    self.left_out.setdefault(name, element.line)
        return StopError()

    def values(self, element: Element) -> dict[str, Any]:
        """Typed values of all attributes that are given. Raises StopError: a required one is missing."""
        attributes = ATTRIBUTES[element.tag]
        values: dict[str, Any] = {}
        for name in sorted(element.attributes.keys() - attributes.keys()):
            meant = nearest(name, sorted(attributes.keys() - element.attributes.keys()))
            hint, names = did_you_mean(name, [meant]), ", ".join(sorted(attributes))
            self.add_finding(element, "unknown-attribute", name=name, hint=hint, names=names)
            if meant:  # go on as if it stood there: what follows from its absence is no second mistake
                element.attributes[meant] = element.attributes.pop(name)
        for name, text in element.attributes.items():
            if (attribute := attributes.get(name)) is None:
                continue
            kind = attribute.kind
            if name in element.repeated and kind != "choice":  # of choices SimGrid takes the last
                self.add_finding(element, "xml-syntax/twice", name=name)
            if text or not attribute.may_be_empty:
                read = getattr(self, f"_{kind}", self._quantity)
                values[name] = read(element, name, text, kind)
        missing = sorted(
            name for name in attributes if attributes[name].required and name not in element.attributes
        )
        if missing:
            raise self.stop(element, "missing-attribute", missing=", ".join(missing))
        return values

    def _text(self, _element: Element, _name: str, text: str, _kind: str) -> str:
        return text

    def _choice(self, element: Element, name: str, text: str, _kind: str) -> str:
        choices = ATTRIBUTES[element.tag][name].choices
        if text not in choices or name in element.escaped:
            self.add_finding(
                element, "bad-value/choice", name=name, text=text, choices=", ".join(sorted(choices))
            )
        return text

    def _quantity(self, element: Element, name: str, text: str, kind: str) -> float:
        table, default, fallback, remedy = _QUANTITIES[kind]
        words: dict[str, Any] = {"name": name, "text": text, "remedy": remedy}
        strict = ""  # what the strict reading has against the text; it gives hints
        try:
            units.parse_quantity(text, table)
        except ValueError as error:
            strict = str(error)
        try:
            value = units.read_as_simgrid(text, table)
        except ValueError as error:
            self.add_finding(element, "bad-value", error=strict or error, **words)
            return fallback
        if not math.isfinite(value):
            self.add_finding(element, "bad-value/finite", **words)
            return fallback
        number, unit = (value, default) if strict else units.split_unit(text)
        if strict:
            self.add_finding(element, "odd-number", value=value, **words)
        elif not unit and number != 0:
            self.add_finding(element, "unit-missing", unit=default, **words)
        elif unit.endswith("bps"):
            self.add_finding(element, "unit-bits", value=units.human(value, "B/s"), **words)
        elif kind == "time" and unit in ("m", "h", "d", "w"):
            self.add_finding(element, "unit-minutes", value=value, unit=unit, **words)
        if value < 0 or (value == 0 and kind == "bandwidth"):
            self.add_finding(element, "bad-value/sign", what="negative" if value < 0 else "zero", **words)
            return fallback
        return value

    def _bandwidths(self, element: Element, name: str, text: str, _kind: str) -> float:
        # Several are for WIFI: of the rates that a station may have, all get the first.
        first, *_ = [self._quantity(element, name, part, "bandwidth") for part in re.split("[;,]", text)]
        return first

    def _speeds(self, element: Element, name: str, text: str, _kind: str) -> tuple[float, ...]:
        parts = (part.strip(units.C_SPACE) for part in text.split(","))
        return tuple(self._quantity(element, name, part, "speed") for part in parts)

    def _whole(self, element: Element, name: str, text: str, _kind: str) -> int:
        least = _LEAST[name]
        try:
            number = units.c_int(text)
        except ValueError:
            number = -1
        if number < least:
            self.add_finding(element, "bad-value/whole", name=name, text=text, least=least)
            return least
        if not text.isdecimal():
            self.add_finding(element, "odd-number", name=name, text=text, value=number)
        return number

    def _real(self, element: Element, name: str, text: str, _kind: str) -> float:
        try:
            return units.c_double(text)[0]
        except ValueError as error:
            key = "version" if name == "version" else "bad-value"
            self.add_finding(
                element, key, name=name, text=text, error=error, remedy="Write a number, e.g. '4.1'."
            )
            return math.nan

    def _coordinates(self, element: Element, name: str, text: str, _kind: str) -> str:
        try:
            count = len([units.c_double(part) for part in text.split(" ")])
        except ValueError:
            count = 0
        if count != 3:
            self.add_finding(element, "bad-value/coordinates", name=name, text=text)
        return text

    def _file(self, element: Element, name: str, text: str, _kind: str) -> str:
        if element.tag != "trace":
            self.add_finding(element, "profile", what=name)
            self.profile(element, text)
        return text

    def profile(
        self, element: Element, file: str, *, name: str = "", text: str = "", period: float = -1
    ) -> None:
        """Check an availability profile, from a file beside the platform's or written in a `<trace>`."""
        try:
            if file.startswith("/"):  # by a mistake of its own
                raise ValueError("SimGrid does not find absolute paths")
            if file:
                text = (self.folder / file).read_text("utf-8", "backslashreplace")
            if (file or name) in self.profiles:
                raise ValueError("SimGrid takes each profile once")
            self.profiles.add(file or name)
            check_profile(text, period)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.add_finding(element, "profile-unusable", name=file or name, why=why)

    def properties(self, element: Element) -> dict[str, str]:
        """The `<prop>` of an element; SimGrid keeps the first of a name."""
        properties: dict[str, str] = {}
        for child in element.children:
            with suppress(StopError):
                if child.tag == "prop":
                    values = self.values(child)
                    if values["id"] in properties:
                        self.add_finding(child, "duplicate-property", name=values["id"])
                    properties.setdefault(values["id"], values["value"])
        return properties

    def radical(self, element: Element) -> list[int]:
        """The numbers of `radical="0-15,20"`. Raises StopError."""
        text = element.attributes["radical"]
        numbers: list[int] = []
        for part in text.split(","):
            ends = part.split("-")
            try:
                first, last = units.c_int(ends[0]), units.c_int(ends[-1])
            except ValueError:
                ends = []
            if not 1 <= len(ends) <= 2:
                raise self.stop(element, "bad-value/radical", text=text)
            if last < first or not re.fullmatch(r"\d+(-\d+)?", part, re.ASCII):
                self.add_finding(element, "bad-value/range", text=text, part=part, first=first, last=last)
            if len(numbers) + last - first + 1 > MAX_RADICAL:
                raise self.stop(element, "bad-value/many", text=text)
            numbers.extend(range(first, last + 1))
        if len(set(numbers)) != len(numbers):
            raise self.stop(element, "duplicate-name/radical", text=text)
        return numbers
