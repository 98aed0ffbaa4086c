"""Agents in the passes of the protocol `slurm` on a site that changes in time, beside its own starts."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from test_agents_under_slurm import first, played, scenario_of, site_of  # noqa: F401

from bridge.cluster.description import AdvanceReservation, CalendarEvent, Cluster
from bridge.cluster.limits import PreemptMode
from bridge.scheduler.slurm.agent_passes import SlurmQuestion
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.slurm.log_replay import LogReplay

MODES: tuple[PreemptMode, ...] = ("requeue", "cancel", "suspend")


def site_in_time(seed: int) -> Cluster:
    """Return a site with an outage, a drain, a reservation, a cancellation, and jobs that preempt others."""
    site, mode = site_of(), MODES[seed % 3]
    partitions = tuple(replace(row, preempt_mode=mode, grace_time=60 * (seed % 2)) for row in site.partitions)
    return replace(
        site,
        partitions=partitions,
        reservations=(AdvanceReservation(name="r", start=5_000, end=9_000, nodes=("n[0-1]",)),),
        calendar=(
            CalendarEvent(time=2_000, event="down", nodes=("n[6-7]",)),
            CalendarEvent(time=6_000, event="up", nodes=("n[6-7]",)),
            CalendarEvent(time=8_000, event="drain", nodes=("n2",)),
            CalendarEvent(time=7_000, event="cancel", job="60"),
        ),
        scheduler=replace(site.scheduler, preempt="partition", preempt_mode=mode),
    )


def check(scenario_of: Callable[..., Scenario], seed: int, agent: tuple[str, ...]) -> LogReplay:  # noqa: F811
    """Compare the lives of all jobs; return the replay by the agent, which was asked."""
    order, asked = ("multifactor", "saf", "fcfs")[seed % 3], 0
    own = LogReplay(scenario_of(seed, site_in_time(seed), order))
    own.play(1)

    def answer(world: LogReplay, question: SlurmQuestion) -> int:
        nonlocal asked
        asked += len(question.candidates) > 1
        return first(world, question)

    world = played(scenario_of(seed, site_in_time(seed), order, *agent), answer)
    assert asked > 5
    for name, column in own.columns.items():
        assert world.columns[name] == column, name
    return world


@pytest.mark.parametrize("seed", [0, 2])
def test_who_takes_the_first_makes_slurms_own_starts(
    scenario_of: Callable[..., Scenario],  # noqa: F811
    seed: int,
) -> None:
    world = check(scenario_of, seed, ("pick", "backfill"))
    assert sum(start >= 0 for start in world.columns["start"]) > 50
    assert any(job.episode > 0 for job in world.slurm.jobs.values())  # some were stopped, and ran again


@pytest.mark.slow
@pytest.mark.parametrize("agent", [("pick",), ("backfill",), ("pick", "backfill")])
@pytest.mark.parametrize("seed", [1, *range(3, 9)])
def test_so_it_does_whatever_the_agent_decides(
    scenario_of: Callable[..., Scenario],  # noqa: F811
    seed: int,
    agent: tuple[str, ...],
) -> None:
    check(scenario_of, seed, agent)
