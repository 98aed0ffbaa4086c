"""The present of a live partition as a state's file, and what is believed of its jobs' run times."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.forecasting.starts import forecast
from bridge.forecasting.state import MachineState
from bridge.forecasting.statefile import FORMAT, VERSION, state_of
from bridge.prediction.quantiles import LEVELS, OnlineQuantiles
from bridge.prediction.submissions import MICRO, Submissions, of_workload
from bridge.workload.table import Workload
from bridge.worlds.slurm.client import Client, Control, QueueEntry, is_held_by_us, walltime_from_comment
from bridge.worlds.slurm.install import configuration, rights
from bridge.worlds.slurm.jobs import HAS_NODES, OWN_HOLD, PartitionNodes
from bridge.worlds.slurm.live_scheduler import LONGEST


class RunTimeModel:
    """Distributions of run times of the jobs that had ended when the history was written.

    `history`: of `bridge workload import sacct` (else BridgeError): its clock is that of its header's
    UnixStartTime, users are told by name. Without, any part of a job's limit is as likely as another.
    """

    def __init__(self, history: Workload | None = None) -> None:
        self._origin, self._users, self._online = 0, dict[str, int](), OnlineQuantiles()
        if history is None:
            return
        table = history.jobs
        origin = history.header.get("UnixStartTime", "")
        if not origin.isdigit() or "user_name" not in table:
            what = "does not say when it was, or whose its jobs were"
            remedy = "Give what `bridge workload import sacct … --out LOG.parquet` wrote."
            raise BridgeError(what, where=history.where, remedy=remedy)
        self._origin = int(origin)
        history_jobs = of_workload(history)
        user_codes, names = pd.factorize(table["user_name"])
        self._users = {str(name): code for code, name in enumerate(names)}
        unknown = np.full(len(history_jobs), -1, np.int64)  # what squeue does not tell
        codes = np.asarray(user_codes, np.int64)
        history_jobs = replace(history_jobs, group=unknown, executable=unknown, queue=unknown, user=codes)
        ended = np.flatnonzero(history_jobs.run > 0)
        self._online.update(history_jobs.take(ended[np.argsort(history_jobs.end[ended], kind="stable")]))

    def into(self, document: dict[str, Any]) -> None:
        jobs = [*document["running"], *document["waiting"]]
        if not jobs:
            return
        document["levels"] = LEVELS.tolist()
        for job, quantiles in zip(jobs, self._online.predict(self._submissions(jobs)).tolist(), strict=True):
            job["quantiles"] = quantiles

    def _submissions(self, jobs: Sequence[dict[str, Any]]) -> Submissions:
        unknown = np.full(len(jobs), -1, np.int64)
        return Submissions(
            submit=np.array([round((job["submit"] - self._origin) * MICRO) for job in jobs], np.int64),
            run=unknown,
            request=np.array([round(job["request"] * MICRO) for job in jobs], np.int64),
            wait=unknown,
            procs=np.array([job["demand"]["nodes"] for job in jobs], np.int64),
            user=np.array([self._users.get(job["user"], -1) for job in jobs], np.int64),
            group=unknown,
            executable=unknown,
            queue=unknown,
        )


_TINY: Mapping[str, Any] = {
    "format": FORMAT,
    "version": VERSION,
    "now": 9,
    "capacity": {"nodes": 2},
    "free": {"nodes": 1},
    "running": [{"id": 1, "submit": 0, "start": 1, "request": 60, "demand": {"nodes": 1}}],
    "waiting": [{"id": 2, "submit": 2, "request": 60, "demand": {"nodes": 2}}],
}


def warm_up() -> None:
    """Compile or load the kernels of futures: the first time takes half a minute."""
    forecast(state_of(_TINY), futures=2)


@dataclass(frozen=True)
class PartitionState:
    """Slurm's answers at one time, as a state's document; times in seconds since 1970.

    `not_forecast`: label -> why nothing is forecast of a job that waits.
    """

    document: dict[str, Any]
    rows: tuple[QueueEntry, ...]
    not_forecast: dict[str, str]

    def machine_state(self) -> MachineState:
        """Return the state of which futures are played."""
        return state_of(self.document, "Slurm")


class PartitionObserver:
    """Reads running jobs, waiting jobs and free nodes of a partition; changes nothing.

    The queue is believed to be worked off by the policy. `private`: the cluster keeps jobs of others private
    (PrivateData). Raises BridgeError: there is no such partition, slurmctld does not answer, or it hides
    others' jobs from us.
    """

    _details = False  # of jobs, from scontrol

    def __init__(
        self, client: Client, partition: str, policy: str = "fcfs+easy", beliefs: RunTimeModel | None = None
    ) -> None:
        self.client, self.partition, self.policy = client, partition, policy
        self._beliefs = beliefs or RunTimeModel()
        self._control = Control(client, details=self._details)
        #: key -> whether our gate holds it, and the request that its comment states.
        self._estimates: dict[str, tuple[bool, float | None]] = {}
        configured = configuration(client)
        self.private = "jobs" in configured.get("privatedata", "").split(",")
        if self.private and not rights(client, configured).is_ok:
            what = "hides other users' jobs (PrivateData=jobs): nobody can tell when yours start without them"
            raise BridgeError(what, where=f"partition {partition!r}", remedy="Ask as an Operator.")

    def warm_up(self) -> None:
        """Compile or load the kernels of this observer's futures."""
        warm_up()

    def close(self) -> None:
        self._control.close()

    def read(self) -> PartitionState:
        """Return the present.

        Jobs that wait for others or are held by their users are left out, and so are jobs that a policy could
        not decide for; nodes that other partitions' jobs use are out of service. Raises BridgeError:
        slurmctld does not answer.
        """
        client = self.client
        machine = PartitionNodes(client.nodes(self.partition), tuple(client.reservations()))
        everything = client.queue()
        now = time.time()
        rows = tuple(row for row in everything if self.partition in row.partition.split(","))
        occupied = frozenset().union(*(row.names for row in everything if row.state in HAS_NODES))
        running, waiting, not_forecast = [], [], {}
        here = {row.key for row in rows}
        self._estimates = {key: estimate for key, estimate in self._estimates.items() if key in here}
        for row in rows:
            if row.state in HAS_NODES:
                nodes = len(row.names & frozenset(machine.nodes))
                if row.start >= 0 and nodes and row.state != "COMPLETING":
                    start = min(max(row.start, row.submit), now)
                    running.append({**self._job(row, now), "start": start, "demand": {"nodes": nodes}})
            elif why := self._left(row, machine, now):
                not_forecast[row.label] = why
            else:
                waiting.append({**self._job(row, now), "demand": {"nodes": row.nodes}})
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "now": now,
            "policy": self.policy,
            "capacity": {"nodes": len(machine.nodes)},
            "free": {"nodes": len(machine.idle - occupied)},
            "running": running,
            "waiting": waiting,
        }
        self._beliefs.into(document)
        return PartitionState(document, rows, not_forecast)

    def _job(self, row: QueueEntry, now: float) -> dict[str, Any]:
        request = max(min(self._show(row)[1] or row.limit, float(LONGEST)), 1.0)
        submit = min(float(row.submit), now)
        return {"id": row.label, "submit": submit, "user": row.user, "request": request}

    def _left(self, row: QueueEntry, machine: PartitionNodes, now: float) -> str:
        """Return why a waiting job has no forecast, empty if it has one."""
        return self._held_back(row, now) or machine.reason_left_to_slurm(row)

    def _held_back(self, row: QueueEntry, now: float) -> str:
        """Return what else than resources holds a waiting job, if anything."""
        if row.dependency:
            return f"waits for {row.dependency}"
        if row.priority == 0 and not self._show(row)[0]:
            return OWN_HOLD
        return "begins later" if row.earliest_start(now) else ""

    def _show(self, row: QueueEntry) -> tuple[bool, float | None]:
        """Query what squeue does not show, once for each job."""
        if row.key not in self._estimates:
            answer = self._control(f"show job {row.label}")
            self._estimates[row.key] = (
                is_held_by_us(answer),
                walltime_from_comment(answer.rpartition(" Comment=")[2]),
            )
        return self._estimates[row.key]
