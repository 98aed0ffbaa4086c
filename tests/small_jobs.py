"""Small job tables for tests, and the compiled core run on them, alone or with an agent or the reference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import reference

from bridge.scheduler import core
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND, State
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import Jobs
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.episode import Scenario, prepare
from bridge.worlds.fast.replay import Schedule, replay

#: submit, run, request (seconds), then the demand, nodes first.
Row = Sequence[float]


def make_jobs(
    rows: Sequence[Row],
    capacity: Sequence[int],
    *,
    users: Sequence[int] | None = None,
    queues: Sequence[int] | None = None,
    extra: Mapping[str, Sequence[float]] | None = None,
) -> Jobs:
    """Return jobs 1, 2, … from rows of (submit, run, request, nodes, more demands…), times in seconds."""
    n = len(rows)
    times = np.array([[round(x * SECOND) for x in row[:3]] for row in rows], np.int64)
    return Jobs(
        name="handmade",
        id=np.arange(1, n + 1),
        submit=times[:, 0],
        run=times[:, 1],
        request=times[:, 2],
        logged_run=times[:, 1],
        logged_wait=np.full(n, -1, np.int64),
        demand=np.array([row[3:] for row in rows], np.int64),
        resources=("nodes", "burst_buffer", "power", "licences")[: len(capacity)],
        capacity=np.array(capacity, np.int64),
        user=np.array(users if users is not None else [-1] * n, np.int64),
        queue=np.array(queues if queues is not None else [-1] * n, np.int64),
        origin=0,
        extra={k: np.array(v, np.float64) for k, v in (extra or {}).items()},
    )


def random_rows(
    rng: np.random.Generator, n: int, *, span: int, run: int, slack: int, nodes: int, more: int
) -> list[Row]:
    """Return rows of n jobs with two demands, all numbers drawn from below these."""
    runs = rng.integers(1, run, n)
    submit, request = np.sort(rng.integers(0, span, n)), runs + rng.integers(0, slack, n)
    columns = (submit, runs, request, rng.integers(1, nodes, n), rng.integers(0, more, n))
    rows: list[Row] = np.column_stack(columns).tolist()
    return rows


def prepared(
    jobs: Jobs, policy: Policy, rules: str = "standard", estimator: str = "", **switches: object
) -> Scenario:
    """Prepare jobs under a protocol, some of its switches changed."""
    rules_of = replace(protocol(rules), **switches)  # type: ignore[arg-type]
    rule = LOAD_RULES[DEFAULT_RULE[rules]]
    return prepare(jobs, rules_of, policy, estimator or rules_of.estimator, rule)


def starts(
    rows: Sequence[Row],
    nodes: int,
    order: str = "fcfs",
    backfill: str = "easy",
    rules: str = "standard",
    estimator: str = "",
    **columns: Sequence[int],
) -> list[float]:
    """Replay rows on a machine and return their start times in seconds."""
    jobs = make_jobs(rows, [nodes], **columns)  # type: ignore[arg-type]
    schedule = replay(prepared(jobs, Policy(order, backfill), rules, estimator))
    return [float(t / SECOND) for t in schedule.start]


def reference_jobs(p: Scenario) -> list[reference.Job]:
    return [
        reference.Job(
            index=j,
            submit=int(p.jobs.submit[j]),
            run=int(p.jobs.run[j]),
            length=int(p.estimate.order[j]),
            believed_waiting=int(p.estimate.waiting[j]),
            believed_running=int(p.estimate.running[j]),
            demand=tuple(int(d) for d in p.jobs.demand[j]),
            user=int(p.users[j]),
            partition=float(p.partition[j]),
            tie=int(p.tie[j]),
        )
        for j in range(len(p.jobs))
    ]


def reference_schedule(p: Scenario) -> list[reference.Job]:
    """Simulate a prepared workload with the plain-Python reference."""
    jobs = reference_jobs(p)
    policy, rules_of = p.compiled.policy, p.compiled.protocol
    reference.simulate(
        rules_of.name,
        jobs,
        [int(c) for c in p.jobs.capacity],
        policy.order,
        policy.backfill,
        candidate_order=policy.candidate_order,
        skip_next=rules_of.skip_next,
        shares=[float(s) for s in p.share],
    )
    return jobs


#: Gets the state and the kind of decision, returns the answer.
Agent = Callable[[State, int], int]


def play(p: Scenario, agent: Agent, window: int = 0) -> tuple[list[float], list[tuple[float, int]], int]:
    """Replay with an agent; return starts (s, -1 = never), (time, kind) of its decisions, and the outcome."""
    n = len(p.jobs)
    state = scheduler_state.allocate(1, n, len(p.jobs.resources), window=window or n, users=len(p.share))
    state = episode.configure(state, p)
    memory = world.allocate(1, n)
    episode.load_episode(state, memory, 0, p, 0, n)
    asked = []
    while True:
        kind = world.run_until_decision(state, memory, 0, 1 << 40)
        if kind < 0:
            break
        asked.append((float(state.scalars.now[0]) / SECOND, int(kind)))
        core.apply_choice(state, 0, agent(state, kind))
    start = [t / SECOND if t >= 0 else -1.0 for t in state.jobs.start[0]]
    return start, asked, int(kind)


def same(schedule: Schedule, jobs: Sequence[reference.Job]) -> bool:
    """Tell whether the core's start and end times are the reference's."""
    return [*schedule.start] == [j.start for j in jobs] and [*schedule.end] == [j.end for j in jobs]


def spread(name: str, *values: float) -> dict[str, float]:
    """Return the mean, median, 95th, 99th percentile and maximum of a metric by their keys."""
    statistics = ("mean", "median", "p95", "p99", "max")
    return {f"{name}.{statistic}": value for statistic, value in zip(statistics, values, strict=True)}
