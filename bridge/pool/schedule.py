"""What became of a pool's jobs: arrays of steps, and a jobs table in the columns that all runs share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.arrow import text_column
from bridge.errors import BridgeError
from bridge.pool.jobset import CORES_PER_UNIT, STEP_SECONDS
from bridge.pool.state import Floats, Ints, Records, State

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Schedule:
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
    def ended(self) -> npt.NDArray[np.bool_]:
        """[n] which jobs ended."""
        return self.end >= 0

    @property
    def completion(self) -> Floats:
        """Steps from arrival to end of the jobs that ended (RLSchert, Equation 14)."""
        done = self.ended
        return (self.end[done] - self.submit[done]).astype(np.float64)

    @property
    def wait(self) -> Ints:
        """Steps from arrival to the last start of the jobs that ended, what was run in vain included."""
        done = self.ended
        return self.start[done] - self.submit[done]

    @property
    def slowdown(self) -> Floats:
        """Completion time over true length, of the jobs that ended (RLSchert, Equation 13)."""
        return self.completion / self.length[self.ended]


def schedule_of(state: State, b: int) -> Schedule:
    """Return a copy of what has become of the jobs of pool `b` that have arrived."""
    env = state.env[b]
    jobs = state.jobs[b, : env.n_submitted]

    def column(name: str) -> Ints:
        return np.array(jobs[name], np.int64)

    return Schedule(
        **{
            name: column(name)
            for name in ("id", "submit", "units", "length", "start", "end", "kills", "lost")
        },
        attempts=state.kills[b, : min(env.n_kills, state.kills.shape[1])].copy(),
        n_rejected=int(env.n_rejected),
    )


def jobs_table(
    schedule: Schedule,
    name: str,
    *,
    attempts: bool = False,
    cores: int = CORES_PER_UNIT,
    hosts: Sequence[str] = (),
) -> "pd.DataFrame":
    """Return one row per job in the order of completion, in Batsim's columns; seconds and cores.

    Beyond these: ``kills`` and ``lost_time`` (s). Job ids are the place in the sequence (1, 2, …), because
    a sequence may hold the same logged job twice, whose id is the ``profile``. The start is that of the
    attempt that ended, so that the waiting time includes all that was lost.

    Args:
        schedule: all of its jobs have ended.
        name: the workload's.
        attempts: also one row per killed attempt (``COMPLETED_KILLED``, id ``J#1``, ``J#2``, …), submitted
            when the job was; what is counted per job leaves them out (`bridge.judge.jobs.attempts`).
        cores: in a unit; 1 for a table of units.
        hosts: of each job and, behind them, of each killed attempt, as Batsim writes them; none if not known.

    Raises:
        BridgeError: a job did not end.
    """
    import pandas as pd
    import pyarrow as pa

    if not schedule.ended.all():
        raise BridgeError(
            f"{np.count_nonzero(~schedule.ended)} jobs did not end",
            where=name,
            remedy="Allow more steps (last_step) or a larger backlog.",
        )
    job, start, end = np.arange(len(schedule.id)), schedule.start, schedule.end
    ids = [str(j + 1) for j in job]
    if attempts:
        seen: dict[int, int] = {}
        for j in schedule.attempts["job"]:
            seen[int(j)] = seen.get(int(j), 0) + 1
            ids.append(f"{j + 1}#{seen[int(j)]}")
        if sum(seen.values()) < schedule.kills.sum():
            raise BridgeError("more attempts were killed than are remembered", where=name)
        job = np.concatenate((job, schedule.attempts["job"].astype(np.int64)))
        start = np.concatenate((start, schedule.attempts["start"].astype(np.int64)))
        end = np.concatenate((end, schedule.attempts["end"].astype(np.int64)))
    killed = np.arange(len(job)) >= len(schedule.id)
    order = np.lexsort((job, end))
    job, start, end, killed = job[order], start[order], end[order], killed[order]
    submit = schedule.submit[job]
    run, turnaround = end - start, end - submit
    return pd.DataFrame(
        {
            "job_id": text_column(pa.array([ids[k] for k in order])),
            "workload_name": name,
            "profile": text_column(pa.array([str(i) for i in schedule.id[job]])),
            "submission_time": submit * float(STEP_SECONDS),
            "requested_number_of_resources": schedule.units[job] * cores,
            "requested_time": -1.0,
            "success": (~killed).astype(np.int64),
            "final_state": text_column(
                pa.array(np.where(killed, "COMPLETED_KILLED", "COMPLETED_SUCCESSFULLY"))
            ),
            "starting_time": start * float(STEP_SECONDS),
            "execution_time": run * float(STEP_SECONDS),
            "finish_time": end * float(STEP_SECONDS),
            "waiting_time": (start - submit) * float(STEP_SECONDS),
            "turnaround_time": turnaround * float(STEP_SECONDS),
            "stretch": turnaround / run,
            "allocated_resources": text_column(pa.array([hosts[k] if hosts else "" for k in order])),
            "consumed_energy": -1.0,
            "metadata": "",
            "kills": np.where(killed, 0, schedule.kills[job]),
            "lost_time": np.where(killed, 0, schedule.lost[job]) * float(STEP_SECONDS),
        }
    )
