"""A state's file: what is written comes back, and what cannot be is refused by name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.errors import BridgeError
from bridge.forecasting.fork import Fork
from bridge.forecasting.statefile import document_of, read_state, state_of, write_state
from bridge.forecasting.timeline import Timeline
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import SECOND
from bridge.worlds.fast.replay import replay

ROWS = [(0, 100, 200, 3), (10, 50, 60, 4), (20, 30, 40, 1), (20.5, 400, 500, 1)]


def document(**changes: Any) -> dict[str, Any]:
    return {
        "format": "bridge-state",
        "version": 1,
        "now": 100,
        "capacity": {"nodes": 4},
        "free": {"nodes": 1},
        "running": [{"id": "a", "submit": 0, "start": 40, "request": 90, "demand": {"nodes": 3}}],
        "waiting": [{"id": 2, "submit": 50, "request": 60, "demand": {"nodes": 4}}],
    } | changes


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    jobs = make_jobs(ROWS, [4], users=[1, 2, 1, 2])
    work = prepared(jobs, Policy("slurm", "easy"))
    levels, quantiles = np.array([0.1, 0.9]), np.array([[1.5, 20.0]] * 4)
    state = Timeline(work, replay(work), levels, quantiles).state(30 * SECOND)[0]
    write_state(state, tmp_path / "state.json")
    again = read_state(tmp_path / "state.json")
    assert document_of(again) == document_of(state)
    runs = np.maximum(state.request, state.elapsed + SECOND)[None]
    assert Fork(again).simulate_futures(runs).tolist() == Fork(state).simulate_futures(runs).tolist()


def test_defaults() -> None:
    state = state_of(document())
    assert (state.id, state.n_running, state.policy, state.settled) == (("a", "2"), 1, "fcfs+easy", False)
    assert state.lengths.order.tolist() == [90 * SECOND, 60 * SECOND]
    assert state.longest == 90
    assert state.elapsed.tolist() == [60 * SECOND, 0]


def test_waiting_jobs_are_sorted_by_submission() -> None:
    late = {"id": "late", "submit": 70, "request": 60, "demand": {"nodes": 4}}
    early = {"id": "early", "submit": 60, "request": 60, "demand": {"nodes": 4}}
    assert state_of(document(waiting=[late, early])).id == ("a", "early", "late")


def running(**changes: Any) -> dict[str, Any]:
    return document(running=[document()["running"][0] | changes])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "no table"),
        (document(format="other"), "format cannot be 'other'"),
        (document(version=2), "version 2 is unknown"),
        (document(version=None), "version None is unknown"),
        (document(nodes=4), "unknown field 'nodes'"),
        (document(now="noon"), "now cannot be 'noon'"),
        (document(now=1e30), "now cannot be"),
        (document(now=45), "job '2': is submitted in the future"),
        (document(capacity={"power": 3}), "capacity.nodes is missing"),
        (document(capacity={"nodes": 2}), "job 'a': asks for more than the machine has"),
        (document(free={"nodes": 2}), "free.nodes cannot be 2: jobs use 3 of 4"),
        (document(free={"power": 1}), "'power', which is no resource"),
        (document(corrections={"1h": [0, 0, 0, 0, 0]}), "corrections['1h'] must be 5 numbers"),
        (document(corrections={"60": [0]}), "corrections['60'] must be 5 numbers"),
        (document(levels=[0.5, 0.5]), "job 'a': it has 0 quantiles for 2"),
        (document(levels=[1.5]), "levels"),
        (document(settled=1), "settled cannot be 1"),
        (running(id=2), "job '2': stands there twice"),
        (running(start=101), "job 'a': starts in the future"),
        (running(submit=41), "job 'a': starts before its submission"),
        (running(request=0), "request cannot be 0"),
        (running(demand={"nodes": 0}), "job 'a': asks for no nodes"),
        (running(demand={"nodes": -1}), "demand.nodes cannot be -1"),
        (running(demand={"nodes": 3, "power": 5}), "job 'a': it asks for 'power'"),
        (running(lengths={"order": 1}), "lengths.waiting is missing"),
        (running(quantiles=[5, 4]), "job 'a': it has 2 quantiles for 0 levels"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, wrong: object, said: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(wrong))
    with pytest.raises(BridgeError) as caught:
        read_state(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_quantiles_must_ascend() -> None:
    jobs = [{**job, "quantiles": [5, 4]} for job in document()["running"]]
    with pytest.raises(BridgeError, match="job 'a': its quantiles do not ascend"):
        state_of(document(levels=[0.1, 0.9], running=jobs, waiting=[]))
    with pytest.raises(BridgeError, match="levels must ascend"):
        state_of(document(levels=[0.9, 0.1], running=[], waiting=[]))


@pytest.mark.parametrize("text", ["", "{", '{"now": 1, "now": 2}', "[" * 200, "null"])
def test_no_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(BridgeError):
        read_state(path)


def test_a_job_that_can_never_run_holds_up_nobody_else() -> None:
    """Half the machine is out of service: job 2 never starts, and a later one is backfilled past it."""
    waiting = [*document()["waiting"], {"id": 3, "submit": 60, "request": 5, "demand": {"nodes": 1}}]
    state = state_of(document(free={"nodes": 0}, waiting=waiting))
    starts = Fork(state).simulate_futures(np.array([[90, 60, 5]]) * SECOND)
    assert starts[0, 1] == np.iinfo(np.int64).max
    assert starts[0, 2] == 130 * SECOND
