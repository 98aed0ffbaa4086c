"""The backfill pass against a second implementation that keeps reservations, not records of free nodes."""

import random
from dataclasses import dataclass

import pytest

from bridge.cluster.description import Cluster, NodeGroup, Partition, SchedulerParameters
from bridge.cluster.limits import Qos
from bridge.scheduler.slurm.backfill_pass import backfill_idle_until, backfill_pass
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.main_pass import main_pass
from bridge.scheduler.slurm.masks import bits
from bridge.scheduler.slurm.settings import Settings
from bridge.scheduler.slurm.site import Site

NOW = 1_000_017


@dataclass
class Job:
    """A job of whole nodes."""

    nodes: int
    limit: int
    mask: frozenset[int] = frozenset()
    end: int = 0


def random_state(seed: int) -> tuple[int, list[Job], list[Job], dict[str, str]]:
    """Return nodes, running and waiting jobs, and parameters."""
    choice = random.Random(seed)
    count = choice.randint(2, 7)
    free, running = list(range(count)), []
    choice.shuffle(free)
    while free and choice.random() < 0.75:
        size = choice.randint(1, len(free))
        mask, free = frozenset(free[:size]), free[size:]
        limit = 60 * choice.randint(1, 30)
        running.append(Job(size, limit, mask, NOW - choice.randint(0, limit + 90) + limit))
    waiting = [Job(choice.randint(1, count), 60 * choice.randint(1, 30)) for _ in range(choice.randint(1, 7))]
    parameters = {}
    if choice.random() < 0.4:
        parameters["bf_resolution"] = str(choice.choice([30, 60, 300]))
    if choice.random() < 0.3:
        parameters["bf_window"] = str(choice.choice([10, 20, 60]))
    if choice.random() < 0.2:
        parameters["bf_window_scale"] = str(choice.choice([30, 90]))
    return count, running, waiting, parameters


class Brute:
    """Plans by lists of reservations; times at which the plan changes are kept as cuts."""

    def __init__(self, count: int, running: list[Job], parameters: dict[str, str]) -> None:
        self.all = frozenset(range(count))
        self.running = list(running)
        self.resolution = int(parameters.get("bf_resolution", 60))
        self.window = 60 * int(parameters.get("bf_window", 1440))
        self.scale = int(parameters.get("bf_window_scale", 0))
        self.first = NOW // self.resolution * self.resolution
        self.last = (NOW + self.window) // self.resolution * self.resolution
        self.cuts = [self.first, self.last]
        self.reserved: list[tuple[int, int, frozenset[int]]] = []

    def free_at(self, time: int) -> frozenset[int]:
        free = self.all
        for start, end, nodes in self.reserved:
            if start <= time < end:
                free -= nodes
        return free

    def reserve(self, start: int, end: int, nodes: frozenset[int]) -> None:
        low, high = max(start, self.first), min(end, self.last)
        if low < high:
            self.cuts = sorted({*self.cuts, low, high})
            self.reserved.append((low, high, nodes))
        for cut in self.cuts[1:-1]:
            if self.free_at(cut - 1) == self.free_at(cut):
                self.cuts.remove(cut)
                return

    def free(self, start: int, end: int) -> tuple[frozenset[int], int]:
        nodes, later = self.all, 0
        for left, right in zip(self.cuts, self.cuts[1:], strict=False):
            if right <= start:
                continue
            if left <= end:
                nodes &= self.free_at(left)
            if not later and right != self.last and self.free_at(right) - nodes:
                later = right
            if left > end:
                break
        return nodes, later

    def pick(self, job: Job, nodes: frozenset[int], gone: list[Job]) -> frozenset[int] | None:
        """Return the first of the shortest run of neighbours that is long enough; else the longest ones."""
        busy = {n for one in self.running if one not in gone for n in one.mask}
        usable = sorted(nodes - busy)
        if len(usable) < job.nodes:
            return None
        runs: list[list[int]] = []
        for n in usable:
            if runs and runs[-1][-1] == n - 1:
                runs[-1].append(n)
            else:
                runs.append([n])
        chosen: list[int] = []
        while len(chosen) < job.nodes:
            need = job.nodes - len(chosen)
            enough = [run for run in runs if len(run) >= need]
            best = min(enough, key=len) if enough else max(runs, key=len)
            chosen += best[:need]
            runs.remove(best)
        return frozenset(chosen)

    def will_run(self, job: Job, nodes: frozenset[int]) -> tuple[int, frozenset[int]] | None:
        if (chosen := self.pick(job, nodes, [])) is not None:
            return NOW, chosen
        order = sorted(self.running, key=lambda one: one.end)
        gone: list[Job] = []
        window, barrier = 30, None
        while order:
            batch = []
            while order and (barrier is None or batch or order[0].end <= barrier + window):
                one = order.pop(0)
                skipped = not one.mask & nodes
                while skipped and order:
                    one = order.pop(0)
                    skipped = not one.mask & nodes
                if skipped:
                    break
                if barrier is None:
                    barrier = (one.end // 30 + 1) * 30
                batch.append(one)
                if order and order[0].end > barrier + window:
                    break
            gone += batch
            if batch and (chosen := self.pick(job, nodes, gone)) is not None:
                end = batch[-1].end
                late = end + 30
                return (end if end > NOW else late if late > NOW else NOW + 1), chosen
            window = window + self.scale if self.scale else 2 * window
        return None

    def plan(self, job: Job) -> frozenset[int] | None:
        """Plan a job; return its nodes if it starts now."""
        start = NOW
        while True:
            nodes, later = self.free(start, start + job.limit)
            victims = self.will_run(job, nodes) if len(nodes) >= job.nodes else None
            if victims is None:
                if later <= start:
                    return None
                start = later
                continue
            begin, chosen = max(victims[0], start), victims[1]
            if begin <= NOW:
                return chosen
            if later and begin > later:
                start = later
                continue
            if begin > NOW + self.window:
                return None
            low = begin // self.resolution * self.resolution
            high = (begin + job.limit) // self.resolution * self.resolution
            if any(s < high and e > low and chosen & taken for s, e, taken in self.reserved):
                if begin <= start:
                    return None
                start = begin
                continue
            self.reserve(low, max(high, low + self.resolution), chosen)
            return None


def brute_starts(
    count: int, running: list[Job], waiting: list[Job], parameters: dict[str, str]
) -> dict[int, frozenset[int]]:
    brute, starts = Brute(count, running, parameters), {}
    for k, job in enumerate(waiting):
        if (nodes := brute.plan(job)) is not None:
            starts[k] = nodes
            end = NOW + job.limit
            brute.running.append(Job(job.nodes, job.limit, nodes, end))
            until = max(end // brute.resolution * brute.resolution, brute.first + brute.resolution)
            brute.reserve(brute.first, until, nodes)
    return starts


def controller_of(
    count: int, running: list[Job], waiting: list[Job], parameters: dict[str, str]
) -> Controller:
    """Return a site in a state."""
    cluster = Cluster(
        nodes=(NodeGroup(name="n", count=count, cores=4),),
        partitions=(Partition(name="p"),),
        scheduler=SchedulerParameters(parameters=parameters),
    )
    site = Site(cluster, Settings(limits=False))
    slurm = Controller(site)

    def submit(key: int, job: Job) -> SlurmJob:
        one = SlurmJob(
            id=key + 1,
            key=key,
            user="u",
            assoc=site.user_of("u", "root"),
            qos="normal",
            parts=(site.parts[0],),
            min_nodes=job.nodes,
            max_nodes=job.nodes,
            tasks=job.nodes,
            min_cpus=job.nodes,
            limit=job.limit,
        )
        slurm.submit(one, NOW)
        return one

    for k, job in enumerate(running):
        one = submit(1_000 + k, job)
        chosen = dict.fromkeys(sorted(job.mask), 4)
        slurm.adopt(one, site.parts[0], chosen, job.end - job.limit)
    for k, job in enumerate(waiting):
        submit(k, job)
    slurm.started.clear()
    return slurm


def own_starts(slurm: Controller, now: int = NOW) -> dict[int, frozenset[int]]:
    backfill_pass(slurm, now)
    return {job.key: frozenset(bits(job.nodes)) for job, _ in slurm.started}


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 6_000), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_pass_starts_what_a_second_implementation_starts(seeds: range) -> None:
    started = 0
    for seed in seeds:
        state = random_state(seed)
        mine = own_starts(controller_of(*state))
        assert mine == brute_starts(*state), seed
        started += len(mine)
    assert started > len(seeds) // 3


def after_a_pass(state: tuple[int, list[Job], list[Job], dict[str, str]]) -> Controller:
    """Return a site after two passes: plans changed records in the first one."""
    slurm = controller_of(*state)
    for now in (NOW, NOW + 1):
        backfill_pass(slurm, now)
        slurm.started.clear()
    return slurm


def plans_of(slurm: Controller, now: int) -> list[int]:
    """Return what a pass makes of the waiting jobs: CPUs of their plans; none starts."""
    slurm.forget_passes()
    assert not own_starts(slurm, now)
    return [job.planned for job in slurm.pending.values()]


@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(100, 2_500), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_pass_that_is_left_out_would_start_nothing(seeds: range) -> None:
    n_left_out, n_bounded = 0, 0
    for seed in seeds:
        state = random_state(seed)
        slurm = after_a_pass(state)
        until = min(backfill_idle_until(slurm), NOW + 4_000)
        if not slurm.pending or until <= NOW + 1:
            continue
        plans = plans_of(slurm, NOW + 1)
        for now in {*range(NOW + 2, until, 1 + (until - NOW) // 8), max(until - 1, NOW + 1)}:
            assert plans_of(after_a_pass(state), now) == plans, (seed, now)
            n_left_out += 1
        n_bounded += until < NOW + 4_000
    assert n_left_out > len(seeds)
    assert n_bounded >= len(seeds) // 50


def starts_under_limits(seed: int, memory: int) -> list[tuple[int, int, int]]:
    """Return starts of some passes, with their nodes; jobs ask for so much memory on each node."""
    draw = random.Random(seed)
    count = draw.choice([9, 40, 70])
    limited = Qos(name="normal", max_tres_per_user={"nodes": draw.randint(count // 4, count)})
    cluster = Cluster(
        nodes=(NodeGroup(name="n", count=count, cores=4, memory=1000),),
        partitions=(Partition(name="p"), Partition(name="q", nodes=(f"n[0-{count // 2}]",), tier=2)),
        qos=(limited, Qos(name="free")),
    )
    site = Site(cluster, Settings(limits=True))
    slurm, starts = Controller(site), []
    for k in range(30):
        user, size = draw.choice("uvw"), draw.randint(1, max(count // draw.choice([1, 2, 8]), 1))
        part = site.parts[draw.randint(0, 1)]
        slurm.submit(
            SlurmJob(
                id=k + 1,
                key=k,
                user=user,
                assoc=site.user_of(user, "root"),
                qos=draw.choice(["normal", "free"]),
                parts=(part,),
                tasks=size,
                min_cpus=size,
                min_nodes=size,
                max_nodes=size,
                limit=60 * draw.randint(1, 30),
                memory_node=memory,
            ),
            NOW,
        )
    for now in range(NOW, NOW + 3000, 100):
        for job in [one for one in slurm.running.values() if one.end <= now]:
            slurm.finish(job, now)
            slurm.nodes_freed(job.nodes)
        main_pass(slurm, now, full=True)
        backfill_pass(slurm, now + 1)
        starts += [(now, job.key, job.nodes) for job, _ in slurm.started]
        slurm.started.clear()
    return starts


def test_whole_nodes_are_chosen_alike_whether_they_are_equal_or_not() -> None:
    starts = 0
    for seed in range(60):
        equal = starts_under_limits(seed, 0)
        assert equal == starts_under_limits(seed, 1), seed
        starts += len(equal)
    assert starts > 60 * 10
