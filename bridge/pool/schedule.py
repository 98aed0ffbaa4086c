"""What became of a pool's jobs: arrays of steps, and a jobs table in the columns that all runs share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints, Records, text_column
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.pool.jobset import STEP_SECONDS
from bridge.pool.state import PoolState

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PoolSchedule:
    """The jobs that arrived in one pool, n of them; times in steps.

    Attributes:
        id, submit, units, length: [n].
        start, end: [n] of the attempt that ended; end is -1 for a job that did not end.
        kills, lost: [n] how often it was killed, and the steps that it had run until then.
        attempts: the killed attempts, records of `bridge.pool.state.KILL`.
        n_rejected: jobs that found the backlog full (they are among the n).
    """

    id: Ints
    submit: Ints
    units: Ints
    length: Ints
    start: Ints
    end: Ints
    kills: Ints
    lost: Ints
    attempts: Records
    n_rejected: int

    @property
    def ended(self) -> Flags:
        """[n] which jobs ended."""
        return self.end >= 0

    @property
    def completion(self) -> Floats:
        """Steps from arrival to end of the jobs that ended (RLSchert, Equation 14)."""
        done = self.ended
        return (self.end[done] - self.submit[done]).astype(np.float64)

    @property
    def wait(self) -> Ints:
        """Steps from arrival to the last start of the jobs that ended, killed attempts included."""
        done = self.ended
        return self.start[done] - self.submit[done]

    @property
    def slowdown(self) -> Floats:
        """Completion time over true length, of the jobs that ended (RLSchert, Equation 13)."""
        return self.completion / self.length[self.ended]


def schedule_of(state: PoolState, b: int) -> PoolSchedule:
    """Return a copy of the outcomes of the arrived jobs of pool `b`."""
    env = state.env[b]
    jobs = state.jobs[b, : env.n_submitted]
    names = ("id", "submit", "units", "length", "start", "end", "kills", "lost")
    return PoolSchedule(
        **{name: np.array(jobs[name], np.int64) for name in names},
        attempts=state.kills[b, : min(env.n_kills, state.kills.shape[1])].copy(),
        n_rejected=int(env.n_rejected),
    )


def jobs_table(schedule: PoolSchedule, name: str, hosts: Sequence[str] = ()) -> "pd.DataFrame":
    """Return one row per job and per killed attempt in the order of completion, in Batsim's columns; seconds.

    Beyond these: ``kills`` and ``lost_time`` (s). Job ids are the place in the sequence (1, 2, …), because a
    sequence may hold the same logged job twice, whose id is the ``profile``. The start is that of the attempt
    that ended, so that the waiting time includes all that was lost. Killed attempts (``COMPLETED_KILLED``, id
    ``J#1``, ``J#2``, …) are submitted when the job was; what is counted per job leaves them out
    (`bridge.judge.jobs.is_killed_attempt`). `hosts`: of each job and, behind them, of each killed attempt, as
    Batsim writes them. Raises BridgeError: a job did not end.
    """
    import pandas as pd
    import pyarrow as pa

    if not schedule.ended.all():
        remedy = "Allow more steps (last_step) or a larger backlog."
        raise BridgeError(
            f"{counted(int(np.count_nonzero(~schedule.ended)), 'job')} did not end", where=name, remedy=remedy
        )
    attempts, n, second = schedule.attempts, len(schedule.id), float(STEP_SECONDS)
    if len(attempts) < schedule.kills.sum():
        raise BridgeError("more attempts were killed than are remembered", where=name)
    job = np.concatenate((np.arange(n), attempts["job"]))
    start, end = (np.concatenate((getattr(schedule, x), attempts[x])) for x in ("start", "end"))
    number = pd.Series(job).groupby(job).cumcount()  # 0 for the job itself
    ids = [f"{j + 1}#{k}" if k else str(j + 1) for j, k in zip(job.tolist(), number.tolist(), strict=True)]
    order = np.lexsort((job, end))
    killed = order >= n
    job, start, end = job[order], start[order], end[order]
    submit = schedule.submit[job]
    run, turnaround = end - start, end - submit
    state = np.where(killed, "COMPLETED_KILLED", "COMPLETED_SUCCESSFULLY")
    return pd.DataFrame(
        {
            "job_id": text_column(pa.array([ids[k] for k in order])),
            "workload_name": name,
            "profile": text_column(pa.array([str(i) for i in schedule.id[job]])),
            "submission_time": submit * second,
            "requested_number_of_resources": schedule.units[job],
            "requested_time": -1.0,
            "success": (~killed).astype(np.int64),
            "final_state": text_column(pa.array(state)),
            "starting_time": start * second,
            "execution_time": run * second,
            "finish_time": end * second,
            "waiting_time": (start - submit) * second,
            "turnaround_time": turnaround * second,
            "stretch": turnaround / run,
            "allocated_resources": text_column(pa.array([hosts[k] if hosts else "" for k in order])),
            "consumed_energy": -1.0,
            "metadata": "",
            "kills": np.where(killed, 0, schedule.kills[job]),
            "lost_time": np.where(killed, 0, schedule.lost[job]) * second,
        }
    )
