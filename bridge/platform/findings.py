"""A finding: what is wrong at one line of a platform file, how bad it is, and the remedy.

What can be said stands in `findings.toml`.
"""

import dataclasses
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
#: What SimGrid itself says to a file.
Verdict = Literal["loads", "refuses"]
ORDER: dict[str, int] = {"error": 0, "warning": 1, "note": 2}
_DATA = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))
#: "code" or "code/variant" -> (`refused` or severity, message, remedy), with {names} to be filled in.
CATALOGUE: dict[str, tuple[Any, str, str]] = {
    key: (severity, *words) for severity, entries in _DATA.items() for key, words in entries.items()
}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One remark of the lint.

    Attributes:
        path: the platform file as the user named it.
        line: line number from 1.
        severity: `error` (SimGrid or Batsim stops, or silently simulates something else), `warning` (works,
            but probably not what was meant) or `note`.
        code: a stable name for the kind of finding, e.g. `wattage-missing`.
        message: what is wrong.
        remedy: what to do about it.
        simgrid: `refuses` if SimGrid does not load the file because of this.
    """

    path: str
    line: int
    severity: Severity
    code: str
    message: str
    remedy: str
    simgrid: Verdict = "loads"

    @property
    def where(self) -> str:
        """`file:line`."""
        return f"{self.path}:{self.line}"

    def as_dict(self) -> dict[str, str | int]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)


class Findings:
    """Collects findings about one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[Finding] = []

    def add(self, line: int, key: str, *, loads: bool = False, **words: Any) -> None:
        """Add a finding of the catalogue; `loads`: what SimGrid else refuses it takes in this case."""
        severity, message, remedy = CATALOGUE[key]
        refused = severity == "refused"
        self.found.append(
            Finding(
                self.path,
                line,
                "error" if refused else severity,
                key.partition("/")[0],
                message.format_map(words),
                remedy.format_map(words),
                "refuses" if refused and not loads else "loads",
            )
        )

    @property
    def errors(self) -> int:
        """Number of errors so far."""
        return sum(finding.severity == "error" for finding in self.found)

    def sorted(self) -> list[Finding]:
        """By line, then severity, then code."""
        return sorted(self.found, key=lambda f: (f.line, ORDER[f.severity], f.code, f.message))


def verdict(findings: Iterable[Finding]) -> Verdict:
    """What SimGrid will say to the file with these findings."""
    return "refuses" if any(finding.simgrid == "refuses" for finding in findings) else "loads"
