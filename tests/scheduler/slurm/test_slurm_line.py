"""The line of waiting jobs, kept between passes, against the queue sorted from nothing."""

import random
from functools import cmp_to_key

from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.scheduler.slurm.arrays import JOB
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import DONE, SlurmJob
from bridge.scheduler.slurm.settings import Settings
from bridge.scheduler.slurm.site import Site


def before(one: Entry, other: Entry) -> int:
    """Compare two entries by Slurm's keys, one after the other."""
    (a, p), (b, q) = one, other
    if p.about.tier != q.about.tier:
        return q.about.tier - p.about.tier
    if a.priority != b.priority:
        return -1 if a.priority > b.priority else 1
    if a.submit != b.submit:
        return a.submit - b.submit
    return a.id - b.id


def fresh(slurm: Controller, now: int) -> list[tuple[int, str]]:
    waiting = [job for job in slurm.jobs.values() if job.state != DONE and not job.held and job.priority]
    entries = [(job, part) for job in waiting if job.begin <= now for part in job.parts]
    return [(job.key, part.name) for job, part in sorted(entries, key=cmp_to_key(before))]


def test_it_is_the_queue_sorted_from_nothing() -> None:
    draw = random.Random(3)
    parts = (Partition(name="p", tier=1), Partition(name="q", tier=2), Partition(name="r", tier=1))
    site = Site(Cluster(nodes=(NodeGroup(name="n", count=4),), partitions=parts), Settings(limits=False))
    slurm, now, longest = Controller(site), 1_000, 0
    for key in range(400):
        now += draw.choice((0, 0, 5, 40))
        job = SlurmJob(
            id=key + 1,
            key=key,
            user="u",
            assoc=site.user_of("u", "root"),
            qos="normal",
            parts=tuple(draw.sample(site.parts, draw.choice((1, 1, 2)))),
            min_nodes=1,
            max_nodes=1,
            tasks=1,
            begin=draw.choice((0, 0, now + 60)),
            held=draw.random() < 0.1,
            priority=draw.choice((0, 7, 8)),
        )
        slurm.submit(job, now)
        if draw.random() < 0.4:
            slurm.cancel(draw.choice(list(slurm.pending.values())), now)
        if draw.random() < 0.1:
            draw.choice(list(slurm.jobs.values())).priority = 9
            slurm.line.is_valid = 0
        entries = slurm.store.turn[: slurm.queue(now)].tolist()
        rows = slurm.rows
        jobs = [rows.jobs[slurm.store.entries[e, JOB]] for e in entries]
        queue = [(job.key, rows.parts[e].name) for job, e in zip(jobs, entries, strict=True)]
        assert queue == fresh(slurm, now)
        longest = max(longest, len(queue))
    assert longest > 100
