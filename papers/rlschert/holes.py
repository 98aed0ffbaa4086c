"""RLSchert's Figure 12: units that idle while jobs wait (resource holes), and how long jobs wait."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.pool.evaluate import Evaluation
from bridge.pool.jobset import JobSet
from bridge.report.style import COLOURS, new_figure, plain, save
from papers import store
from papers.rlschert.numbers import (
    COMMAND,
    against,
    cell,
    difference,
    estimate,
    markdown,
    mean_of,
    results,
    seeds_of,
    smoke_of,
    smoke_warning,
)
from papers.rlschert.play import Wanted, judge, row_of
from papers.rlschert.rows import BASE, HONEST, METHODS, TEST, Method
from papers.rlschert.train import Data
from papers.rlschert.usage import usage

Floats = npt.NDArray[np.float64]
FILE, PICTURE = "rlschert-figure-12", "rlschert-figure-12.svg"
_SHOWN = ("Tetris", "SJF", "SAF", "DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill")
SHOWN = tuple(method for method in METHODS if method.row in _SHOWN)
#: Fewest waiting jobs of each class of queues.
QUEUES = (1, 6, 21)
QUEUE_NAMES = ("1–5 jobs wait", "6–20", "more")
#: Longest of the short jobs, steps: the median of the logged ones.
SHORT = 8
QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99)


def run(wanted: Wanted, data: Data) -> None:
    """Play the test set again; agents are those for slowdown that exist."""
    for player in wanted.players(data, SHOWN):
        if player.pupil is None or player.pupil.objective == "slowdown":
            judge(FILE, player, TEST, data, wanted.say, measure)


def measure(found: Evaluation, _: JobSet) -> dict[str, Any]:
    """Keep sums, counts and histograms, no single job.

    Returns:
        ``holes``, ``steps``: [S] unit-steps that idled while a job waited, and steps in which one did;
        ``queue_holes``, ``queue_steps``: [3] the same by the number of waiting jobs (`QUEUES`);
        ``early_holes``, ``early_steps``: [S] the same as long as jobs arrive;
        ``by_step``: [T] holes of each step, summed over the sequences;
        ``waits``: [W] jobs that waited 0, 1, … steps from arrival to last start;
        ``jobs``, ``wait``, ``short_jobs``, ``short_wait``: [S] jobs and their waits, all and short ones.
    """
    used = [usage(s, found.options.settings.units) for s in found.schedules]
    longest = max(len(u.holes) for u in used)
    edges = [*QUEUES, np.inf]
    holes, waiting = (np.concatenate([getattr(u, name) for u in used]) for name in ("holes", "waiting"))
    short = [s.length <= SHORT for s in found.schedules]
    return {
        "holes": np.array([u.holes.sum() for u in used]),
        "steps": np.array([np.count_nonzero(u.waiting) for u in used]),
        "early_holes": np.array([u.holes[: found.options.steps].sum() for u in used]),
        "early_steps": np.array([np.count_nonzero(u.waiting[: found.options.steps]) for u in used]),
        "queue_holes": np.histogram(waiting, edges, weights=holes)[0],
        "queue_steps": np.histogram(waiting, edges)[0],
        "by_step": np.sum([np.pad(u.holes, (0, longest - len(u.holes))) for u in used], axis=0),
        "waits": np.bincount(np.concatenate([s.wait for s in found.schedules])),
        "jobs": np.array([len(s.id) for s in found.schedules]),
        "wait": np.array([s.wait.sum() for s in found.schedules]),
        "short_jobs": np.array([np.count_nonzero(k) for k in short]),
        "short_wait": np.array([s.wait[k].sum() for s, k in zip(found.schedules, short, strict=True)]),
    }


def total(found: pd.DataFrame, column: str) -> Floats:
    """Return the sum of arrays of different lengths over the seeds."""
    arrays = [np.asarray(v, np.float64) for v in found[column]]
    longest = max(map(len, arrays))
    return np.asarray(np.sum([np.pad(a, (0, longest - len(a))) for a in arrays], axis=0))


def quantiles(histogram: Floats) -> list[int]:
    """Return waits that at least `QUANTILES` of the jobs do not exceed, and the longest."""
    share = np.cumsum(histogram) / histogram.sum()
    return [int(np.searchsorted(share, q - 1e-12)) for q in QUANTILES] + [int(np.flatnonzero(histogram)[-1])]


def text(data: pd.DataFrame) -> list[str]:
    """Return the section."""
    holes: list[list[object]] = []
    waits: list[list[object]] = []
    said = []
    base = results(data, BASE.row, TEST, HONEST)
    for method in SHOWN:
        found = results(data, row_of(method, "slowdown"), TEST, HONEST)
        seeds = seeds_of([found], learns=bool(method.setting))
        if not len(found):
            holes.append([method.row, seeds, "not run", *[""] * (2 + len(QUEUES))])
            waits.append([method.row, "not run", *[""] * (3 + len(QUANTILES))])
            said.append(f'- {method.row}: not run; `{COMMAND} --row "{method.row}"`.')
            continue
        e = None if method is BASE or not len(base) else estimate(found, "holes", base, "steps")
        early = estimate(found, "early_holes", counts="early_steps").mean
        by_queue = total(found, "queue_holes") / np.maximum(total(found, "queue_steps"), 1)
        apart = difference(e) if e else ""
        holes.append(
            [
                method.row,
                seeds,
                cell(found, "holes", "steps"),
                apart,
                f"{early:.2f}",
                *(f"{v:.2f}" for v in by_queue),
            ]
        )
        short, long = _short_and_long(found)
        mean = estimate(found, "wait").mean
        waits.append(
            [method.row, f"{mean:.1f}", *quantiles(total(found, "waits")), f"{short:.1f}", f"{long:.1f}"]
        )
        if e:
            said.append(
                f"- {method.row}: {against(e)} in holes ({apart}){_beside_deeprm(method, found, data)}; "
                f"short jobs wait {short:.1f} steps, long ones {long:.1f}.{smoke_warning(smoke_of(found))}"
            )
    names = [f"{100 * q:.0f} % within" for q in QUANTILES]
    return [
        "## Figure 12: resource holes and waiting times",
        "",
        "The test set, honest; agents for slowdown (data of the clamped ones are kept, too). A hole is a "
        "unit that no job runs on in a step in which a job waits, whether that job would fit or not: mean "
        "units per such step, with 95 % intervals over the sequences; in steps in which jobs still arrive; "
        "and by how many jobs wait. What a killed attempt ran on is no hole, though it is lost. In the "
        "paper RLSchert leaves fewer holes than DeepRM, and its short jobs wait less.",
        "",
        *markdown(("method", "seeds", "holes, units", "− SAF", "while jobs arrive", *QUEUE_NAMES), holes),
        f"Waits, steps from arrival to the last start; short jobs run at most {SHORT} steps:",
        "",
        *markdown(("method", "mean", *names, "longest", "short jobs", "long jobs"), waits),
        *said,
        "",
        f"![Figure 12]({PICTURE})",
        "",
    ]


def _beside_deeprm(method: Method, found: pd.DataFrame, data: pd.DataFrame) -> str:
    """Return what the paper claims of RLSchert, as measured: its holes beside DeepRM's."""
    deeprm = results(data, "DeepRM (slowdown)", TEST, HONEST)
    if not len(deeprm) or method.name != "RLSchert":
        return ""
    e = estimate(found, "holes", deeprm, "steps")
    early = estimate(found, "early_holes", deeprm, "early_steps")
    arriving = f"while jobs arrive {against(early, 'it')} ({difference(early)})"
    return f", {against(e, 'DeepRM')} ({difference(e)}), {arriving}"


def _short_and_long(found: pd.DataFrame) -> tuple[float, float]:
    jobs, wait, short_jobs, short_wait = (
        mean_of(found, name).sum() for name in ("jobs", "wait", "short_jobs", "short_wait")
    )
    return short_wait / max(short_jobs, 1.0), (wait - short_wait) / max(jobs - short_jobs, 1.0)


def draw(data: pd.DataFrame) -> Path:
    """Draw holes, accumulated over the steps, and the distribution of waits; smoke rows are left out."""
    figure = new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    for method, colour in zip(SHOWN, COLOURS, strict=False):
        found = results(data, row_of(method, "slowdown"), TEST, HONEST)
        if not len(found) or smoke_of(found):
            continue
        sequences = len(found) * len(np.asarray(found["jobs"].iloc[0]))
        holes = np.cumsum(total(found, "by_step")) / sequences
        style = "--" if method.kill == "learned" else ":" if method.kill == "rule" else "-"
        left.plot(np.arange(len(holes)), holes, style, color=colour, linewidth=1.2, label=method.row)
        waits = total(found, "waits")
        share = np.cumsum(waits) / waits.sum()
        right.step(np.arange(len(share)) + 1, share, style, where="post", color=colour, linewidth=1.2)
    left.set_xlabel("step")
    left.set_ylabel("unit-steps in holes so far")
    right.set_xlabel("steps waited, plus one")
    right.set_xscale("log")
    right.set_ylabel("share of the jobs")
    for axes in (left, right):
        plain(axes)
    if left.has_data():
        left.legend(frameon=False, fontsize="small")
    path = store.RESULTS / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path
