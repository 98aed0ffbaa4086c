"""Numbers as PBS writes them: counts, and sizes with units of bytes or words. ValueError: a text is none."""

import re

from bridge.cluster.slurm_values import MOST

_SIZE = re.compile(r"(\d{1,18})([kmgt]?)([bw])?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_WORD = 8  # bytes


def count(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if not match or (match[2] and not match[3]):
        raise ValueError(f"{text[:40]!r} is no size")
    number, unit, kind = match.groups("")
    result = int(number) * _UNITS[unit.lower()] * (_WORD if kind.lower() == "w" else 1)
    if result > MOST:
        raise ValueError(f"{text[:40]!r} does not fit 64 bits")
    return result
