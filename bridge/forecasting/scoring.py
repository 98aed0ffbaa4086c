"""Judging forecasts: on a replay of a whole log, at set times after submission, beside two baselines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.config.fields import record_of
from bridge.forecasting.corrections import LEVELS, QuantileCorrector, calibrated
from bridge.forecasting.site_present import SiteTimeline
from bridge.forecasting.starts import FIRST
from bridge.forecasting.timeline import FUTURES, HORIZONS, ForecastCases, Timeline, list_cases, simulate
from bridge.judge.stats import Kind, block_bootstrap
from bridge.prediction.quantiles import LEVELS as BELIEVED
from bridge.prediction.quantiles import Quantiles
from bridge.prediction.submissions import of_jobs
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule

#: Miss at one end of a 90 % interval, as a multiple of its cost in width: 2 / 0.1.
_MISS = 20.0
#: Waits of a user, or of everybody, that history looks back on.
_OWN, _ALL = 20, 200
#: Smallest scale of the baselines' corrections, s.
_LEAST = 60.0


def learn_estimates(
    prepared: Scenario, schedule: Schedule, progress: ProgressCallback = ignore_progress
) -> Timeline:
    """Return the timeline of a replay with beliefs learnt on its way.

    Each job's are from what had ended in the replay at its submission.
    """
    history = replace(of_jobs(prepared.jobs), wait=schedule.start - prepared.jobs.submit)
    quantiles = Quantiles().distributions(history, progress)
    if prepared.cluster is not None:
        return SiteTimeline(prepared, schedule, BELIEVED, quantiles)
    return Timeline(prepared, schedule, BELIEVED, quantiles)


@dataclass(frozen=True)
class ForecastScore:
    """How good the forecasts of one horizon are. Times in seconds.

    Attributes:
        coverage90: share of the starts within the 90 % interval; coverage50 of the 50 % interval.
        coverage90_low, coverage90_high: 95 % interval of `coverage90`, over blocks of jobs; None where there
            are too few blocks.
        coverage90_b, coverage90_kind: how many blocks, and the kind of the interval (see
            `bridge.judge.stats.ConfidenceInterval`).
        median_abs_error: median of the differences between start and median forecast.
        mean_width: mean width of the 90 % intervals that are finite.
        winkler: their mean interval score: the width, and 20 times the distance of a start outside.
        infinite: share of the intervals that are not finite.
    """

    jobs: int
    coverage90: float | None
    coverage50: float | None
    coverage90_low: float | None
    coverage90_high: float | None
    coverage90_b: int
    coverage90_kind: Kind | None
    median_abs_error: float | None
    mean_width: float | None
    winkler: float | None
    infinite: float


def corrected_in_time(what: ForecastCases, raw: Floats, scale: Floats, first: tuple[float, ...]) -> Floats:
    """Return calibrated quantiles [m, Q] of the remaining waits; horizons are corrected each for itself."""
    corrected_raw = np.full_like(raw, np.inf)
    for horizon in np.unique(what.horizon):
        those = np.flatnonzero((what.horizon == horizon) & np.isfinite(raw).all(axis=1))
        corrected_raw[those] = calibrated(
            what.time[those], what.start[those], raw[those], scale[those], QuantileCorrector(first)
        )
    return corrected_raw


def by_history(what: ForecastCases, user: Ints) -> Floats:
    """Return the median of the user's last waits that lasted as long, as far as known: [m] seconds still.

    Of a user who has none, of everybody's; of nobody's, the horizon itself.
    """
    order = np.argsort(what.start, kind="stable")
    own: dict[tuple[int, int], list[float]] = {}
    quantiles = np.empty(len(what))
    after, ended = what.after, 0
    for i in range(len(what)):
        while ended < len(what) and what.start[order[ended]] <= what.time[i]:
            j = int(order[ended])
            ended += 1
            for name, most in ((int(user[what.job[j]]), _OWN), (-2, _ALL)):
                waits = own.setdefault((name, int(what.horizon[j])), [])
                waits.append(float(after[j]))
                del waits[:-most]
        horizon = int(what.horizon[i])
        waits = own.get((int(user[what.job[i]]), horizon)) or own.get((-2, horizon)) or [float(horizon)]
        quantiles[i] = np.median(waits)
    return quantiles


def score(what: ForecastCases, quantiles: Floats, horizon: int) -> ForecastScore:
    those = what.horizon == horizon
    n = int(those.sum())
    if n == 0:
        return ForecastScore(0, None, None, None, None, 0, None, None, None, None, 0.0)
    quantiles_of_those, after = quantiles[those], what.after[those]
    low, half_low, middle, half_high, high = quantiles_of_those.T
    finite = np.isfinite(high)
    covered = (low <= after) & (after <= high)
    block = max(1, min(n, round(n ** (2 / 3))))
    interval = block_bootstrap(covered.astype(np.float64), block, resamples=999)
    width = high[finite] - low[finite]
    missed = (np.maximum(low - after, 0.0) + np.maximum(after - high, 0.0))[finite]
    some = bool(finite.any())
    return ForecastScore(
        jobs=n,
        coverage90=float(covered.mean()),
        coverage50=float(((half_low <= after) & (after <= half_high)).mean()),
        coverage90_low=None if interval.kind is None else max(interval.low, 0.0),
        coverage90_high=None if interval.kind is None else min(interval.high, 1.0),
        coverage90_b=interval.b,
        coverage90_kind=interval.kind,
        median_abs_error=float(np.median(np.abs(middle - after)[finite])) if some else None,
        mean_width=float(width.mean()) if some else None,
        winkler=float((width + _MISS * missed).mean()) if some else None,
        infinite=float(1.0 - finite.mean()),
    )


def judge(
    timeline: Timeline, futures: int = FUTURES, seed: int = 0, progress: ProgressCallback = ignore_progress
) -> dict[str, object]:
    """Judge forecasts on a replay, each corrected by nothing but what was known when it was made.

    The timeline's beliefs were learnt on its way. Returns ``horizons``: horizon to `ForecastScore`, and
    ``baselines``: name to the same. BridgeError: no job waited for so long.
    """
    jobs, start = timeline.prepared.jobs, timeline.schedule.start
    what = list_cases(jobs.submit, start)
    if len(what) == 0:
        raise BridgeError("no job waits: there is nothing to forecast", where=jobs.name)
    raw = simulate(timeline, what, futures, seed, progress)
    one = np.ones(len(LEVELS))
    history = by_history(what, jobs.user)
    methods: Mapping[str, tuple[Floats, Floats, tuple[float, ...]]] = {
        "forecast": (raw.quantiles, raw.scale, FIRST),
        "walltime reservation": (raw.reserved[:, None] * one, raw.reserved + _LEAST, (0.0,) * len(LEVELS)),
        "user history": (history[:, None] * one, history + _LEAST, (0.0,) * len(LEVELS)),
    }
    scores = {}
    for name, (base, scale, first) in methods.items():
        quantiles = corrected_in_time(what, base, scale, first)
        scores[name] = {"horizons": {str(h): record_of(score(what, quantiles, h)) for h in HORIZONS}}
    return {**scores.pop("forecast"), "baselines": scores}
