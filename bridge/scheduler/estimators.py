"""Estimators: what length is believed, for whom.

| name | orders see | waiting jobs | running jobs | oracle |
|---|---|---|---|---|
| requested | request | request | request | |
| actual | run | run | run | yes |
| soft | soft walltime | the same | the same | |
| cqsim | request | run | request | yes |
| noisy | run × (1 + U(0, p)) | the same | the same | yes |
| predicted | a column | the same | the same | |
| predicted(…, requested) | a column | the same | request | |
| progress(FILE) | a file's column | the same | the file's as it runs | if the series are synthetic |
| blended | √(request × the last two runs) | request | request | |
| blended(COLUMN) | √(request × a column) | request | request | |

``soft`` is what the job's user expects, and may be exceeded (column ``soft_walltime``), never more than the
request; the request where it is not stated. ``cqsim`` is CQSim's mixture. ``noisy`` is the experiment of
RLBackfilling (2023), Figure 1. An oracle reads true run times; every table marks it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bridge.base import plugins
from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened
from bridge.scheduler.names import ESTIMATORS
from bridge.scheduler.python_rules import JobsView

_NOISY = re.compile(r"noisy\(\s*([0-9.eE+-]+)\s*(?:,\s*([0-9]{1,18})\s*)?\)")
#: What running jobs are believed to take where it is not what was predicted: no column can have this name.
REQUESTED = "requested"
#: The estimator that believes the column of soft walltimes, and the column.
SOFT, SOFT_COLUMN = "soft", "soft_walltime"
_BLENDED = re.compile(r"blended(?:\(\s*([A-Za-z_]\w*)\s*\))?")
_PREDICTED = re.compile(r"predicted(?:\(\s*([A-Za-z_]\w*)\s*(?:,\s*(requested)\s*)?\))?")
_PROGRESS = re.compile(r"progress\(\s*(\S(?:.*\S)?)\s*\)")
#: A believed length is at least one second: zero would let a job pass any reservation.
_SHORTEST = 1_000_000


@dataclass(frozen=True)
class RunTimeEstimates:
    """Believed lengths of n jobs, microseconds.

    Attributes:
        order: [n] what orders see.
        waiting: [n] blocked head and candidates.
        running: [n] jobs that have started.
        oracle: true run times were read.
    """

    order: Ints
    waiting: Ints
    running: Ints
    oracle: bool


def last_two_runs(user: Ints, submit: Ints, run: Ints, request: Ints, wait: Ints) -> Ints:
    """Predict each run [n], µs, as the mean of its user's last two that had ended when it was submitted.

    Tsafrir, Etsion & Feitelson 2007 ("Backfilling using system-generated predictions"). What had ended is
    read from the log's own waits (`wait` below 0: unknown, 0), so that a prediction does not depend on the
    schedule. Never more than the request; the request where the user has fewer than two ended jobs.
    """
    end = submit + np.maximum(wait, 0) + run
    predicted = request.copy()
    by_user = np.argsort(user, kind="stable")
    bounds = np.flatnonzero(np.diff(user[by_user])) + 1
    for group in np.split(by_user, bounds):
        if user[group[0]] < 0 or len(group) < 3:
            continue
        by_end = group[np.argsort(end[group], kind="stable")]
        ended = np.searchsorted(end[by_end], submit[group], side="right")
        has_two = ended >= 2
        last, before = by_end[ended[has_two] - 1], by_end[ended[has_two] - 2]
        predicted[group[has_two]] = (run[last] + run[before]) // 2
    return np.minimum(np.maximum(predicted, _SHORTEST), np.maximum(request, _SHORTEST))


def progress_file(name: str) -> str | None:
    """Return the file of beliefs about running jobs that an estimator names; None for any other."""
    match = _PROGRESS.fullmatch(name.strip())
    return match[1] if match else None


def estimate(
    name: str,
    run: Ints,
    request: Ints,
    *,
    columns: Mapping[str, Floats] | None = None,
    predictor: Callable[[], Ints] | None = None,
    jobs: Callable[[], JobsView] | None = None,
) -> RunTimeEstimates:
    """Return the believed lengths that an estimator, one of ``ESTIMATORS``, gives.

    Args:
        run, request: [n] microseconds.
        columns: predicted lengths in seconds by column name, for ``predicted(COLUMN)``.
        predictor: returns [n] microseconds, for ``predicted`` without a column; else not asked.
        jobs: returns what an estimator in Python sees of the jobs; else not asked.

    Raises:
        BridgeError: unknown estimator or column.
    """
    text = name.strip()
    if text == "requested":
        return RunTimeEstimates(request, request, request, False)
    if text == "actual":
        return RunTimeEstimates(run, run, run, True)
    if text == SOFT:
        believed = _soft(request, columns)
        return RunTimeEstimates(believed, believed, believed, False)
    if text == "cqsim":
        return RunTimeEstimates(request, run, request, True)
    if match := _NOISY.fullmatch(text):
        try:
            error = float(match[1])
        except ValueError:
            error = -1.0
        if not 0.0 <= error <= 1000.0:
            raise BridgeError(
                "the error of a noisy estimate must be a number from 0 up",
                where=f"estimator {shortened(text, 200)!r}",
            )
        draw = np.random.default_rng(int(match[2] or 0)).random(len(run))
        noisy = np.maximum(_micro(run * (1.0 + error * draw), text), 1)
        return RunTimeEstimates(noisy, noisy, noisy, True)
    if match := _PREDICTED.fullmatch(text):
        column, behind = match[1], match[2]
        if column == REQUESTED and not behind:
            column, behind = None, REQUESTED
        believed = _predicted(text, column, columns, predictor)
        return RunTimeEstimates(believed, believed, request if behind else believed, False)
    if match := _BLENDED.fullmatch(text):
        believed = _predicted(text, match[1], columns, predictor)
        mean = np.sqrt(request.astype(np.float64)) * np.sqrt(believed.astype(np.float64))
        return RunTimeEstimates(_micro(np.maximum(mean, 1.0), text), request, request, False)
    rule = plugins.find("estimator", text)
    if not callable(rule) or jobs is None:
        raise plugins.unknown("estimator", text, dict.fromkeys(ESTIMATORS))
    believed = _positive(
        np.asarray(rule(jobs()), np.float64), len(run), f"estimator {shortened(text, 200)!r}", text
    )
    return RunTimeEstimates(believed, believed, believed, False)


def _soft(request: Ints, columns: Mapping[str, Floats] | None) -> Ints:
    """Return soft walltimes, in microseconds; requests where a job states none."""
    if not columns or SOFT_COLUMN not in columns:
        what, where = f"the workload has no column {SOFT_COLUMN!r}", f"estimator {SOFT!r}"
        raise BridgeError(what, where=where, remedy="Name another estimator, or a log that has it.")
    seconds = columns[SOFT_COLUMN]
    stated = np.isfinite(seconds) & (seconds > 0)
    soft = _micro(np.where(stated, seconds, 1.0) * 1e6, SOFT)
    return np.maximum(np.where(stated, np.minimum(soft, request), request), 1)


def _positive(seconds: Floats, n: int, where: str, name: str) -> Ints:
    """Return believed lengths [n] in microseconds; refuse what is none."""
    if seconds.shape != (n,) or not np.all(np.isfinite(seconds)) or np.any(seconds <= 0):
        raise BridgeError("predicted lengths must be positive seconds", where=where)
    return _micro(seconds * 1e6, name)


def _predicted(
    text: str,
    name: str | None,
    columns: Mapping[str, Floats] | None,
    predictor: Callable[[], Ints] | None,
) -> Ints:
    """Return what is predicted in a column of seconds, or without one by the predictor; microseconds."""
    if name is None:
        if predictor is None:
            raise BridgeError("no predictor at hand", where=f"estimator {shortened(text, 200)!r}")
        return predictor()
    if not columns or name not in columns:
        raise BridgeError(
            f"the workload has no column {shortened(name)!r}",
            where=f"estimator {shortened(text, 200)!r}",
            remedy=f"Its columns: {', '.join(columns or ()) or 'none beyond the log fields'}.",
        )
    return _positive(columns[name], len(columns[name]), f"column {name!r}", text)


def _micro(lengths: Floats, name: str) -> Ints:
    """Return whole microseconds; refuse what 64 bits do not hold."""
    if (beyond := lengths > 9.2e18).any():
        j = int(beyond.argmax())
        raise BridgeError(
            f"a believed length of {lengths[j] / 1e6:g} s goes beyond 2^63 microseconds",
            where=f"estimator {shortened(name, 200)!r}, job number {j + 1}",
        )
    return np.rint(lengths).astype(np.int64)
