"""Runs a study: starts the cells that are not done, tells how far it is, and what the rest costs."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from bridge.study.cells import Cell
from bridge.study.executor import CellOutcome, Executor
from bridge.study.failed_cells import RETRIES, WORKER_DIED
from bridge.study.store import Store


class CostModel:
    """Measured times of a study's cells: the same row's, or an epoch of the same recipe, or of any."""

    def __init__(self, cells: Iterable[Cell], store: Store) -> None:
        self._costs: dict[object, list[float]] = {}
        self._store, done = store, store.done()
        for cell in cells:
            if cell.key in done and (record := store.cell(cell.key)) is not None:
                self.add(cell, record)

    def add(self, cell: Cell, record: Mapping[str, Any]) -> None:
        """Take notice of a cell that is done."""
        seconds = float(record["seconds"])
        if cell.seed and float(record["train_seconds"]) < 0.5 * seconds / max(cell.epochs, 1):
            return  # the agent was there: this tells nothing about a training
        share = seconds / max(cell.epochs, 1)
        for name, value in zip(_names(cell), (seconds, share, share), strict=True):
            self._costs.setdefault(name, []).append(value)

    def of_all(self, cells: Iterable[Cell]) -> list[float | None]:
        """Estimate each cell's cost, in seconds of one worker; None if it cannot be estimated yet.

        Where its agent has learnt already, or learns for a cell before it, a cell costs nothing to speak of;
        where a teacher is not there any more, it learns anew.
        """
        taught: set[str] = set()
        return [self._with_teacher(cell, taught) for cell in cells]

    def _with_teacher(self, cell: Cell, taught: set[str]) -> float | None:
        key = cell.agent_key
        if key and (key in taught or self._store.agent(key).exists()):
            return 0.0
        taught.add(key)
        own = self._of(cell)
        teacher = self._with_teacher(cell.teacher, taught) if cell.teacher else 0.0
        return None if own is None or teacher is None else own + teacher

    def _of(self, cell: Cell) -> float | None:
        row, recipe, kind = (self._costs.get(name) for name in _names(cell))
        if row:
            return fmean(row)
        alike = recipe or kind
        return fmean(alike) * max(cell.epochs, 1) if alike else None


def _names(cell: Cell) -> tuple[object, object, object]:
    who = (cell.recipe.name, cell.recipe.setting) if cell.recipe else ()
    return (cell.row, cell.log, cell.epochs), who, bool(cell.recipe)


def format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


#: Between two looks at what others have done, seconds.
LOOK = 1.0


@dataclass
class StudyProgress:
    """How far a run is.

    Attributes:
        cells: of the study; two of one key count once.
        done, before: keys of those that are done, and how many were when the run began.
        running: key → cell in hand, with the time at which it was started.
        elsewhere: keys of those that other runs have in hand.
        lost: key → how often its worker died.
    """

    cells: dict[str, Cell]
    done: set[str]
    before: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    running: dict[str, tuple[Cell, float]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    lost: dict[str, int] = field(default_factory=dict)
    started_at: float = field(default_factory=time.monotonic)

    @property
    def waiting(self) -> list[Cell]:
        over = self.done | self.failed.keys() | self.running.keys()
        return [cell for key, cell in self.cells.items() if key not in over]


class StudyRun:
    """One run of a study; `say` takes a line about each cell that ends, `tick` is called every second."""

    def __init__(
        self,
        cells: Sequence[Cell],
        store: Store,
        say: Callable[[str], None] = lambda _: None,
        tick: Callable[["StudyRun"], None] = lambda _: None,
    ) -> None:
        self.store, self.say, self.tick = store, say, tick
        self.token = uuid.uuid4().hex[:12]
        unique = {cell.key: cell for cell in cells}
        done = store.done() & unique.keys()
        self.state = StudyProgress(unique, done, len(done))
        self.costs = CostModel(unique.values(), store)
        self.width, self.look = 1, LOOK

    def carry_out(self, executor: Executor) -> StudyProgress:
        """Run all cells that are not done; return when none is left that can run."""
        state, self.width, looked = self.state, executor.width, 0.0
        try:
            while state.running or state.waiting:
                if time.monotonic() - looked > self.look:
                    self._look()
                    self.tick(self)
                    looked = time.monotonic()
                self._start(executor)
                for one in executor.collect_ended(self.look):
                    self._take(one)
            self.tick(self)
        finally:
            executor.close()
            for key in state.running:
                claim = self.store.claimed(key)
                if claim is None or claim.runner == self.token:
                    self.store.release(key)
        return state

    def _look(self) -> None:
        """See what other runs of the same cells have done, and are doing."""
        others = (self.store.done() & self.state.cells.keys()) - self.state.done - self.state.running.keys()
        self.state.done |= others
        claims = {cell.key: self.store.claimed(cell.key) for cell in self.state.waiting}
        self.state.elsewhere = {k for k, claim in claims.items() if claim and claim.runner != self.token}

    def _start(self, executor: Executor) -> None:
        """Start what there is room for; two cells of one training are not begun together."""
        state = self.state
        training = {cell.agent_key for cell, _ in state.running.values()} - {""}
        for cell in state.waiting:
            if executor.room <= 0:
                return
            if cell.agent_key in training or cell.key in state.elsewhere:
                continue
            training |= {cell.agent_key} - {""}
            executor.start(cell)
            state.running[cell.key] = (cell, time.monotonic())

    def _take(self, one: CellOutcome) -> None:
        state, key = self.state, one.cell.key
        state.running.pop(key, None)
        if one.record is not None or key in self.store.done():
            record = one.record or self.store.cell(key) or {}
            if key not in self.store.done():  # a worker without the shared folder
                self.store.save(key, record)
            state.done.add(key)
            self.costs.add(one.cell, record)
            how = f"{record['seconds']:.1f} s"
        elif one.lost and state.lost.get(key, 0) < RETRIES:
            state.lost[key] = state.lost.get(key, 0) + 1
            how = "its worker died; again"
        else:
            error = one.error or WORKER_DIED
            state.failed[key] = error
            self.store.failed.note(key, error)
            how = f"failed: {error}"
        over = f"{len(state.done)}/{len(state.cells)}"
        self.say(f"{over}  {one.cell.title}: {how}; {self.left()}")

    def left(self) -> str:
        """Return how long the rest will take, in words."""
        state, now = self.state, time.monotonic()
        started_at = {key: since for key, (_, since) in state.running.items()}
        cells = [*(cell for cell, _ in state.running.values()), *state.waiting]
        costs = zip(cells, self.costs.of_all(cells), strict=True)
        costs_left = [
            max(cost - (now - started_at.get(one.key, now)), 0.0) for one, cost in costs if cost is not None
        ]
        count = len(cells)
        if not count:
            return "nothing is left"
        if not costs_left:
            return f"{count} left"
        unknown = f", and {count - len(costs_left)} of unknown cost" if len(costs_left) < count else ""
        duration = format_duration(sum(costs_left) / max(1, min(self.width, count)))
        return f"{count} left, about {duration}{unknown}"
