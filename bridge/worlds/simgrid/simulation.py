"""One simulation from its options to its exit status, and the actors that start what its files say."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Any, NoReturn

from bridge.base.errors import BridgeError, add_location
from bridge.wire.platform_xml import NO_TASKS, TASKS, Element, wifi_links
from bridge.worlds.simgrid import c_library, kernel, machines, workload
from bridge.worlds.simgrid.execution import job_actor
from bridge.worlds.simgrid.kernel import Actor, ActorRuntime, server_message
from bridge.worlds.simgrid.model import SimulationModel
from bridge.worlds.simgrid.options import DEADLOCK, OK, USAGE, SimulationOptions, log_line, report_error
from bridge.worlds.simgrid.parallel_task import JobAllocation
from bridge.worlds.simgrid.peer import DecisionProcessClient
from bridge.worlds.simgrid.profile_types import SLEEPING
from bridge.worlds.simgrid.queue_kernel import QueueRuntime
from bridge.worlds.simgrid.server import Server
from bridge.worlds.simgrid.workload import COMPLETE, Job, SimulatedWorkload

#: With parallel tasks, the queue's dates can differ from SimGrid's own in the last bits of a float, and
#: one-byte messages meet no contention. Up to so many jobs speed does not matter, and SimGrid's own kernel is
#: taken.
FEW_JOBS = 500


def run(options: SimulationOptions) -> int:
    """Simulate; return the exit status. Where a BridgeError ends it, the tables hold what happened before."""
    workloads = [workload.load(f"w{i}", path) for i, path in enumerate(options.workloads)]
    lists = [workload.load_events(path, options.forward_unknown) for path in options.events]
    root = machines.read_platform(options.platform)
    engine = _engine(options, bool(wifi_links(root)))
    by_workload = max((w.nb_res for w in workloads), default=0) if options.mmax_workload else 0
    limit = min(filter(lambda most: most > 0, (options.mmax, by_workload)), default=0)
    hosts = machines.load(engine, options, limit, root)
    ending = _Ending()
    model = SimulationModel(
        options, hosts, workloads, lists, _kernel(engine, hosts, options, workloads, ending)
    )
    ending.model = model
    ending.on_signals()
    _start(model)
    try:
        model.kernel.run()
    except BridgeError:
        model.close(complete=False)
        raise
    model.close(complete=True)
    if options.no_sched or model.finished:
        return OK
    raise _stuck(model)


def _engine(options: SimulationOptions, wifi: bool) -> Any:
    import simgrid

    if options.energy:
        c_library.simgrid_library().sg_host_energy_plugin_init()
    model = NO_TASKS if wifi else TASKS
    settings = [f"--cfg={setting}" for setting in (*options.simgrid_config, *model)]
    logs = [f"--log={setting}" for setting in options.simgrid_log]
    return simgrid.Engine(["bridge-simgrid", "--log=xbt_cfg.thresh:warning", *settings, *logs])


def use_queue(options: SimulationOptions, workloads: list[SimulatedWorkload]) -> tuple[bool, bool]:
    """Return whether to take the ordered queue, if it can be, and whether there may be parallel tasks."""
    root = machines.read_platform(options.platform)
    kinds = {p.kind for w in workloads for p in w.profiles.values() if p} - {"composed"}
    tasks = options.dynamic_jobs or not kinds <= SLEEPING
    obstacles = {
        "energy": options.energy,
        "usage traces": "usage_trace" in kinds,
        "Wi-Fi": bool(wifi_links(root)),
        "platforms that change over time": _varies(root),
    }
    obstacle = next(filter(obstacles.get, obstacles), "")
    if options.kernel == "queue" and obstacle:
        what = f"the queue cannot simulate {obstacle}"
        raise BridgeError(what, where="--kernel", remedy="Leave it out.", status=USAGE)
    if options.kernel != "auto" or obstacle:
        return options.kernel == "queue", tasks
    return not tasks or sum(len(w.jobs) for w in workloads) > FEW_JOBS, tasks


def _varies(root: Element) -> bool:
    """Whether resources of the platform change over time (profiles or traces of speed, bandwidth, state)."""
    return any(
        element.tag.startswith("trace") or any(key.endswith("_file") for key in element.attributes)
        for element in root.walk()
    )


def _kernel(
    engine: Any,
    hosts: machines.SimulatedHosts,
    options: SimulationOptions,
    workloads: list[SimulatedWorkload],
    ending: "_Ending",
) -> ActorRuntime:
    from bridge.worlds.simgrid.simgrid_kernel import SimGridRuntime
    from bridge.worlds.simgrid.simgrid_tasks import SimGridTasks

    queue, tasks = use_queue(options, workloads)
    if not queue:
        return SimGridRuntime(engine, ending.fail, options.pin, hosts.may_fail)
    return QueueRuntime(SimGridTasks(engine) if tasks else None)


def _start(model: SimulationModel) -> None:
    options, master, start = model.options, model.machines.master.host, model.kernel.start
    if options.no_sched:
        for item in model.static:
            start(f"workload_submitter_{item.name}", master, start_without_scheduler(model, item))
        return
    model.peer = DecisionProcessClient(options.endpoint, options.peer_timeout, options.verbosity != "quiet")
    for item in model.static:
        actor = submitter(model, "jobs", jobs_of(item), attrgetter("subtime"))
        start(f"workload_submitter_{item.name}", master, actor)
    for i, occurring in enumerate(model.events):
        actor = submitter(model, "events", occurring[::-1], attrgetter("time"))
        start(f"event_submitter_we{i}", master, actor)
    start("server", master, Server(model).actor())


def submitter(model: SimulationModel, what: str, items: list[Any], time_of: Callable[[Any], float]) -> Actor:
    """Tell the server of jobs or events, one message a date; the last item is the first, and is released."""
    yield server_message("hello")
    date = model.clock()
    due: list[Any] = []
    while items:
        item = items.pop()
        if model.is_later(time_of(item), date):
            if due:
                yield server_message(what, due)
                due = []
            yield kernel.SLEEP, time_of(item) - date
            date = model.clock()
        due.append(item)
        if what == "jobs" and model.options.energy and model.energy_first < 0:
            model.energy_first = yield from model.consumed(None)
    if due:
        yield server_message(what, due)
    yield server_message("no_more", what)


def jobs_of(static: SimulatedWorkload) -> list[Job]:
    """Return the jobs of a workload in the order of (submission time, id as text), the last one first."""
    return sorted(static.jobs.values(), key=lambda job: (job.subtime, job.id), reverse=True)


def start_without_scheduler(model: SimulationModel, static: SimulatedWorkload) -> Actor:
    """Start all jobs at once, each on the first hosts (``--no-sched``)."""
    for job in reversed(list(static.jobs.values())):
        with add_location(f"job '{job.id}'"):
            machines = model.machines.ids(((0, job.n_hosts - 1),) if job.n_hosts else ())
            host = model.machines.at(0).host
        actor = job_actor(model, job, JobAllocation(machines), notify=False)
        job.actors.append((yield kernel.SPAWN, f"job{job.id}", host, actor))


def _stuck(model: SimulationModel) -> BridgeError:
    jobs = [job for w in model.workloads.values() for job in w.jobs.values() if job.state not in COMPLETE]
    left = "no job is left, but the simulation cannot end"
    if jobs:
        names = ", ".join(f"{job.id} ({job.state})" for job in jobs[:10]) + (", …" if len(jobs) > 10 else "")
        left = f"{len(jobs)} unfinished jobs: {names}"
    register = "; send NOTIFY registration_finished" if model.options.dynamic_jobs else ""
    return BridgeError(
        f"nothing can happen any more at {model.clock():f}, and the decision process waits; {left}",
        where=f"after answer {model.peer.answers}" if model.peer else "",
        remedy=f"Execute, kill or reject every job{register}.",
        status=DEADLOCK,
    )


class _Ending:
    """Ends the process from wherever it must: an actor's thread, or a signal while SimGrid computes."""

    def __init__(self) -> None:
        self.model: SimulationModel | None = None

    def fail(self, error: BaseException) -> NoReturn:
        """Close the tables, say what happened and leave; actors' threads cannot be unwound from here."""
        self._leave(report_error(error))

    def _leave(self, status: int) -> NoReturn:
        if self.model:
            with suppress(BridgeError):  # one that comes now is not the first
                self.model.close(complete=False)
        sys.stdout.flush()
        os._exit(status)

    def on_signals(self) -> None:
        """End cleanly on SIGINT and SIGTERM, though the main thread is not in Python while SimGrid runs."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: None)  # the thread that watches deals with it
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()

    def _watch(self, reading: int) -> None:
        number = os.read(reading, 1)[0]
        log_line(f"bridge simgrid: {signal.Signals(number).name} came; the tables hold what happened before")
        self._leave(128 + number)
