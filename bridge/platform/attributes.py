"""Attributes of platform XML: names, fixed choices, numbers with units; a finding for everything odd."""

import re
from collections.abc import Callable

from bridge.platform import units
from bridge.platform.dtd import ATTRIBUTES, CHOICES
from bridge.platform.findings import Findings
from bridge.platform.xmltree import Element

#: More hosts than this in one `radical` is a mistake, not a machine.
MAX_RADICAL = 1_000_000
_BANDWIDTH_REMEDY = "Write bytes as 'GBps' and bits as 'Gbps'; kilo is a small k: 'kBps'."


class StopError(Exception):
    """This element cannot be used; the finding has been made."""


class AttributeReader:
    """Reads attributes of elements into typed values; mistakes become findings."""

    def __init__(self, path: str) -> None:
        self.findings = Findings(path)

    def stop(self, line: int, code: str, message: str, remedy: str) -> StopError:
        self.findings.error(line, code, message, remedy)
        return StopError()

    def attributes(self, element: Element) -> None:
        """Check the names and the fixed choices of attributes."""
        required, optional = ATTRIBUTES[element.tag]
        missing = sorted(required - element.attributes.keys())
        for name in sorted(element.attributes.keys() - required - optional):
            self.findings.error(
                element.line,
                "unknown-attribute",
                f"<{element.tag}> has no attribute '{name}'",
                f"Known: {', '.join(sorted(required | optional))}.",
            )
        for name, value in element.attributes.items():
            choices = CHOICES.get((element.tag, name))
            if choices is not None and value not in choices:
                self.findings.error(
                    element.line,
                    "bad-value",
                    f"<{element.tag}> {name}='{value}' is none of {', '.join(sorted(choices))}",
                    "Choose one of them; capitals matter.",
                )
        if missing:
            raise self.stop(
                element.line,
                "missing-attribute",
                f"<{element.tag}> lacks {', '.join(missing)}",
                "Add it; SimGrid requires it.",
            )

    def bandwidth(self, element: Element, name: str) -> float:
        """Bytes per second of an attribute; 1 after a finding."""
        return self._value(element, name, units.parse_bandwidth, "Bps", 1.0, _BANDWIDTH_REMEDY)

    def time(self, element: Element, name: str) -> float:
        """Seconds of an attribute; 0 after a finding."""
        return self._value(element, name, units.parse_time, "s", 0.0, "Write 's', 'ms', 'us' or 'ns'.")

    def _value(
        self,
        element: Element,
        name: str,
        parse: Callable[[str], float],
        default: str,
        fallback: float,
        remedy: str,
    ) -> float:
        text = element.attributes[name]
        line = element.line
        try:
            found = parse(text)
        except ValueError as error:
            self.findings.error(line, "bad-value", f"<{element.tag}> {name}: {error}", remedy)
            return fallback
        number, unit = units.split_unit(text)
        if not unit and number != 0:
            self.findings.warning(
                line,
                "unit-missing",
                f"<{element.tag}> {name}='{text}' has no unit; SimGrid takes it as {default}",
                f"Write the unit: '{text}{default}' or what was meant.",
            )
        elif unit.endswith("bps"):
            self.findings.note(
                line,
                "unit-bits",
                f"<{element.tag}> {name}='{text}' is in bits: {units.human_bandwidth(found)}",
                "Nothing to do if bits were meant; bytes are written 'Bps'.",
            )
        elif default == "s" and unit in ("m", "h", "d", "w"):
            self.findings.warning(
                line,
                "unit-minutes",
                f"<{element.tag}> {name}='{text}' is {found:g} seconds: '{unit}' is not a millisecond",
                "Write 'ms', 'us' or 'ns'.",
            )
        if found < 0 or (found == 0 and default == "Bps"):
            what = "negative" if found < 0 else "zero"
            self.findings.error(
                line,
                "bad-value",
                f"<{element.tag}> {name}='{text}' is {what}",
                "Bandwidths are positive; latencies are 0s or more.",
            )
            return fallback
        return found

    def whole(self, element: Element, name: str, default: int, least: int) -> int:
        text = element.attributes.get(name, "")
        if not text:
            return default
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
            self.findings.error(
                element.line,
                "bad-value",
                f"<{element.tag}> {name}='{text}' is not a whole number from {least}",
                f"Write a whole number, e.g. {name}='{least}'.",
            )
            return default
        return int(text)

    def speeds(self, element: Element) -> tuple[float, ...]:
        text = element.attributes["speed"]
        try:
            found = units.parse_speeds(text)
            for part in text.split(","):
                number, unit = units.split_unit(part.strip())
                if not unit and number != 0:
                    self.findings.warning(
                        element.line,
                        "unit-missing",
                        f"speed '{part.strip()}' has no unit; SimGrid takes it as flop/s",
                        "Write the unit: 'f', 'Mf', 'Gf' or 'Tf'.",
                    )
                    break
        except ValueError as error:
            self.findings.error(
                element.line,
                "bad-value",
                f"<{element.tag}> speed: {error}",
                "Write flop/s as 'f', e.g. '1Gf'.",
            )
            return (1e9,)
        if min(found) < 0:
            self.findings.error(
                element.line,
                "bad-value",
                f"<{element.tag}> speed '{text}' is negative",
                "Write a positive speed.",
            )
            return (1e9,)
        return found

    def properties(self, element: Element) -> dict[str, str]:
        found: dict[str, str] = {}
        for child in element.children:
            if child.tag == "prop" and {"id", "value"} <= child.attributes.keys():
                name = child.attributes["id"]
                if name in found:
                    self.findings.warning(
                        child.line,
                        "duplicate-property",
                        f"property '{name}' is given twice; SimGrid keeps the first",
                        "Remove one of the two.",
                    )
                found.setdefault(name, child.attributes["value"])
        return found

    def radical(self, element: Element) -> list[int]:
        """The numbers of `radical="0-15,20"`."""
        text = element.attributes["radical"]
        numbers: list[int] = []
        for part in text.split(","):
            match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
            if match is None or int(match[2] or match[1]) < int(match[1]):
                raise self.stop(
                    element.line,
                    "bad-value",
                    f"radical '{text}' is malformed",
                    "Write ranges, e.g. '0-15,20'.",
                )
            first, last = int(match[1]), int(match[2] or match[1])
            if len(numbers) + last - first + 1 > MAX_RADICAL:
                raise self.stop(
                    element.line,
                    "bad-value",
                    f"radical '{text}' names over a million hosts",
                    "Check the numbers.",
                )
            numbers.extend(range(first, last + 1))
        if len(set(numbers)) != len(numbers):
            raise self.stop(
                element.line,
                "duplicate-name",
                f"radical '{text}' names a host twice",
                "Name each number once.",
            )
        return numbers
