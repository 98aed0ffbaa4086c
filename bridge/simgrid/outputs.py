"""The tables that Batsim writes: jobs, schedule, machine states, power states and consumed energy.

Rows go out as they are made, so that whatever ends the process, the files hold what has happened; only the
one-line schedule summary is written at the end, under a temporary name first.
"""

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from bridge.simgrid import intervals
from bridge.simgrid.errors import ModelError
from bridge.simgrid.machines import COMPUTING, IDLE, SLEEPING, STATES, SWITCHING_OFF, SWITCHING_ON, Machines
from bridge.simgrid.workload import REJECTED, SUCCESS, Job

#: The release of Batsim whose behaviour and files are reproduced.
BATSIM_VERSION = "v4.2.1"

_JOB_COLUMNS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata"
)
_STATE_COLUMNS = (SLEEPING, SWITCHING_ON, SWITCHING_OFF, IDLE, COMPUTING)


def open_table(path: str, header: str, buffering: int = 1) -> TextIO:
    """Create a file that is flushed after each line (or ``buffering`` bytes), and write its first line."""
    try:
        file = open(path, "w", encoding="utf-8", buffering=buffering)  # noqa: SIM115, PTH123 — closed with the simulation
    except OSError as error:
        raise ModelError(
            f"cannot be written: {error.strerror}",
            where=path,
            remedy="The folder in --export PREFIX must exist.",
        ) from None
    file.write(header + "\n")
    return file


class JobsTable:
    """``_jobs.csv``, and the sums that ``_schedule.csv`` is made of."""

    def __init__(self, prefix: str) -> None:
        self._schedule = Path(prefix + "_schedule.csv")
        self._schedule.unlink(missing_ok=True)
        self._file = open_table(prefix + "_jobs.csv", _JOB_COLUMNS)
        self._started = time.monotonic()
        self.jobs = self.finished = self.successes = self.killed = self.rejected = 0
        self._makespan = 0.0
        self._sums = [0.0, 0.0, 0.0]
        self._maxima = [0.0, 0.0, 0.0]

    def write(self, job: Job) -> None:
        """Add the row of a job that is complete. Only jobs that ran have times."""
        self.jobs += 1
        head = f"{job.name},{job.workload.name},{job.profile.name},{job.subtime:f},{job.res},{job.walltime:f}"
        if job.state == REJECTED:
            self.rejected += 1
            self._file.write(f'{head},0,{REJECTED},,,,,,,,,"{job.metadata}"\n')
            return
        success = job.state == SUCCESS
        self.finished += 1
        self.successes += success
        self.killed += not success
        waiting, end = job.start - job.subtime, job.start + job.runtime
        turnaround = end - job.subtime
        slowdown = turnaround / job.runtime
        values = (waiting, turnaround, slowdown)
        self._sums = [a + b for a, b in zip(self._sums, values, strict=True)]
        self._maxima = [max(a, b) for a, b in zip(self._maxima, values, strict=True)]
        self._makespan = max(self._makespan, end)
        self._file.write(
            f"{head},{success:d},{job.state},{job.start:f},{job.runtime:f},{end:f},{waiting:f},{turnaround:f},"
            f'{slowdown:f},{intervals.text_of(job.allocation)},{job.energy:f},"{job.metadata}"\n'
        )

    def close(self) -> None:
        """Flush and close the table of jobs."""
        self._file.close()

    def write_schedule(
        self, machines: Machines, scheduling_s: float, energy_j: float, switches: tuple[int, int]
    ) -> None:
        """Write ``_schedule.csv``: the whole run in one line.

        Args:
            scheduling_s: wall time spent waiting for the decision process.
            energy_j: consumed between the first submission and the last end of a job.
            switches: requested changes of power state, and machines that they concerned.
        """
        times = dict.fromkeys(STATES, 0.0)
        for machine in machines:
            for state, spent in machine.times.items():
                times[state] += spent
        mean = [value / self.jobs if self.jobs else -math.nan for value in self._sums]
        values: dict[str, Any] = {
            "batsim_version": BATSIM_VERSION,
            "consumed_joules": energy_j,
            "makespan": self._makespan,
            "max_waiting_time": self._maxima[0],
            "max_turnaround_time": self._maxima[1],
            "max_slowdown": self._maxima[2],
            "mean_waiting_time": mean[0],
            "mean_turnaround_time": mean[1],
            "mean_slowdown": mean[2],
            "nb_computing_machines": len(machines),
            "nb_grouped_switches": switches[0],
            "nb_machine_switches": switches[1],
            "nb_jobs": self.jobs,
            "nb_jobs_finished": self.finished,
            "nb_jobs_killed": self.killed,
            "nb_jobs_rejected": self.rejected,
            "nb_jobs_success": self.successes,
            "scheduling_time": scheduling_s,
            "simulation_time": time.monotonic() - self._started,
            "success_rate": self.successes / self.jobs if self.jobs else -math.nan,
        } | {f"time_{state}": spent for state, spent in times.items()}
        names = sorted(values)
        text = f"{','.join(names)}\n{','.join(_cell(values[name]) for name in names)}\n"
        temporary = self._schedule.with_name(f".{self._schedule.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self._schedule)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-nan" if math.isnan(value) else f"{value:f}"
    return str(value)


class StatesTable:
    """``_machine_states.csv``: how many machines are in each state, whenever that may have changed."""

    def __init__(self, prefix: str, machines: Machines) -> None:
        self._count = machines.count
        self._file = open_table(
            prefix + "_machine_states.csv", "time," + ",".join(f"nb_{s}" for s in _STATE_COLUMNS)
        )

    def write(self, now: float) -> None:
        """Add a row."""
        count = self._count
        self._file.write(
            f"{now:g},{count[SLEEPING]},{count[SWITCHING_ON]},{count[SWITCHING_OFF]},{count[IDLE]},{count[COMPUTING]}\n"
        )

    def close(self) -> None:
        """Flush and close the table."""
        self._file.close()


class PstatesTable:
    """``_pstate_changes.csv``: -1 and -2 stand for being on the way to a computation or a sleep state."""

    def __init__(self, prefix: str, machines: Machines) -> None:
        self._file = open_table(prefix + "_pstate_changes.csv", "time,machine_id,new_pstate")
        first: dict[int, list[int]] = {}
        for machine in machines:
            first.setdefault(machine.host.pstate, []).append(machine.id)
        for pstate in sorted(first):
            self.write(0.0, first[pstate], pstate)

    def write(self, now: float, machines: Sequence[int], pstate: int) -> None:
        """Add a row."""
        self._file.write(f"{now:g},{intervals.text_of(machines)},{pstate}\n")

    def close(self) -> None:
        """Flush and close the table."""
        self._file.close()


class EnergyTable:
    """``_consumed_energy.csv``: energy (J) and least power (W) of all machines at starts, ends, switches."""

    def __init__(self, prefix: str) -> None:
        self._file = open_table(prefix + "_consumed_energy.csv", "time,energy,event_type,wattmin,epower")
        self._time = 0.0
        self._energy = 0.0

    def write(self, now: float, energy: float, event: str, wattmin: float) -> None:
        """Add a row; ``epower`` is the mean power since the last one.

        Args:
            event: s for a job's start, e for its end, p for a change of power state.
        """
        span = now - self._time
        power = f"{(energy - self._energy) / span:f}" if span > 0 else "NA"
        self._file.write(f"{now:f},{energy:f},{event},{wattmin:f},{power}\n")
        self._time, self._energy = now, energy

    def close(self) -> None:
        """Flush and close the table."""
        self._file.close()
