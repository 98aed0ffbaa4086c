"""A jobs table as arrays, with the violations that checks count in it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.cluster.amounts_text import PROGRESS, SUSPENDED, parse_spans


@dataclass(frozen=True)
class Violation:
    kind: str
    time: float
    jobs: tuple[str, ...]
    text: str


class _Spans(NamedTuple):
    """Times of rows: each of one row, which may have several."""

    row: Ints
    start: Floats
    end: Floats

    @classmethod
    def of(cls, spans: Sequence[tuple[int, float, float]]) -> "_Spans":
        table = np.array(spans, np.float64).reshape(-1, 3)
        return cls(table[:, 0].astype(np.int64), table[:, 1], table[:, 2])


class CheckedSchedule:
    """A jobs table as arrays, and what is wrong in it: how often by kind, and the earliest violation."""

    def __init__(self, jobs: pd.DataFrame, tolerance: float, ignore: Collection[str]) -> None:
        self.frame, self.tolerance, self.ignore = jobs, tolerance, ignore
        self.kinds: dict[str, int] = {}
        self.first_of_kind: dict[str, Violation] = {}
        self.first: Violation | None = None
        self.ids = jobs["job_id"].astype(str).to_numpy(object)
        self.states = jobs["final_state"].astype(str).to_numpy(object)
        self.rejected: Flags = np.asarray(self.states == "REJECTED", np.bool_)
        self.submit, self.start = self.column("submission_time"), self.column("starting_time")
        self.end = self.column("finish_time")
        #: Rows with a finite start and end.
        self.timed: Flags = np.isfinite(self.start) & np.isfinite(self.end)
        latest = np.abs([self.submit, self.start, self.end])
        #: How far differences of a row's times may be off, in s: times of thousands of years are no exact
        #: microseconds.
        self.inexact: Floats = 2 * np.spacing(np.where(np.isfinite(latest), latest, 0.0).max(axis=0))
        shown_at = np.where(np.isfinite(self.start), self.start, self.submit)
        #: When a row's violation happens, in s: at its start, else its submit, else 0.
        self.when: Floats = np.where(np.isfinite(shown_at), shown_at, 0.0)
        self.pauses, self.pieces = self._split()
        #: For how long each row was suspended, s.
        lengths = self.pauses.end - self.pauses.start
        self.stood: Floats = np.bincount(self.pauses.row, lengths, len(jobs)).astype(np.float64)

    @property
    def progress(self) -> Floats:
        """What earlier lives of each row's job had done that was kept, s."""
        return self.column(PROGRESS) if PROGRESS in self.frame else np.zeros(len(self.frame))

    def column(self, name: str) -> Floats:
        return self.frame[name].to_numpy(np.float64)

    def _split(self) -> "tuple[_Spans, _Spans]":
        """Return when rows were suspended, and when they worked: all the time between start and end else."""
        n = len(self.frame)
        texts = self.frame[SUSPENDED].fillna("").to_numpy(object) if SUSPENDED in self.frame else [""] * n
        stood = [
            (row, parse_spans(str(text), f"job {self.ids[row]}")) for row, text in enumerate(texts) if text
        ]
        pauses = [(row, since, until) for row, spans in stood for since, until in spans]
        pieces = [(row, float(self.start[row]), float(self.end[row])) for row in range(n)] if stood else []
        for row, spans in stood:
            edges = [self.start[row], *(time for span in spans for time in span), self.end[row]]
            pairs = [*zip(edges[::2], edges[1::2], strict=True)]
            pieces[row] = (row, *pairs[0])
            pieces += [(row, since, until) for since, until in pairs[1:]]
        whole = _Spans(np.arange(n), self.start, self.end)
        return _Spans.of(pauses), _Spans.of(pieces) if stood else whole

    def add(self, kind: str, when: Floats, describe: Callable[[int], tuple[list[str], str]]) -> None:
        """Count one violation per entry of ``when``; ``describe(k)`` gives jobs and sentence of the k-th."""
        if len(when) == 0 or {kind, kind.split(":")[0]} & {*self.ignore}:
            return
        self.kinds[kind] = self.kinds.get(kind, 0) + len(when)
        k = int(np.argmin(when))
        if kind not in self.first_of_kind or when[k] < self.first_of_kind[kind].time:
            jobs, text = describe(k)
            self.first_of_kind[kind] = violation = Violation(kind, float(when[k]), tuple(jobs), text)
            if self.first is None or violation.time < self.first.time:
                self.first = violation

    def rule(self, kind: str, broken: Flags, text: str, **columns: Any) -> None:
        """Count every row where ``broken`` [rows]; ``text`` completes the sentence "job X …".

        In braces it has the row's ``submit``, ``start``, ``end`` and values of ``columns``: [rows], or one.
        """
        rows = np.flatnonzero(broken)

        def describe(k: int) -> tuple[list[str], str]:
            row = int(rows[k])
            own = {"submit": self.submit, "start": self.start, "end": self.end} | columns
            values = {name: v[row] if np.ndim(v) else v for name, v in own.items()}
            return [self.ids[row]], f"job {self.ids[row]} {text.format(row=row, **values)}"

        self.add(kind, self.when[rows], describe)
