"""Run times that Batsim's profiles state: of delays, and of what is composed of nothing else."""

import math
from collections.abc import Mapping
from typing import Any

#: Profiles within each other, at most; deeper ones, and circles, state no run time.
_MOST_LEVELS = 100


def delays(profiles: Mapping[str, Any]) -> dict[str, float]:
    """Return name -> s of the composed profiles all of whose parts are delays, or composed of delays."""
    times: dict[str, float | None] = {}

    def time_of(name: object, levels: int) -> float | None:
        if not isinstance(name, str) or levels > _MOST_LEVELS:
            return None
        if name not in times:
            times[name] = None  # while its parts are looked at: a circle
            profile = profiles.get(name)
            if isinstance(profile, dict):
                times[name] = _seconds(profile, levels)
        return times[name]

    def _seconds(profile: dict[str, Any], levels: int) -> float | None:
        if profile.get("type") == "delay":
            return _number(profile.get("delay"))
        repeat, parts = _number(profile.get("repeat", 1)), profile.get("seq")
        if profile.get("type") != "composed" or repeat is None or not isinstance(parts, list) or not parts:
            return None
        values = [time_of(part, levels + 1) for part in parts]
        seconds = [value for value in values if value is not None]
        try:
            return _number(repeat * sum(seconds)) if len(seconds) == len(values) else None
        except OverflowError:
            return None

    composed = [name for name, profile in profiles.items() if _is_composed(profile)]
    return {name: value for name in composed if (value := time_of(name, 1)) is not None}


def _is_composed(profile: object) -> bool:
    return isinstance(profile, dict) and profile.get("type") == "composed"


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 < value < math.inf else None
