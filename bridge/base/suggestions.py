"""What a user may have meant: the nearest of the valid names, and the nearest file beside a missing one."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

#: Files of a folder that are looked at.
_MOST_FILES = 2_000


def nearest(word: str, valid_names: Iterable[str]) -> str:
    """Return the valid name that is nearly a word; empty: there is none.

    A name of the same letters in another order comes first: `sfj` is nearer to `sjf` than to `srf`.
    """
    names = [*valid_names]
    close = [name for name in names if sorted(name) == sorted(word)] or get_close_matches(word, names, n=1)
    return close[0] if close else ""


def did_you_mean(word: str, valid_names: Iterable[str], before: str = "") -> str:
    """Return "Did you mean …? " if a word is nearly a valid name, else nothing; to begin a remedy with.

    `before`: what stands before the name in what is meant.
    """
    close = nearest(word, valid_names)
    return f"Did you mean {before}{close}? " if close else ""


def did_you_mean_file(path: Path, valid_names: Iterable[str] = ()) -> str:
    """Return "Did you mean …? " if a missing file's name is nearly that of one beside it, or a valid name."""
    try:
        files = [] if path.exists() else [*islice(path.parent.iterdir(), _MOST_FILES)]
    except (OSError, ValueError):
        files = []
    names = {file.name: str(file) for file in files} | {name: name for name in valid_names}
    close = nearest(path.name, names)
    return f"Did you mean {names[close]}? " if close else ""
