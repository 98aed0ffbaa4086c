"""One experiment in the detailed world: files, platform program, decision process, and how it all ended."""

import re
import shlex
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Template

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.interrupts import hold_interrupts
from bridge.config.fields import record_of
from bridge.experiment.program import (
    BATSIM5,
    ENVIRONMENT,
    PREFIX,
    UNGUARDED,
    Child,
    PlatformProgram,
    find,
    where,
)
from bridge.experiment.spec import Detailed
from bridge.platform.model import Platform
from bridge.worlds.batsim.endpoint import Endpoint, PeerGoneError
from bridge.worlds.batsim.process import DecisionProcess, warm_up
from bridge.worlds.batsim.result import ExitReason, ProcessResult

#: In a frame, for every job that has finished, whichever Batsim says so.
_FINISHED = re.compile(rb'"JOB_COMPLETED"|"JobCompletedEvent"')
#: Files beside the simulation's own.
LOG, DECISIONS, AGAIN = "platform.log", "decisions.json", "again.sh"
#: Wall time for the platform program to end by itself once the simulation is over, s.
_FAREWELL = 120.0
#: Wall time between two looks at files that a program elsewhere is still writing, s.
_GLANCE = 0.1
#: How far the clock of a file system may be behind, s.
_CLOCK = 1.0
#: Exit status of each world's program when nothing can happen any more.
_DEADLOCK = {"simgrid": 3, "batsim": 0, BATSIM5: 1}
#: Batsim's usual port, for runs by hand.
_PORT = 28000


class WatchedEndpoint(Endpoint):
    """An endpoint that gives up once nobody can send (`gone`); `progress` takes how many jobs have ended."""

    def __init__(
        self, address: str, gone: Callable[[], bool], progress: Callable[[int], None], **more: Any
    ) -> None:
        self._gone, self._progress, self._finished = gone, progress, 0
        super().__init__(address, **more)

    def receive(self) -> bytes:
        frame = super().receive()
        ended = len(_FINISHED.findall(frame))
        if ended:
            self._finished += ended
            self._progress(self._finished)
        return frame

    def _look(self) -> None:
        super()._look()
        if self._gone():
            raise PeerGoneError("the platform program ended", where=self.address)


class Simulation(Protocol):
    """What is simulated, and who decides, as a `bridge.experiment.prepare.PreparedExperiment` says.

    `hosts` are the compute hosts of the platform, `nodes` how many of them the machine has.
    """

    @property
    def on(self) -> str: ...
    @property
    def detailed(self) -> Detailed: ...
    @property
    def platform(self) -> Platform | None: ...
    @property
    def hosts(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def n_jobs(self) -> int: ...
    @property
    def shares_nodes(self) -> bool: ...

    def process(self) -> DecisionProcess:
        """Return who decides."""

    def write_inputs(self, folder: Path) -> None:
        """Write platform and workload to a folder."""

    def repeat_command(self, socket: str) -> tuple[str, ...]:
        """Return the command line that decides once more, where the inputs and a folder ``again`` are."""


@dataclass(frozen=True)
class DetailedRun:
    """A detailed run, complete or not.

    What the decision process saw and did, the simulation's files, the command that was started (or has to be,
    by hand), what it says of its version if asked, its exit status if that is known, and what went wrong.
    """

    result: ProcessResult
    folder: Path
    command: tuple[str, ...]
    version: str
    status: int | None
    fault: BridgeError | None

    def record_fields(self, task: Simulation) -> dict[str, Any]:
        result, platform = self.result, task.platform
        return {
            "platform": platform.root.name if platform is not None else "",
            "profile": str(task.detailed.kind),
            "placement": task.detailed.placement,
            "program": list(self.command),
            "program_version": self.version,
            "status": self.status,
            "outcome": result.outcome.name.lower(),
            "explanation": result.explain(),
            "messages": result.messages,
            "counts": result.counts(),
            "locality": record_of(result.locality),
            "refused": len(result.refusals),
        }

    @property
    def exit_status(self) -> int:
        """Exit status of a command that did this: 0, or that of the decision process, or 1."""
        return 0 if self.fault is None else self.result.outcome.status or 1


def run_simulation(
    task: Simulation,
    folder: Path,
    *,
    progress: Callable[[int], None] = lambda _: None,
    start: bool = True,
    socket: str = "tcp://127.0.0.1:*",
    waiting: Callable[[str], None] = lambda _: None,
) -> DetailedRun:
    """Run a task's detailed world to its end, whatever that is, within `interrupts_once`.

    Illegal decisions, a dead or silent program, missing jobs and Ctrl-C are a `fault` in what is returned;
    nothing that was started here runs any more. `folder` takes the simulation's files, `progress` the number
    of jobs that have finished. Without `start` somebody else starts the platform program there, by the
    command line that `waiting` is called with. Raises BridgeError: the program is missing, or the setup or an
    input cannot work: nothing was run.
    """
    detailed = task.detailed
    program = find(task.on, detailed, folder) if start else PlatformProgram((task.on,))
    version = program.version() if start else ""
    process = task.process()
    warm_up()
    task.write_inputs(folder)
    with ExitStack() as open_things:
        child: Child | None = None
        limits = {"startup_timeout": detailed.startup_timeout, "idle_timeout": detailed.idle_timeout}
        bound = WatchedEndpoint(socket, lambda: child is not None and child.ended, progress, **limits)
        endpoint = open_things.enter_context(bound)
        there = f"tcp://localhost:{endpoint.address.rpartition(':')[2]}"
        command = (*program.command, *options(task, there))
        write_again(task, folder)
        try:
            if start:
                around = {} if task.on == "simgrid" else ENVIRONMENT
                child = open_things.enter_context(Child(command, folder, folder / LOG, program.stop, around))
            else:
                waiting(_by_hand(task, there))
            result = process.run(endpoint)
        except KeyboardInterrupt:  # between two messages
            result = process.result(ExitReason.INTERRUPTED)
        hold_interrupts()  # the simulation is over: a request to stop must not cost us its files
        status = _farewell(child, result, folder, task.on)
    result.write(folder / DECISIONS)
    return DetailedRun(result, folder, command, version, status, _fault(task, result, child, status))


def _farewell(child: Child | None, result: ProcessResult, folder: Path, on: str) -> int | None:
    """Wait until the platform program has written its files, or end it; return its exit status."""
    over = result.dispatcher.ended or result.outcome is ExitReason.GONE
    if child is None:
        if result.dispatcher.ended:
            _await_summary(folder, on, time.time())
        return None
    status = child.wait(_FAREWELL) if over else None
    return child.end() if status is None else status


def _await_summary(folder: Path, on: str, since: float) -> None:
    """Wait for the file that Batsim writes last; nothing else tells when a Batsim elsewhere is done."""
    # since: clock time of the simulation's end, before which an earlier simulation wrote the file
    summary = folder / f"{PREFIX}_schedule.{'json' if on == BATSIM5 else 'csv'}"
    for _ in range(round(_FAREWELL / _GLANCE)):
        written = summary.stat().st_mtime if summary.exists() else 0.0
        if written > since - _CLOCK and summary.read_bytes().count(b"\n") >= 2:
            return
        time.sleep(_GLANCE)


def _fault(
    task: Simulation, result: ProcessResult, child: Child | None, status: int | None
) -> BridgeError | None:
    """Say what went wrong, if something did."""
    name = "the platform model" if task.on == "simgrid" else "Batsim"
    its_own = "Look where it was started; its last words are there."
    if child is not None:
        tail = child.read_tail()
        its_own = f"It said: {tail}" if tail else f"It said nothing; its files are in {LOG} and beside it."
    outcome, explained = result.outcome, result.explain()

    def fault(what: str, remedy: str = its_own, where: str = "") -> BridgeError:
        return BridgeError(what, where=where or task.on, remedy=remedy)

    if outcome is ExitReason.GONE and status in (0, _DEADLOCK[task.on]):
        waiting = any(job.state == "waiting" for job in result.jobs)
        why = "deadlock: " if waiting or result.missing else ""
        return fault(f"{why}{name} ended with status {status}, but SIMULATION_ENDS never came; {explained}")
    if outcome is ExitReason.GONE:
        how = "was gone" if status is None else f"ended with status {status}"
        if status and status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        when = (
            "before its first message"
            if not result.messages
            else f"after {counted(result.messages, 'message')}"
        )
        return fault(f"{name} {how} {when}; {explained}")
    if outcome is ExitReason.INTERRUPTED:
        return fault(explained, "What had happened until then is kept.")
    if outcome is not ExitReason.ENDED:
        error = result.error
        return fault(f"{explained}: {error.what}", error.remedy, error.where) if error else fault(explained)
    submitted = result.dispatcher.submitted
    if submitted < task.n_jobs:
        return fault(f"only {submitted:,} of {counted(task.n_jobs, 'job')} were ever submitted")
    lost = [job for job in result.jobs if job.state in ("rejected", "lost") and not job.by_rule]
    if result.refusals or lost:
        first = str(result.refusals[0]) if result.refusals else f"{lost[0].job_id} {lost[0].why}"
        held = f"{counted(len(result.refusals), 'decision was', 'decisions were')} held back"
        return fault(
            f"{counted(len(lost), 'job was', 'jobs were')} not run, {held}: {first}", f"See {DECISIONS}."
        )
    return fault(f"{name} ended with status {status} although the simulation had ended") if status else None


def options(task: Simulation, endpoint: str, prefix: str = PREFIX) -> list[str]:
    """Return the platform program's options; paths are relative to its folder."""
    detailed = task.detailed
    words = where(task.on, endpoint, prefix)
    words += ["--energy-host" if task.on == BATSIM5 else "-E"] if detailed.powered else []
    words += ["--mmax", str(task.nodes)] if task.nodes < task.hosts else []
    words += ["--enable-compute-sharing"] if task.shares_nodes else []
    words += UNGUARDED if task.on != "simgrid" and detailed.staging else ()
    return [*words, *detailed.options]


def _by_hand(task: Simulation, endpoint: str, prefix: str = PREFIX) -> str:
    """Return the platform side's command line for somebody to type."""
    program = ["bridge", "simgrid"] if task.on == "simgrid" else ["batsim"]
    return shlex.join([*program, *options(task, endpoint, prefix)])


def write_again(task: Simulation, folder: Path) -> None:
    """Write a script that repeats the run by hand: the two processes, each with its exact command."""
    text = Template(Path(__file__).with_name("again.sh.j2").read_text("utf-8"), keep_trailing_newline=True)
    record_fields = {
        "around": {} if task.on == "simgrid" else ENVIRONMENT,
        "python": sys.executable,
        "decide": shlex.join(task.repeat_command(f"tcp://127.0.0.1:{_PORT}")),
        "simulate": _by_hand(task, f"tcp://localhost:{_PORT}", f"again/{PREFIX}"),
    }
    path = folder / AGAIN
    path.write_text(text.render(record_fields), encoding="utf-8")
    path.chmod(0o755)
