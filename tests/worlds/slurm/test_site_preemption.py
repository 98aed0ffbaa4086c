"""Preemption on a live site, driven event by event, against the brute force that plays the whole case."""

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from cluster_on_bridge import Case
from cluster_reference.generate import draw_case, draw_preemption
from cluster_reference.scheduler import Simulation
from test_site_scheduler import BEGIN, plain, request_of, site_of

from bridge.cluster.clusterfile import cluster_tables
from bridge.experiment.live_pass import ClusterPass
from bridge.scheduler.protocol import PROTOCOLS, Policy
from bridge.worlds.slurm.live_scheduler import LiveEvent
from bridge.worlds.slurm.site_jobs import PendingJob, StopKind
from bridge.worlds.slurm.site_scheduler import SiteScheduler, record_of_wait

PARTS = ("features", "weights", "licences", "down", "preemption")
#: (job, start, end, nodes) of a life, in seconds.
Life = tuple[int, int, int, list[int]]


def preempting(seed: int, backfill: str) -> Case:
    """Return a case in which jobs have the same on each node, and all have one time of exemption."""
    case = plain(draw_case(seed, parts=PARTS, backfills=(backfill,), jobs=(5, 16), overruns=False))
    if not any("preempt" in row for row in case["partitions"].values()):
        draw_preemption(random.Random(seed), case)
    exempt = {"exempt": seed % 3}
    partitions = {name: {**row, **exempt} for name, row in case["partitions"].items()}
    qos = {
        name: {key: row[key] for key in ("priority", "preempts") if key in row}
        for name, row in case.get("qos", {}).items()
    }
    jobs = [
        {key: value for key, value in job.items() if key != "tasks"}
        | {"nodes": job.get("nodes") or 1, "vector": {"cores": 1, "memory": 1, **job.get("vector", {})}}
        for job in case["jobs"]
    ]
    order = "fcfs" if case["order"] == "w/t" else case["order"]  # a wait begins anew by Slurm's submission
    return {**case, "partitions": partitions, "qos": qos, "jobs": jobs, "order": order, "calendar": []}


class Site:
    """A site of a case, at work; what becomes of its jobs is carried out as Slurm does, at once."""

    def __init__(self, case: Case) -> None:
        policy = Policy(case["order"], case["backfill"], case.get("candidate_order", ""))
        self.book = SiteScheduler(ClusterPass(policy, PROTOCOLS["standard"]))
        self.case, self.now = case, 0
        self.ends: dict[int, float] = {}
        self.starts: dict[int, tuple[int, list[int]]] = {}
        self.suspended: dict[int, tuple[int, float]] = {}  # since when, and what is left
        self.lives: list[Life] = []
        self.kinds: set[StopKind] = set()
        self.spared: set[str] = set()
        cluster, out = site_of(case)
        exempt = max(row["exempt"] for row in case["partitions"].values())
        cluster = replace(cluster, scheduler=replace(cluster.scheduler, preempt_exempt_time=exempt))
        self.tell("site", cluster=cluster_tables(cluster))
        self.tell("out", names=out)

    def tell(self, kind: str, job: str = "", **details: Any) -> None:
        self.book.apply_event(LiveEvent(kind, float(BEGIN + self.now), job, details))

    def wait(self, k: int) -> None:
        job = self.case["jobs"][k]
        request = replace(request_of(job, {}), qos=job.get("qos", ""), may_requeue=job.get("requeue", True))
        length = float(job["request"])
        waiting = PendingJob(str(k), k, float(BEGIN + job["submit"]), length, request)
        self.tell("wait", str(k), **record_of_wait(waiting))

    def close(self, k: int) -> None:
        start, nodes = self.starts.pop(k)
        self.ends.pop(k, None)
        if start < self.now:
            self.lives.append((k, start, self.now, nodes))

    def decide(self) -> None:
        while True:
            self.book.decide(float(BEGIN + self.now))
            self.spared |= {*self.book.spared}
            for stop in self.book.stops:
                self.carry_out(int(stop.key), stop.kind)
            for key, start in self.book.starts.items():
                k = int(key)
                self.starts[k] = self.now, sorted(int(name[1:]) for name in start.nodes)
                job = self.case["jobs"][k]
                self.ends[k] = self.now + min(job["run"], job["request"])
            if not self.book.goes_on:
                return

    def carry_out(self, k: int, kind: StopKind) -> None:
        self.kinds.add(kind)
        if kind is StopKind.SUSPEND:
            self.suspended[k] = self.now, self.ends.pop(k) - self.now
        elif kind is StopKind.RESUME:
            self.ends[k] = self.now + self.suspended.pop(k)[1]
        elif kind in (StopKind.REQUEUE, StopKind.CANCEL):
            self.close(k)
            if kind is StopKind.REQUEUE:
                self.wait(k)

    def play(self) -> list[Life]:
        coming = {k: job["submit"] for k, job in enumerate(self.case["jobs"])}
        while times := [*coming.values(), *self.ends.values(), self.book.wake_at - BEGIN]:
            if min(times) == math.inf:
                break
            self.now = int(min(times))
            for k in [k for k, end in self.ends.items() if end == self.now]:
                self.tell("end", str(k))
                self.close(k)
            for k in [k for k, submit in coming.items() if submit == self.now]:
                del coming[k]
                self.wait(k)
            self.decide()
        return sorted(self.lives)


class Reference(Simulation):  # type: ignore[misc]
    """The brute force; `at_once`: a job was stopped as it started: on a site it never begins."""

    at_once = False

    def remove_victim(self, victim: Any) -> None:
        requeues = self.preempt_mode(victim) == "requeue" and victim.get("requeue", True)
        self.at_once |= victim["start"] == self.now and not requeues
        super().remove_victim(victim)


def reference(case: Case) -> list[Life] | None:
    """Return the lives of a case; None: a site does otherwise with a job that is stopped as it starts."""
    simulation = Reference(case)
    lives = [
        (life["job"], life["start"], life["end"], sorted(life["nodes"]))
        for life in simulation.play()["lives"]
        if life["start"] < life["end"]
    ]
    return None if simulation.at_once else sorted(lives)


def check(seeds: Iterable[int], backfill: str) -> set[StopKind]:
    """Compare cases; return what became of running jobs in them."""
    kinds = set[StopKind]()
    for seed in seeds:
        case = preempting(seed, backfill)
        site, expected = Site(case), reference(case)
        lives = site.play()
        if site.spared or expected is None:  # spared: it has nodes of an exclusive and of a shared partition
            continue
        assert lives == expected, (seed, backfill)
        kinds |= site.kinds
    return kinds


@pytest.mark.parametrize(
    ("backfill", "seeds"),
    [("easy", (19, 57, 94, 237, 243, 487, 775, 843)), ("none", (18, 25, 86, 850, 1408))],
)
def test_a_live_site_stops_and_starts_jobs_as_the_brute_force_does(
    backfill: str, seeds: tuple[int, ...]
) -> None:
    assert check(seeds, backfill) == set(StopKind)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["easy", "none"])
def test_so_it_does_in_many_cases(backfill: str) -> None:
    assert check(range(100, 500), backfill) == set(StopKind)
