"""The time-stepped pool in both worlds: a drawn sequence on a platform, its runs, and how far they agree."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.base.interrupts import interrupts_once
from bridge.base.progress import SILENT, ProgressCallback, ProgressReporter, ignore_progress
from bridge.experiment.detailed import run_simulation
from bridge.experiment.job_profiles import builder
from bridge.experiment.prepare import placement
from bridge.experiment.program import (
    BATSIM5,
    PLATFORM,
    WORKLOAD,
    simulation_folder,
    with_dynamic_jobs,
)
from bridge.experiment.spec import Detailed
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run, run_folder, write_run
from bridge.platform.model import Platform
from bridge.policy_name import PolicyName, parse_policy
from bridge.pool.batsim_dispatcher import PoolDispatcher, PoolDispatcherConfig
from bridge.pool.evaluate import PoolEvaluation, as_document, evaluate
from bridge.pool.heuristics import PoolActionFunction, heuristic_actions
from bridge.pool.jobset import STEP_SECONDS, JobSet
from bridge.pool.schedule import PoolSchedule, jobs_table
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.pool.state import KILL
from bridge.pool.world import Sequences
from bridge.scheduler.names import HEURISTICS, KILLS, Kill
from bridge.wire.hosts import text_of
from bridge.workload.columns import complete_columns
from bridge.workload.formats import FORMATS
from bridge.workload.rules import NONE
from bridge.workload.table import Workload
from bridge.worlds.batsim.estimates import number_of
from bridge.worlds.batsim.process import DecisionProcess

if TYPE_CHECKING:
    from bridge.pool.network import PoolCheckpoint
#: How much shorter a job is than its steps, s: it ends as a step begins, and its tick is a second later.
SHORTER = 1
#: Placement rules that read the platform.
READ_PLATFORM = ("best-fit", "topology")


@dataclass(frozen=True)
class PoolPolicy:
    """A heuristic, with or without the kill rule, or a trained agent; `text`: as it was named."""

    text: str
    kill: Kill
    agent: "PoolCheckpoint | None" = None

    @property
    def name(self) -> str:
        return self.agent.name if self.agent else self.text

    @property
    def rule(self) -> str:
        return self.text.partition("+")[0].strip()

    def make(self) -> PoolActionFunction:
        """Return how it answers in one pool, from the beginning of a simulation."""
        if (agent := self.agent) is None:
            return heuristic_actions(self.rule)
        from bridge.pool.rollout import deciding

        return deciding(agent.recipe, agent.actor, agent.mode, agent.origin.seed)

    def fast(
        self, jobs: JobSet, options: EvaluationOptions, progress: ProgressCallback = ignore_progress
    ) -> PoolEvaluation:
        if self.agent is None:
            return evaluate(jobs, self.rule, self.kill, options, progress=progress)
        from bridge.pool.rollout import evaluate_agent

        return evaluate_agent(self.agent, jobs, options, progress=progress)

    def words(self, settings: PoolConfig) -> tuple[str, ...]:
        """Return the arguments of `bridge decide` for it and its pool."""
        if self.agent is not None:  # whose own estimator is in the workload already
            return (str(self.agent.folder.resolve()), "--estimator", "running")
        pool = ("--pool-units", str(settings.units), "--pool-slots", str(settings.slots))
        return (f"{self.rule}+{self.kill}", "--scheduler", "pool", *pool)


def policy_of(name: PolicyName | str) -> PoolPolicy:
    """Return a policy of the pool by its name; BridgeError: it is none, or the other scheduler's agent."""
    name = parse_policy(name) if isinstance(name, str) else name
    if name.agent:
        from bridge.learn.checkpoint import load
        from bridge.pool.recipe import PoolRecipe

        agent = load(name.agent, PoolRecipe)
        return PoolPolicy(name.text, agent.recipe.kill, agent)
    is_heuristic = name.order in HEURISTICS and (name.kill or "none") in KILLS
    if not is_heuristic or (name.backfill and not name.kill):
        what = "is no policy of the time-stepped pool and no folder of a trained agent"
        remedy = f"Write one of {', '.join(HEURISTICS)}, or one with +rule, which kills mispredicted jobs."
        raise BridgeError(what, where=f"policy {name.text!r}", remedy=remedy)
    return PoolPolicy(name.text, "rule" if name.kill == "rule" else "none")


def dispatcher(
    policy: PoolPolicy, settings: PoolConfig, name: str, platform: Platform | None, **setup: Any
) -> PoolDispatcher:
    """Return the dispatcher of one simulation behind Batsim; `name`, `platform`: of the placement rule."""
    rule = placement(name, platform)
    return PoolDispatcher(
        PoolDispatcherConfig(
            policy.make(), settings, policy.kill, placement=rule, placement_name=name, **setup
        )
    )


@dataclass(frozen=True)
class PoolTask:
    """One sequence under one policy on a platform, see `bridge.experiment.detailed.run_simulation`.

    Attributes:
        on: ``simgrid``, ``batsim`` or ``batsim5``.
        policy, settings: who decides, and on which pool.
        sequences, sequence: the jobs: sequence number `sequence` of these.
        platform: with as many hosts as the pool has units, at least.
        detailed_options: for the platform program; what a policy that kills needs is added.
    """

    on: str
    policy: PoolPolicy
    settings: PoolConfig
    sequences: Sequences
    sequence: int
    platform: Platform
    detailed_options: Detailed

    def check(self) -> None:
        """Refuse a platform that is too small, and an agent that has learnt on another pool."""
        if self.policy.agent is not None:
            from bridge.pool.rollout import require_pool

            require_pool(self.policy.agent, self.settings)
        if self.hosts < self.settings.units:
            what = f"the platform has {self.hosts:,} compute hosts, the pool {self.settings.units} units"
            remedy = "Use a larger platform, or a smaller pool (--pool-units)."
            raise BridgeError(what, where=self.platform.path, remedy=remedy)

    @property
    def detailed(self) -> Detailed:
        """Inputs of the platform program."""
        if self.policy.kill == "none" or self.on == BATSIM5:  # which is asked by the hello
            return self.detailed_options
        return with_dynamic_jobs(self.detailed_options)

    @property
    def hosts(self) -> int:
        return len(self.platform.compute)

    @property
    def nodes(self) -> int:
        return self.settings.units

    @property
    def shares_nodes(self) -> bool:
        """Jobs have hosts of their own."""
        return False

    @property
    def n_jobs(self) -> int:
        return len(self.sequences.arrivals_of(self.sequence)[0])

    def place(self, out: Path) -> Path:
        """Return the folder of its runs, numbered from 1, among those of all."""
        return run_folder(out, self.policy.text) / str(self.sequence + 1)

    def process(self) -> DecisionProcess:
        return DecisionProcess(
            dispatcher(self.policy, self.settings, self.detailed_options.placement, self.platform)
        )

    def write_inputs(self, folder: Path) -> None:
        """Write platform and workload to a folder, see `bridge.experiment.detailed.Simulation`."""
        shutil.copyfile(self.platform.path, folder / PLATFORM)
        workload = workload_of(self.sequences, self.sequence, self.settings)
        write = FORMATS["batsim5" if self.on == BATSIM5 else "batsim"].load("write")
        write(workload, folder / WORKLOAD, builder(self.detailed_options.kind, self.platform), NONE)

    def repeat_command(self, socket: str) -> tuple[str, ...]:
        """Return the command line that decides once more where the inputs are."""
        rule = self.detailed_options.placement
        where = ("--platform", PLATFORM) if rule in READ_PLATFORM else ()
        words = (*self.policy.words(self.settings), "--placement", rule, *where)
        return ("bridge", "decide", *words, "--socket", socket, "--out", "again/decisions.json")


def workload_of(sequences: Sequences, s: int, settings: PoolConfig) -> Workload:
    """Return sequence `s` as a workload: ids are places in it, a unit is a host, beliefs are more fields."""
    steps, index = sequences.arrivals_of(s)
    jobs = sequences.jobs
    series = []
    for values in jobs.beliefs[index]:  # the last value stays
        others = np.flatnonzero(values != values[-1])
        series.append(values[: others[-1] + 2 if len(others) else 1].tolist())
    table = pd.DataFrame(
        {
            "job_id": np.arange(1, len(steps) + 1),
            "submit": steps * STEP_SECONDS,
            "run": jobs.length[index] * STEP_SECONDS - SHORTER,
            "procs": jobs.units[index],
            "req_procs": jobs.units[index],
            "logged": jobs.id[index],
            "believed": jobs.believed[index],
        }
    )
    table_complete, _ = complete_columns(table, lambda row: f"row {row}", jobs.name)
    table_complete["beliefs"] = pd.Series(series, index=table_complete.index, dtype=object)
    return Workload(jobs.name, table_complete, {"nodes": settings.units})


def to_steps(task: PoolTask, decided: PoolDispatcher) -> tuple[PoolSchedule, tuple[str, ...]]:
    """Return a simulation, all of whose jobs have ended, in steps; lengths are those of the sequence.

    Also the hosts of each job's last attempt and, behind them, of each killed attempt of the schedule.
    """
    steps, index = task.sequences.arrivals_of(task.sequence)
    tickets = sorted(decided.tickets, key=lambda ticket: number_of(ticket.event.job_id) or 0)
    last = [ticket.current for ticket in tickets]
    killed = [(j, attempt) for j, ticket in enumerate(tickets) for attempt in ticket.killed]
    killed.sort(key=lambda one: (one[1].end_step, one[0]))
    attempts = np.zeros(len(killed), KILL).view(np.recarray)
    jobs = task.sequences.jobs
    for record, (j, attempt) in zip(attempts, killed, strict=True):
        record.job, record.start, record.end = j, attempt.start_step, attempt.end_step
        before = tickets[j].attempts[attempt.number - 2].belief
        record.believed = before if attempt.number > 1 else jobs.believed[index[j]]
        record.belief = attempt.belief
    schedule = PoolSchedule(
        id=jobs.id[index],
        submit=steps,
        units=jobs.units[index],
        length=jobs.length[index],
        start=np.array([attempt.start_step for attempt in last], np.int64),
        end=np.array([attempt.end_step for attempt in last], np.int64),
        kills=np.array([len(ticket.killed) for ticket in tickets], np.int64),
        lost=np.array([sum(attempt.ran for attempt in ticket.killed) for ticket in tickets], np.int64),
        attempts=attempts,
        n_rejected=0,
    )
    held = (*last, *(attempt for _, attempt in killed))
    return schedule, tuple(text_of(attempt.hosts) for attempt in held)


#: What is compared, by its name in `bridge.pool.evaluate.as_document`.
COMPARED = ("slowdown", "completion_time", "kills", "lost_steps")


def run_of(
    schedule: PoolSchedule,
    evaluation: PoolEvaluation,
    sequence: int,
    record: Mapping[str, Any],
    *,
    hosts: Sequence[str] = (),
    world: str = "fast",
) -> Run:
    """Return the run of a sequence, counted from 0; a unit is a node, a killed attempt a row of its own.

    `schedule`: what became of the jobs, all of which ended, as a part of the `evaluation`. `record`: further
    entries of its configuration, such as ``command``. `hosts`: see `bridge.pool.schedule.jobs_table`.
    """
    options, name = evaluation.options, f"{evaluation.jobs}-{sequence + 1}"
    table = jobs_table(schedule, name, hosts)
    capacity = {"nodes": options.settings.units}
    config = {
        "workload": evaluation.jobs,
        "world": world,
        "scheduler": "pool",
        "policy": evaluation.policy,
        "kill": evaluation.kill,
        "sequence": sequence + 1,
        **options.as_dict(),
        "synthetic": evaluation.synthetic,
        **record,
    }
    who = f"{name} {evaluation.policy} on {world}"
    return Run(config, capacity, table, compute_metrics(table, capacity), evaluation.oracle, who)


def refuse_one_place(out: Path, policies: Sequence[PoolPolicy]) -> None:
    """Refuse (BridgeError) policies whose runs would lie in the same folder."""
    there: dict[Path, str] = {}
    for policy in policies:
        place = run_folder(out, policy.text)
        if (other := there.setdefault(place, policy.text)) is not policy.text:
            what = f"the runs of {policy.text} and of {other} would lie in one folder"
            remedy = "Validate them one after the other, or name one's folder otherwise."
            raise BridgeError(what, where=str(place), remedy=remedy)


def simulate(
    task: PoolTask,
    fast: PoolEvaluation,
    record: Mapping[str, Any],
    *,
    out: Path | None = None,
    watch: ProgressReporter = SILENT,
) -> PoolSchedule:
    """Run one sequence on its platform, write the runs of both worlds, and return the outcome in steps.

    `fast` is the fast world's outcome of all sequences; `record`: see `run_of`; `out`: where to write the
    runs. BridgeError: the simulation failed; its files are written first.
    """
    s = task.sequence
    place = task.place(out) if out is not None else None
    title = f"{task.policy.name}, sequence {s + 1} of {len(task.sequences)}"
    with interrupts_once(), simulation_folder() as folder:
        with watch.bar(title, task.n_jobs, "jobs") as progress:
            conducted = run_simulation(task, folder, progress=lambda done: progress(min(done, task.n_jobs)))
        if conducted.fault is not None:
            if place is not None:
                shutil.copytree(folder, place / task.on / "detailed")
            raise conducted.fault
        decided = conducted.result.dispatcher
        assert isinstance(decided, PoolDispatcher)
        schedule, hosts = to_steps(task, decided)
        if place is not None:
            write_run(run_of(fast.schedules[s], fast, s, record), place / "fast")
            extra_record = {"detailed": conducted.record_fields(task) | {"steps": decided.passes}}
            run = run_of(schedule, fast, s, {**record, **extra_record}, hosts=hosts, world=task.on)
            write_run(run, place / task.on, detailed=folder)
    return schedule


@dataclass(frozen=True)
class TwoWorldResult:
    """One policy's sequences in both worlds, in steps."""

    policy: PoolPolicy
    fast: PoolEvaluation
    detailed: PoolEvaluation

    @property
    def differing(self) -> list[tuple[int, int, int, int]]:
        """(Sequence, job, both from 1; steps in which its last attempt starts) where these differ."""
        pairs = zip(self.fast.schedules, self.detailed.schedules, strict=True)
        differences = [
            (s, j + 1, int(fast.start[j]), int(detailed.start[j]))
            for s, (fast, detailed) in enumerate(pairs, 1)
            for j in np.flatnonzero(fast.start != detailed.start).tolist()
        ]
        return sorted(differences, key=lambda one: (min(one[2:]), *one))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; times in steps."""
        document, differing = as_document([self.fast, self.detailed]), self.differing
        fast, detailed = ({k: v for k, v in one.items() if k != "policy"} for one in document.pop("policies"))
        first = ("sequence", "job", "fast", "detailed")
        return {
            "policy": self.policy.name,
            "kill": self.policy.kill,
            **{key: value for key, value in document.items() if key != "scheduler"},
            "fast": fast,
            "detailed": detailed,
            "difference": {key: detailed[key] - fast[key] for key in COMPARED},
            "differing_starts": len(differing),
            "first_difference": dict(zip(first, differing[0], strict=True)) if differing else None,
        }


def beyond(documents: Sequence[Mapping[str, Any]], tolerance: float) -> list[str]:
    """Return a line for each value of `TwoWorldResult.as_dict` off by more than a share of the fast one."""
    problems = []
    for one in documents:
        for key in COMPARED:
            fast, detailed = one["fast"][key], one["detailed"][key]
            if abs(detailed - fast) > tolerance * abs(fast):
                problems.append(f"{one['policy']}: {key} is {detailed:g}, in the fast world {fast:g}")
    return problems
