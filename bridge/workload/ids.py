"""Ids of jobs: whole numbers where all of a log's are canonical decimal integers, else texts as they stand.

Two texts are never one job: ``01`` beside ``1`` makes all ids of the log texts.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Ints

_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")
_PADDED = re.compile(r"[0-9]{1,19}")
_INT64 = np.iinfo(np.int64)


def is_number(ident: str) -> bool:
    """Tell whether an id is a canonical decimal integer of 64 bits."""
    return bool(_CANONICAL.fullmatch(ident)) and _INT64.min <= int(ident) <= _INT64.max


def of_texts(ids: Sequence[str], *, padded: bool = False) -> "pd.Series[Any]":
    """Return a column of ids, read as texts.

    `padded`: they are numbers as well where all of them have one width, as Batsim's workloads are written,
    whose ids so sort as text as they do as numbers.
    """
    alike = padded and len(set(map(len, ids))) == 1 and all(map(_PADDED.fullmatch, ids))
    if all(map(is_number, ids)) or (alike and all(int(ident) <= _INT64.max for ident in ids)):
        return pd.Series([int(ident) for ident in ids], dtype="int64")
    return pd.Series(ids, dtype="str")


def ranks(ids: "pd.Series[int] | pd.Series[str]") -> Ints:
    """Return what sorts ids of one instant [n]: numbers by value; texts that are none by the file's order."""
    values = ids.to_numpy()
    if values.dtype.kind in "iu":
        return np.asarray(values, np.int64)
    texts = list(map(str, values))
    order = sorted(range(len(texts)), key=lambda n: (0, int(texts[n])) if is_number(texts[n]) else (1, n))
    places = np.empty(len(texts), np.int64)
    places[order] = np.arange(len(texts))
    return places


def unlike(ids: "pd.Series[Any]", again: Flags) -> "pd.Series[Any]":
    """Return ids of which those used `again` [n] are new: numbers after the largest, texts with a number."""
    renumbered = ids.copy()
    if ids.dtype.kind in "iu":
        taken, largest = set(ids), int(ids.max())
        after = count(largest + 1 if largest + len(ids) <= _INT64.max else 1)
        renumbered[again] = list(islice((n for n in after if n not in taken), int(again.sum())))
        return renumbered
    renumbered[again] = list(_new_texts(set(ids), ids[again]))
    return renumbered


def _new_texts(taken: set[str], ids: Iterable[str]) -> Iterable[str]:
    for ident in ids:
        number = 2
        while (new := f"{ident}.{number}") in taken:
            number += 1
        taken.add(new)
        yield new
