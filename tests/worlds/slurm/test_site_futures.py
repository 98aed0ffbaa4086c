"""Futures of live partitions on their own nodes: against the brute force, and beside a stand-in for Slurm."""

from typing import Any

import numpy as np
import pytest
from cluster_on_bridge import Case
from cluster_reference.generate import draw_case
from fake_site import FakeSite
from test_site_scheduler import BEGIN, PARTS, plain, play_reference, play_site, site_of

from bridge.base.errors import BridgeError
from bridge.experiment.live_pass import ClusterPass
from bridge.forecasting.site_fork import open_fork
from bridge.forecasting.starts import forecast
from bridge.forecasting.whatif import change_site, change_state, whatif
from bridge.scheduler.protocol import PROTOCOLS, Policy
from bridge.scheduler.state import NEVER, SECOND
from bridge.serve import observer as observers
from bridge.serve import site_observer
from bridge.serve.observer import RunTimeModel
from bridge.serve.site_observer import LiveSite, SiteObserver
from bridge.serve.snapshot import SnapshotCache


def live_site(case: Case, time: int) -> LiveSite:
    """Return a live site of a case as it is at a time, its jobs named by their numbers."""
    scheduler, _ = play_site(case, time)
    cluster, out = site_of(case)
    policy = Policy(case["order"], case["backfill"])

    def document(job: Any, **more: Any) -> dict[str, Any]:
        return {"id": job.key, "user": "", "request": job.length, "demand": {"nodes": 1}, **more}

    running = [(job, document(job, submit=BEGIN, start=job.start)) for job in scheduler._running.values()]
    waiting = [(job, document(job, submit=job.submit)) for job in scheduler._waiting.values()]
    return LiveSite(
        ClusterPass(policy, PROTOCOLS["standard"]), cluster, frozenset(out), tuple(running), tuple(waiting),
        (), next(iter(case["partitions"])), f"{case['order']}+{case['backfill']}", RunTimeModel(),
        float(BEGIN + time),
    )  # fmt: skip


@pytest.mark.parametrize("backfill", ["easy", "none", "conservative"])
def test_a_future_is_what_the_brute_force_makes_of_its_run_times(backfill: str) -> None:
    """All jobs are there, and each runs for as long as it requests."""
    compared = 0
    for seed in range(6):
        case = plain(draw_case(seed, parts=PARTS, backfills=(backfill,), jobs=(5, 14), overruns=False))
        jobs = [{**job, "run": job["request"]} for job in case["jobs"]]
        case = {**case, "candidate_order": "", "jobs": jobs}
        state = live_site(case, max(job["submit"] for job in jobs)).state()
        if state.site is None:
            continue
        expected = play_reference(case)
        (starts,) = open_fork(state).simulate_futures(np.maximum(state.request, state.elapsed + 1)[None])
        for name, start in zip(state.id[state.n_running :], starts[state.n_running :], strict=True):
            own = expected[int(name)]
            assert start == (NEVER if own is None else (BEGIN + own[0]) * SECOND), (seed, name)
            compared += 1
    assert compared > 10


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    site = FakeSite()

    class Controlled:
        def __init__(self, _: Any, *, details: bool) -> None:
            assert details

        def __call__(self, command: str, patience: float = 0) -> str:
            return site.control(command, patience)

    monkeypatch.setattr(observers, "Control", Controlled)
    monkeypatch.setattr(site_observer.time, "time", lambda: site.clock)
    return site


def observer_of(slurm: FakeSite, partition: str = "gpu,cpu") -> SiteObserver:
    return SiteObserver(slurm, partition, "fcfs+easy")  # type: ignore[arg-type]


def starts_by_request(slurm: FakeSite, partition: str = "gpu,cpu") -> dict[Any, Any]:
    """Return when waiting jobs start if all run as long as they may."""
    state = observer_of(slurm, partition).read().machine_state()
    return {row["job"]: row["reserved"] for row in forecast(state, futures=4).rows()}


def test_jobs_wait_for_the_nodes_that_they_ask_for(slurm: FakeSite) -> None:
    slurm.submit("1", "gpu", gres="gres:gpu:2", limit=300.0)
    slurm.submit("2", "gpu", nodes="2-2", tasks=2, each=4, gres="gres:gpu:2", limit=400.0)
    slurm.submit("3", "other", each=8, limit=500.0)
    slurm.start("1", "n0")
    slurm.start("2", "n1,n2")
    slurm.start("3", "n4")
    slurm.clock = 1100.0
    slurm.submit("4", "gpu", gres="gres:gpu:1", limit=100.0, submit=1100)  # the first node's GPUs
    slurm.submit("5", "gpu", each=4, limit=100.0, submit=1100)  # cores are free
    slurm.submit("6", "cpu", nodes="3-3", tasks=3, each=8, limit=60.0, submit=1100)  # all of the partition
    slurm.submit("7", "cpu", dependency="afterok:1", submit=1100)
    reading = observer_of(slurm).read()
    assert reading.not_forecast == {"7": "waits for afterok:1"}
    counts = (reading.document["capacity"], reading.document["free"], len(reading.document["running"]))
    assert counts == ({"nodes": 5}, {"nodes": 1}, 3)
    assert starts_by_request(slurm) == {"4": 1300.0, "5": 1100.0, "6": 1500.0}
    assert starts_by_request(slurm, "cpu") == {"6": 1500.0}  # one partition is a site, too


def test_a_reservation_and_a_drained_node(slurm: FakeSite) -> None:
    slurm.reservations = "ReservationName=class StartTime=1200 EndTime=1400 Nodes=n[3-4] Users=alice\n"
    slurm.states["n2"] = "drained"
    slurm.submit("1", "cpu", reservation="class", limit=60.0)
    slurm.submit("2", "cpu", nodes="2-2", tasks=2, each=8, limit=500.0)
    assert starts_by_request(slurm) == {"1": 1200.0, "2": 1400.0}


def test_what_if_nodes_are_drained_or_added_or_jobs_submitted(slurm: FakeSite) -> None:
    slurm.submit("1", "cpu", each=8, limit=300.0)
    slurm.start("1", "n2")
    slurm.submit("2", "cpu", nodes="2-2", tasks=2, each=8, limit=100.0)
    state = observer_of(slurm, "cpu").read().machine_state()

    def start_of(changed: Any, job: str) -> Any:
        return forecast(changed, futures=4, jobs=[job]).rows()[0]["reserved"]

    assert start_of(state, "2") == 1000.0
    assert start_of(change_site(state, "n4", ""), "2") == 1300.0
    assert start_of(change_site(state, "1", ""), "2") == 1300.0  # an idle one
    assert start_of(change_site(state, "2", ""), "2") is None
    submitted = change_state(state, submits=["3:60s", "1:60s"])
    assert [start_of(submitted, job) for job in ("2", "new 1", "new 2")] == [1000.0, 1300.0, 1100.0]
    with pytest.raises(BridgeError, match="can never"):
        change_state(state, submits=["9:60s"])
    base, changed = whatif([state, change_site(state, "n4", "")], ["fcfs+easy", "fcfs+easy"], futures=4)
    assert base.values["wait"].mean == 0.0 and changed.values["wait"].mean > 0.0


def test_the_page_shows_the_site(slurm: FakeSite) -> None:
    slurm.submit("1", "cpu", each=8, limit=300.0)
    slurm.start("1", "n2")
    slurm.submit("2", "cpu", nodes="2-2", tasks=2, each=8, limit=100.0)
    slurm.submit("3", "gpu", nodes="2-3")
    slurm.names_and_comments = lambda _: {}  # type: ignore[attr-defined]
    observer = observer_of(slurm)
    observer.warm_up()
    shot = SnapshotCache(observer, futures=4).now()
    totals = {"nodes": 5, "free": 4, "running": 1, "waiting": 1, "left": 1}
    assert {name: shot.totals()[name] for name in totals} == totals
    assert [(job["job"], job["runs"], job["why"]) for job in shot.queue()] == [
        ("1", True, ""), ("2", False, ""), ("3", False, "asks for 2 to 3 nodes")
    ]  # fmt: skip
    first, drained = shot.whatif(("fcfs+easy",), 3)  # n0, n1, n3
    assert first["values"]["wait"]["mean"] == 0.0 and drained["values"]["wait"]["mean"] > 0.0
    picture = shot.picture()
    assert picture is not None and picture.startswith(b"<?xml")
