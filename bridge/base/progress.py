"""Who watches long work: how far it is, and what is worth a line. Nobody, unless a terminal does."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

#: Called with the number of finished units.
ProgressCallback = Callable[[int], None]


def ignore_progress(_done: int) -> None:
    """Ignore progress."""


class ProgressReporter:
    """Base class of progress reporters; it reports nothing."""

    def say(self, text: str) -> None:
        """Take one line about the work."""

    def warn(self, texts: Iterable[str]) -> None:
        """Show warnings, a line each."""
        for text in texts:
            self.say(f"warning: {text}")

    def dropped(self, tally: Any) -> None:
        """Take notice of records that were dropped or repaired, see `bridge.workload.table.Tally`."""

    def bar(self, title: str, total: int, unit: str) -> AbstractContextManager[ProgressCallback]:  # noqa: ARG002
        """Return a context of a function to be called with the number of units done so far."""
        return nullcontext(ignore_progress)


SILENT = ProgressReporter()
