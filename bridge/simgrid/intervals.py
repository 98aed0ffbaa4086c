"""Sets of machine ids as Batsim writes them: closed intervals between spaces, ``0-1 5``."""

from collections.abc import Iterable, Sequence

from bridge.simgrid.errors import ModelError


def parse(text: str) -> tuple[int, ...]:
    """Return the ids of ``"0-1 5"`` in ascending order, each once.

    Raises:
        ModelError: the text is empty or anything but such intervals.
    """
    ids: set[int] = set()
    for part in text.split(" "):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise ModelError(f"'{text}' is not a set of machine ids", remedy="Write it like '0-1 5'.")
        low, high = int(first), int(last) if dash else int(first)
        if low > high:
            raise ModelError(
                f"'{text}' has an interval whose end comes first", remedy="Write it like '0-1 5'."
            )
        ids.update(range(low, high + 1))
    return tuple(sorted(ids))


def text_of(ids: Sequence[int]) -> str:
    """Return ids that are in ascending order as ``"0-1 5"``."""
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in _runs(ids))


def _runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for i in ids:
        if runs and runs[-1][1] == i - 1:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
