"""Agents inside the passes of the protocol `slurm`: whose starts they make, and what stays Slurm's own."""

import random
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.cluster.description import Cluster, NodeGroup, Partition, SchedulerParameters
from bridge.cluster.limits import License, Qos
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.env.slurm_batch import SlurmBatch, open_batch
from bridge.learn.agent import schedules_by
from bridge.scheduler.decisions import BACKFILL, DECLINE, PICK
from bridge.scheduler.protocol import Policy
from bridge.scheduler.slurm.agent_passes import SlurmQuestion
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.workload.formats import read
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from bridge.worlds.fast.slurm.log_replay import LogReplay

Answer = Callable[[LogReplay, SlurmQuestion], int]
N_JOBS = 70


def log_of(seed: int) -> pd.DataFrame:
    """Return jobs of a crowded site."""
    draw = random.Random(seed)
    rows = []
    time = 0
    for k in range(N_JOBS):
        time += draw.choice((0, 1, 20, 90, 400))
        minutes = draw.choice((5, 20, 60))
        rows.append(
            {
                "job_id": k + 1,
                "submit": time,
                "run": int(60 * minutes * draw.choice((0.2, 0.8, 1.0))),
                "req_time": 60 * minutes,
                "req_procs": draw.choice((1, 1, 2, 3, 4)),
                "user_name": draw.choice(("u", "v", "w")),
                "partition_name": draw.choice(("wide", "wide", "wide,left", "left", "soon")),
                "qos_name": draw.choice(("", "", "few", "small")),
                "licenses": draw.choice(("", "", "", "tool:2")),
                "begin": time + 300 if draw.random() < 0.1 else -1,
                "dependency": f"afterany:{draw.randint(1, k)}" if k and draw.random() < 0.1 else "",
            }
        )
    return pd.DataFrame(rows)


def site_of(**settings: str) -> Cluster:
    """Return a site with partitions that overlap, tiers, limits and a licence."""
    return Cluster(
        nodes=(NodeGroup(name="n", count=8),),
        partitions=(
            Partition(name="wide", default=True),
            Partition(name="left", nodes=("n[0-3]",)),
            Partition(name="soon", nodes=("n[2-6]",), tier=2, max_time=3600),
        ),
        qos=(
            Qos(name="few", max_jobs_per_user=1),
            Qos(name="small", grp_tres={"nodes": 4}),
        ),
        licenses=(License(name="tool", count=3),),
        scheduler=SchedulerParameters(settings=settings),
    )


def plain_site(**settings: str) -> Cluster:
    return Cluster(
        nodes=(NodeGroup(name="n", count=8),),
        partitions=(Partition(name="wide", default=True),),
        scheduler=SchedulerParameters(settings=settings),
    )


@pytest.fixture
def scenario_of(tmp_path: Path) -> Callable[..., Scenario]:
    def make(
        log: int | pd.DataFrame, cluster: Cluster, order: str, *agent: str, held: bool = False
    ) -> Scenario:
        write_cluster_toml(cluster, tmp_path / "site.toml")
        jobs = log_of(log) if isinstance(log, int) else log
        if len(cluster.partitions) == 1:
            jobs = jobs.drop(columns=["partition_name", "qos_name", "licenses"], errors="ignore")
        jobs.to_parquet(tmp_path / "log.parquet")
        setup = SchedulerConfig(
            protocol="slurm", cluster=str(tmp_path / "site.toml"), order=order, backfill="slurm"
        )
        policy = Policy(order, "slurm", agent=frozenset(agent), blocked="held" if held else "")
        return setup.build_scenario(setup.select(read(tmp_path / "log.parquet")), policy)

    return make


def played(scenario: Scenario, answer: Answer) -> LogReplay:
    """Play all jobs, and answer each decision."""
    world = LogReplay(scenario)
    steps = world.decisions(1)
    try:
        question = next(steps)
        while True:
            question = steps.send(answer(world, question))
    except StopIteration:
        return world


def first(_: LogReplay, __: SlurmQuestion) -> int:
    return 0


def by_area(_: LogReplay, question: SlurmQuestion) -> int:
    return int(np.argmin([job.limit * job.min_nodes for job in question.candidates]))


@pytest.mark.parametrize("agent", [("pick",), ("backfill",), ("pick", "backfill")])
@pytest.mark.parametrize("seed", range(4))
def test_who_takes_the_first_makes_slurms_own_starts(
    scenario_of: Callable[..., Scenario], seed: int, agent: tuple[str, ...]
) -> None:
    order = ("multifactor", "saf", "fcfs", "lcfs")[seed]
    own, asked = LogReplay(scenario_of(seed, site_of(), order)), 0

    def answer(world: LogReplay, question: SlurmQuestion) -> int:
        nonlocal asked
        asked += len(question.candidates) > 1
        return first(world, question)

    own.play(1)
    world = played(scenario_of(seed, site_of(), order, *agent), answer)
    assert asked > 5
    for name in ("start", "how", "serial", "head_at"):
        assert world.columns[name] == own.columns[name], name
    assert sum(start >= 0 for start in own.columns["start"]) > N_JOBS // 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cluster", [plain_site, site_of])
def test_without_backfilling_picks_by_an_order_make_its_starts(
    scenario_of: Callable[..., Scenario], seed: int, cluster: Callable[..., Cluster]
) -> None:
    site = cluster(SchedulerType="sched/builtin")
    own = LogReplay(scenario_of(seed, site, "saf"))
    own.play(1)
    usual = LogReplay(scenario_of(seed, site, "fcfs"))
    usual.play(1)
    world = played(scenario_of(seed, site, "fcfs", "pick"), by_area)
    assert world.columns["start"] == own.columns["start"] != usual.columns["start"]


def test_an_order_closes_the_partition_of_its_blocked_head(scenario_of: Callable[..., Scenario]) -> None:
    """Scores of fcfs are below 0: they are priorities like all others."""
    scenario = scenario_of(2, plain_site(SchedulerType="sched/builtin"), "fcfs")
    world = LogReplay(scenario)
    world.play(1)
    free = [j for j, job in world.slurm.jobs.items() if not job.dependencies and not job.begin]
    starts = [world.columns["start"][j] for j in free]
    assert starts == sorted(starts)
    assert min(starts) >= 0


@pytest.mark.parametrize("agent", [("pick",), ("backfill",), ("pick", "backfill")])
@pytest.mark.parametrize("seed", range(3))
def test_limits_and_partitions_stay_slurms_own(
    scenario_of: Callable[..., Scenario], seed: int, agent: tuple[str, ...]
) -> None:
    draw, kinds = random.Random(seed), set[int]()

    def answer(_: LogReplay, question: SlurmQuestion) -> int:
        kinds.add(question.kind)
        if question.kind == BACKFILL and draw.random() < 0.3:
            return DECLINE
        return draw.randrange(len(question.candidates))

    world = played(scenario_of(seed, site_of(), "fcfs", *agent), answer)
    assert kinds == {PICK if kind == "pick" else BACKFILL for kind in agent}
    starts, ends = world.columns["start"], world.columns["end"]
    ran = [job for j, job in world.slurm.jobs.items() if starts[j] >= 0]
    assert len(ran) > N_JOBS // 2
    moments = sorted({starts[job.key] for job in ran})
    for moment in moments:
        now = [job for job in ran if starts[job.key] <= moment < ends[job.key]]
        assert sum(job.nodes.bit_count() for job in now) == len({n for job in now for n in job.alloc})
        of_user: dict[str, int] = defaultdict(int)
        for job in now:
            of_user[job.user] += job.qos == "few"
        assert max(of_user.values(), default=0) <= 1
        assert sum(job.min_nodes for job in now if job.qos == "small") <= 4
        assert sum(job.licenses.get("tool", 0) for job in now) <= 3
    for job in ran:
        assert job.part in job.parts
        assert job.part is not None
        assert not job.nodes & ~job.part.mask


def largest(_: LogReplay, question: SlurmQuestion) -> int:
    return int(np.argmax([job.min_nodes for job in question.candidates]))


def test_a_blocked_pick_has_the_first_plan(scenario_of: Callable[..., Scenario]) -> None:
    """The last job is picked while the first one runs: those before it may not start any more."""
    rows = [(0, 8, 10), (1, 4, 30), (2, 4, 30), (3, 8, 30)]
    table = pd.DataFrame(
        [
            {"job_id": k + 1, "submit": t, "run": 60 * m, "req_time": 60 * m, "req_procs": n}
            for k, (t, n, m) in enumerate(rows)
        ]
    )
    usual = LogReplay(scenario_of(table, plain_site(), "fcfs"))
    usual.play(1)
    world = played(scenario_of(table, plain_site(), "fcfs", "pick"), largest)
    own, start, end = usual.columns["start"], world.columns["start"], world.columns["end"]
    assert own[0] < own[1] == own[2] < own[3]
    assert start[0] < end[0] <= start[3] < end[3] <= start[1] == start[2]


def test_a_held_pick_is_not_picked_again(scenario_of: Callable[..., Scenario]) -> None:
    """While it waits, nobody is asked; an agent that would pick another one by then cannot."""
    table = log_of(4)
    asked: dict[bool, list[int]] = {}
    for held in (False, True):
        picked: list[int] = []

        def answer(world: LogReplay, question: SlurmQuestion, picked: list[int] = picked) -> int:
            choice = len(picked) % len(question.candidates)
            picked.append(question.candidates[choice].key)
            held_picks = {j for j, _ in world.slurm.held_picks}
            assert not held_picks & {job.key for job in question.candidates}
            return choice

        played(scenario_of(table, plain_site(), "fcfs", "pick", held=held), answer)
        asked[held] = picked
    assert len(set(asked[True])) == len(asked[True]) < len(asked[False])


@cache
def widest() -> Encoder:
    return Encoder("pick", {"free": "free", "n": "n", "fits": "fits", "w": "w", "waiting": "waiting",
                            "running": "running"}, window=128)  # fmt: skip


def test_features_are_those_of_the_site(scenario_of: Callable[..., Scenario]) -> None:
    """What a batch shows is what an independent count of the replay has."""
    scenario = scenario_of(1, plain_site(), "fcfs", "pick")
    batch = open_batch(scenario, widest().compile({}), 1, N_JOBS)
    assert isinstance(batch, SlurmBatch)
    view, decisions = batch.reset(np.zeros(1, np.int64)), 0
    while len(view.rows):
        world = batch.worlds[0]
        assert world is not None
        slurm, now = world.slurm, world.instant
        up = slurm.site.all_nodes & ~slurm.completing_nodes
        free = sum(up >> n & 1 and slurm.usage.book[n, 0] > 0 for n in range(8))
        jobs: list[SlurmJob] = [slurm.jobs[int(j)] for j in batch.state.candidates[0, : len(view.rows)]]
        for row, job in zip(view.rows.tolist(), jobs, strict=True):
            wait = now - world.epoch - scenario.jobs.submit[job.key] / 1e6
            counts = (len(slurm.pending), len(slurm.running))
            assert row == [free, job.min_nodes, job.min_nodes <= free, pytest.approx(wait, 1e-5), *counts]
        decisions += 1
        view = batch.step(np.zeros(1, np.int64))
    assert decisions > 20


def test_batches_are_replays_side_by_side(scenario_of: Callable[..., Scenario]) -> None:
    scenario = scenario_of(3, site_of(), "fcfs", "pick", "backfill")
    encoder = Encoder("pick+backfill", {"area": "-t*n", "safe": "safe", "gap": "min(gap, 1)"}).compile({})
    starts = np.array([0, 5, 20])

    def least(view: PackedObservations) -> Ints:
        return np.array([view.rows[a:b, 0].argmax() for a, b in pairwise(view.offsets)])

    def one_by_one(first_job: int) -> Schedule:
        return schedules_by(encoder, least, scenario, np.array([first_job]), 40)[0]

    together = schedules_by(encoder, least, scenario, starts, 40)
    for schedule, first_job in zip(together, starts.tolist(), strict=True):
        assert (schedule.start == one_by_one(first_job).start).all()
    own = replay_sequences(scenario_of(3, site_of(), "fcfs"), starts, 40)
    assert any((a.start != b.start).any() for a, b in zip(own, together, strict=True))


def test_features_of_places_are_refused_by_name(scenario_of: Callable[..., Scenario]) -> None:
    scenario = scenario_of(1, plain_site(), "fcfs", "pick")
    encoder = Encoder("pick", {"p": "partition_free"}).compile({})
    with pytest.raises(BridgeError, match="partition_free, which agents under the protocol slurm do not see"):
        open_batch(scenario, encoder, 1, N_JOBS)
