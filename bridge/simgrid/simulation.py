"""One simulation from its options to its exit status."""

import os
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn

from bridge.simgrid import choice, events, hosts, library, machines, workload
from bridge.simgrid.errors import CRASHED, DEADLOCK, OK, ModelError
from bridge.simgrid.kernel import Kernel
from bridge.simgrid.model import Model
from bridge.simgrid.options import Options, say
from bridge.simgrid.peer import Peer
from bridge.simgrid.server import Server
from bridge.simgrid.submitters import event_submitter, job_submitter, launcher


def run(options: Options) -> int:
    """Simulate; return the exit status.

    Raises:
        ModelError: what the user must mend. The tables hold what happened before.
    """
    workloads = [workload.load(f"w{i}", path) for i, path in enumerate(options.workloads)]
    lists = [events.load(path, options.forward_unknown_events) for path in options.events]
    engine = _engine(options)
    found = hosts.load(engine, options, _limit(options, workloads))
    ending = _Ending()
    kernel = _kernel(engine, options, workloads, found, ending)
    model = Model(options, found, workloads, lists, kernel)
    ending.model = model
    ending.on_signals()
    if options.no_sched:
        _start_launchers(model)
    else:
        _start_server(model)
    try:
        kernel.run()
    except ModelError:
        model.close(complete=False)
        raise
    model.close(complete=True)
    if options.no_sched or model.finished:
        return OK
    raise _stuck(model)


def _engine(options: Options) -> Any:
    import simgrid

    if options.energy:
        library.simgrid_library().sg_host_energy_plugin_init()
    settings = [f"--cfg={setting}" for setting in (*options.simgrid_config, "host/model:ptask_L07")]
    logs = [f"--log={setting}" for setting in options.simgrid_log]
    return simgrid.Engine(["bridge-simgrid", "--log=xbt_cfg.thresh:warning", *settings, *logs])


def _limit(options: Options, workloads: list[workload.Workload]) -> int:
    by_workload = max((w.nb_res for w in workloads), default=0) if options.mmax_workload else 0
    limits = [limit for limit in (options.mmax, by_workload) if limit > 0]
    return min(limits, default=0)


def _kernel(
    engine: Any,
    options: Options,
    workloads: list[workload.Workload],
    found: machines.Machines,
    ending: "_Ending",
) -> Kernel:
    tasks = choice.has_tasks(options, workloads)
    if choice.use_queue(options, workloads, tasks):
        from bridge.simgrid.queue_kernel import QueueKernel

        if not tasks:
            return QueueKernel(None)
        from bridge.simgrid.tasks import SimGridTasks

        return QueueKernel(SimGridTasks(engine, found.master.host, ending.fail, options.pin))
    from bridge.simgrid.simgrid_kernel import SimGridKernel

    return SimGridKernel(engine, ending.fail, options.pin)


def _start_server(model: Model) -> None:
    options, master = model.options, model.machines.master.host
    model.peer = Peer(options.endpoint, options.peer_timeout, options.verbosity != "quiet")
    for item in model.static:
        model.kernel.start(f"workload_submitter_{item.name}", master, job_submitter(model, item))
    for i, occurring in enumerate(model.events):
        model.kernel.start(f"event_submitter_we{i}", master, event_submitter(model, f"we{i}", occurring))
    model.kernel.start("server", master, Server(model).actor())


def _start_launchers(model: Model) -> None:
    for item in model.static:
        model.kernel.start(
            f"workload_submitter_{item.name}", model.machines.master.host, launcher(model, item)
        )


def _stuck(model: Model) -> ModelError:
    jobs = [
        job for w in model.workloads.values() for job in w.jobs.values() if job.state not in workload.COMPLETE
    ]
    names = ", ".join(f"{job.id} ({job.state})" for job in jobs[:10]) + (", …" if len(jobs) > 10 else "")
    return ModelError(
        f"nothing can happen any more at {model.clock():f}, and the decision process waits; "
        + (
            f"{len(jobs)} unfinished jobs: {names}"
            if jobs
            else "no job is left, but the simulation cannot end"
        ),
        where=f"after answer {model.peer.answers}" if model.peer else "",
        remedy="Execute, kill or reject every job"
        + ("; send NOTIFY registration_finished." if model.options.dynamic_jobs else "."),
        status=DEADLOCK,
    )


class _Ending:
    """Ends the process from wherever it must: an actor's thread, or a signal while SimGrid computes."""

    def __init__(self) -> None:
        self.model: Model | None = None

    def fail(self, error: BaseException) -> NoReturn:
        """Close the tables, say what happened and leave; actors' threads cannot be unwound from here."""
        if isinstance(error, ModelError):
            say(f"bridge simgrid: error: {error}")
            self._leave(error.status)
        say("bridge simgrid: internal error\n" + "".join(traceback.format_exception(error)))
        self._leave(CRASHED)

    def _leave(self, status: int) -> NoReturn:
        if self.model:
            self.model.close(complete=False)
        sys.stdout.flush()
        os._exit(status)

    def on_signals(self) -> None:
        """End cleanly on SIGINT and SIGTERM, though the main thread is not in Python while SimGrid runs."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _noticed)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()

    def _watch(self, reading: int) -> None:
        number = os.read(reading, 1)[0]
        say(f"bridge simgrid: {signal.Signals(number).name} came; the tables hold what happened before")
        self._leave(128 + number)


def _noticed(_number: int, _frame: Any) -> None:
    """A signal has come; the thread that watches deals with it."""
