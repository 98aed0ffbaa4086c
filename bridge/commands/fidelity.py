"""How near replays of a log come to what its record says happened, and a forecast without any simulation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressReporter
from bridge.cluster.node_table import build_node_table, partitions_of
from bridge.commands.event import Contestant, contestants_of, refuse_protocols
from bridge.commands.fidelity_config import FidelityConfig
from bridge.commands.request import CommandOutput, CommandRequest
from bridge.config.fields import record_of
from bridge.judge.fidelity import WaitDistance, log_errors, null_distance, wait_distance
from bridge.judge.fidelity_groups import groups_of
from bridge.judge.fidelity_reasons import RecordedRun, reason_of
from bridge.judge.metrics import compute_metrics
from bridge.judge.stats import block_bootstrap, verdict
from bridge.learn.resolve import agents_of
from bridge.policy_name import parse_policy
from bridge.report import fidelity_tables
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.names import RECORDED
from bridge.scheduler.state import HOW_BACKFILLED, SECOND
from bridge.workload.catalogue import read_log
from bridge.workload.requests import read_texts
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.fast.continued import continue_from_record
from bridge.worlds.fast.continued_on_nodes import continue_on_nodes
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.recorded import is_recorded, recorded_scenario
from bridge.worlds.fast.replay import Schedule, replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Rules of which the best on the part before stands beside what is judged.
TEXTBOOK = ("fcfs+none", "fcfs+easy", "sjf+easy", "fcfs+conservative")
#: Disagreements that are explained.
LARGEST = 20
#: Metrics of a machine over time, which has no meaning where windows are pooled.
_OVER_TIME = ("makespan", "queue.", "loss_of_capacity", "utilisation.", "power.", "energy.")
#: A job that a cluster refuses, or that never starts, waits so long, s.
NEVER_STARTED = 60 * 86_400.0
#: A block of the bootstrap holds this share of the jobs.
_BLOCK = 0.05


@dataclass(frozen=True)
class _Played:
    """Outcome of n jobs under a policy.

    Attributes:
        start: [n] µs; −1: it was not played, or never started.
        schedule: of the whole log, if it was played as a whole.
        how, past, reserved: [n] as in `Schedule`; None: how the starts came about is not recorded.
    """

    scenario: Scenario
    start: Ints
    schedule: Schedule | None = None
    how: Ints | None = None
    past: Ints | None = None
    reserved: Ints | None = None

    @cached_property
    def wait(self) -> Floats:
        waits: Floats = (self.start - self.scenario.jobs.submit) / SECOND
        return np.where(self.start < 0, NEVER_STARTED, waits)


class _Log:
    """A log's jobs in order of submission, what is recorded of them, and which are compared.

    Attributes:
        jobs: n jobs, those until the end of the part that is compared.
        has_record: [n] whose start is recorded; `wait`: [n] recorded, s.
        first, split: where the compared part begins, and the one that a forecast is made for.
        firsts: of windows.
    """

    def __init__(self, workload: Workload, setup: SchedulerConfig, config: FidelityConfig) -> None:
        jobs = setup.select(workload)
        stop = round(config.until * len(jobs))
        self.first = round(config.begin * len(jobs))
        if self.first >= stop:
            where = f"--from {config.begin:g} --until {config.until:g}"
            raise BridgeError("no job is between them", where=where, remedy="Let --until be larger.")
        self.total = len(jobs)
        self.record = recorded_scenario(jobs, setup.rules()[0])  # of the whole log
        self.workload, self.setup, self.config = workload, setup, config
        jobs = jobs if stop == len(jobs) else jobs.take(slice(0, stop))
        self.has_record: Flags = is_recorded(jobs)
        if config.runs == "recorded":
            jobs = replace(jobs, run=np.where(self.has_record, jobs.logged_run, jobs.run))
        self.jobs: Jobs = jobs
        self.wait: Floats = jobs.logged_wait / SECOND
        self.split = self.first or stop // 2
        self.firsts, self.played = self._windows()

    def _windows(self) -> tuple[Ints, Flags]:
        """Return the first jobs of windows, and which jobs are played."""
        n, length = len(self.jobs), self.config.window
        if length is None:
            return np.zeros(0, np.int64), np.ones(n, np.bool_)
        if self.setup.protocol != "standard":
            what, where = (
                "windows are played by the standard protocol only",
                f"protocol {self.setup.protocol!r}",
            )
            raise BridgeError(what, where=where, remedy="Leave out --window.")
        parts = [
            np.arange(low, high - length + 1, length) for low, high in ((0, self.split), (self.split, n))
        ]
        if not (len(parts[0]) and len(parts[1])):
            what = (
                f"{counted(self.split, 'job')} before and {n - self.split:,} after are too few for {length:,}"
            )
            raise BridgeError(what, where="--window", remedy="Let windows be shorter.")
        firsts = np.concatenate(parts)
        played = np.zeros(n, np.bool_)
        played[(firsts[:, None] + np.arange(length)).ravel()] = True
        return firsts, played

    def part(self, low: int, high: int | None = None) -> Ints:
        """Return the jobs ``low:high`` that are played and recorded."""
        which = self.has_record & self.played
        which[:low] = False
        which[high or len(which) :] = False
        return np.flatnonzero(which)

    def columns(self) -> pd.DataFrame:
        rows = pd.Index(self.workload.jobs["job_id"]).get_indexer(pd.Index(self.jobs.id))
        records: pd.DataFrame = self.workload.jobs.iloc[rows]
        return records


def recorded_run(workload: Workload, setup: SchedulerConfig, record: Jobs | None = None) -> RecordedRun:
    """Return the recorded run of a log's scheduled jobs; `record`: if they are selected."""
    jobs = record or recorded_scenario(setup.select(workload), setup.rules()[0]).jobs
    partition, sizes = _partitions(workload, setup, jobs)
    start = (jobs.submit + jobs.logged_wait) / SECOND
    return RecordedRun(
        jobs.submit / SECOND,
        start,
        start + jobs.run / SECOND,
        jobs.request / SECOND,
        jobs.demand[:, 0],
        int(jobs.capacity[0]),
        jobs.user,
        partition,
        sizes,
    )


def _partitions(workload: Workload, setup: SchedulerConfig, jobs: Jobs) -> tuple[Ints, dict[int, int]]:
    """Return codes of jobs' partitions [n], and how many nodes a cluster says that they have.

    Codes are the log's own, or those of its names where it has no others or a cluster is to be asked. Where
    jobs share nodes, their number tells nothing.
    """
    table = workload.jobs
    rows = pd.Index(table["job_id"]).get_indexer(pd.Index(jobs.id))
    codes = table["partition"].to_numpy(np.int64) if "partition" in table else np.full(len(table), -1)
    if setup.cluster is None and ("partition_name" not in table or (codes >= 0).any()):
        return codes[rows], {}
    names = read_texts(table, "partition_name")
    if jobs.cluster is None:
        return names.code[rows], {}
    nodes = build_node_table(jobs.cluster)
    alone = {one.name: one for one in partitions_of(jobs.cluster) if one.exclusive}
    there = {code: alone[name] for code, name in enumerate(names.texts) if name in alone}
    sizes = {code: len(nodes.indices(one.nodes)[0]) for code, one in there.items()}
    return names.code[rows], sizes


def fidelity(request: CommandRequest, watch: ProgressReporter) -> CommandOutput:
    """Compare what a log records with replays of it under policies; see `bridge.judge.fidelity`.

    BridgeError: something does not fit, or the log does not say when its jobs started.
    """
    config, setup = request.settings(FidelityConfig), request.settings(SchedulerConfig, SchedulerConfig())
    malformed = request.typed.get("malformed", "refuse")
    log = _Log(read_log(request.log, malformed), replace(setup, estimator=""), config)
    watch.dropped(log.jobs.tally)
    typed = {**request.typed}
    if "estimator" in typed:
        typed["estimator"] = (typed["estimator"],)
    agents = agents_of(request.agents)
    refuse_protocols(request, agents, setup.protocol)
    judged = contestants_of(replace(request, typed=typed), log.setup, agents, named=False)
    if request.policies and len(agents) == len(request.policies):  # without the order that they stand on
        judged = [one for one in judged if one.agent]
    if config.window is not None and any(one.agent for one in judged):
        remedy = "Leave out --window, or name rules such as sjf+easy."
        raise BridgeError("windows are played by rules", where=f"agent {judged[0].name}", remedy=remedy)
    believed = judged[0].setup.estimator if judged[0].setup.order != RECORDED else ""
    rules = [who for name in TEXTBOOK if _exists(who := _textbook(name, log.setup, believed))]
    played: dict[Contestant, _Played] = {}
    for who in dict.fromkeys([*judged, *rules]):
        with watch.bar(f"{log.jobs.name} {who.name}", len(log.firsts) or len(log.jobs), "") as progress:
            played[who] = _play(log, who, progress)
    run = recorded_run(log.workload, log.setup, log.record.jobs)
    chosen, fitted = _chosen(log, {who: played[who] for who in rules})
    null, before = _null(log)
    documents = []
    for who in judged:
        one = played[who]
        documents.append(
            {
                "name": who.name,
                "replayed": _metrics(log, one),
                **record_of(_distance(log, one.wait, log.part(log.first))),
                "behind": {
                    "policy": record_of(_distance(log, one.wait, log.part(log.split))),
                    "verdict": _verdicts(log, one, before, played[chosen]),
                },
                "groups": _groups(log, one),
                "disagreements": _disagreements(log, run, one),
            }
        )
    shares = record_of(run.shares())
    common: dict[str, Any] = {
        "workload": log.jobs.name,
        "protocol": setup.protocol,
        "from": config.begin,
        "until": config.until,
        "split": log.split / log.total,
        "window": config.window,
        "windows": len(log.firsts) or None,
        "runs": config.runs,
        "simulations": len(played) * (len(log.firsts) or 1),
        "recorded": _recorded_metrics(log),
        "null": record_of(null),
        "textbook": {
            "policy": chosen.name,
            **record_of(_distance(log, played[chosen].wait, log.part(log.split))),
            "before": fitted,
        },
        "unexplained": shares["unexplained"],
        "waiting": shares,
    }
    document = common | (documents[0] if len(documents) == 1 else {"policies": documents})
    return CommandOutput(document, fidelity_tables.fidelity(document))


def _textbook(name: str, setup: SchedulerConfig, believed: str) -> Contestant:
    policy = parse_policy(name)
    return Contestant(replace(setup, order=policy.order, backfill=policy.backfill, estimator=believed))


def _exists(who: Contestant) -> bool:
    """Tell whether the protocol has this rule, on the nodes of the cluster if there is one."""
    try:
        compile_policy(who.setup.policy(), who.setup.rules()[0], on_nodes=who.setup.cluster is not None)
    except BridgeError:
        return False
    return True


def _play(log: _Log, who: Contestant, progress: Any) -> _Played:
    if who.setup.recorded:
        start = np.where(log.has_record, log.jobs.submit + log.jobs.logged_wait, -1)
        ran = np.where(log.has_record, log.jobs.logged_run, log.jobs.run)
        return _Played(replace(log.record, jobs=replace(log.jobs, run=ran)), start)
    scenario = who.prepare(log.jobs)
    if log.config.window is None:
        if who.agent is None:
            schedule = replay(scenario, progress)
        else:
            from bridge.learn.agent import replay as replay_agent

            schedule = replay_agent(who.agent, scenario, progress)
        return _Played(scenario, schedule.start, schedule, schedule.how, schedule.past, schedule.reserved)
    recorded = log.jobs.submit + log.jobs.logged_wait
    if log.jobs.cluster is None:
        windows = continue_from_record(
            scenario, log.has_record, recorded, log.firsts, log.config.window, progress
        )
    else:
        windows = continue_on_nodes(
            log.jobs, log.has_record, recorded, log.firsts, log.config.window, who.prepare, progress
        )
    which = (log.firsts[:, None] + np.arange(log.config.window)).ravel()

    def spread(values: Ints) -> Ints:
        of_jobs = np.full(len(log.jobs), -1, np.int64)
        of_jobs[which] = values.ravel()
        return of_jobs

    start, how, past, reserved = map(spread, (windows.start, windows.how, windows.past, windows.reserved))
    return _Played(scenario, start, how=how, past=past, reserved=reserved)


def _distance(log: _Log, wait: Floats, which: Ints) -> WaitDistance:
    return wait_distance(wait[which], log.wait[which])


def _chosen(log: _Log, rules: Mapping[Contestant, _Played]) -> tuple[Contestant, dict[str, dict[str, Any]]]:
    """Return the textbook rule that is nearest to the record on the part before, and how near each is."""
    before = log.part(0, log.split)
    near = {who: _distance(log, one.wait, before) for who, one in rules.items()}
    best = min(near, key=lambda who: near[who].log_mae)
    keys = ("log_mae", "wasserstein_relative")
    return best, {who.name: {key: getattr(one, key) for key in keys} for who, one in near.items()}


def _null(log: _Log) -> tuple[WaitDistance, Floats]:
    before = log.wait[log.part(0, log.split)]
    return null_distance(before, log.wait[log.part(log.split)]), before


def _verdicts(log: _Log, one: _Played, before: Floats, textbook: _Played) -> dict[str, Any]:
    """Judge a policy by its paired log errors beside those of the null and of the textbook rule."""
    which = log.part(log.split)
    recorded, block = log.wait[which], max(1, round(_BLOCK * len(which)))
    own = log_errors(one.wait[which], recorded)
    beside = {"null": np.full(len(which), np.median(before)), "textbook": textbook.wait[which]}
    verdicts: dict[str, Any] = {}
    for name, other in beside.items():
        difference = block_bootstrap(own - log_errors(other, recorded), block)
        verdicts[name] = {"difference": difference.as_dict(), "verdict": verdict(difference)}
    return verdicts


def _metrics(log: _Log, one: _Played) -> dict[str, Any]:
    which = np.flatnonzero(log.played & (one.start >= 0))
    which = which[which >= log.first]
    jobs, nothing = one.scenario.jobs.take(which), np.full(len(which), -1, np.int64)
    start, serial = one.start[which], np.arange(len(which))
    if one.schedule is not None:
        serial = one.schedule.serial[which]
    schedule = Schedule(start, start + jobs.run, nothing, nothing, nothing, serial, jobs.submit)
    return _table_metrics(log, replace(one.scenario, jobs=jobs), schedule)


def _recorded_metrics(log: _Log) -> dict[str, Any]:
    which = log.part(log.first)
    scenario = recorded_scenario(log.jobs.take(which), log.setup.rules()[0])
    return _table_metrics(log, scenario, replay(scenario))


def _table_metrics(log: _Log, scenario: Scenario, schedule: Schedule) -> dict[str, Any]:
    jobs = scenario.jobs
    table = JobsTableBuilder(scenario, schedule, killed_at_request=log.setup.rules()[1].kill).metric_columns()
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    metrics = compute_metrics(table, capacity, idle_power=jobs.idle_power)
    if log.config.window is not None:
        metrics = {key: value for key, value in metrics.items() if not key.startswith(_OVER_TIME)}
    return {"oracle": scenario.oracle, **metrics}


def _groups(log: _Log, one: _Played) -> dict[str, dict[str, Any]]:
    which = log.part(log.first)
    jobs = log.jobs
    submit = (jobs.submit[which] + jobs.origin) / SECOND
    kinds = groups_of(log.columns().iloc[which], log.workload.header, submit, jobs.demand[which, 0])
    return {
        kind: {name: record_of(_distance(log, one.wait, which[places])) for name, places in of.items()}
        for kind, of in kinds
    }


def _disagreements(log: _Log, run: RecordedRun, one: _Played) -> list[dict[str, Any]]:
    """Return the jobs whose waits differ most, with the reason on both sides."""
    which = log.part(log.first)
    off = np.abs(one.wait[which] - log.wait[which])
    most = which[np.argsort(-off, kind="stable")[:LARGEST]]
    place = np.cumsum(log.has_record) - 1  # of a job in the record
    rows = []
    for job in most.tolist():
        if one.wait[job] == log.wait[job]:
            break
        rows.append(
            {
                "job": _plain(log.jobs.id[job]),
                "nodes": int(log.jobs.demand[job, 0]),
                "user": int(log.jobs.user[job]),
                "submitted": float(log.jobs.submit[job] / SECOND),
                "recorded_wait": float(log.wait[job]),
                "replayed_wait": float(one.wait[job]),
                "recorded": record_of(reason_of(run, int(place[job]))),
                "replayed": _replayed_reason(one, job),
            }
        )
    return rows


def _replayed_reason(one: _Played, job: int) -> dict[str, Any]:
    """Return how the job started in the replay: as head or backfilled, past whom, and what was promised."""
    if one.how is None or one.past is None or one.reserved is None:
        return {}
    if one.start[job] < 0:
        return {"kind": "never", "overtook": None, "reserved": None}
    past, reserved = int(one.past[job]), int(one.reserved[job])
    return {
        "kind": "backfilled" if one.how[job] == HOW_BACKFILLED else "head",
        "overtook": _plain(one.scenario.jobs.id[past]) if past >= 0 else None,
        "reserved": reserved / SECOND if reserved >= 0 else None,
    }


def _plain(ident: Any) -> int | str:
    return ident if isinstance(ident, str) else int(ident)
