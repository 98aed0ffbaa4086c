"""The files that Batsim writes: jobs, schedule, machine states, power states, consumed energy, Pajé trace.

Rows go out as they are made, so that whatever ends the process, the files hold what has happened; only the
one-line schedule summary is written at the end, under a temporary name first.
"""

import colorsys
import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.wire.hosts import from_ids, text_of
from bridge.worlds.simgrid.machines import (
    COMPUTING,
    IDLE,
    SLEEPING,
    STATES,
    SWITCHING_OFF,
    SWITCHING_ON,
    SimulatedHosts,
)
from bridge.worlds.simgrid.workload import REJECTED, SUCCESS, Job

#: The release of Batsim whose behaviour and files are reproduced.
BATSIM_VERSION = "v4.2.1"

_JOB_COLUMNS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata"
)
_MEASURES = ("waiting_time", "turnaround_time", "slowdown")
_STATE_COLUMNS = (SLEEPING, SWITCHING_ON, SWITCHING_OFF, IDLE, COMPUTING)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "The folder in --export PREFIX must exist, and have room."
        raise BridgeError(f"cannot be written: {error.strerror}", where=path, remedy=remedy) from None


class OutputFile:
    """A file that is flushed after each line (or ``buffering`` bytes), its first line written."""

    def __init__(self, path: str, header: str, buffering: int = 1) -> None:
        with _writing(path):
            self._file = open(path, "w", encoding="utf-8", buffering=buffering)  # noqa: SIM115, PTH123 — closed with the simulation
        self._line(header)

    def _line(self, text: str) -> None:
        try:  # no context manager yet: this is done for every machine of every job
            self._file.write(text + "\n")
        except OSError as error:
            with _writing(self._file.name):
                raise error

    def close(self) -> None:
        with _writing(self._file.name):
            self._file.close()


class JobsTable(OutputFile):
    """``_jobs.csv``, and the sums that ``_schedule.csv`` is made of."""

    def __init__(self, prefix: str) -> None:
        self._schedule = Path(prefix + "_schedule.csv")
        with _writing(str(self._schedule)):
            self._schedule.unlink(missing_ok=True)
        super().__init__(prefix + "_jobs.csv", _JOB_COLUMNS)
        self._started = time.monotonic()
        self._states: Counter[str] = Counter()
        self._makespan = 0.0
        self._sums = dict.fromkeys(_MEASURES, 0.0)
        self._maxima = dict.fromkeys(_MEASURES, 0.0)

    def write(self, job: Job) -> None:
        self._states[job.state] += 1
        names = f"{job.name},{job.workload.name},{job.profile.name}"
        head = f"{names},{job.subtime:f},{job.n_hosts},{job.walltime:f}"
        if job.state == REJECTED:
            self._line(f'{head},0,{REJECTED},,,,,,,,,"{job.metadata}"')
            return
        waiting = round(job.start - job.subtime, 9) + 0.0  # never -0, where the clock is short of a date
        end = job.start + job.runtime
        turnaround = end - job.subtime
        slowdown = turnaround / job.runtime
        for name, value in zip(_MEASURES, (waiting, turnaround, slowdown), strict=True):
            self._sums[name] += value
            self._maxima[name] = max(self._maxima[name], value)
        self._makespan = max(self._makespan, end)
        self._line(
            f"{head},{job.state == SUCCESS:d},{job.state},{job.start:f},{job.runtime:f},{end:f},{waiting:f},"
            f"{turnaround:f},{slowdown:f},{text_of(from_ids(job.allocation))},{job.energy:f},"
            f'"{job.metadata}"'
        )

    def write_schedule(
        self, machines: SimulatedHosts, scheduling_s: float, energy_j: float, switches: tuple[int, int]
    ) -> None:
        """Write ``_schedule.csv``: the whole run in one line.

        `scheduling_s`, `energy_j`: wall time that the decision process took; consumed while there were jobs.
        `switches`: requested changes of power state, and machines that they concerned.
        """
        jobs, rejected, successes = self._states.total(), self._states[REJECTED], self._states[SUCCESS]
        values: dict[str, Any] = {
            "batsim_version": BATSIM_VERSION,
            "consumed_joules": energy_j,
            "makespan": self._makespan,
            "nb_computing_machines": len(machines.all),
            "nb_grouped_switches": switches[0],
            "nb_machine_switches": switches[1],
            "nb_jobs": jobs,
            "nb_jobs_finished": jobs - rejected,
            "nb_jobs_killed": jobs - rejected - successes,
            "nb_jobs_rejected": rejected,
            "nb_jobs_success": successes,
            "scheduling_time": scheduling_s,
            "simulation_time": time.monotonic() - self._started,
            "success_rate": successes / jobs if jobs else -math.nan,
        }
        for name in _MEASURES:
            values[f"max_{name}"] = self._maxima[name]
            values[f"mean_{name}"] = self._sums[name] / jobs if jobs else -math.nan
        for state in STATES:
            values[f"time_{state}"] = sum((machine.times[state] for machine in machines.all), 0.0)
        names = sorted(values)
        text = f"{','.join(names)}\n{','.join(_cell(values[name]) for name in names)}\n"
        temporary = self._schedule.with_name(f".{self._schedule.name}.{os.getpid()}")
        with _writing(str(self._schedule)):
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._schedule)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-nan" if math.isnan(value) else f"{value:f}"
    return str(value)


class StatesTable(OutputFile):
    """``_machine_states.csv``: how many machines are in each state, whenever that may have changed."""

    def __init__(self, prefix: str, machines: SimulatedHosts) -> None:
        self._count = machines.count
        header = ",".join(["time", *map("nb_{}".format, _STATE_COLUMNS)])
        super().__init__(f"{prefix}_machine_states.csv", header)

    def write(self, now: float) -> None:
        self._line(f"{now:g}," + ",".join(str(self._count[state]) for state in _STATE_COLUMNS))


class PstatesTable(OutputFile):
    """``_pstate_changes.csv``: -1 and -2 stand for being on the way to a computation or a sleep state."""

    def __init__(self, prefix: str, machines: SimulatedHosts) -> None:
        super().__init__(prefix + "_pstate_changes.csv", "time,machine_id,new_pstate")
        for pstate in sorted({machine.host.pstate for machine in machines.all}):
            self.write(0.0, [m.id for m in machines.all if m.host.pstate == pstate], pstate)

    def write(self, now: float, machines: Sequence[int], pstate: int) -> None:
        self._line(f"{now:g},{text_of(from_ids(machines))},{pstate}")


class EnergyTable(OutputFile):
    """``_consumed_energy.csv``: energy (J) and least power (W) of all machines at starts, ends, switches."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix + "_consumed_energy.csv", "time,energy,event_type,wattmin,epower")
        self._time = 0.0
        self._energy = 0.0

    def write(self, now: float, energy: float, event: str, wattmin: float) -> None:
        """Add a row. Events: s for a job's start, e for its end, p for power states; epower: mean since."""
        span = now - self._time
        power = f"{(energy - self._energy) / span:f}" if span > 0 else "NA"
        self._line(f"{now:f},{energy:f},{event},{wattmin:f},{power}")
        self._time, self._energy = now, energy


#: How every trace begins: event numbers and aliases are those of Batsim's, so that viewers' settings work.
_HEAD = Path(__file__).with_name("paje.trace")
_CREATE, _DESTROY, _DEFINE_STATE, _DEFINE_VALUE, _SET, _NEW_EVENT = 2, 3, 4, 5, 6, 8
_COLOURS = 64


class PajeTrace(OutputFile):
    """The trace of one simulation. Dates are simulated seconds."""

    def __init__(self, prefix: str, machines: SimulatedHosts) -> None:
        self._machines = machines
        self._running: set[str] = set()
        self._colour = 0
        head = _HEAD.read_text("utf-8").rstrip("\n")
        super().__init__(prefix + "_schedule.trace", head, buffering=1 << 16)
        for line in (
            *(f'{_CREATE} 0.000000 machine_ct m{m.id} "{m.name}" root' for m in machines.all),
            f'{_CREATE} 0.000000 scheduler_ct sc "Scheduler" 0',
            f'{_CREATE} 0.000000 killer_ct k "Killer" sc',
            f'{_DEFINE_STATE} machine_state machine_ct "Machine state"',
            f'{_DEFINE_VALUE} w machine_state "Waiting" "0.0 0.0 0.0"',
        ):
            self._line(line)
        for machine in machines.all:
            self.idle(machine.id, 0.0)

    def idle(self, machine: int, now: float) -> None:
        self._line(f"{_SET} {now:f} machine_state m{machine} w")

    def computing(self, machine: int, job_id: str, now: float) -> None:
        """A machine runs a job (the one that has been on it for longest)."""
        if job_id not in self._running:
            self._running.add(job_id)
            red, green, blue = colorsys.hsv_to_rgb(self._colour / _COLOURS, 1, 1)
            self._colour = (self._colour + 27) % _COLOURS
            colour = f'"{red:f} {green:f} {blue:f}"'
            self._line(f'{_DEFINE_VALUE} j{job_id} machine_state "{job_id}" {colour}')
        self._line(f"{_SET} {now:f} machine_state m{machine} j{job_id}")

    def killed(self, job_id: str, machines: Sequence[int], now: float) -> None:
        self._line(f'{_NEW_EVENT} {now:f} kk k "{job_id}"')
        for machine in machines:
            self._line(f'{_NEW_EVENT} {now:f} km m{machine} "{job_id}"')

    def forget(self, job_id: str) -> None:
        self._running.discard(job_id)

    def end(self, now: float) -> None:
        """Destroy the containers and close the file."""
        for machine in self._machines.all:
            self._line(f"{_DESTROY} {now:f} m{machine.id} machine_ct")
        self._line(f"{_DESTROY} {now:f} root root_ct")
        self.close()
