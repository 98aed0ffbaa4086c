"""A timeline: the states of a finished schedule, what could be believed then, and forecasts made in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.forecasting.corrections import LEVELS
from bridge.forecasting.fork import Fork
from bridge.forecasting.site_fork import SiteFork, open_fork
from bridge.forecasting.slurm_fork import SlurmFork
from bridge.forecasting.starts import RawForecast, raw_forecast
from bridge.forecasting.state import LENGTHS, FairShareUser, MachineState
from bridge.scheduler.state import SECOND
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule


class Timeline:
    """States of a replay under the standard protocol (else BridgeError), read in the order of time.

    `levels`: [Q] of the beliefs; None = jobs are believed to run as long as they request. `quantiles`: [n, Q]
    what is believed of each job's run time; seconds. `ids`: names of the jobs, if not their numbers.
    """

    def __init__(
        self,
        prepared: Scenario,
        schedule: Schedule,
        levels: Floats | None = None,
        quantiles: Floats | None = None,
        ids: Sequence[str] = (),
    ) -> None:
        compiled = prepared.compiled
        if compiled.protocol.name != "standard":
            what = "futures are played by the standard protocol only"
            raise BridgeError(what, where=f"protocol {compiled.protocol.name!r}")
        self.prepared, self.schedule = prepared, schedule
        self.levels = np.zeros(0) if levels is None else levels
        self._quantiles = np.zeros((len(prepared.jobs), 0)) if quantiles is None else quantiles
        self._policy = f"{compiled.policy.order}+{compiled.policy.backfill}"
        self._by_submit = np.argsort(prepared.jobs.submit, kind="stable")
        self._submits = prepared.jobs.submit[self._by_submit]
        self._longest = float(prepared.estimate.order.max()) / SECOND
        self._names = prepared.jobs.user.astype(str).tolist()
        self._ids = [*ids] or prepared.jobs.id.astype(str).tolist()
        self.rewind()

    def rewind(self) -> None:
        """Begin again."""
        self._time, self._submitted = -(1 << 62), 0  # how far it has been read
        self._active = np.zeros(0, np.int64)
        self._used = np.zeros(len(self.prepared.share))

    def jobs_at(self, time: int) -> tuple[Ints, int]:
        """Return who runs or waits after all that happened at a time not before the last one.

        That is jobs of the replay, running ones, then waiting ones, each in order; and how many run.
        """
        if time < self._time:
            raise ValueError("a timeline is read forward; rewind it")
        jobs, schedule = self.prepared.jobs, self.schedule
        until = int(np.searchsorted(self._submits, time, side="right"))
        came = self._by_submit[self._submitted : until]
        self._time, self._submitted = time, until
        active = np.concatenate((self._active, came))
        over = schedule.end[active] <= time
        if over.any():
            gone = active[over]
            spent = jobs.demand[gone, 0] * ((schedule.end - schedule.start)[gone] / SECOND)
            np.add.at(self._used, self.prepared.users[gone], spent)
            active = active[~over]
        self._active = active
        runs = schedule.start[active] <= time
        return np.concatenate((active[runs], active[~runs])), int(runs.sum())

    def state(self, time: int) -> tuple[MachineState, Ints]:
        """Return the state after all that happened at a time (µs, ascending), and its jobs' places."""
        which, n_running = self.jobs_at(time)
        prepared, jobs = self.prepared, self.prepared.jobs
        believed: dict[str, Any] = {name: getattr(prepared.estimate, name)[which] for name in LENGTHS}
        demand = jobs.demand[which]
        names, ids = self._names, self._ids
        listed = which.tolist()
        share, used = prepared.share, self._used
        dense = dict(zip(listed, prepared.users[which].tolist(), strict=True))
        users = {names[j]: FairShareUser(share.item(u), used.item(u)) for j, u in dense.items()}
        state = MachineState(
            now=time,
            resources=jobs.resources,
            capacity=jobs.capacity,
            free=jobs.capacity - demand[:n_running].sum(axis=0),
            id=tuple([ids[j] for j in listed]),
            submit=jobs.submit[which],
            start=self.schedule.start[which],
            request=jobs.request[which],
            demand=demand,
            lengths=replace(prepared.estimate, **believed),
            n_running=n_running,
            user=tuple([names[j] for j in listed]),
            partition=prepared.partition[which],
            levels=self.levels,
            quantiles=self._quantiles[which],
            users=users,
            used=float(self._used.sum()),
            longest=self._longest,
            policy=self._policy,
            settled=True,
        )
        return state, which


#: When forecasts are made, seconds after submission.
HORIZONS = (60, 3600, 21_600)
#: Futures of each forecast: fewer than for one forecast alone, whose quantiles need not be learnt about.
FUTURES = 24


@dataclass(frozen=True)
class ForecastCases:
    """Forecasts to be made: m jobs at times at which they still wait, in the order of these times.

    Attributes:
        job: [m] place in the replay.
        horizon: [m] seconds after submission.
        time: [m] when; microseconds.
        start: [m] the outcome; microseconds.
    """

    job: Ints
    horizon: Ints
    time: Ints
    start: Ints

    def __len__(self) -> int:
        return len(self.job)

    def take(self, which: Ints) -> "ForecastCases":
        return ForecastCases(self.job[which], self.horizon[which], self.time[which], self.start[which])

    @property
    def after(self) -> Floats:
        return (self.start - self.time) / SECOND


def list_cases(submit: Ints, start: Ints, horizons: tuple[int, ...] = HORIZONS) -> ForecastCases:
    """Return what is to be forecast of a schedule: every job at every horizon that it outwaits."""
    cases_by_age = []
    for horizon in horizons:
        job = np.flatnonzero(start - submit > horizon * SECOND)
        cases_by_age.append(np.stack((submit[job] + horizon * SECOND, job, np.full(len(job), horizon))))
    time, job, horizon = np.concatenate(cases_by_age, axis=1)
    order = np.lexsort((job, horizon, time))
    return ForecastCases(job[order], horizon[order], time[order], start[job[order]])


def simulate(
    timeline: Timeline,
    what: ForecastCases,
    futures: int = FUTURES,
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> RawForecast:
    """Make the uncorrected forecasts of all cases, each from the state at its time."""
    raw = RawForecast(np.empty((len(what), len(LEVELS))), np.empty(len(what)), np.empty(len(what)))
    timeline.rewind()
    fork: Fork | SiteFork | SlurmFork | None = None
    first = 0
    while first < len(what):
        time = int(what.time[first])
        last = int(np.searchsorted(what.time, time, side="right"))
        state, which = timeline.state(time)
        place = np.empty(which.max() + 1, np.int64)
        place[which] = np.arange(len(which))
        wanted, back = np.unique(place[what.job[first:last]], return_inverse=True)
        fork = fork or open_fork(state)
        one = raw_forecast(state, wanted, fork, futures, [seed, time & (2**63 - 1)])
        for name in ("quantiles", "reserved", "scale"):
            getattr(raw, name)[first:last] = getattr(one, name)[back]
        first = last
        progress(first)
    return raw
