"""What decisions must know of Batsim 4's profiles: storage labels, sizes, and which are well-formed."""

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from bridge.batsim.events import Fields

#: Finds a profile of the same workload by name; None if it is not there.
Lookup = Callable[[str], Fields | None]

#: The label that Batsim assumes where a profile names no storage.
DEFAULT_STORAGE = "pfs"
#: Deepest nesting of composed profiles that is followed.
_DEEPEST = 20


def steps(profile: Fields, lookup: Lookup, depth: int = 0) -> Iterator[Fields]:
    """Yield the profile itself, or the profiles that it is composed of."""
    if profile.get("type") != "composed" or depth >= _DEEPEST:
        yield profile
        return
    names = profile.get("seq", ())
    for name in dict.fromkeys(names) if isinstance(names, list) else ():
        part = lookup(name) if isinstance(name, str) else None
        if part is not None:
            yield from steps(part, lookup, depth + 1)


def storage_labels(profile: Fields, lookup: Lookup) -> list[str]:
    """Return the storage labels that a storage_mapping must resolve for this profile."""
    labels: dict[str, None] = {}
    for part in steps(profile, lookup):
        if part.get("type") == "parallel_homogeneous_pfs":
            label = part.get("host") if "host" in part and "storage" not in part else part.get("storage")
            labels[str(label or DEFAULT_STORAGE)] = None
        elif part.get("type") == "data_staging":
            labels[str(part.get("from"))] = None
            labels[str(part.get("to"))] = None
    return list(labels)


def any_size(profile: Fields, lookup: Lookup) -> bool:
    """Tell whether a job of this profile may run on another number of hosts than it asks for."""
    return all(part.get("type") == "parallel_homogeneous_total" for part in steps(profile, lookup))


def fault(profile: Fields, lookup: Lookup) -> str:
    """Return why Batsim would refuse to register this profile, or an empty text.

    Types that need files or a running SMPI are refused as well.
    """
    kind = profile.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return f"a profile of type {kind!r} cannot be registered"
    if type(profile.get("ret", 0)) is not int:
        return "its 'ret' is no whole number"
    return check(profile, lookup)


def is_json(value: Any, depth: int = 0) -> bool:
    """Tell whether a value can be written as JSON text in UTF-8."""
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if value is None or type(value) in (bool, int):
        return True
    if isinstance(value, (float, Decimal)):
        return math.isfinite(value)
    if depth >= _DEEPEST:
        return False
    if isinstance(value, Mapping):
        return all(
            type(name) is str and is_json(name) and is_json(item, depth + 1) for name, item in value.items()
        )
    return isinstance(value, (list, tuple)) and all(is_json(item, depth + 1) for item in value)


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float, Decimal) and 0 <= value < float("inf")


def _amounts(*names: str) -> Callable[[Fields, Lookup], str]:
    def check(profile: Fields, _: Lookup) -> str:
        wrong = next((name for name in names if not _is_amount(profile.get(name))), "")
        return f"its '{wrong}' is no amount" if wrong else ""

    return check


def _delay(profile: Fields, _: Lookup) -> str:
    delay = profile.get("delay")
    return "" if _is_amount(delay) and delay > 0 else "its 'delay' is not positive"  # type: ignore[operator]


def _parallel(profile: Fields, _: Lookup) -> str:
    cpu, com = profile.get("cpu"), profile.get("com")
    if not isinstance(cpu, list) or not isinstance(com, list) or not cpu or len(com) != len(cpu) ** 2:
        return "its 'cpu' and 'com' are no vector and matrix"
    return (
        ""
        if all(map(_is_amount, cpu)) and all(map(_is_amount, com))
        else "its 'cpu' or 'com' holds no amount"
    )


def _composed(profile: Fields, lookup: Lookup) -> str:
    names, repeat = profile.get("seq"), profile.get("repeat", 1)
    if type(repeat) is not int or repeat < 1:
        return "its 'repeat' is not a positive whole number"
    if not isinstance(names, list) or not names:
        return "its 'seq' is no list of profile names"
    missing = next((n for n in names if not isinstance(n, str) or lookup(n) is None), None)
    return "" if missing is None else f"its part {missing!r} is not known"


def _pfs(profile: Fields, _: Lookup) -> str:
    given = [profile[name] for name in ("bytes_to_read", "bytes_to_write") if name in profile]
    label = profile.get("storage", profile.get("host", DEFAULT_STORAGE))
    return (
        "" if given and all(map(_is_amount, given)) and isinstance(label, str) else "its bytes are no amounts"
    )


def _staging(profile: Fields, _: Lookup) -> str:
    ends = isinstance(profile.get("from"), str) and isinstance(profile.get("to"), str)
    return "" if ends and _is_amount(profile.get("nb_bytes")) else "its 'nb_bytes', 'from' or 'to' is missing"


_CHECKS: dict[str, Callable[[Fields, Lookup], str]] = {
    "delay": _delay,
    "parallel": _parallel,
    "parallel_homogeneous": _amounts("cpu", "com"),
    "parallel_homogeneous_total": _amounts("cpu", "com"),
    "parallel_homogeneous_pfs": _pfs,
    "data_staging": _staging,
    "composed": _composed,
}
