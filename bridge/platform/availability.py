"""Availability profiles: the lines of dates and values by which SimGrid changes a machine over time."""

import re

from bridge.platform.units import c_double

_LAWS = {
    **dict.fromkeys(("DET", "EXP", "EXPONENTIAL"), 1),
    **dict.fromkeys(("NORM", "NORMAL", "GAUSS", "GAUSSIAN", "UNIF", "UNIFORM"), 2),
}


class ProfileError(ValueError):
    """SimGrid stops at this profile."""


def _drawn(words: list[str], *, stochastic: bool) -> tuple[float, list[str]]:
    """One date or value at the start of a line: its first number, and the words after it."""
    count = _LAWS.get(words[0]) if words else None
    if count is None and stochastic:
        raise ProfileError("a stochastic profile needs DET, NORM, UNIF or EXP before each number")
    numbers, rest = (words[:1], words[1:]) if count is None else (words[1 : 1 + count], words[1 + count :])
    if len(numbers) < (count or 1):
        raise ProfileError(f"the line '{' '.join(words)[:80]}' is too short")
    first, *_ = [c_double(number)[0] for number in numbers]
    return first, rest


def check_profile(text: str, period: float = -1.0) -> None:
    """Check a profile: lines of date and value, comments, and orders such as PERIODICITY.

    Args:
        text: the profile.
        period: seconds after which it begins again, unless the text says so; not positive: never.

    Raises:
        ProfileError: SimGrid stops at it.
        ValueError: a number is none.
    """
    stochastic, pause, last = False, 0.0, 0.0
    for line in (part.strip(" \t\v\f") for part in re.split("[\n\r]", text)):
        if not line or line[0] in "#%":
            continue
        order, _, number = line.partition(" ")
        if order in ("PERIODICITY", "LOOPAFTER") and re.match(r"\s*[+-]?\.?\d", number):
            if order == "PERIODICITY":
                period = c_double(number.strip())[0]
            else:
                pause = c_double(number.strip())[0]
        elif line in ("STOCHASTIC", "STOCHASTIC LOOP"):
            stochastic = True
        else:
            date, rest = _drawn(line.split(), stochastic=stochastic)
            _drawn(rest, stochastic=stochastic)
            if not stochastic:
                if date < 0 or date < last:
                    raise ProfileError(f"dates must not fall, but {date:g} follows {last:g}")
                last = date
    if period > 0 and (stochastic or pause != 0):
        raise ProfileError("PERIODICITY goes neither with STOCHASTIC nor with LOOPAFTER")
    if (period - last if period > 0 else pause) < 0:
        raise ProfileError("the profile is longer than its period")
