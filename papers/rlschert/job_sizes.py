"""RLSchert's Figure 5: how long the logged jobs run, and how many units they take; counts alone are kept."""

from typing import Any

import numpy as np
import pandas as pd

from bridge.pool.jobset import JobSet
from bridge.pool.study_rows import digest_of
from papers import store
from papers.output import LineWriter

FILE = "rlschert-figure-5"


def run(jobs: JobSet, say: LineWriter) -> None:
    """Count the logged jobs by length and by units, unless that was done."""
    made_of = store.digest(digest_of(jobs), "counts")
    if store.has(FILE, "jobs", "counts", "logged", 0, made_of):
        return
    say("Figure 5: lengths and units")
    head = {"row": "jobs", "test": "counts", "label": "logged", "seed": 0, "digest": made_of}
    counts = {"lengths": np.bincount(jobs.length), "units": np.bincount(jobs.units)}
    store.add(FILE, head | counts)


def counts(data: pd.DataFrame, name: str) -> Any:
    """Return how many jobs there are of each number of steps, or units: [most + 1]."""
    return np.asarray(data[name].iloc[0], np.int64)


def mean(data: pd.DataFrame, name: str) -> float:
    many = counts(data, name)
    return float((many * np.arange(len(many))).sum() / many.sum())


def text(data: pd.DataFrame) -> dict[str, Any]:
    """Return what the page says of it; nothing where it was not counted."""
    if not len(data):
        return {}
    lengths = counts(data, "lengths")
    short = float(lengths[:11].sum() / lengths.sum())
    return {
        "jobs": int(lengths.sum()),
        "length": mean(data, "lengths"),
        "longest": len(lengths) - 1,
        "short": 100 * short,
        "units": mean(data, "units"),
    }
