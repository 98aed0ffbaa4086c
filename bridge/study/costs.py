"""What cells cost, from those that are done: the same row's, or an epoch of the same recipe, or of any."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from bridge.study.cells import Cell
from bridge.study.store import Store


class Costs:
    """Measured times of a study's cells; those that the store has tell."""

    def __init__(self, cells: Iterable[Cell], store: Store) -> None:
        self._known: dict[object, list[float]] = {}
        done = store.done()
        for cell in cells:
            if cell.key in done and (found := store.cell(cell.key)) is not None:
                self.add(cell, found)

    def add(self, cell: Cell, found: Mapping[str, Any]) -> None:
        """Take notice of a cell that is done."""
        seconds = float(found["seconds"])
        if cell.seed and float(found["train_seconds"]) < 0.5 * seconds / max(cell.epochs, 1):
            return  # the agent was there: this tells nothing about a training
        share = seconds / max(cell.epochs, 1)
        for name, value in zip(_names(cell), (seconds, share, share), strict=True):
            self._known.setdefault(name, []).append(value)

    def of(self, cell: Cell) -> float | None:
        """Return what a cell will cost, in seconds of one worker; None if nothing is known yet."""
        row, recipe, kind = (self._known.get(name) for name in _names(cell))
        if row:
            return fmean(row)
        alike = recipe or kind
        return fmean(alike) * max(cell.epochs, 1) if alike else None


def _names(cell: Cell) -> tuple[object, object, object]:
    who = (cell.recipe.name, cell.recipe.setting) if cell.recipe else ()
    return (cell.row, cell.log, cell.epochs), who, bool(cell.recipe)


def in_words(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
