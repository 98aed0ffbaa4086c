"""Futures of a Slurm's queue under its own schedulers: readings as text, and when jobs start."""

from typing import cast

import numpy as np
from test_own_shadow import Slurm, job

from bridge.forecasting.site_fork import open_fork
from bridge.forecasting.state import MachineState, SlurmPresent
from bridge.forecasting.statefile import state_of
from bridge.forecasting.whatif import with_job
from bridge.scheduler.state import SECOND
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.own_jobs import read_jobs
from bridge.worlds.slurm.own_site import OwnQueue, read_own_site

NOW = 1100
#: Job 1 has three of four nodes until 1602 at the longest; 2 needs all, 3 two, and 4 one for five minutes.
LINES = [
    job(1, "RUNNING", 3, "n[0-2]", 1002, 1602),
    job(2, "PENDING", 4),
    job(3, "PENDING", 2),
    job(4, "PENDING", 1).replace("00:10:00", "00:05:00"),
]


def state_of_queue(queue: OwnQueue) -> MachineState:
    def row(label: str) -> dict[str, object]:
        one = (queue.running | queue.waiting)[label]
        nodes = int(one.fields["NumNodes"].partition("-")[0])
        limit = {"00:10:00": 600}.get(one.fields["TimeLimit"], 300)
        return {"id": label, "submit": one.submit, "request": limit, "demand": {"nodes": nodes}}

    running = [row(label) | {"start": one.start} for label, one in queue.running.items()]
    document = {"now": NOW, "capacity": {"nodes": 4}, "free": {"nodes": 1}, "running": running}
    document["waiting"] = [row(label) for label in queue.waiting]

    def submitted(nodes: int, walltime: float, user: str, name: str) -> MachineState:
        more = queue.copy()
        more.submit(name, nodes, walltime, user, "p", NOW)
        return state_of_queue(more)

    state = state_of({"format": "bridge-state", "version": 1, **document}, "test")
    object.__setattr__(state, "own", SlurmPresent(queue.controller, submitted))
    return state


def read() -> OwnQueue:
    return OwnQueue.of(read_own_site(cast("Client", Slurm())), read_jobs("".join(LINES)))


def starts(state: MachineState, **runs: int) -> dict[str, list[float]]:
    """Return the starts of waiting jobs in twelve futures, s since 1970."""
    times = [runs[f"j{name}"] * SECOND for name in state.id]
    played = open_fork(state).simulate_futures(np.array([times] * 12, np.int64))
    return {state.id[j]: (played[:, j] / SECOND).tolist() for j in state.waiting}


def test_futures_follow_slurm_s_two_schedulers() -> None:
    forecast = starts(state_of_queue(read()), j1=298, j2=50, j3=20, j4=100)
    # backfill comes within 30 s, and starts job 4, which ends by its limit before job 1 does
    assert all(NOW <= time <= NOW + 31 for time in forecast["4"])
    # job 1 ends at 1300, its nodes are free at 1300.5, and the loop that looks each second starts job 2
    assert all(1300.5 <= time <= 1304.5 for time in forecast["2"])
    # job 3 waits for job 2, though two nodes were free beside job 4
    for second, third in zip(forecast["2"], forecast["3"], strict=True):
        assert second + 50.5 <= third <= second + 54.5
    assert len({*forecast["4"]}) > 6  # each future has its own begin of the loops


def test_a_job_is_killed_at_its_limit_by_a_check_each_half_minute() -> None:
    forecast = starts(state_of_queue(read()), j1=9999, j2=50, j3=20, j4=100)
    assert all(1602 < time <= 1602 + 30 + 1 + 4.5 for time in forecast["2"])


def test_a_job_that_is_submitted_waits_behind_all_others() -> None:
    state = with_job(state_of_queue(read()), 4, 120.0)
    forecast = starts(state, j1=298, j2=50, j3=20, j4=100, jnew=10)
    assert [third < new for third, new in zip(forecast["3"], forecast["new"], strict=True)] == [True] * 12
    assert all(new <= third + 20 + 4.5 for third, new in zip(forecast["3"], forecast["new"], strict=True))
