"""The state of a run on a cluster at a time: its log is played again up to then."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.source import digest_of_cluster
from bridge.config import from_tables
from bridge.forecasting.site_change import let_happen, postponed, without_added
from bridge.forecasting.site_present import SiteReplay, SiteTimeline
from bridge.forecasting.state import MachineState, SitePresent, micro
from bridge.judge.jobs import drop_killed_attempts
from bridge.prediction.quantiles import LEVELS, Quantiles
from bridge.prediction.submissions import of_jobs
from bridge.scheduler.state import NEVER, SECOND
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.judge.run import Run


def state_on_site(
    run: "Run", now: int, *, learn: bool = True, change: Callable[[Cluster], Cluster] | None = None
) -> MachineState:
    """Return the state of a run on a cluster at a time, µs; nothing that became known later is read.

    `learn`: believe what jobs that had ended then teach. `change`: of the cluster, at that time, by a last
    event of its calendar; it happens after all that the run did until then.

    Raises BridgeError: log or cluster have changed since the run, or its scheduler knew true run times.
    """
    experiment = run.config.get("experiment") or {}
    setup = from_tables(SchedulerConfig, experiment.get("setup") or {}, f"{run.name}: run.toml")
    assert setup.cluster is not None
    if setup.estimator not in ("", "requested", "predicted"):
        what, remedy = "what its scheduler believed is not known", "Futures know requests and predictions."
        raise BridgeError(what, where=f"{run.name}: estimator {setup.estimator!r}", remedy=remedy)
    if digest_of_cluster(setup.cluster) != run.config.get("cluster_sha256"):
        what, remedy = "is not the cluster of the run any more", "Replay the log on it again."
        raise BridgeError(what, where=f"{run.name}: cluster {setup.cluster!r}", remedy=remedy)
    workload = read_log(str(experiment["workload"]), experiment.get("malformed", "refuse"))
    scenario = setup.build_scenario(setup.select(workload, change=change and postponed(change)))
    if change is not None:
        scenario = without_added(scenario)
    present = SiteReplay(scenario).advance(now)
    if change is None:
        _check_same(run, scenario, present, now)
    jobs, arrived = scenario.jobs, present.arrived
    records = present.state.jobs[0]
    ended = (records.end >= 0) & (records.end <= now)
    start, end = np.where(records.start >= 0, records.start, NEVER), np.where(ended, records.end, NEVER)
    levels = quantiles = None
    if learn:
        wait = np.where(start < NEVER, start - jobs.submit, 0)
        history = of_jobs(replace(jobs, logged_wait=wait).take(slice(arrived)))
        history = replace(history, run=np.where(ended[:arrived], jobs.run[:arrived], -1))
        levels, quantiles = LEVELS, Quantiles().distributions(history)
    nothing = np.full(len(jobs), -1, np.int64)
    schedule = Schedule(start, end, nothing, nothing, nothing, nothing, jobs.submit)
    state, _ = SiteTimeline(scenario, schedule, levels, quantiles).state(now)

    def again(change: Callable[[Cluster], Cluster]) -> MachineState:
        changed = state_on_site(run, now, learn=learn, change=change)
        _check_same_present(state, changed)
        let_happen(changed)
        return replace(changed, settled=False)

    assert state.site is not None
    return replace(state, site=replace(state.site, on_changed_cluster=again, origin=jobs.origin))


def _check_same(run: "Run", scenario: Scenario, present: SitePresent, now: int) -> None:
    """Raise BridgeError if jobs that had ended by then did not run as the run has it."""
    table = drop_killed_attempts(run.jobs)
    table = table[table["finish_time"].to_numpy(np.float64) * SECOND <= now]
    place = {str(name): j for j, name in enumerate(scenario.jobs.id.tolist())}
    which = [place.get(name, -1) for name in table["job_id"].astype("str")]
    records = present.state.jobs[0]
    is_there = np.array(which, np.int64) >= 0
    same = [
        np.where(is_there, values[which], -1) == micro(table[name])
        for name, values in (("starting_time", records.start), ("finish_time", records.end))
    ]
    if not np.all(same):
        what, remedy = "its log gives another schedule by now", "Replay the log again."
        raise BridgeError(what, where=f"{run.name}: {scenario.jobs.name}", remedy=remedy)


def _check_same_present(state: MachineState, changed: MachineState) -> None:
    """Raise BridgeError if other jobs run or wait on a cluster that has yet to change."""
    running = slice(state.n_running)
    same = state.id == changed.id and state.n_running == changed.n_running
    if not same or not np.array_equal(state.start[running], changed.start[running]):
        what = "on a machine of another size, its jobs would have had other starts by now"
        remedy = "Use --drain, or a policy whose priorities do not count the machine's nodes."
        raise BridgeError(what, where=f"policy {state.policy!r}", remedy=remedy)
