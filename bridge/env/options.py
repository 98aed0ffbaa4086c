"""Options of environments and of their resets: what would be ignored or taken for another is refused."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean


def refuse_kinds(task: object, kinds: Mapping[str, tuple[Any, str]]) -> None:
    """Refuse (BridgeError) options of another kind than these; each comes with what to write."""
    for name, (kind, remedy) in kinds.items():
        if not isinstance(value := getattr(task, name), kind):
            raise BridgeError(f"{name} cannot be {value!r:.60}", where="environment", remedy=remedy)


def refuse_options(options: Iterable[str], names: Sequence[str]) -> None:
    """Refuse (BridgeError) options of a reset that would be ignored."""
    for name in options:
        if name not in names:
            there = f"There is {', '.join(names)}." if names else "There are none: leave it out."
            remedy = f"{did_you_mean(str(name), names)}{there}"
            raise BridgeError(f"unknown option {name!r}", where="reset", remedy=remedy)
