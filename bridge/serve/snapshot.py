"""What the page shows: one reading of Slurm at a time, shared by all who look, with its forecasts."""

import io
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from bridge.base.errors import BridgeError
from bridge.config.fields import record_of
from bridge.forecasting.starts import Forecast, forecast
from bridge.forecasting.state import MachineState
from bridge.forecasting.whatif import change_site, change_state, whatif
from bridge.serve.observer import PartitionObserver, PartitionState
from bridge.worlds.slurm.jobs import HAS_NODES

T = TypeVar("T")
#: Questions that are worked out at a time, of all who look: the page must stay quick for everybody else.
_QUESTIONS = 2
#: Answers that are remembered of one reading.
_ANSWERS = 32
#: Letters of a name or a comment that are shown.
_LETTERS = 60


class BusyError(BridgeError):
    """As many questions as the page answers at a time are being worked out."""


@dataclass
class Snapshot:
    """One reading of Slurm.

    Attributes:
        words: label -> (name, comment), as users wrote them; empty where jobs are private.
        private: the cluster keeps jobs private: only totals are told.
        questions: how many more may be worked out now, see `whatif`.
    """

    present: PartitionState
    words: dict[str, tuple[str, str]]
    private: bool
    futures: int
    taken: float
    questions: threading.Semaphore
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answers: dict[str, Any] = field(default_factory=dict)  # those that all pages have
    _whatifs: dict[Hashable, list[dict[str, Any]]] = field(default_factory=dict)

    @cached_property
    def state(self) -> MachineState:
        return self.present.machine_state()

    def _once(self, key: str, make: Callable[[], T]) -> T:
        """Return an answer that is worked out once, one at a time: nobody can make many futures be played."""
        with self._lock:
            if key not in self._answers:
                self._answers[key] = make()
            answer: T = self._answers[key]
            return answer

    def forecast(self) -> Forecast | None:
        """Return when waiting jobs will start; None where none waits."""
        if not len(self.state.waiting):
            return None
        return self._once("forecast", lambda: forecast(self.state, futures=self.futures))

    def starts(self) -> dict[str, dict[str, Any]]:
        """Return the forecasts by job, times in seconds since 1970, None for never."""
        forecast = self.forecast()
        return {} if forecast is None else {str(row["job"]): row for row in forecast.rows()}

    def totals(self) -> dict[str, Any]:
        document = self.present.document
        return {
            "now": document["now"],
            "policy": document["policy"],
            "nodes": document["capacity"]["nodes"],
            "free": document["free"]["nodes"],
            "running": len(document["running"]),
            "waiting": len(document["waiting"]),
            "left": len(self.present.not_forecast),
        }

    def queue(self) -> list[dict[str, Any]]:
        """Return one row per job, those that run first; empty where jobs are private."""
        if self.private:
            return []
        starts, rows = self.starts(), []
        for row in self.present.rows:
            name, comment = self.words.get(row.label, ("", ""))
            runs = row.state in HAS_NODES
            job: dict[str, Any] = {
                "job": row.label,
                "name": name[:_LETTERS],
                "comment": comment[:_LETTERS],
                "user": row.user,
                "nodes": row.nodes,
                "runs": runs,
                "submitted": row.submit,
                "started": row.start if runs else None,
                "why": self.present.not_forecast.get(row.label, ""),
                "forecast": starts.get(row.label),
            }
            rows.append(job)
        return sorted(rows, key=lambda job: not job["runs"])

    def picture(self) -> bytes | None:
        """Return running jobs and the next hours as SVG; None where none waits or jobs are private."""
        forecast = None if self.private else self.forecast()
        return (
            None if forecast is None else self._once("picture", lambda: _draw_forecast(self.state, forecast))
        )

    def whatif(self, policies: tuple[str, ...], drain: int) -> list[dict[str, Any]]:
        """Return the same futures under several rules, the first being the base.

        `drain`: take so many nodes out of service, and compare with the machine as it is. Raises BusyError:
        others' questions are being worked out.
        """

        def play() -> list[dict[str, Any]]:
            states, names = [self.state], policies
            if drain:
                states += [_without_nodes(self.state, drain)] * len(policies)
                names = (policies[0], *policies)
            return [record_of(one) for one in whatif(states, names, futures=self.futures)]

        key = policies, drain
        answer: list[dict[str, Any]] | None = self._whatifs.get(key)
        if answer is None:
            if not self.questions.acquire(blocking=False):
                raise BusyError(
                    "is busy with other visitors' questions", remedy="Try again in a few seconds."
                )
            try:
                answer = play()
            finally:
                self.questions.release()
            self._remember(key, answer)
        return answer

    def _remember(self, key: Hashable, answer: list[dict[str, Any]]) -> None:
        with self._lock:
            self._whatifs[key] = answer
            if len(self._whatifs) > _ANSWERS:
                del self._whatifs[next(iter(self._whatifs))]


def _without_nodes(state: MachineState, n: int) -> MachineState:
    """Return the state with so many nodes drained."""
    if state.site is not None:
        return change_site(state, str(n), "")
    return change_state(state, nodes=-n, submits=())


def _draw_forecast(state: MachineState, forecast: Forecast) -> bytes:
    import matplotlib as mpl

    from bridge.report.futures_picture import futures_picture

    out = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "bridge"}):  # letters become shapes: no text of a job is in it
        futures_picture(state, forecast).savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


class SnapshotCache:
    """The last reading, shown for `every` s: however many look, Slurm is asked no more often."""

    def __init__(self, observer: PartitionObserver, every: float = 10.0, futures: int = 100) -> None:
        self.observer, self._every, self._futures = observer, every, futures
        self._lock = threading.Lock()
        self._questions = threading.Semaphore(_QUESTIONS)
        self._last: Snapshot | None = None
        self._failed: tuple[float, BridgeError] | None = None

    def now(self) -> Snapshot:
        """Return the present, at most `every` seconds old; BridgeError: slurmctld does not answer."""
        with self._lock:
            now = time.monotonic()
            if self._last is not None and now < self._last.taken + self._every:
                return self._last
            if self._failed is not None and now < self._failed[0] + self._every:
                raise self._failed[1]
            try:
                self._last = self._take()
            except BridgeError as error:
                self._failed = time.monotonic(), error
                raise
            return self._last

    def _take(self) -> Snapshot:
        observer = self.observer
        present = observer.read()
        words = {} if observer.private else observer.client.names_and_comments(observer.partition)
        return Snapshot(present, words, observer.private, self._futures, time.monotonic(), self._questions)
