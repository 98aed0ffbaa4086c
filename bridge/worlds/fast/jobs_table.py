"""The outcome of a replay as a jobs table: whole, in pieces, or just what is measured."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Flags, Floats, Ints, text_column
from bridge.cluster.amounts_text import PER_NODE, PROGRESS, SUSPENDED, amounts_text, format_spans
from bridge.scheduler.cluster_state import UNCOUNTED
from bridge.scheduler.starts import HOW_GUEST, HOW_SPECULATIVE
from bridge.scheduler.state import HOW_BACKFILLED, SECOND
from bridge.workload.requests import MILLI, Texts
from bridge.workload.select import Ids
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.recorded import ELIGIBLE
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.waiting_reasons import ReasonHistory, build_history

if TYPE_CHECKING:
    import pandas as pd

#: Final states: not killed, killed at the request; of a job that a cluster's rules never let start.
_STATES = ("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED", "REJECTED", "COMPLETED_KILLED")
#: The column of the waits that the log records.
RECORDED_WAIT = "recorded_wait"
#: What metrics and breakdowns read, beside the final state and demands for further resources.
_MEASURED = (
    *("submission_time", "requested_number_of_resources", "starting_time", "execution_time", "finish_time"),
    *("waiting_time", "consumed_energy", "user", "queue"),
)


#: Further columns on a cluster.
OF_CLUSTER = ("eligible_time", "episode", "partition", "reason", "reasons", "qos", "account", "shares_nodes")


def _texts(column: Texts, which: npt.NDArray[np.int32]) -> Any:
    """Return the texts of jobs, empty where they state none."""
    import pyarrow as pa

    places = column.code[which] % (len(column.texts) + 1)  # -1 is the empty text at the end
    return pa.array([*column.texts, ""], pa.string()).take(pa.array(places))


class JobsTableBuilder:
    """What became of n jobs, in the order of completion, as Batsim writes them.

    Beyond Batsim's columns: ``user``, ``queue`` (as logged), ``start_kind`` (head | backfilled), ``overtook``
    (id of the blocked job it was started behind, or empty), ``reserved_time`` (the first start it was
    promised as blocked head, s, NaN if never), one column per further resource. Of a log that records waits
    ``recorded_wait`` (s, NaN where it is not known); of a record that says so ``eligible_time``, from when
    the job could start. `killed_at_request`: a job whose run time reaches its request counts as killed there.

    Under a rule of action a job's row is that of its last life, and it waits for all the time until its end
    without its run time; further: ``first_start_time``, ``stops`` (lives cut short), ``suspensions``,
    ``occupied_time`` (s on its own nodes), ``lost_time`` (s without progress that was kept); ``start_kind``
    may be speculative or guest.

    On a cluster further: ``eligible_time`` (s, since when the job waits for resources and limits alone; its
    waiting time begins there, and is all the time until its end but its last run), ``episode`` (which run
    of its job a row is, from 0; those that were cut short, so that the job ran again, are killed attempts
    with ids ``J#1``, …), ``partition``, ``reason`` (what held it longest, in Slurm's words), ``reasons``
    (its history: seconds and reasons), ``qos`` and ``account``, ``shares_nodes``, what it had in all
    (``cores``, ``gpus``) and, where it shares them, of each node (``per_node``), and where jobs are
    suspended since and until when (``suspended``). Jobs that never started
    stand last, without times.
    """

    def __init__(self, prepared: Scenario, schedule: Schedule, *, killed_at_request: bool = True) -> None:
        self._prepared, self._schedule = prepared, schedule
        self._kills = killed_at_request
        never = schedule.start < 0
        self._order = np.lexsort((schedule.serial, schedule.end, never)).astype(np.int32)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """The place among the jobs of each row [n]."""
        return self._order

    def metric_columns(self) -> "pd.DataFrame":
        """Return the columns that metrics and breakdowns read, final states as categories."""
        import pandas as pd

        columns = self._columns(self._order)
        resources = self._prepared.jobs.resources[1:]
        cluster = self._prepared.cluster or self._prepared.recorded_nodes
        own = () if cluster is None else (*OF_CLUSTER, *cluster.capacity())
        own = own if self._schedule.node_lives is None else ("job_id", *own)  # by which attempts are told
        names = (name for name in (*_MEASURED, *own, *resources) if name in columns)
        table = {name: columns[name]() for name in names}
        table["final_state"] = pd.Categorical.from_codes(self._state(self._order), pd.Index(_STATES))
        return pd.DataFrame(table, copy=False)

    def rows(self, start: int = 0, stop: int | None = None) -> "pd.DataFrame":
        """Return all columns of rows ``start:stop``, numbered from 0."""
        import pandas as pd

        return pd.DataFrame({name: make() for name, make in self._columns(self._order[start:stop]).items()})

    def _killed(self, which: npt.NDArray[np.int32]) -> Flags:
        jobs = self._prepared.jobs
        return (jobs.run[which] >= jobs.request[which]) & self._kills

    @cached_property
    def _had(self) -> Mapping[str, Ints] | None:
        """What each job had of the cluster, if the world collected it."""
        allocation, cluster = self._schedule.allocation, self._prepared.cluster
        if allocation is None or cluster is None:
            return None
        return allocation.totals(cluster.classes, cluster.demands)

    def _per_node(self, which: npt.NDArray[np.int32]) -> list[str]:
        """Return what jobs have of each node that they share, see `bridge.cluster.amounts_text`."""
        allocation, cluster = self._schedule.allocation, self._prepared.cluster
        assert allocation is not None
        assert cluster is not None
        shares = cluster.shares_nodes(which)
        return [
            amounts_text(allocation.of_nodes(j, cluster.classes, cluster.demands), UNCOUNTED)
            if shared
            else ""
            for j, shared in zip(which.tolist(), shares.tolist(), strict=True)
        ]

    @cached_property
    def history(self) -> ReasonHistory:
        """The history of the jobs' reasons; on a cluster."""
        assert self._prepared.cluster is not None
        return build_history(self._prepared.cluster, self._schedule, self._prepared.estimate.waiting)

    @cached_property
    def main_reasons(self) -> list[str]:
        """The reason that held each job longest."""
        return self.history.main_reasons()

    def _state(self, which: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
        """Return the places of final states in `_STATES` [n]."""
        killed = self._killed(which).view(np.int8)
        if self._schedule.ran is not None:  # cut short by a preemption or a failure
            cut = self._schedule.ran[which] < self._prepared.jobs.run[which]
            killed = np.where(cut, np.int8(3), killed)
        return np.where(self._schedule.start[which] < 0, np.int8(2), killed)

    def _episodes(self, which: npt.NDArray[np.int32]) -> Ints:
        """Return which run of its job each row is, from 0."""
        runs = self._schedule.node_lives
        if runs is None or not len(runs.records):
            return np.zeros(len(which), np.int64)
        place = runs.last_of(len(self._schedule.start))[which]
        episodes: Ints = np.where(place >= 0, runs.records.episode[place], 0).astype(np.int64)
        return episodes

    def _start_kinds(self, which: npt.NDArray[np.int32]) -> Any:
        """Return how each job's (last) life began."""
        import pyarrow as pa
        import pyarrow.compute as pc

        how, otherwise = self._schedule.how[which], "" if self._prepared.recorded else "head"
        if self._schedule.lives is None:
            return pc.if_else(how == HOW_BACKFILLED, "backfilled", otherwise)
        kinds = {HOW_BACKFILLED: "backfilled", HOW_SPECULATIVE: "speculative", HOW_GUEST: "guest"}
        return pa.array([kinds.get(kind, otherwise) for kind in how.tolist()], pa.string())

    def _columns(self, which: npt.NDArray[np.int32]) -> dict[str, Callable[[], Any]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        jobs, schedule = self._prepared.jobs, self._schedule
        waits_since = schedule.submit if schedule.eligible is None else schedule.eligible
        # of a job with several lives: all the time that it did not work for its last run
        begin = schedule.start if schedule.lives is None else schedule.end - jobs.run
        ran = jobs.run if schedule.ran is None else schedule.ran
        if schedule.ran is not None:
            begin = schedule.end - ran

        def text(ids: Ids) -> Any:
            return pc.cast(pa.array(ids), pa.string())

        def seconds(times: Ints) -> Floats:
            return times[which] / SECOND

        def started(values: Any) -> Any:
            """Return times of jobs, NaN for those that never started."""
            never = schedule.start[which] < 0
            return np.where(never, np.nan, values) if never.any() else values

        def stretch() -> Any:
            run = ran[which]
            lasted = (schedule.end[which] - schedule.submit[which]) / SECOND
            return lasted / np.where(run > 0, run / SECOND, np.nan)

        def overtook() -> Any:
            past = schedule.past[which]
            return text_column(pc.if_else(past >= 0, text(jobs.id[past]), ""))

        def reserved() -> Any:
            return np.where(schedule.reserved[which] >= 0, seconds(schedule.reserved), np.nan)

        columns: dict[str, Callable[[], Any]] = {
            "job_id": lambda: text_column(text(jobs.id[which])),
            "workload_name": lambda: jobs.name,
            "profile": lambda: text_column(text(jobs.id[which])),
            "submission_time": lambda: seconds(schedule.submit),
            "requested_number_of_resources": lambda: jobs.demand[which, 0],
            "requested_time": lambda: seconds(jobs.request),
            "success": lambda: (self._state(which) == 0).astype(np.int64),
            "final_state": lambda: text_column(pa.array(_STATES).take(pa.array(self._state(which)))),
            "starting_time": lambda: started(seconds(schedule.start)),
            "execution_time": lambda: started(seconds(ran)),
            "finish_time": lambda: started(seconds(schedule.end)),
            "waiting_time": lambda: started((begin[which] - waits_since[which]) / SECOND),
            "turnaround_time": lambda: started((schedule.end[which] - schedule.submit[which]) / SECOND),
            "stretch": lambda: started(stretch()),
            "allocated_resources": lambda: "",
            "consumed_energy": lambda: np.broadcast_to(-1.0, len(which)),
            "metadata": lambda: "",
            "user": lambda: jobs.user[which],
            "queue": lambda: jobs.queue[which],
            "start_kind": lambda: text_column(self._start_kinds(which)),
            "overtook": overtook,
            "reserved_time": reserved,
        }
        columns |= self._further_columns(which)
        for r, name in enumerate(jobs.resources[1:], 1):
            columns[name] = partial(jobs.demand.__getitem__, (which, r))
        return columns

    def _further_columns(self, which: npt.NDArray[np.int32]) -> dict[str, Callable[[], Any]]:
        """Return the columns of what only some replays have: a record, a cluster, jobs with several lives."""
        import pyarrow as pa

        jobs, schedule = self._prepared.jobs, self._schedule
        columns: dict[str, Callable[[], Any]] = {}

        def seconds(times: Ints) -> Floats:
            return times[which] / SECOND

        if not self._prepared.recorded and (jobs.logged_wait >= 0).any():
            columns[RECORDED_WAIT] = lambda: np.where(
                jobs.logged_wait[which] >= 0, seconds(jobs.logged_wait), np.nan
            )
        if self._prepared.recorded and ELIGIBLE in jobs.extra:
            columns["eligible_time"] = lambda: jobs.extra[ELIGIBLE][which]
        if (record := self._prepared.recorded_nodes) is not None:
            columns |= record.columns(which)
        if (cluster := self._prepared.cluster) is not None and schedule.eligible is not None:
            eligible = schedule.eligible
            columns |= {
                "eligible_time": lambda: np.where(eligible[which] >= 0, seconds(eligible), np.nan),
                "episode": lambda: self._episodes(which),
                "partition": lambda: text_column(pa.array(cluster.partition_names(which), pa.string())),
                "reason": lambda: text_column(pa.array([self.main_reasons[j] for j in which], pa.string())),
                "reasons": lambda: text_column(pa.array(self.history.texts(which), pa.string())),
                "qos": lambda: text_column(_texts(cluster.requests.qos, which)),
                "account": lambda: text_column(_texts(cluster.requests.account, which)),
            }
            columns["shares_nodes"] = lambda: cluster.shares_nodes(which)
            if schedule.node_lives is not None and len(schedule.node_lives.stands):
                stood = schedule.node_lives.suspensions()
                columns[SUSPENDED] = lambda: [format_spans(stood.get(j, ())) for j in which.tolist()]
            if (had := self._had) is not None:
                started_here = schedule.start[which] >= 0
                nodes = np.where(started_here, had["nodes"][which], jobs.demand[which, 0])
                columns["requested_number_of_resources"] = lambda: nodes
                columns["cores"] = lambda: had["cores"][which]
                columns["gpus"] = lambda: had["gpus"][which] / MILLI
                columns[PER_NODE] = lambda: text_column(pa.array(self._per_node(which), pa.string()))
        if (lives := schedule.lives) is not None:
            columns |= {
                "first_start_time": lambda: seconds(lives.first_start),
                "stops": lambda: lives.stops[which],
                "suspensions": lambda: lives.suspensions[which],
                "occupied_time": lambda: seconds(lives.occupied),
                "lost_time": lambda: seconds(lives.lost),
                PROGRESS: lambda: seconds(lives.progress),
            }
        return columns
