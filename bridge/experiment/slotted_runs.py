"""The slotted scheduler in both worlds: runs with a jobs table in steps, and how far the worlds agree."""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge.batsim.ticks import TickDispatcher
from bridge.errors import BridgeError
from bridge.experiment.child import terminations_as_interrupts
from bridge.experiment.detailed import Conducted, conduct, write_again
from bridge.experiment.slotted import Policy, SlottedTask, stepped
from bridge.judge.metrics import compute
from bridge.judge.run import Run, write_run
from bridge.pool.evaluate import Evaluation, Options, plain
from bridge.pool.schedule import Schedule, jobs_table

#: What is compared, by its name in `bridge.pool.evaluate.plain`.
COMPARED = ("slowdown", "completion_time", "kills", "lost_steps")


def run_of(
    schedule: Schedule,
    evaluation: Evaluation,
    sequence: int,
    *,
    hosts: Sequence[str] = (),
    world: str = "fast",
    told: Mapping[str, Any] | None = None,
    record: Mapping[str, Any],
) -> Run:
    """Return the run of one sequence; a unit of the pool is a node, a killed attempt a row of its own.

    Args:
        schedule: what became of the jobs, all of which ended.
        evaluation: what it is part of: policy, jobs, options.
        sequence: which one, from 0.
        hosts: see `bridge.pool.schedule.jobs_table`.
        world: where.
        told: of the platform.
        record: ``command`` and ``versions``.
    """
    options, name = evaluation.options, f"{evaluation.jobs}-{sequence + 1}"
    table = jobs_table(schedule, name, attempts=True, cores=1, hosts=hosts)
    capacity = {"nodes": options.settings.units}
    config = {
        **record,
        "workload": evaluation.jobs,
        "world": world,
        "scheduler": "slotted",
        "policy": evaluation.policy,
        "kill": evaluation.kill,
        "sequence": sequence + 1,
        **{key: value for key, value in asdict(options).items() if key != "settings"},
        "pool": asdict(options.settings),
        "synthetic": evaluation.synthetic,
    }
    if told is not None:
        config["detailed"] = dict(told)
    who = f"{name} {evaluation.policy} on {world}"
    return Run(config, capacity, table, compute(table, capacity), evaluation.oracle, who)


def told(task: SlottedTask, conducted: Conducted) -> dict[str, Any]:
    """Return what a run's record says of a simulation."""
    result = conducted.result
    return {
        "platform": task.platform.root.name,
        "profile": str(task.detailed.kind),
        "placement": task.detailed.placement,
        "program": list(conducted.command),
        "program_version": conducted.version,
        "status": conducted.status,
        "outcome": result.outcome.name.lower(),
        "explanation": result.explain(),
        "messages": result.messages,
        "steps": result.dispatcher.passes,
        "counts": result.counts(),
        "locality": result.locality.as_dict(),
        "refused": len(result.refusals),
    }


def place_of(out: Path, policy: Policy, sequence: int) -> Path:
    """Return the folder of a policy's sequence, numbered from 1, among all runs."""
    return out / re.sub(r"[^\w.+-]+", "_", policy.text) / str(sequence + 1)


def refuse_one_place(out: Path, policies: Sequence[Policy]) -> None:
    """Refuse policies whose runs would lie in the same folder.

    Raises:
        BridgeError: there are such.
    """
    there: dict[Path, Policy] = {}
    for policy in policies:
        place = place_of(out, policy, 0).parent
        if place in there:
            raise BridgeError(
                f"the runs of {policy.text} and of {there[place].text} would lie in one folder",
                where=str(place),
                remedy="Validate them one after the other, or name one's folder otherwise.",
            )
        there[place] = policy


def simulate(
    task: SlottedTask,
    fast: Evaluation,
    record: Mapping[str, Any],
    *,
    out: Path | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Schedule:
    """Run one sequence on its platform, write the runs of both worlds, and return the outcome in steps.

    Args:
        task: what is simulated.
        fast: the fast world's outcome of all sequences.
        record: see `run_of`.
        out: where to write the runs, see `place_of`; None: nowhere.
        progress: called with the number of jobs that have ended.

    Raises:
        BridgeError: the simulation failed; its files are written first.
    """
    s = task.sequence
    place = place_of(out, task.policy, s) if out is not None else None
    with terminations_as_interrupts(), tempfile.TemporaryDirectory(prefix="bridge-run-") as name:
        folder = Path(name) / "detailed"
        folder.mkdir()
        conducted = conduct(task, folder, progress=lambda done: progress(min(done, task.n_jobs)))
        if conducted.fault is not None:
            if place is not None:
                shutil.copytree(folder, place / task.on / "detailed")
            raise conducted.fault
        decided = conducted.result.dispatcher
        assert isinstance(decided, TickDispatcher)
        found = stepped(task, decided)
        if place is not None:
            write_run(run_of(fast.schedules[s], fast, s, record=record), place / "fast")
            saying = told(task, conducted)
            made = run_of(
                found.schedule, fast, s, hosts=found.hosts, world=task.on, told=saying, record=record
            )
            write_run(made, place / task.on, detailed=folder)
    return found.schedule


def write_files(task: SlottedTask, out: Path) -> Path:
    """Write a simulation's files, and a script that runs it, to its folder among all runs; return that."""
    folder = place_of(out, task.policy, task.sequence)
    folder.mkdir(parents=True)
    task.write_inputs(folder)
    write_again(task, folder)
    return folder


@dataclass(frozen=True)
class Both:
    """One policy's sequences in both worlds.

    Attributes:
        policy: who.
        fast, detailed: the outcomes, in steps.
    """

    policy: Policy
    fast: Evaluation
    detailed: Evaluation

    @property
    def options(self) -> Options:
        """What was played."""
        return self.fast.options

    @property
    def differing(self) -> list[tuple[int, int]]:
        """(Sequence, job), from 1, of those whose last attempt starts in another step; the earliest first."""
        found = []
        for s, (fast, detailed) in enumerate(zip(self.fast.schedules, self.detailed.schedules, strict=True)):
            for j in np.flatnonzero(fast.start != detailed.start).tolist():
                found.append((min(int(fast.start[j]), int(detailed.start[j])), s + 1, j + 1))
        return [(s, j) for _, s, j in sorted(found)]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; times in steps."""
        document = plain([self.fast, self.detailed])
        fast, detailed = ({k: v for k, v in one.items() if k != "policy"} for one in document.pop("policies"))
        differing = self.differing
        first = None
        if differing:
            s, j = differing[0]
            first = {"sequence": s, "job": j} | {
                world: int(outcome.schedules[s - 1].start[j - 1])
                for world, outcome in (("fast", self.fast), ("detailed", self.detailed))
            }
        return {
            "policy": self.policy.name,
            "kill": self.policy.kill,
            **{key: value for key, value in document.items() if key != "scheduler"},
            "fast": fast,
            "detailed": detailed,
            "difference": {key: detailed[key] - fast[key] for key in COMPARED},
            "differing_starts": len(differing),
            "first_difference": first,
        }


def beyond(documents: Sequence[Mapping[str, Any]], tolerance: float) -> list[str]:
    """Return, in words, what is off the fast world's by more.

    Args:
        documents: as `Both.as_dict` returns them.
        tolerance: largest relative difference.
    """
    problems = []
    for one in documents:
        for key in COMPARED:
            fast, detailed = one["fast"][key], one["detailed"][key]
            if abs(detailed - fast) > tolerance * abs(fast):
                problems.append(f"{one['policy']}: {key} is {detailed:g}, in the fast world {fast:g}")
    return problems
