"""``_schedule.trace``: what every machine did when, in the Pajé format (https://paje.sourceforge.net)."""

import colorsys
from collections.abc import Sequence

from bridge.simgrid.machines import Machines
from bridge.simgrid.outputs import open_table

# Event numbers and aliases are those of Batsim's traces, so that the same viewers' settings work.
_EVENTS = {
    1: ("PajeDefineContainerType", ("Type string", "Alias string", "Name string")),
    2: ("PajeCreateContainer",
        ("Time date", "Type string", "Alias string", "Name string", "Container string")),
    3: ("PajeDestroyContainer", ("Time date", "Name string", "Type string")),
    4: ("PajeDefineStateType", ("Alias string", "Type string", "Name string")),
    5: ("PajeDefineEntityValue", ("Alias string", "Type string", "Name string", "Color color")),
    6: ("PajeSetState", ("Time date", "Type string", "Container string", "Value string")),
    7: ("PajeDefineEventType", ("Type string", "Alias string", "Name string")),
    8: ("PajeNewEvent", ("Time date", "Type string", "Container string", "Value string")),
}  # fmt: skip
_DEFINE_CONTAINER, _CREATE, _DESTROY, _DEFINE_STATE, _DEFINE_VALUE, _SET, _DEFINE_EVENT, _NEW_EVENT = _EVENTS
_COLOURS = 64


class PajeTrace:
    """The trace of one simulation. Dates are simulated seconds."""

    def __init__(self, prefix: str, machines: Machines) -> None:
        self._machines = machines
        self._known: set[str] = set()
        self._colour = 0
        head = []
        for number, (name, fields) in _EVENTS.items():
            head += [f"%EventDef {name} {number}", *(f"% {field}" for field in fields), "%EndEventDef"]
        self._file = open_table(prefix + "_schedule.trace", "\n".join(head), buffering=1 << 16)
        write = self._file.write
        write(f'{_DEFINE_CONTAINER} 0 root_ct "Machines"\n{_DEFINE_CONTAINER} root_ct machine_ct "Machine"\n')
        write(f'{_DEFINE_CONTAINER} 0 scheduler_ct "Scheduler"\n')
        write(f'{_DEFINE_CONTAINER} scheduler_ct killer_ct "Killer"\n')
        write(f'{_DEFINE_EVENT} killer_ct kk "Job kill"\n{_DEFINE_EVENT} machine_ct km "Job kill"\n')
        write(f'{_CREATE} 0.000000 root_ct root "Machines" 0\n')
        for machine in machines:
            write(f'{_CREATE} 0.000000 machine_ct m{machine.id} "{machine.name}" root\n')
        write(
            f'{_CREATE} 0.000000 scheduler_ct sc "Scheduler" 0\n{_CREATE} 0.000000 killer_ct k "Killer" sc\n'
        )
        write(f'{_DEFINE_STATE} machine_state machine_ct "Machine state"\n')
        write(f'{_DEFINE_VALUE} w machine_state "Waiting" "0.0 0.0 0.0"\n')
        for machine in machines:
            self.idle(machine.id, 0.0)

    def idle(self, machine: int, now: float) -> None:
        """A machine runs no job any more."""
        self._file.write(f"{_SET} {now:f} machine_state m{machine} w\n")

    def computing(self, machine: int, job_id: str, now: float) -> None:
        """A machine runs a job (the one that has been on it for longest)."""
        if job_id not in self._known:
            self._known.add(job_id)
            red, green, blue = colorsys.hsv_to_rgb(self._colour / _COLOURS, 1, 1)
            self._colour = (self._colour + 27) % _COLOURS
            colour = f'"{red:f} {green:f} {blue:f}"'
            self._file.write(f'{_DEFINE_VALUE} j{job_id} machine_state "{job_id}" {colour}\n')
        self._file.write(f"{_SET} {now:f} machine_state m{machine} j{job_id}\n")

    def killed(self, job_id: str, machines: Sequence[int], now: float) -> None:
        """A job was killed or reached its walltime."""
        self._file.write(f'{_NEW_EVENT} {now:f} kk k "{job_id}"\n')
        for machine in machines:
            self._file.write(f'{_NEW_EVENT} {now:f} km m{machine} "{job_id}"\n')

    def forget(self, job_id: str) -> None:
        """A job will not be named again."""
        self._known.discard(job_id)

    def close(self, now: float) -> None:
        """End the trace: destroy the containers."""
        for machine in self._machines:
            self._file.write(f"{_DESTROY} {now:f} m{machine.id} machine_ct\n")
        self._file.write(f"{_DESTROY} {now:f} root root_ct\n")
        self._file.close()
