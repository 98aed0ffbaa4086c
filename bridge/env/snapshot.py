"""A moment of an episode, for people: as text (queue and machine), and as a picture (Gantt chart by node)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Floats, Ints

Pixels = npt.NDArray[np.uint8]

#: Height and width of a picture, and where the machine and the queue are in it: rows of pixels.
HEIGHT, WIDTH = 400, 640
_MACHINE, _QUEUE = slice(10, 280), slice(300, 390)
_SIDES = slice(10, WIDTH - 10)
#: Jobs that a text lists, and columns of its bar.
RUNNING_ROWS, QUEUE_ROWS, BAR = 10, 20, 40
#: Waiting jobs that a picture has room for.
COLUMNS = 62
_WHITE, _FREE, _LINE, _GREY = (255, 255, 255), (236, 236, 236), (30, 30, 30), (170, 170, 170)
#: Seconds behind the present that a picture shows, at least; else half of the past.
_AHEAD = 3600.0
#: A hue for each job: far from those of the jobs before it.
_GOLDEN = 0.618033988749895


@dataclass(frozen=True)
class WaitingJob:
    """A job of the queue; `action`: the one that selects it, −1 = none; `note`: what else is to be known."""

    id: int
    nodes: int
    estimate: float
    wait: float
    action: int = -1
    note: str = ""


@dataclass(frozen=True)
class StartedJobs:
    """Jobs that have started, [n]; the end of one that still runs is the scheduler's estimate. Seconds."""

    id: Ints
    nodes: Ints
    start: Floats
    end: Floats


@dataclass(frozen=True)
class EpisodeSnapshot:
    """What an episode looks like at one instant; times in seconds since its first submission.

    Attributes:
        title: what is decided now.
        now: the time.
        capacity: of the machine, `unit` each.
        schedule: jobs that have started, or have a start.
        actions: of running jobs, id → the action that kills it.
        queue: the jobs that wait, in queue order.
        notes: further lines of the text, such as what the other actions mean.
    """

    title: str
    now: float
    capacity: int
    unit: str
    schedule: StartedJobs
    actions: dict[int, int]
    queue: tuple[WaitingJob, ...]
    notes: tuple[str, ...] = ()

    @property
    def in_use(self) -> int:
        jobs = self.schedule
        return int(jobs.nodes[(jobs.start <= self.now) & (jobs.end > self.now)].sum())


def render_text(view: EpisodeSnapshot) -> str:
    """Return a moment as text: the machine, the running jobs, the queue."""
    return "\n".join(_lines(view)) + "\n"


def _lines(view: EpisodeSnapshot) -> Iterator[str]:
    used, jobs = view.in_use, view.schedule
    filled = round(BAR * min(used / max(view.capacity, 1), 1.0))
    ends = np.flatnonzero(jobs.end > view.now)
    ends = ends[np.argsort(jobs.end[ends], kind="stable")]
    yield f"{view.title}, time {view.now:,.0f} s"
    yield f"machine  [{'#' * filled}{'.' * (BAR - filled)}]  {used:,} of {view.capacity:,} {view.unit} in use"
    rows = (
        (
            _action(view.actions.get(int(jobs.id[k]), -1)),
            f"{jobs.id[k]}",
            f"{jobs.nodes[k]:,}",
            f"{jobs.start[k]:,.0f}",
            f"{jobs.end[k]:,.0f}",
        )
        for k in ends[:RUNNING_ROWS].tolist()
    )
    yield from _table(("action", "job", view.unit, "start s", "end s"), rows, f"running: {len(ends):,}")
    if len(ends) > RUNNING_ROWS:
        yield f"  … and {len(ends) - RUNNING_ROWS:,} more"
    waiting = (
        (
            _action(job.action),
            f"{job.id}",
            f"{job.nodes:,}",
            f"{job.estimate:,.0f}",
            f"{job.wait:,.0f}",
            job.note,
        )
        for job in view.queue[:QUEUE_ROWS]
    )
    heads = ("action", "job", view.unit, "estimate s", "wait s", "")
    yield from _table(heads, waiting, f"waiting: {len(view.queue):,}")
    if len(view.queue) > QUEUE_ROWS:
        yield f"  … and {len(view.queue) - QUEUE_ROWS:,} more"
    yield from view.notes


def _action(number: int) -> str:
    return f"{number}" if number >= 0 else "-"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], title: str) -> Iterator[str]:
    table = list(rows)
    yield title
    if not table:
        return
    widths = [max(len(row[k]) for row in [heads, *table]) for k in range(len(heads))]
    for row in [heads, *table]:
        yield "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def render_pixels(view: EpisodeSnapshot) -> Pixels:
    """Return a moment as a picture, uint8 [HEIGHT, WIDTH, 3].

    Above: nodes over time; what is to the right of the black line is the scheduler's estimate, in lighter
    colours. Below: the queue, a column for each job, as high as its share of the machine; grey jobs cannot be
    selected now.
    """
    picture = np.full((HEIGHT, WIDTH, 3), _WHITE, np.uint8)
    _draw_machine(view, picture[_MACHINE, _SIDES])
    _draw_queue(view, picture[_QUEUE, _SIDES])
    return picture


def _draw_machine(view: EpisodeSnapshot, area: Pixels) -> None:
    from bridge.judge.hosts import first_fit
    from bridge.judge.metrics import step_function

    jobs = view.schedule
    area[:] = _FREE
    height, width = area.shape[:2]
    last = min(float(jobs.end.max(initial=view.now + 1.0)), view.now + max(view.now / 2, _AHEAD))
    scale = width / last
    now = min(round(view.now * scale), width - 1)
    _, used = step_function(
        np.append(jobs.start, jobs.end), np.append(jobs.nodes, -jobs.nodes).astype(np.float64)
    )
    hosts = max(view.capacity, int(used.max(initial=0)))  # jobs of a cluster may share nodes
    places = first_fit(jobs.start, jobs.end, jobs.nodes, hosts)
    bounds = places.offsets.tolist()
    for k, (begin, end) in enumerate(zip(jobs.start.tolist(), jobs.end.tolist(), strict=True)):
        left = min(round(begin * scale), width - 1)  # a booking may begin behind the right side
        right = max(min(round(end * scale), width), left + 1)
        colour = _colour(int(jobs.id[k]))
        for i in range(bounds[k], bounds[k + 1]):
            low = int(places.first[i]) * height // hosts
            high = max((int(places.last[i]) + 1) * height // hosts, low + 1)
            rows = slice(height - high, height - low)
            area[rows, left:right] = colour
            area[rows, max(left, now) : max(right, now)] = _lighter(colour)
            if high - low > 3 and right - left > 3:  # a gap between neighbours
                area[height - high, left:right] = _WHITE
                area[rows, left] = _WHITE
    area[:, now] = _LINE


def _draw_queue(view: EpisodeSnapshot, area: Pixels) -> None:
    height, width = area.shape[:2]
    column = width // COLUMNS
    for k, job in enumerate(view.queue[:COLUMNS]):
        size = max(1, round(height * min(job.nodes / max(view.capacity, 1), 1.0)))
        colour = _colour(job.id) if job.action >= 0 else _GREY
        area[height - size :, k * column : (k + 1) * column - 1] = colour
    area[-1, :] = _LINE


def _colour(job: int) -> tuple[int, int, int]:
    """Return the colour of a job: always the same one."""
    import colorsys

    rgb = colorsys.hsv_to_rgb(job * _GOLDEN % 1.0, 0.55, 0.8)
    return tuple(round(255 * part) for part in rgb)  # type: ignore[return-value]


def _lighter(colour: tuple[int, int, int]) -> tuple[Any, ...]:
    return tuple((part + 2 * 255) // 3 for part in colour)
