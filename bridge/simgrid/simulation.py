"""One simulation from its options to its exit status, and the actors that start what its files say."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Any, NoReturn

from bridge.errors import BridgeError, placed
from bridge.simgrid import c_library, kernel, machines, workload
from bridge.simgrid.execution import job_actor
from bridge.simgrid.kernel import Actor, Kernel, tell
from bridge.simgrid.model import Model
from bridge.simgrid.options import DEADLOCK, OK, USAGE, Options, report, say
from bridge.simgrid.parallel_task import Allocation
from bridge.simgrid.peer import Peer
from bridge.simgrid.profile_types import SLEEPING
from bridge.simgrid.queue_kernel import QueueKernel
from bridge.simgrid.server import Server
from bridge.simgrid.workload import COMPLETE, Job, Workload
from bridge.wire.platform_xml import NO_TASKS, TASKS, Element, wifi_links

#: With parallel tasks, the queue's dates can differ from SimGrid's own in the last bits of a float, and
#: one-byte messages meet no contention. Up to so many jobs speed does not matter, and SimGrid's own kernel is
#: taken.
FEW_JOBS = 500


def run(options: Options) -> int:
    """Simulate; return the exit status. Where a BridgeError ends it, the tables hold what happened before."""
    workloads = [workload.load(f"w{i}", path) for i, path in enumerate(options.workloads)]
    lists = [workload.load_events(path, options.forward_unknown) for path in options.events]
    root = machines.read_platform(options.platform)
    engine = _engine(options, bool(wifi_links(root)))
    by_workload = max((w.nb_res for w in workloads), default=0) if options.mmax_workload else 0
    limit = min(filter(lambda most: most > 0, (options.mmax, by_workload)), default=0)
    found = machines.load(engine, options, limit, root)
    ending = _Ending()
    model = Model(options, found, workloads, lists, _kernel(engine, found, options, workloads, ending))
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


def _engine(options: Options, wifi: bool) -> Any:
    import simgrid

    if options.energy:
        c_library.simgrid_library().sg_host_energy_plugin_init()
    model = NO_TASKS if wifi else TASKS
    settings = [f"--cfg={setting}" for setting in (*options.simgrid_config, *model)]
    logs = [f"--log={setting}" for setting in options.simgrid_log]
    return simgrid.Engine(["bridge-simgrid", "--log=xbt_cfg.thresh:warning", *settings, *logs])


def use_queue(options: Options, workloads: list[Workload]) -> tuple[bool, bool]:
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
    engine: Any, found: machines.Machines, options: Options, workloads: list[Workload], ending: "_Ending"
) -> Kernel:
    from bridge.simgrid.simgrid_kernel import SimGridKernel
    from bridge.simgrid.simgrid_tasks import SimGridTasks

    queue, tasks = use_queue(options, workloads)
    if not queue:
        return SimGridKernel(engine, ending.fail, options.pin, found.may_fail)
    return QueueKernel(SimGridTasks(engine) if tasks else None)


def _start(model: Model) -> None:
    options, master, start = model.options, model.machines.master.host, model.kernel.start
    if options.no_sched:
        for item in model.static:
            start(f"workload_submitter_{item.name}", master, launcher(model, item))
        return
    model.peer = Peer(options.endpoint, options.peer_timeout, options.verbosity != "quiet")
    for item in model.static:
        actor = submitter(model, "jobs", jobs_of(item), attrgetter("subtime"))
        start(f"workload_submitter_{item.name}", master, actor)
    for i, occurring in enumerate(model.events):
        actor = submitter(model, "events", occurring[::-1], attrgetter("time"))
        start(f"event_submitter_we{i}", master, actor)
    start("server", master, Server(model).actor())


def submitter(model: Model, what: str, items: list[Any], time_of: Callable[[Any], float]) -> Actor:
    """Tell the server of jobs or events, one message a date; the last item is the first, and is released."""
    yield tell("hello")
    date = model.clock()
    due: list[Any] = []
    while items:
        item = items.pop()
        if model.is_later(time_of(item), date):
            if due:
                yield tell(what, due)
                due = []
            yield kernel.SLEEP, time_of(item) - date
            date = model.clock()
        due.append(item)
        if what == "jobs" and model.options.energy and model.energy_first < 0:
            model.energy_first = yield from model.consumed(None)
    if due:
        yield tell(what, due)
    yield tell("no_more", what)


def jobs_of(static: Workload) -> list[Job]:
    """Return the jobs of a workload in the order of (submission time, id as text), the last one first."""
    return sorted(static.jobs.values(), key=lambda job: (job.subtime, job.id), reverse=True)


def launcher(model: Model, static: Workload) -> Actor:
    """Start all jobs at once on the first machines, each: what ``--no-sched`` does."""
    for job in reversed(list(static.jobs.values())):
        with placed(f"job '{job.id}'"):
            machines = model.machines.ids(((0, job.res - 1),) if job.res else ())
            host = model.machines.at(0).host
        actor = job_actor(model, job, Allocation(machines), notify=False)
        job.actors.append((yield kernel.SPAWN, f"job{job.id}", host, actor))


def _stuck(model: Model) -> BridgeError:
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
        self.model: Model | None = None

    def fail(self, error: BaseException) -> NoReturn:
        """Close the tables, say what happened and leave; actors' threads cannot be unwound from here."""
        self._leave(report(error))

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
        say(f"bridge simgrid: {signal.Signals(number).name} came; the tables hold what happened before")
        self._leave(128 + number)
