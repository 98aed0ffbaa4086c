"""On a cluster that changes in time, a platform has the fast world's lives: starts, ends and nodes.

Compiled; as plain Python in `worlds/fast/test_cluster_in_time.py`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cluster_micro_cases import TWO_NODES as CASE
from cluster_on_bridge import (
    CONTEXT,
    FEATURES,
    Case,
    build_cluster,
    build_scenario,
    build_workload,
    replay_case,
    replay_case_by_agent,
)
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_case
from cluster_wire import (
    decision_process,
    host_names,
    lives_behind_wire,
    lives_in_fast_world,
    lives_on_program,
    without_suspension,
)
from detailed import COMMAND, delay_jobs, needs_simgrid
from fake_batsim import FakeBatsim
from untrained_agents import untrained

from bridge.base.errors import BridgeError
from bridge.cli.main import main
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.env.encoder import DecisionKind, Encoder
from bridge.experiment.site_jobs import build_site
from bridge.learn.agent import AgentDecider, action_function_of
from bridge.learn.recipe import NetworkConfig, Recipe
from bridge.wire import events as ev
from bridge.workload.columns import write_csv
from bridge.worlds.batsim.site import SiteHosts, SiteRules
from bridge.worlds.fast.scheduler_config import SchedulerConfig

pytestmark = pytest.mark.slow
BACKFILLS = ("none", "easy", "easy", "conservative")
#: The second job's partition takes the first one's nodes.
TIERS: dict[str, Any] = {
    **CASE,
    "partitions": {
        "p": {"nodes": [0, 1], "exclusive": True, "tier": 0, "preempt": "requeue"},
        "urgent": {"nodes": [0, 1], "exclusive": True, "tier": 1},
    },
    "jobs": [CASE["jobs"][0], {**CASE["jobs"][1], "partitions": ["urgent"]}],
}


def with_tiers(**partition: Any) -> Case:
    partitions = {**TIERS["partitions"], "p": {**TIERS["partitions"]["p"], **partition}}
    return {**TIERS, "partitions": partitions}


BY_HAND: dict[str, tuple[Case, list[Any]]] = {
    "a node fails, and its job runs again when it is back": (
        {
            **CASE,
            "requeue_delay": 5,
            "calendar": [
                {"time": 40, "nodes": [1], "state": "down"},
                {"time": 60, "nodes": [1], "state": "up"},
            ],
        },
        [(1, 0, 0, 40, True, [0, 1]), (1, 1, 70, 170, False, [0, 1]), (2, 0, 40, 70, False, [0])],
    ),
    "a draining node lets its job end": (
        {**CASE, "calendar": [{"time": 40, "nodes": [0], "state": "drain"}]},
        [(1, 0, 0, 100, False, [0, 1]), (2, 0, 100, 130, False, [1])],
    ),
    "a waiting job is cancelled": (
        {**CASE, "calendar": [{"time": 40, "cancel": 1}]},
        [(1, 0, 0, 100, False, [0, 1])],
    ),
    "an advance reservation is kept free": (
        {**CASE, "calendar": [{"reservation": "r", "nodes": [0, 1], "begin": 50, "end": 80}]},
        [(1, 0, 80, 180, False, [0, 1]), (2, 0, 10, 40, False, [0])],
    ),
    "a preempted job runs again": (
        TIERS,
        [(1, 0, 0, 10, True, [0, 1]), (1, 1, 40, 140, False, [0, 1]), (2, 0, 10, 40, False, [0])],
    ),
    "a preempted job ends when its grace is over": (
        with_tiers(grace=5),
        [(1, 0, 0, 15, True, [0, 1]), (1, 1, 45, 145, False, [0, 1]), (2, 0, 15, 45, False, [0])],
    ),
    "of two preempted jobs one has a grace": (
        {
            **TIERS,
            "partitions": {
                "p": {"nodes": [0], "exclusive": True, "tier": 0, "preempt": "requeue", "grace": 5},
                "q": {"nodes": [1], "exclusive": True, "tier": 0, "preempt": "requeue"},
                "urgent": {"nodes": [0, 1], "exclusive": True, "tier": 1},
            },
            "jobs": [
                {"submit": 0, "run": 100, "request": 100, "partitions": ["p"], "nodes": 1},
                {"submit": 0, "run": 100, "request": 100, "partitions": ["q"], "nodes": 1},
                {"submit": 10, "run": 30, "request": 30, "partitions": ["urgent"], "nodes": 2},
            ],
        },
        [
            (1, 0, 0, 15, True, [0]),
            (1, 1, 45, 145, False, [0]),
            (2, 0, 0, 10, True, [1]),
            (2, 1, 10, 15, True, [1]),  # queued before the urgent one
            (2, 2, 45, 145, False, [1]),
            (3, 0, 15, 45, False, [0, 1]),
        ],
    ),
    "a preempted job is over": (
        with_tiers(preempt="cancel"),
        [(1, 0, 0, 10, True, [0, 1]), (2, 0, 10, 40, False, [0])],
    ),
}


def draw(seed: int) -> Case:
    """Return a random case with rules in time, the first from a seed on."""
    while True:
        case = draw_case(seed, parts=(*PARTS, *TIMED_PARTS), backfills=BACKFILLS)
        case = without_suspension(case)
        cluster = build_scenario(case).cluster
        if cluster is not None and cluster.calendar is not None:
            return case
        seed += 1_000_000


@pytest.mark.parametrize("name", BY_HAND)
def test_answers_by_hand(name: str) -> None:
    case, lives = BY_HAND[name]
    assert lives_behind_wire(case)[0] == lives
    assert lives_in_fast_world(case)[0] == lives


@pytest.mark.parametrize("part", range(2))
def test_random_cases(part: int) -> None:
    for seed in range(part, 30, 2):
        case = draw(seed)
        assert lives_behind_wire(case, acknowledges=seed % 4 > 1) == lives_in_fast_world(case), seed


@pytest.mark.parametrize("part", range(10))
def test_many_random_cases(part: int) -> None:
    for seed in range(part, 2_000, 10):
        case = draw(400_000 + seed)
        assert lives_behind_wire(case, acknowledges=seed % 4 > 1) == lives_in_fast_world(case), seed


@pytest.mark.parametrize("decision", ["pick", "backfill", "inspect", "pick+backfill"])
def test_an_agent_decides_alike_in_both_worlds(decision: DecisionKind) -> None:
    encoder = Encoder(decision, FEATURES, stop=decision == "backfill", **CONTEXT)
    blocked = "held" if decision == "pick+backfill" else ""
    actor, setup = NetworkConfig("kernel", (4,)), SchedulerConfig(blocked=blocked)
    recipe = Recipe("small", "", "", "", setup=setup, encoder=encoder, actor=actor)
    policy = {"agent": frozenset(decision.split("+")), "blocked": blocked, "guard": False}
    differ = 0
    for seed in range(4, 7):
        case = {**draw(450_000 + seed), "backfill": "easy"}
        agent = replace(untrained(recipe, build_scenario(case).jobs, seed), mode="sample")
        agent.origin.constants.clear()  # type: ignore[attr-defined]
        own = {name: value for name, value in policy.items() if name != "agent"}
        fast = replay_case_by_agent(case, decision, action_function_of(agent), policy=own)
        assert lives_behind_wire(case, AgentDecider(agent), policy)[1] == fast, seed
        differ += fast != replay_case(case)
    assert differ > 0


@needs_simgrid
def test_the_embedded_model(tmp_path: Path) -> None:
    for k, (case, lives) in enumerate(BY_HAND.values()):
        assert lives_on_program(COMMAND, case, tmp_path / str(k))[0] == lives
    for seed in range(30, 42):
        case, words = draw(seed), ("--acknowledge-dynamic-jobs",) if seed % 2 else ()
        assert lives_on_program(COMMAND, case, tmp_path / str(seed), *words) == lives_in_fast_world(case), (
            seed
        )


@needs_simgrid
def test_both_worlds_have_the_same_tables(tmp_path: Path) -> None:
    """`validate`: a site with a calendar and preemption, in which a run is stopped as it starts."""
    site, log = tmp_path / "site.toml", tmp_path / "log.csv"
    urgent = {"submit": 20, "run": 5, "request": 9, "partitions": ["urgent"], "nodes": 2}
    first = {**CASE["jobs"][0], "submit": 20, "nodes": 1}
    case = {**TIERS, "jobs": [*TIERS["jobs"], first, urgent]}
    outage = [{"time": time, "nodes": [1], "state": state} for time, state in ((60, "down"), (90, "up"))]
    write_cluster_toml(build_cluster({**case, "calendar": outage}), site)
    write_csv(build_workload(case), log)
    platform, out = str(tmp_path / "site.xml"), tmp_path / "out"
    assert main(["platform", "new", "--cluster", str(site), "-o", platform]) == 0
    words = ["--workload", str(log), "--platform", platform, "--cluster", str(site), "--on", "simgrid"]
    assert main(["validate", "fcfs+easy", *words, "--out", str(out)]) == 0
    fast, simulated = (
        pd.read_csv(next(out.glob(f"**/{world}/jobs.csv"))).set_index("job_id").sort_index()
        for world in ("fast", "simgrid")
    )
    times = zip(fast["starting_time"], fast["finish_time"], strict=True)
    assert dict(zip(fast.index, times, strict=True)) == {
        "1": (160, 260),
        "1#1": (0, 10),
        "1#2": (40, 40),
        "1#3": (45, 60),
        "2": (10, 40),
        "3": (60, 160),
        "4": (40, 45),
    }
    columns = [name for name in fast.columns if name != "profile"]  # the platform's own names
    pd.testing.assert_frame_equal(fast[columns], simulated[columns])


def test_suspension_is_refused_with_its_reason() -> None:
    with pytest.raises(BridgeError, match="SimGrid runs a job or kills it"):
        decision_process(build_scenario(with_tiers(preempt="suspend")))


def begin_on(case: Case, **options: bool) -> None:
    scenario = build_scenario(case)
    compute = tuple(ev.HostInfo(k, name) for k, name in enumerate(host_names(scenario)))
    begin = ev.SimulationBegins(0, compute, **options)  # type: ignore[arg-type]
    decision_process(scenario).reply_to_message(ev.Message(0, (begin,)))


def test_a_platform_without_dynamic_jobs_is_refused_only_where_jobs_run_again() -> None:
    with pytest.raises(BridgeError, match="enable-dynamic-jobs is missing"):
        begin_on(TIERS)
    begin_on(TIERS, dynamic_jobs=True)
    begin_on(with_tiers(preempt="cancel"))
    begin_on(BY_HAND["a draining node lets its job end"][0])


@pytest.mark.parametrize("mode", ["requeue", "cancel"])
def test_an_end_in_the_instant_of_a_kill_counts(mode: str) -> None:
    """The platform answers a kill with the job's own end: it does not run again."""
    scenario = build_scenario(with_tiers(preempt=mode))
    process, names = decision_process(scenario), host_names(scenario)
    fake = FakeBatsim(delay_jobs(scenario.jobs), 2, names=names, dynamic=True)
    talk = fake.talk()
    frame = next(talk)
    while True:
        reply = process.reply_to_frame(frame.replace(b"COMPLETED_KILLED", b"COMPLETED_SUCCESSFULLY"))
        try:
            frame = talk.send(reply)  # type: ignore[attr-defined]
        except StopIteration:
            break
    assert not fake.deadlocked and not process.result().missing
    assert (fake.starts, fake.ends) == ({"1": 0, "2": 10_000_000}, {"1": 10_000_000, "2": 40_000_000})


def test_the_referee_knows_which_nodes_are_in_service() -> None:
    case = BY_HAND["a node fails, and its job runs again when it is back"][0]
    site = build_site(build_scenario(case), 1)
    hosts = SiteHosts(site, ev.SimulationBegins(0, tuple(ev.HostInfo(k, f"n{k}") for k in range(2))))
    rules = SiteRules(site, hosts, lambda _: site.demands[site.shape[1]], lambda _: {})
    assert rules.take("w0!2", ((1, 1),), 39_000_000) == ""
    rules.release("w0!2")
    assert rules.take("w0!2", ((1, 1),), 40_000_000) == "node n1 is out of service"
    assert rules.take("w0!2", ((1, 1),), 60_000_000) == ""
    assert np.array_equal(rules._free[:, 0], [4, 0])
    assert build_cluster(case).nodes[1].nodes == "n1"
