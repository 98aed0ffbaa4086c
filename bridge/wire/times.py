"""Times: int64 microseconds here, seconds as the text ``%.6f`` on the wire, and no float in between."""

from decimal import ROUND_HALF_EVEN, Decimal

from bridge.base.jsontext import shortened

MICRO = 1_000_000
#: Later than any simulation lasts, and far from the end of int64: 2,900 years.
LATEST = 92_000_000_000 * MICRO


def micro(seconds: object) -> int:
    """Return a JSON number (int, or Decimal of its text) as microseconds, rounded half to even.

    A float, as other libraries give it, counts as its shortest text: ``%.6f`` comes back exactly. Raises
    ValueError: no number, or beyond `LATEST`.
    """
    if type(seconds) is int:
        if seconds.bit_length() > 64:
            raise _beyond("a number of more than 64 bits")
        time = seconds * MICRO
    elif isinstance(seconds, (Decimal, float)):
        exact = seconds if isinstance(seconds, Decimal) else Decimal(repr(seconds))
        if not exact.is_finite() or exact.adjusted() > 12:
            raise _beyond(f"{shortened(str(seconds))} s")
        scaled = exact.scaleb(6)
        time = int(scaled)
        if time != scaled:
            time = int(scaled.to_integral_value(ROUND_HALF_EVEN))
    else:
        raise ValueError(f"{seconds!r} is not a number")
    if not -LATEST <= time <= LATEST:
        raise _beyond(f"{seconds} s")
    return time


def _beyond(number: str) -> ValueError:
    return ValueError(f"{number} is not a time: times are within {LATEST // MICRO} s of 0")


def text_of(time: int) -> str:
    """Return microseconds (not negative) as seconds ``%.6f``."""
    return f"{time // MICRO}.{time % MICRO:06d}"
