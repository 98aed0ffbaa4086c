"""SimGrid's units: flop/s, bytes per second, seconds; and sizes in bytes. Unknown units are refused.

Source: the platform DTD of SimGrid 3.32 (`B` is bytes, `b` is bits, `k` is 1000 and small, `Ki` is 1024, `m`
is one minute). Users' own numbers are plain decimal ones: no `inf`, no hexadecimal.
"""

import math
import re
import sys
from collections.abc import Mapping

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(.*)", re.DOTALL)
C_SPACE = " \t\n\v\f\r"
_C_NUMBER = re.compile(
    rf"[{C_SPACE}]*[+-]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan(?:\([0-9a-z_]*\))?)",
    re.IGNORECASE | re.ASCII,
)
_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_PREFIXES = {
    "decimal": (_DECIMAL, 1000),
    "long": (("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta"), 1000),
    "binary": (("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"), 1024),
}


def _scaled(*units: tuple[str, float, str]) -> Mapping[str, float]:
    """Unit -> factor, from units, their factors, and the kind of their prefixes."""
    return {
        prefix + unit: factor * float(base**power)
        for unit, factor, kind in units
        for prefixes, base in [_PREFIXES[kind]]
        for power, prefix in enumerate(prefixes)
    }


SPEED = _scaled(("f", 1.0, "decimal"), ("flops", 1.0, "long"))
BANDWIDTH = _scaled(
    ("Bps", 1.0, "decimal"), ("Bps", 1.0, "binary"), ("bps", 0.125, "decimal"), ("bps", 0.125, "binary")
)
_FRACTIONS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
TIME: Mapping[str, float] = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, **_FRACTIONS, "ps": 1e-12}
SIZE = _scaled(("B", 1.0, "decimal"), ("B", 1.0, "binary"))
_DEFAULT = {id(SPEED): "f", id(BANDWIDTH): "Bps", id(TIME): "s", id(SIZE): "B"}


def split_unit(text: str) -> tuple[float, str]:
    """Return (number, unit as written or empty). Raises ValueError: there is no finite decimal number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' does not begin with a number")
    number = float(match[1])
    if not math.isfinite(number):
        raise ValueError(f"'{text}' is too large")
    return number, match[2]


def _times_unit(number: float, unit: str, units: Mapping[str, float], text: str) -> float:
    unit = unit or _DEFAULT[id(units)]
    if unit not in units:
        near = next((unit_name for unit_name in units if unit_name.lower() == unit.lower()), "")
        hint = f" (did you mean '{near}'?)" if near else ""
        raise ValueError(f"unknown unit '{unit}' in '{text}'{hint}")
    return number * units[unit]


def parse_quantity(text: str, units: Mapping[str, float]) -> float:
    """A plain decimal number with a unit of the table: `2.6Tf`, `100Gbps`, `1.5us`. Raises ValueError."""
    value = _times_unit(*split_unit(text), units, text)
    if not math.isfinite(value):
        raise ValueError(f"'{text}' is too large")
    return value


def c_double(text: str) -> tuple[float, str]:
    """The number at the start of a text as C reads it (also hexadecimal, `inf`, `nan`), and the rest.

    Raises ValueError: there is none, or it is out of the range of doubles.
    """
    match = _C_NUMBER.match(text)
    if match is None:
        raise ValueError(f"'{text}' does not begin with a number")
    number, rest = match[0].strip(C_SPACE).lower(), text[match.end() :]
    if "n" in number:  # inf, infinity, nan, nan(…)
        return float(number.partition("(")[0]), rest
    mantissa = number.partition("p")[0] if "0x" in number else number.partition("e")[0]
    try:
        value = float.fromhex(number) if "0x" in number else float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value) or (abs(value) < sys.float_info.min and mantissa.strip("+-0x.")):
        raise ValueError(f"'{text}' is out of range")
    return value, rest


def c_int(text: str) -> int:
    """The whole number at the start of a text, as C reads it. Raises ValueError: none, or over 32 bits."""
    match = re.match(rf"[{C_SPACE}]*([+-]?)0*([0-9]+)", text)
    if match is None:
        raise ValueError(f"'{text}' does not begin with a whole number")
    if len(match[2]) > 10 or not -(2**31) <= int(match[1] + match[2]) < 2**31:
        raise ValueError(f"'{text[:40]}' is out of range")
    return int(match[1] + match[2])


def read_as_simgrid(text: str, units: Mapping[str, float]) -> float:
    """A number with a unit as SimGrid reads it. Raises ValueError: SimGrid stops at it."""
    return _times_unit(*c_double(text), units, text)


def parse_size(text: str) -> int:
    """Size in whole bytes, e.g. `1.26PB`, `64GiB` or `1000`. Raises ValueError."""
    return round(parse_quantity(text.strip(), SIZE))


def human(value: float, unit: str) -> str:
    """A number of `B`, `B/s` or `flop/s` for people: `1.26 PB`."""
    power = 0
    while abs(value) >= 1000.0 and power < len(_DECIMAL) - 1:
        value /= 1000.0
        power += 1
    return f"{value:.4g} {_DECIMAL[power]}{unit}"


def human_time(seconds: float) -> str:
    """Short times for people: `1.5 us`."""
    for unit, factor in _FRACTIONS.items():
        if seconds >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return "0 s" if seconds == 0 else f"{seconds:.2g} s"
