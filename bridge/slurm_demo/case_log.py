"""What slurmctld's log says of a recorded case: submissions, runs, and the instants of all passes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from bridge.cluster.slurm_values import node_names

_JOB = r"JobId=(?P<job>\d+(?:[_+]\d+)?)(?:\(\d+\))?(?![\w*(])"
_PASSES = {
    "default": re.compile(r"sched: Running job scheduler for default depth"),
    "full": re.compile(r"sched: Running job scheduler for full queue"),
    "backfill": re.compile(r"sched/backfill: _attempt_backfill: beginning"),
    "limits": re.compile(r"Testing job time limits"),
    "prio": re.compile(r"PRIO: .*(?:Fairshare|Weighted Age priority|priority .* was )"),
}
_SUBMITTED = re.compile(rf"_slurm_rpc_submit_batch_(?:het_)?job: {_JOB} ")
_STARTED = (
    ("main", re.compile(rf"Allocate {_JOB} NodeList=(?P<nodes>\S+) .*Partition=(?P<part>\S+)")),
    ("backfill", re.compile(rf"Started {_JOB} in (?P<part>\S+) on (?P<nodes>\S+)")),
)
#: How a run ends, and whether somebody ended it.
_ENDED = (
    (False, re.compile(rf"_job_complete: {_JOB} done")),
    (True, re.compile(rf"Time limit exhausted for {_JOB}")),
    (True, re.compile(rf"Reservation ended for {_JOB}")),
    (True, re.compile(rf"preempted {_JOB} has been ")),
    (True, re.compile(rf"requeue job {_JOB} due to failure")),
    (True, re.compile(rf"(?:requeue|_job_requeue_op:|_slurm_rpc_requeue:) {_JOB}")),
    (True, re.compile(r"REQUEST_KILL_JOB JobId=(?P<job>\d+(?:[_+]\d+)?) ")),
)
_FREED = re.compile(rf"_slurm_rpc_epilog_complete: {_JOB} Node=(?P<node>\S+)")
_ANSWERED = re.compile(r"node_did_resp(?::?) (?:node )?(?P<node>[\w.-]+)")
_REQUEUED = re.compile(rf"Requeuing {_JOB}")
#: Lines of one calculation of priorities are so close to each other, s.
_ONE_CALCULATION = 5.0


@dataclass
class LoggedRun:
    """One episode of a job; instants in s since 1970, 0: none. `freed`: when which node was free."""

    start: float
    nodes: str
    partition: str
    by: str
    end: float = 0.0
    is_killed: bool = False
    freed: dict[str, float] = field(default_factory=dict)

    @property
    def free(self) -> float:
        """When its last node was free."""
        return max(self.freed.values(), default=0.0)


@dataclass
class CaseLog:
    """Times in s since 1970, by the ids that slurmctld logs: ``7``, ``7_2``, ``7+1``."""

    submitted: dict[str, float] = field(default_factory=dict)
    runs: dict[str, list[LoggedRun]] = field(default_factory=dict)
    requeued: dict[str, list[float]] = field(default_factory=dict)
    passes: list[tuple[float, str]] = field(default_factory=list)


def log_lines(text: str) -> Iterator[tuple[float, str]]:
    """Yield the lines of a daemon's log behind their times, s since 1970."""
    for line in text.splitlines():
        if match := re.match(r"\[(\S+)\] (.*)", line):
            yield datetime.fromisoformat(match[1]).timestamp(), match[2]


def read_log(text: str) -> CaseLog:
    """Return what a slurmctld wrote that logs at the level debug2, with milliseconds and flag Priority."""
    log = CaseLog()
    answers: dict[str, list[float]] = {}
    epilogs: dict[tuple[str, str], list[float]] = {}
    last_calculation = 0.0
    for time, line in log_lines(text):
        for kind, pattern in _PASSES.items():
            if not pattern.search(line):
                continue
            if kind == "prio":
                is_same = time - last_calculation < _ONE_CALCULATION
                last_calculation = time
                if is_same:
                    continue
            log.passes.append((time, kind))
        if match := _SUBMITTED.search(line):
            log.submitted.setdefault(match["job"].partition("+")[0], time)
        elif match := _REQUEUED.search(line):
            log.requeued.setdefault(match["job"], []).append(time)
        elif match := _FREED.search(line):
            epilogs.setdefault((match["job"], match["node"]), []).append(time)
        elif match := _ANSWERED.search(line):
            answers.setdefault(match["node"], []).append(time)
        else:
            _add_run(log, time, line)
    for job, runs in log.runs.items():
        for run in runs:
            if run.end:
                run.freed = {
                    node: _first_after(run.end, epilogs.get((job, node), []), answers.get(node, []))
                    for node in node_names(run.nodes)
                }
    return log


def _first_after(instant: float, *lists: Iterable[float]) -> float:
    """Return the first time after an instant of the first list that has one; the instant: none has."""
    for times in lists:
        if after := [time for time in times if time >= instant]:
            return min(after)
    return instant


def _add_run(log: CaseLog, time: float, line: str) -> None:
    for by, pattern in _STARTED:
        if match := pattern.search(line):
            log.runs.setdefault(match["job"], []).append(LoggedRun(time, match["nodes"], match["part"], by))
            return
    for is_killed, pattern in _ENDED:
        if match := pattern.search(line):
            whole = match["job"]
            for job, runs in log.runs.items():
                of_it = job == whole or (is_killed and job.partition("_")[0].partition("+")[0] == whole)
                if of_it and not runs[-1].end:
                    runs[-1].end, runs[-1].is_killed = time, is_killed
            return
