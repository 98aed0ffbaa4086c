"""What a user may have meant: the nearest of the valid names, and the nearest file beside a missing one."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

#: Files of a folder that are looked at.
_MOST_FILES = 2_000
#: Similarity of file names: equal endings make different names similar.
_SIMILAR = 0.75


def nearest(word: str, valid_names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the valid name that is nearly a word; empty: none has a similarity of `cutoff` (0 to 1).

    A name of the same letters in another order comes first: `sfj` is nearer to `sjf` than to `srf`.
    """
    names = [*valid_names]
    close = [name for name in names if sorted(name) == sorted(word)] or get_close_matches(
        word, names, 1, cutoff
    )
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
    close = nearest(path.name, names, _SIMILAR)
    return f"Did you mean {names[close]}? " if close else ""
