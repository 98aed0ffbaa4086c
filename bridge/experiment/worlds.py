"""One experiment in one world, as a run like any other: by replay, or by a simulation of its platform."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bridge.errors import BridgeError
from bridge.experiment.child import simulation_folder
from bridge.experiment.collect import collect, record
from bridge.experiment.detailed import conduct
from bridge.experiment.prepare import Task
from bridge.fast.replay import jobs_table, replay
from bridge.interrupts import interrupts_once
from bridge.judge.allocate import place
from bridge.judge.metrics import compute, job_energy
from bridge.judge.run import Run
from bridge.watch import NOBODY, Watch


def run_fast(task: Task, watch: Watch = NOBODY, command: str = "") -> Run:
    """Run an experiment in the fast world.

    Args:
        task: the experiment, its files read.
        watch: who watches.
        command: what repeats the run, if not `bridge run`.
    """
    prepared, setup, agent = task.prepared, task.setup, task.agent
    jobs = prepared.jobs
    watch.compiling()
    with watch.bar(f"{jobs.name} {setup.order}", len(jobs), "jobs") as progress:
        if agent is None:
            schedule = replay(prepared, progress)
        else:
            from bridge.learn.agent import replay as replay_agent

            schedule = replay_agent(agent, prepared, progress)
    table = jobs_table(prepared, schedule, killed_at_request=setup.rules()[1].kill)
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    table = place(table, capacity["nodes"])
    if "power" in capacity:
        table["consumed_energy"] = job_energy(table, jobs.idle_power)
    config = record(task) | {"world": "fast", "idle_power": jobs.idle_power if "power" in capacity else None}
    threshold = task.experiment.threshold
    metrics = compute(table, capacity, bsld_threshold=threshold, idle_power=jobs.idle_power)
    who = agent.name if agent else f"{setup.order}+{setup.backfill}"
    config |= {"command": command} if command else {}
    return Run(config, capacity, table, metrics, prepared.oracle, f"{jobs.name} {who}")


@dataclasses.dataclass(frozen=True)
class Simulated:
    """A run in the detailed world, complete or not.

    Attributes:
        run: what there is of it.
        fault: what went wrong, None if nothing did.
        status: exit status of a command that did this.
    """

    run: Run
    fault: BridgeError | None
    status: int


def run_detailed(
    task: Task,
    folder: Path,
    watch: Watch = NOBODY,
    *,
    start: bool = True,
    socket: str = "tcp://127.0.0.1:*",
    waiting: Callable[[str], None] = lambda _: None,
) -> Simulated:
    """Run an experiment in the detailed world.

    Args:
        task: the experiment, its files read.
        folder: an existing one, for the simulation's files.
        watch: who watches.
        start, socket, waiting: see `bridge.experiment.detailed.conduct`.
    """
    jobs = task.prepared.jobs
    watch.compiling()
    with watch.bar(f"{jobs.name} {task.setup.order} on {task.experiment.on}", len(jobs), "jobs") as progress:
        conducted = conduct(task, folder, progress=progress, start=start, socket=socket, waiting=waiting)
    made = collect(task, conducted)
    over = made.metrics.get("over_budget.seconds")
    if over:
        watch.say(f"the machine drew more than its power budget for {over:g} s")
    return Simulated(made, conducted.fault, conducted.exit_status)


@contextmanager
def simulated(
    task: Task, watch: Watch, exchange: Path | None = None, **more: str | bool
) -> Iterator[tuple[Simulated, Path]]:
    """Run an experiment in the detailed world; yield the outcome, and the folder with its files.

    Args:
        task: the experiment.
        watch: who watches.
        exchange: the folder; None = a temporary one, which is gone at the end.
        more: see `run_detailed`.
    """

    def waiting(command: str) -> None:
        watch.say(f"waiting for the platform program, to be started in the folder: {command}")

    with interrupts_once(), simulation_folder(exchange) as folder:
        yield run_detailed(task, folder, watch, waiting=waiting, **more), folder  # type: ignore[arg-type]
