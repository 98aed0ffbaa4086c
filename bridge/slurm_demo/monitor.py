"""A trial as it goes on: a table of queue, starts and forecasts, and how good the forecasts turn out."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bridge.base.counted import counted
from bridge.forecasting.starts import forecast
from bridge.forecasting.statefile import state_of
from bridge.serve.observer import PartitionObserver, PartitionState, warm_up
from bridge.worlds.slurm.client import SlurmUnreachableError

if TYPE_CHECKING:
    from rich.table import Table

#: Jobs of the table.
_ROWS = 12
#: Futures of a forecast: few, as it is made anew all the time.
_FUTURES = 32


class DemoMonitor:
    """Looks at a partition, and remembers the first forecast of each of `total` jobs.

    `first`: job -> (5 %, 95 %) of its start, seconds since 1970.
    """

    def __init__(self, observer: PartitionObserver, total: int) -> None:
        self._observer, self._total = observer, total
        self.first: dict[str, tuple[float, float]] = {}
        self._rows: Sequence[Mapping[str, Any]] = []
        self.present: PartitionState | None = None
        self._started: dict[str, float] = {}
        warm_up()

    def refresh(self) -> None:
        """Read the present, and forecast it; where slurmctld is busy, the last look stands."""
        try:
            self.present = self._observer.read()
        except SlurmUnreachableError:
            return  # the next look tells
        document = self.present.document
        for job in document["running"]:
            self._started.setdefault(job["id"], job["start"])
        self._rows = []
        if document["waiting"]:
            forecasts = forecast(state_of(document), futures=_FUTURES)
            self._rows = forecasts.rows()
            for job, (low, *_, high) in zip(forecasts.id, forecasts.quantiles.tolist(), strict=True):
                self.first.setdefault(job, (low, high))

    def line(self) -> str:
        if self.present is None:
            return ""
        document = self.present.document
        return (
            f"{counted(len(document['running']), 'job runs', 'jobs run')}, "
            f"{counted(len(document['waiting']), 'waits', 'wait')}, "
            f"{document['free']['nodes']} of {document['capacity']['nodes']} nodes are free; "
            f"{len(self._started)} of {self._total} have started"
        )

    def table(self, title: str) -> "Table":
        """Return the queue as a table of Rich's: the next starts, and their forecasts."""
        from rich.table import Table

        table = Table(title=title, caption=self.line(), expand=True)
        for heading in ("job", "nodes", "waits", "starts in", "90 % within"):
            table.add_column(heading, justify="left" if heading == "job" else "right")
        now = time.time()
        waiting = self.present.document["waiting"] if self.present else []
        nodes = {job["id"]: job["demand"]["nodes"] for job in waiting}
        rows = sorted(self._rows, key=lambda row: row["median"] or float("inf"))
        for row in rows[:_ROWS]:
            low, high = (_until(row[key], now) for key in ("low90", "high90"))
            job, waits = row["job"], f"{now - row['submitted']:.0f} s"
            table.add_row(job, str(nodes[job]), waits, _until(row["median"], now), f"{low} … {high}")
        for _ in range(_ROWS - len(rows)):
            table.add_row("", "", "", "", "")
        return table

    def coverage(self, starts: Mapping[str, float]) -> tuple[int, float]:
        """Return of how many jobs a start (s since 1970) was forecast, and the share within 90 % intervals.

        Slurm tells starts in whole seconds: an interval is a second wider on both sides.
        """
        forecast_jobs = ((starts[job], *ends) for job, ends in self.first.items() if job in starts)
        inside = [low - 1 <= start <= high + 1 for start, low, high in forecast_jobs]
        return len(inside), sum(inside) / len(inside) if inside else 0.0


def _until(time: float | None, now: float) -> str:
    return "never" if time is None else f"{max(time - now, 0):.0f} s"
