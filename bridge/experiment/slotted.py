"""The slotted scheduler in the detailed world: policies, a drawn sequence as files, and its run in steps."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.errors import BridgeError
from bridge.experiment.prepare import PLATFORM, WORKLOAD, placement
from bridge.experiment.spec import Detailed
from bridge.pool.asking import HEURISTICS, Answer, by_rule
from bridge.pool.evaluate import KILLS, Evaluation, Options, evaluate
from bridge.pool.jobset import STEP_SECONDS, JobSet
from bridge.pool.schedule import Schedule
from bridge.pool.sequences import Sequences
from bridge.pool.settings import Kill, Settings
from bridge.pool.state import KILL

if TYPE_CHECKING:
    from bridge.batsim.process import DecisionProcess
    from bridge.batsim.ticks import TickDispatcher
    from bridge.learn.slotted_checkpoint import SlottedCheckpoint
    from bridge.platform.model import Platform
    from bridge.workload.table import Workload

#: How much shorter a job is than its steps, s: it ends as a step begins, and its tick is a second later.
SHORTER = 1
#: Placement rules that read the platform.
READ_PLATFORM = ("best-fit", "topology")


@dataclass(frozen=True)
class Policy:
    """A heuristic, with or without the kill rule, or a trained agent; for both worlds.

    Attributes:
        text: as it was named: ``saf``, ``saf+rule``, an agent's folder.
        kill: who kills.
        agent: None for a heuristic.
    """

    text: str
    kill: Kill
    agent: "SlottedCheckpoint | None" = None

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.agent.name if self.agent else self.text

    @property
    def rule(self) -> str:
        """The heuristic's name alone."""
        return self.text.partition("+")[0]

    def make(self) -> Answer:
        """Return how it answers in one pool, from the beginning of a simulation."""
        if self.agent is None:
            return by_rule(self.rule)
        from bridge.learn.slotted_rollout import deciding

        agent = self.agent
        return deciding(agent.recipe, agent.network, agent.mode, agent.origin.seed)

    def fast(
        self, jobs: JobSet, options: Options, progress: Callable[[int], None] | None = None
    ) -> Evaluation:
        """Play drawn sequences in the fast world."""
        if self.agent is None:
            return evaluate(jobs, self.rule, self.kill, options, progress=progress)
        from bridge.learn.slotted_play import evaluate_agent

        return evaluate_agent(self.agent, jobs, options, progress=progress)

    def words(self, settings: Settings) -> tuple[str, ...]:
        """Return what `bridge decide` is told of it and its pool."""
        if self.agent is not None:  # whose own estimator is in the workload already
            return (str(self.agent.folder.resolve()), "--estimator", "running")
        pool = ("--pool-units", str(settings.units), "--pool-slots", str(settings.slots))
        return (self.rule, "--scheduler", "slotted", "--kill", self.kill, *pool)


def names_agent(text: str) -> bool:
    """Tell whether a policy is meant as a folder: `saf` may be a heuristic and any folder's name."""
    from bridge.learn.folder import is_checkpoint

    return is_checkpoint(text) or (text.partition("+")[0] not in HEURISTICS and Path(text).is_dir())


def policy_of(text: str) -> Policy:
    """Return a policy by name, or from an agent's folder.

    Raises:
        BridgeError: it is neither; or an agent of the other scheduler.
    """
    if names_agent(text):
        from bridge.learn.slotted_checkpoint import load

        agent = load(text)
        return Policy(text, agent.recipe.kill, agent)
    rule, plus, kill = text.partition("+")
    if rule not in HEURISTICS or (kill or "none") not in KILLS or (plus and not kill):
        raise BridgeError(
            "is no policy of the slotted pool and no folder of a trained agent",
            where=f"policy {text!r}",
            remedy=f"Write one of {', '.join(HEURISTICS)}, or one with +rule, which kills mispredicted jobs.",
        )
    return Policy(text, "rule" if kill == "rule" else "none")


def dispatcher(
    policy: Policy, settings: Settings, name: str, platform: "Platform | None", **setup: Any
) -> "TickDispatcher":
    """Return what decides behind Batsim, for one simulation.

    Args:
        policy, settings: who, and on which pool.
        name, platform: of the placement rule, and what it reads.
        setup: further fields of `bridge.batsim.ticks.TickSetup`.
    """
    from bridge.batsim.ticks import TickDispatcher, TickSetup

    rule = placement(name, platform)
    return TickDispatcher(
        TickSetup(policy.make(), settings, policy.kill, placement=rule, placement_name=name, **setup)
    )


@dataclass(frozen=True)
class SlottedTask:
    """One sequence under one policy on a platform, see `bridge.experiment.detailed.conduct`.

    Attributes:
        on: ``simgrid`` or ``batsim``.
        policy, settings: who decides, and on which pool.
        drawn, sequence: the jobs: sequence number `sequence` of these.
        platform: with as many hosts as the pool has units, at least.
        asked: for the platform program; what a policy that kills needs is added.
    """

    on: str
    policy: Policy
    settings: Settings
    drawn: Sequences
    sequence: int
    platform: "Platform"
    asked: Detailed

    def check(self) -> None:
        """Refuse what cannot work before anything runs.

        Raises:
            BridgeError: the platform is too small, or the agent has learnt on another pool.
        """
        if self.policy.agent is not None:
            from bridge.learn.slotted_checkpoint import require_pool

            require_pool(self.policy.agent, self.settings)
        if self.hosts < self.settings.units:
            raise BridgeError(
                f"the platform has {self.hosts:,} compute hosts, the pool {self.settings.units} units",
                where=self.platform.path,
                remedy="Use a larger platform, or a smaller pool (--pool-units).",
            )

    @property
    def detailed(self) -> Detailed:
        """What the platform program is started with."""
        from bridge.batsim.ticks import DYNAMIC

        if self.policy.kill == "none" or DYNAMIC in self.asked.options:
            return self.asked
        return replace(self.asked, options=(DYNAMIC, *self.asked.options))

    @property
    def hosts(self) -> int:
        """Compute hosts of the platform."""
        return len(self.platform.compute)

    @property
    def nodes(self) -> int:
        """How many of them are the pool's."""
        return self.settings.units

    @property
    def n_jobs(self) -> int:
        """Jobs of the sequence."""
        return len(self.drawn.drawn(self.sequence)[0])

    def process(self) -> "DecisionProcess":
        """Return who decides."""
        from bridge.batsim.process import DecisionProcess

        return DecisionProcess(dispatcher(self.policy, self.settings, self.asked.placement, self.platform))

    def write_inputs(self, folder: Path) -> None:
        """Write platform and workload to a folder.

        Raises:
            BridgeError: a job cannot be sized for the platform, or writing fails.
        """
        from bridge.experiment.profiles import builder
        from bridge.workload.batsim import write_batsim
        from bridge.workload.walltime import NONE

        shutil.copyfile(self.platform.path, folder / PLATFORM)
        workload = workload_of(self.drawn, self.sequence, self.settings)
        write_batsim(workload, folder / WORKLOAD, builder(self.asked.kind, self.platform), NONE)

    def again(self, socket: str) -> tuple[str, ...]:
        """Return the command line that decides once more where the inputs are."""
        rule = self.asked.placement
        where = ("--platform", PLATFORM) if rule in READ_PLATFORM else ()
        words = (*self.policy.words(self.settings), "--placement", rule, *where)
        return ("bridge", "decide", *words, "--socket", socket, "--out", "again/decisions.json")


def workload_of(drawn: Sequences, s: int, settings: Settings) -> "Workload":
    """Return a sequence as a workload: ids are places in it, a unit is a host, beliefs are further fields.

    Args:
        drawn, s: sequence number `s` of these.
        settings: of the pool.
    """
    import pandas as pd

    from bridge.workload.columns import complete
    from bridge.workload.table import Workload

    steps, index = drawn.drawn(s)
    jobs = drawn.jobs
    series = []
    for values in jobs.beliefs[index].tolist():
        last = len(values)
        while last > 1 and values[last - 2] == values[-1]:  # the last value stays
            last -= 1
        series.append(values[:last])
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
    found, _ = complete(table, lambda row: f"row {row}", jobs.name)
    found["beliefs"] = pd.Series(series, index=found.index, dtype=object)
    return Workload(jobs.name, found, {"nodes": settings.units})


@dataclass(frozen=True)
class Stepped:
    """What a detailed simulation came to, in steps.

    Attributes:
        schedule: as the fast world would tell it.
        hosts: of each job's last attempt and, behind them, of each killed attempt of the schedule.
    """

    schedule: Schedule
    hosts: tuple[str, ...]


def stepped(task: SlottedTask, decided: "TickDispatcher") -> Stepped:
    """Return a simulation, all of whose jobs have ended, in steps; lengths are those of the sequence."""
    from bridge.batsim.beliefs import number_of
    from bridge.wire.hosts import text_of

    steps, index = task.drawn.drawn(task.sequence)
    tickets = sorted(decided.tickets, key=lambda ticket: number_of(ticket.event.job_id) or 0)
    last = [ticket.current for ticket in tickets]
    killed = [(j, attempt) for j, ticket in enumerate(tickets) for attempt in ticket.killed]
    killed.sort(key=lambda one: (one[1].end_step, one[0]))
    attempts = np.zeros(len(killed), KILL).view(np.recarray)
    jobs = task.drawn.jobs
    for record, (j, attempt) in zip(attempts, killed, strict=True):
        record.job, record.start, record.end = j, attempt.start_step, attempt.end_step
        before = tickets[j].attempts[attempt.number - 2].belief
        record.believed = before if attempt.number > 1 else jobs.believed[index[j]]
        record.belief = attempt.belief
    schedule = Schedule(
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
    return Stepped(schedule, tuple(text_of(attempt.hosts) for attempt in held))
