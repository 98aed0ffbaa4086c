"""The passes of a live site, driven event by event, against the brute force that plays the whole case."""

import math
from dataclasses import replace
from typing import Any

import pytest
from cluster_on_bridge import Case, build_cluster
from cluster_reference.generate import draw_case
from cluster_reference.scheduler import simulate

from bridge.cluster.clusterfile import cluster_tables
from bridge.experiment.live_pass import ClusterPass
from bridge.scheduler.protocol import PROTOCOLS, Policy
from bridge.worlds.slurm.live_scheduler import LiveEvent
from bridge.worlds.slurm.site_jobs import PendingJob, SiteRequest
from bridge.worlds.slurm.site_scheduler import SiteScheduler, record_of_wait

PARTS = ("features", "gpus", "weights", "licences", "arrays", "down", "reservations")
#: The site's clock is seconds since 1970; the cases begin here.
BEGIN = 1_000_000


def plain(case: Case) -> Case:
    """Return a case with what Slurm tells of jobs: they state their memory, and Slurm checks whose they are.

    Lists of nodes tell nodes apart only while their job waits; so there are none here.
    """
    defaults = ("default_memory_per_core", "default_memory_per_node")
    partitions = {
        name: {key: value for key, value in row.items() if key not in defaults}
        for name, row in case["partitions"].items()
    }
    entries = [
        {key: value for key, value in entry.items() if key not in ("users", "announced")}
        for entry in case.get("calendar", ())
    ]
    jobs = [
        {key: value for key, value in job.items() if key not in ("nodelist", "exclude")}
        for job in case["jobs"]
    ]
    return {**case, "partitions": partitions, "calendar": entries, "jobs": jobs} | {
        "kill_invalid_dependency": False
    }


def request_of(job: Case, arrays: dict[str, int]) -> SiteRequest:
    vector = job.get("vector", {})
    gpu_type, gpus = next(iter(vector.get("gpus", {}).items()), ("any", 0))
    return SiteRequest(
        partition=",".join(job["partitions"]),
        nodes=job.get("nodes", 0),
        tasks=job.get("tasks", 0),
        cores=vector.get("cores", 1),
        memory=vector.get("memory", -1),
        gpus=gpus,
        gpu_type="" if gpu_type == "any" else gpu_type,
        exclusive=bool(job.get("exclusive")),
        features=job.get("features", ""),
        licenses=",".join(f"{name}:{n}" for name, n in job.get("licences", {}).items()),
        reservation=job.get("reservation", ""),
        array=arrays.get(job.get("array", ""), -1),
        array_limit=job.get("array_limit", 0),
    )


def site_of(case: Case) -> tuple[Any, list[str]]:
    """Return the case's cluster with all nodes up, on the site's clock, and the nodes that are out."""
    cluster = build_cluster(case)
    out = [group.nodes for group in cluster.nodes if group.state != "up"]
    moved = [replace(row, start=row.start + BEGIN, end=row.end + BEGIN) for row in cluster.reservations]
    nodes = [replace(group, state="up") for group in cluster.nodes]
    return replace(cluster, nodes=tuple(nodes), reservations=tuple(moved)), out


def play_live(case: Case, decider: Any = None, **decides: Any) -> list[tuple[int, list[int]] | None]:
    """Return start and nodes of each job, as a live site of these jobs has them; `decides`: of the policy."""
    return play_site(case, math.inf, decider, **decides)[1]


def play_site(
    case: Case, until: float, decider: Any = None, **decides: Any
) -> tuple[SiteScheduler, list[tuple[int, list[int]] | None]]:
    """Return the scheduler of a live site behind its pass at a time, and what `play_live` returns by then."""
    policy = Policy(case["order"], case["backfill"], case.get("candidate_order", ""), **decides)
    site = SiteScheduler(ClusterPass(policy, PROTOCOLS["standard"], decider))
    cluster, out = site_of(case)

    def tell(kind: str, now: int, job: str = "", **details: Any) -> None:
        site.apply_event(LiveEvent(kind, float(BEGIN + now), job, details))

    tell("site", 0, cluster=cluster_tables(cluster))
    tell("out", 0, names=out)
    names = dict.fromkeys(job["array"] for job in case["jobs"] if "array" in job)
    arrays = {name: k for k, name in enumerate(names)}
    moments = {time for row in case["calendar"] for time in (row["begin"], row["end"])}
    starts: list[tuple[int, list[int]] | None] = [None] * len(case["jobs"])
    ends: dict[int, int] = {}
    while times := [
        *(job["submit"] for k, job in enumerate(case["jobs"]) if k not in ends),
        *(end for k, end in ends.items() if end >= 0),
        *moments,
        *([site.wake_at - BEGIN] if site.wake_at < math.inf else []),
    ]:
        now = int(min(times))
        if now > until:
            break
        moments.discard(now)
        for k in [k for k, end in ends.items() if end == now]:
            tell("end", now, str(k))
            ends[k] = -1
        for k, job in enumerate(case["jobs"]):
            if job["submit"] == now and k not in ends:
                request = request_of(job, arrays)
                waiting = PendingJob(str(k), k, float(BEGIN + now), float(job["request"]), request)
                tell("wait", now, waiting.key, **record_of_wait(waiting))
                ends[k] = -1
        for key in site.decide(float(BEGIN + now)):
            k = int(key)
            nodes = sorted(int(name[1:]) for name in site.starts[key].nodes)
            starts[k] = (now, nodes)
            ends[k] = now + min(case["jobs"][k]["run"], case["jobs"][k]["request"])
    return site, starts


def play_reference(case: Case) -> list[tuple[int, list[int]] | None]:
    lives = {life["job"]: (life["start"], sorted(life["nodes"])) for life in simulate(case)["lives"]}
    return [lives.get(k) for k in range(len(case["jobs"]))]


def check(seeds: range, backfill: str) -> int:
    started = 0
    for seed in seeds:
        case = plain(draw_case(seed, parts=PARTS, backfills=(backfill,), jobs=(5, 16), overruns=False))
        live = play_live(case)
        assert live == play_reference(case), (seed, backfill)
        started += sum(start is not None for start in live)
    return started


@pytest.mark.parametrize("backfill", ["easy", "none", "conservative"])
def test_a_live_site_starts_each_job_when_and_where_the_brute_force_does(backfill: str) -> None:
    assert check(range(4), backfill) > 20


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["easy", "none", "conservative"])
def test_so_it_does_in_many_cases(backfill: str) -> None:
    assert check(range(100, 400), backfill) > 2000
