"""What a schedule check collects: violations by kind, and the one that comes first in time."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
#: Files round every time to 1 µs, so a sum of three of them may be off by this much, in s.
ROUNDING = 1.5e-6


@dataclass(frozen=True)
class Violation:
    """One broken rule: its kind, when (s), the jobs (culprit first), and a sentence with the numbers."""

    kind: str
    time: float
    jobs: tuple[str, ...]
    text: str


class Table:
    """The columns of a jobs table as arrays, and how to name a row."""

    def __init__(self, jobs: "pd.DataFrame") -> None:
        self.frame = jobs
        self.ids = jobs["job_id"].astype(str).to_numpy(object)
        self.states = jobs["final_state"].astype(str).to_numpy(object)
        self.rejected: Bools = np.asarray(self.states == "REJECTED", np.bool_)
        self.submit = self.column("submission_time")
        self.start = self.column("starting_time")
        self.end = self.column("finish_time")
        #: Rows with a finite start and end.
        self.timed: Bools = np.isfinite(self.start) & np.isfinite(self.end)
        latest = np.abs([self.submit, self.start, self.end])
        #: How far differences of a row's times may be off, in s: times of thousands of years are no exact
        #: microseconds.
        self.inexact: Floats = 2 * np.spacing(np.where(np.isfinite(latest), latest, 0.0).max(axis=0))
        shown = np.where(np.isfinite(self.start), self.start, self.submit)
        #: When a row's violation happens, in s: at its start, else its submit, else 0.
        self.when: Floats = np.where(np.isfinite(shown), shown, 0.0)

    def column(self, name: str) -> Floats:
        """Return a column as float64."""
        return self.frame[name].to_numpy(np.float64)


@dataclass
class Findings:
    """Counts violations by kind and describes only the earliest; kinds in ``ignore`` are left out."""

    ignore: Collection[str] = ()
    kinds: dict[str, int] = field(default_factory=dict)
    first: Violation | None = None

    def add(self, kind: str, when: Floats, describe: Callable[[int], tuple[list[str], str]]) -> None:
        """Count one violation per entry of ``when``; ``describe(k)`` gives jobs and sentence of the k-th."""
        if len(when) == 0 or kind in self.ignore or kind.split(":")[0] in self.ignore:
            return
        self.kinds[kind] = self.kinds.get(kind, 0) + len(when)
        k = int(np.argmin(when))
        if self.first is None or when[k] < self.first.time:
            jobs, text = describe(k)
            self.first = Violation(kind, float(when[k]), tuple(jobs), text)

    def rule(self, table: Table, kind: str, broken: Bools, said: str, **columns: Any) -> None:
        """Count every row where ``broken``.

        Args:
            table: the rows.
            kind: of violation.
            broken: [rows].
            said: completes the sentence "job X …"; names in braces are the row's ``submit``, ``start`` and
                ``end``, and its values in ``columns``.
            columns: further values, [rows] each, or one for all rows.
        """
        rows = np.flatnonzero(broken)

        def describe(k: int) -> tuple[list[str], str]:
            row = int(rows[k])
            own = {"submit": table.submit, "start": table.start, "end": table.end} | columns
            values = {name: v[row] if np.ndim(v) else v for name, v in own.items()}
            return [table.ids[row]], f"job {table.ids[row]} {said.format(row=row, **values)}"

        self.add(kind, table.when[rows], describe)
