"""Values of attributes: text made into numbers as SimGrid makes them; a finding for everything odd."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.platform import units
from bridge.platform.availability import ProfileError, check_profile
from bridge.platform.findings import Findings
from bridge.platform.scan import Element
from bridge.platform.schema import ATTRIBUTES

#: More hosts than this in one `radical` is a mistake, not a machine.
MAX_RADICAL = 1_000_000

#: kind -> table of units, unit if none is written, value after a finding, remedy.
_QUANTITIES: Mapping[str, tuple[Mapping[str, float], str, float, str]] = {
    "bandwidth": (
        units.BANDWIDTH,
        "Bps",
        1.0,
        "Write bytes as 'GBps' and bits as 'Gbps'; kilo is a small k: 'kBps'.",
    ),
    "time": (units.TIME, "s", 0.0, "Write 's', 'ms', 'us' or 'ns'."),
    "speed": (units.SPEED, "f", 1e9, "Write flop/s as 'f', e.g. '1Gf'."),
}
#: Smallest whole number that makes sense.
_LEAST = {"core": 1, "pstate": 0}
_PROFILE_REMEDY = "Use machine availability events (--events) instead."


class StopError(Exception):
    """This element cannot be used; the finding has been made."""


def _better(text: str, table: Mapping[str, float]) -> str:
    """What the strict reading says, with its hints; empty if it has nothing against the text."""
    try:
        units.parse(text, table)
    except ValueError as error:
        return str(error)
    return ""


class Values:
    """Reads attributes of elements into typed values; mistakes become findings."""

    def __init__(self, path: str) -> None:
        self.findings = Findings(path)
        self.folder = Path(path).parent
        self.profiles: set[str] = set()  # names of availability profiles; SimGrid takes each once

    def stop(self, element: Element, code: str, message: str, remedy: str) -> StopError:
        """A finding at which SimGrid stops, and the exception to raise if the element is to be left out."""
        self.findings.refused(element.line, code, message, remedy)
        return StopError()

    def values(self, element: Element) -> dict[str, Any]:
        """Typed values of all attributes that are given.

        Raises:
            StopError: a required attribute is missing.
        """
        known = ATTRIBUTES[element.tag]
        found: dict[str, Any] = {}
        for name in sorted(element.attributes.keys() - known.keys()):
            self.stop(
                element,
                "unknown-attribute",
                f"<{element.tag}> has no attribute '{name}'",
                f"Known: {', '.join(sorted(known))}.",
            )
        for name, text in element.attributes.items():
            if (attribute := known.get(name)) is None:
                continue
            kind = attribute.kind
            if name in element.repeated and kind != "choice":  # of choices SimGrid takes the last
                self.stop(
                    element, "xml-syntax", f"<{element.tag}> gives {name} twice", "Remove one of the two."
                )
            if kind == "choice":
                if text not in attribute.choices or name in element.escaped:
                    self.stop(
                        element,
                        "bad-value",
                        f"<{element.tag}> {name}='{text}' is none of {', '.join(sorted(attribute.choices))}",
                        "Choose one of them; capitals matter.",
                    )
                found[name] = text
            elif text or not attribute.optional_text:
                found[name] = getattr(self, f"_{kind}", self._quantity)(element, name, text, kind)
        if missing := sorted(
            name for name in known if known[name].required and name not in element.attributes
        ):
            raise self.stop(
                element,
                "missing-attribute",
                f"<{element.tag}> lacks {', '.join(missing)}",
                "Add it; SimGrid requires it.",
            )
        return found

    def _text(self, _element: Element, _name: str, text: str, _kind: str) -> str:
        return text

    def _quantity(self, element: Element, name: str, text: str, kind: str) -> float:
        """Bytes per second, seconds or flop/s of an attribute."""
        table, default, fallback, remedy = _QUANTITIES[kind]
        line, what = element.line, f"<{element.tag}> {name}"
        try:
            value = units.read_as_simgrid(text, table)
        except ValueError as error:
            self.findings.refused(line, "bad-value", f"{what}: {_better(text, table) or error}", remedy)
            return fallback
        if not math.isfinite(value):
            self.findings.error(line, "bad-value", f"{what}='{text}' is no finite number", remedy)
            return fallback
        try:
            number, unit = units.split_unit(text)
        except ValueError:
            self.findings.warning(
                line, "odd-number", f"{what}='{text}': SimGrid reads {value:g}", "Write a decimal number."
            )
            number, unit = value, default
        if not unit and number != 0:
            self.findings.warning(
                line,
                "unit-missing",
                f"{what}='{text}' has no unit; SimGrid takes it as {'flop/s' if default == 'f' else default}",
                f"Write the unit: '{text}{default}' or what was meant.",
            )
        elif unit.endswith("bps"):
            self.findings.note(
                line,
                "unit-bits",
                f"{what}='{text}' is in bits: {units.human_bandwidth(value)}",
                "Nothing to do if bits were meant; bytes are written 'Bps'.",
            )
        elif kind == "time" and unit in ("m", "h", "d", "w"):
            self.findings.warning(
                line,
                "unit-minutes",
                f"{what}='{text}' is {value:g} seconds: '{unit}' is not a millisecond",
                "Write 'ms', 'us' or 'ns'.",
            )
        if value < 0 or (value == 0 and kind == "bandwidth"):
            self.findings.error(
                line,
                "bad-value",
                f"{what}='{text}' is {'negative' if value < 0 else 'zero'}",
                "Bandwidths and speeds are positive; latencies are 0s or more.",
            )
            return fallback
        return value

    def _bandwidths(self, element: Element, name: str, text: str, _kind: str) -> float:
        if re.search("[;,]", text):  # several are for WIFI
            self.stop(
                element,
                "bad-value",
                f"<{element.tag}> {name}='{text}' lists several bandwidths, SimGrid takes one",
                "Write one bandwidth.",
            )
            return 1.0
        return self._quantity(element, name, text, "bandwidth")

    def _speeds(self, element: Element, name: str, text: str, _kind: str) -> tuple[float, ...]:
        return tuple(
            self._quantity(element, name, part.strip(" \t\n\v\f\r"), "speed") for part in text.split(",")
        )

    def _whole(self, element: Element, name: str, text: str, _kind: str) -> int:
        least = _LEAST[name]
        try:
            number = units.c_int(text)
            if number < least:
                raise ValueError
        except ValueError:
            self.stop(
                element,
                "bad-value",
                f"<{element.tag}> {name}='{text}' is not a whole number from {least}",
                f"Write a whole number, e.g. {name}='{least}'.",
            )
            return least
        if not re.fullmatch("[0-9]+", text):
            self.findings.warning(
                element.line,
                "odd-number",
                f"<{element.tag}> {name}='{text}': SimGrid reads {number}",
                "Write a whole number.",
            )
        return number

    def _real(self, element: Element, name: str, text: str, _kind: str) -> float:
        try:
            return units.c_double(text)[0]
        except ValueError as error:
            code = "version" if name == "version" else "bad-value"
            self.stop(element, code, f"<{element.tag}> {name}: {error}", "Write a number, e.g. '4.1'.")
            return math.nan

    def _coordinates(self, element: Element, name: str, text: str, _kind: str) -> str:
        try:
            numbers = [units.c_double(part) for part in text.split(" ")]
        except ValueError:
            numbers = []
        if len(numbers) != 3:
            self.stop(
                element,
                "bad-value",
                f"<{element.tag}> {name}='{text}' are not three numbers",
                "Remove them: coordinates are for routing that is not modelled.",
            )
        return text

    def _file(self, element: Element, name: str, text: str, _kind: str) -> str:
        self.findings.warning(
            element.line,
            "profile",
            f"{name}: availability profiles change the machine behind the scheduler's back",
            _PROFILE_REMEDY,
        )
        self.profile(element, text)
        return text

    def profile(
        self, element: Element, file: str, *, name: str = "", text: str = "", period: float = -1
    ) -> None:
        """Check an availability profile, from a file or written in a `<trace>`.

        SimGrid looks beside the platform file, and, by a mistake, never finds absolute paths.
        """
        try:
            if file:
                if file.startswith("/"):
                    raise ProfileError("SimGrid does not find absolute paths")
                text = (self.folder / file).read_text("utf-8", "backslashreplace")
            if (file or name) in self.profiles:
                raise ProfileError("SimGrid takes each profile once")
            self.profiles.add(file or name)
            check_profile(text, period)
        except (ProfileError, OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.stop(
                element, "profile-unusable", f"availability profile '{file or name}': {why}", _PROFILE_REMEDY
            )

    def properties(self, element: Element) -> dict[str, str]:
        """The `<prop>` of an element; SimGrid keeps the first of a name."""
        found: dict[str, str] = {}
        for child in element.children:
            if child.tag != "prop":
                continue
            try:
                values = self.values(child)
            except StopError:
                continue
            if values["id"] in found:
                self.findings.warning(
                    child.line,
                    "duplicate-property",
                    f"property '{values['id']}' is given twice; SimGrid keeps the first",
                    "Remove one of the two.",
                )
            found.setdefault(values["id"], values["value"])
        return found

    def radical(self, element: Element) -> list[int]:
        """The numbers of `radical="0-15,20"`. Raises StopError."""
        text = element.attributes["radical"]
        numbers: list[int] = []
        for part in text.split(","):
            ends = part.split("-")
            try:
                first, last = units.c_int(ends[0]), units.c_int(ends[-1])
                if len(ends) > 2:
                    raise ValueError
            except ValueError:
                raise self.stop(
                    element, "bad-value", f"radical '{text}' is malformed", "Write ranges, e.g. '0-15,20'."
                ) from None
            if last < first or not re.fullmatch(r"\d+(-\d+)?", part, re.ASCII):
                self.findings.error(
                    element.line,
                    "bad-value",
                    f"radical '{text}': SimGrid reads '{part}' as {first} to {last}"
                    + (", which is none" if last < first else ""),
                    "Write ranges, e.g. '0-15,20'.",
                )
            if len(numbers) + last - first + 1 > MAX_RADICAL:
                raise self.stop(
                    element,
                    "bad-value",
                    f"radical '{text}' names over a million hosts",
                    "Check the numbers.",
                )
            numbers.extend(range(first, last + 1))
        if len(set(numbers)) != len(numbers):
            raise self.stop(
                element, "duplicate-name", f"radical '{text}' names a host twice", "Name each number once."
            )
        return numbers
