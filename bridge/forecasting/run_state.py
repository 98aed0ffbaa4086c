"""The state of a run at a time, or of a file: what ran and waited, what was believed, how forecasts erred."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.forecasting.corrections import QuantileCorrector, calibrated
from bridge.forecasting.fork import policy_of
from bridge.forecasting.starts import FIRST
from bridge.forecasting.state import END, MachineState, micro
from bridge.forecasting.statefile import read_state
from bridge.forecasting.timeline import Timeline, list_cases, simulate
from bridge.judge.jobs import demand_column, drop_killed_attempts, require_columns
from bridge.prediction.quantiles import LEVELS, Quantiles, median
from bridge.prediction.submissions import of_jobs
from bridge.scheduler.names import RECORDED
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import NEVER, SECOND
from bridge.workload.ids import of_texts, ranks
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario, predict_from_history, prepare
from bridge.worlds.fast.replay import Schedule

if TYPE_CHECKING:
    from bridge.judge.run import Run

#: Seconds after submission at which earlier forecasts are tried: at once for a job that one might submit.
AGES = (0, 60, 3600, 21_600)
#: Earlier forecasts that are tried of each age, at most; the starts that they are drawn from evenly; and the
#: submissions that these are among.
_TRIED, _STARTED, _RECENT = 300, 1500, 5000


def state_of_run(
    run: "Run",
    time: float,
    policy: str = "",
    *,
    learn: bool = True,
    progress: ProgressCallback = ignore_progress,
) -> MachineState:
    """Return the state of a run at a time (s on its clock); nothing that became known later is read.

    The policy is the run's own if empty. `learn`: believe what jobs that had ended then teach, and try
    earlier forecasts, of which `progress` is told; else jobs are believed to run as long as they request.
    Raises BridgeError: the run is not under the standard protocol, an agent decided it, its scheduler knew
    true run times, its jobs table lacks something, the time is none, or nothing was submitted by then.
    """
    chosen = _policy(run, policy)
    if not abs(time) * SECOND < END:
        raise BridgeError(f"{time:g} s is no time", where=run.name, remedy="Give seconds on the run's clock.")
    now = round(time * SECOND)
    if run.config.get("cluster"):
        if (run.config.get("experiment") or {}).get("agent"):
            what = "an agent decided this run, and its cluster's state follows from its decisions"
            raise BridgeError(what, where=run.name, remedy="Replay the log under a rule.")
        from bridge.forecasting.site_run import state_on_site

        return state_on_site(run, now, learn=learn)
    table = drop_killed_attempts(run.jobs)
    table = table[(table["submission_time"].to_numpy(np.float64) * SECOND <= now)]
    table = table[table["starting_time"].notna().to_numpy()]
    if len(table) == 0:
        raise BridgeError(f"nothing was submitted by {time:g} s", where=run.name)
    ids, jobs, schedule = _jobs(run, table, now)
    estimator = str(run.config.get("estimator") or "requested").replace(" ", "")
    if not learn:
        scenario = _prepare(run, jobs, chosen, "requested")
        return Timeline(scenario, schedule, ids=ids).state(now)[0]
    history = replace(of_jobs(jobs), run=np.where(schedule.end < NEVER, jobs.run, -1))
    oldest = int(np.flatnonzero(schedule.end > now).min(initial=len(jobs)))
    first = max(0, min(oldest, len(jobs) - _RECENT))
    quantiles = Quantiles().distributions(history, first=first)
    scenario = _prepare(run, jobs, chosen, estimator, lambda _: median(quantiles))
    timeline = Timeline(scenario, schedule, LEVELS, quantiles, ids)
    corrections = _corrections(timeline, now, first, progress)
    timeline.rewind()
    return replace(timeline.state(now)[0], corrections=corrections)


def _corrections(
    timeline: Timeline, now: int, first: int, progress: ProgressCallback
) -> dict[int, tuple[float, ...]]:
    """Return the corrections that the last forecasts which had come true by now call for."""
    jobs, start = timeline.prepared.jobs, timeline.schedule.start
    start_known = np.where((start <= now) & (np.arange(len(jobs)) >= first), start, jobs.submit)
    what = list_cases(jobs.submit, start_known, AGES)
    chosen = []
    for age in AGES:
        those = np.flatnonzero(what.horizon == age)
        # by start, not by forecast: of the last forecasts only those of short waits have come true
        those = those[np.argsort(what.start[those], kind="stable")][-_STARTED:]
        chosen.append(those[np.linspace(0, len(those) - 1, min(len(those), _TRIED)).astype(np.int64)])
    what = what.take(np.sort(np.concatenate(chosen)))
    raw = simulate(timeline, what, progress=progress)
    corrections = {}
    for age in AGES:
        those = np.flatnonzero((what.horizon == age) & np.isfinite(raw.quantiles).all(axis=1))
        calibrator = QuantileCorrector(FIRST)
        calibrated(what.time[those], what.start[those], raw.quantiles[those], raw.scale[those], calibrator)
        corrections[age] = calibrator.corrections
    return corrections


def _policy(run: "Run", policy: str) -> Policy:
    config = run.config
    if config.get("protocol") != "standard":
        what = "futures are played by the standard protocol only"
        raise BridgeError(what, where=f"{run.name}: protocol {config.get('protocol')!r}")
    if policy:
        return policy_of(policy)
    if (config.get("experiment") or {}).get("agent"):
        what = "an agent decided this run, and futures are played by rules"
        raise BridgeError(what, where=run.name, remedy="Name the rule that comes nearest: --policy sjf+easy.")
    if config.get("order") == RECORDED:
        what = "no rule decided this run, and futures are played by rules"
        raise BridgeError(what, where=run.name, remedy="Name a rule: --policy fcfs+easy.")
    return policy_of(f"{config.get('order')}+{config.get('backfill')}")


def _prepare(
    run: "Run",
    jobs: Jobs,
    policy: Policy,
    estimator: str,
    predicted: Callable[[Jobs], Ints] = predict_from_history,
) -> Scenario:
    """Bring the run's jobs together with what its scheduler believed."""
    if estimator != "requested":
        if not estimator.startswith("predicted"):
            what = "what its scheduler believed is not known"
            remedy = "Futures know requests and predictions."
            raise BridgeError(what, where=f"{run.name}: estimator {estimator!r}", remedy=remedy)
        estimator = "predicted(requested)" if estimator.endswith(",requested)") else "predicted"
    return prepare(jobs, protocol("standard"), policy, estimator, LOAD_RULES["standard"], predicted)


def _jobs(run: "Run", table: pd.DataFrame, now: int) -> tuple[tuple[str, ...], Jobs, Schedule]:
    """Return the names of a table's jobs, the jobs in order of submission, and what is known of them now.

    What comes later never happens: starts and ends are NEVER then, and run times the requests.
    """
    request_column = "request" if "request" in table else "requested_time"
    resources = ("nodes", *(name for name in run.capacity if name != "nodes" and name in table))
    require_columns(table, (*(map(demand_column, resources)), request_column, "user", "queue"), run.name)
    ids = table["job_id"].astype("str").to_numpy()
    number = ranks(of_texts(ids.tolist(), padded=True))
    submit = micro(table["submission_time"])
    order = np.lexsort((np.arange(len(ids)), number, submit))
    start, end = micro(table["starting_time"])[order], micro(table["finish_time"])[order]
    request = micro(table[request_column])[order]
    if (request <= 0).any():
        what = "its requested time is not known"
        raise BridgeError(what, where=f"{run.name}, job {ids[order][int((request <= 0).argmax())]}")
    ended = end <= now
    ran = np.where(ended, end - start, request)
    wait = np.where(start <= now, start - submit[order], 0)
    start, end = np.where(start <= now, start, NEVER), np.where(ended, end, NEVER)
    jobs = Jobs(
        name=run.name,
        id=np.arange(len(ids)),
        submit=submit[order],
        run=ran,
        request=request,
        logged_run=ran,
        logged_wait=wait,
        demand=np.column_stack([table[demand_column(name)].to_numpy(np.int64)[order] for name in resources]),
        resources=resources,
        capacity=np.array([run.capacity[name] for name in resources], np.int64),
        user=table["user"].to_numpy(np.int64)[order],
        queue=table["queue"].to_numpy(np.int64)[order],
        origin=0,
    )
    nothing = np.full(len(ids), -1, np.int64)
    return tuple(ids[order]), jobs, Schedule(start, end, nothing, nothing, nothing, nothing, jobs.submit)


def load_state(
    source: PathLike[str] | str,
    time: float | None = None,
    policy: str = "",
    *,
    progress: ProgressCallback = ignore_progress,
) -> MachineState:
    """Return the state of a run folder at a time, or of a state's file; see `state_of_run`.

    BridgeError: as there; or the time is missing, or given for a file.
    """
    from bridge.judge.run import read_run

    source = Path(source)
    if is_there(source, Path.is_dir):
        if time is None:
            what = "the state of a run is that of a time"
            raise BridgeError(what, where=str(source), remedy="Give --at SECONDS.")
        return state_of_run(read_run(source), time, policy, progress=progress)
    if time is not None and is_there(source):
        remedy = "Leave out --at, or name a run folder."
        raise BridgeError("a state has its own time", where=str(source), remedy=remedy)
    return read_state(source)
