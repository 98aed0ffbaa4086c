"""Clusters on the real Batsim: the fast world's schedule, start for start and node for node.

BATSIM=/usr/local/bin/batsim python -m pytest -m batsim
"""

import csv
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import MICRO_CASES
from cluster_on_bridge import Case, Outcome, build_cluster, build_scenario, replay_case, seconds
from cluster_reference.generate import draw_case
from cluster_wire import decision_process, lives_in_fast_world, lives_on_program
from detailed import PATIENCE_S, delay_jobs, write_workload
from real_batsim import BATSIM, on, require_batsim, version
from test_cluster_in_time_same_schedule import BY_HAND, draw

from bridge.cli.main import main
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.platform.author import write_platform
from bridge.wire.hosts import intervals
from bridge.worlds.batsim.endpoint import Endpoint
from bridge.worlds.fast.allocations import was_eligible

pytestmark = pytest.mark.batsim


@pytest.fixture(autouse=True)
def _real() -> None:
    require_batsim()
    if version() != "4":
        pytest.skip("Batsim 5 does not say that hosts run several jobs")


def play_on_batsim(case: Case, folder: Path) -> list[Outcome]:
    """Return what becomes of each job on the real Batsim, on a platform with the cluster's nodes."""
    scenario = build_scenario(case)
    assert scenario.cluster is not None
    folder.mkdir()
    write_cluster_toml(build_cluster(case), folder / "site.toml")
    write_platform(None, folder / "platform.xml", cluster=str(folder / "site.toml"))
    jobs, process = delay_jobs(scenario.jobs), decision_process(scenario)
    write_workload(folder / "workload.json", jobs, len(case["nodes"]))
    sharing = ["--enable-compute-sharing"] if scenario.cluster.is_shared else []
    limits = {"startup_timeout": PATIENCE_S, "idle_timeout": PATIENCE_S}
    with Endpoint("tcp://127.0.0.1:*", **limits) as endpoint:
        words = ["-p", "platform.xml", "-w", "workload.json", "-s", endpoint.address, "-e", "out", "-q"]
        with subprocess.Popen([*shlex.split(BATSIM), *words, *sharing], cwd=folder) as child:
            try:
                result = process.run(endpoint)
                assert child.wait(PATIENCE_S) == 0
            finally:
                child.kill()
    assert not result.refusals
    dispatcher: Any = process.dispatcher
    state: Any = dispatcher.session.state
    eligible = np.where(was_eligible(state, 0, len(jobs)), state.jobs.submit[0], -1)
    outcomes: list[Outcome] = [(None, None, None, [])] * len(jobs)
    with (folder / "out_jobs.csv").open(newline="") as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    for j, made in enumerate(jobs):
        row, began = rows[made.name], seconds(int(eligible[j]))
        if not row["starting_time"]:
            outcomes[int(made.name) - 1] = (began, None, None, [])
            continue
        hosts = [host for low, high in intervals(row["allocated_resources"]) for host in range(low, high + 1)]
        times = (round(float(row[name])) for name in ("starting_time", "finish_time"))
        outcomes[int(made.name) - 1] = (began, *times, sorted(dispatcher.hosts.node_of[h] for h in hosts))
    return outcomes


def test_answers_by_hand(tmp_path: Path) -> None:
    for k, (name, micro) in enumerate(MICRO_CASES.items()):
        outcomes = play_on_batsim(micro.case, tmp_path / str(k))
        assert [(start, nodes) for _, start, _, nodes in outcomes] == micro.answers, name


@pytest.mark.parametrize("part", range(4))
def test_random_cases(tmp_path: Path, part: int) -> None:
    for seed in range(part, 40, 4):
        case = draw_case(500_000 + seed)
        assert play_on_batsim(case, tmp_path / str(seed)) == replay_case(case), seed


@pytest.mark.slow  # the kernels of clusters that change in time compile for minutes
def test_random_cases_in_time(tmp_path: Path) -> None:
    for k, (case, lives) in enumerate(BY_HAND.values()):
        assert lives_on_program(shlex.split(BATSIM), case, tmp_path / str(k))[0] == lives
    for seed in range(100, 140):
        case, words = draw(seed), ("--acknowledge-dynamic-jobs",) if seed % 2 else ()
        lives = lives_on_program(shlex.split(BATSIM), case, tmp_path / str(seed), *words)
        assert lives == lives_in_fast_world(case), seed


def test_the_command_on_a_shared_and_on_an_exclusive_site(tmp_path: Path) -> None:
    for site in ("teaching-site", "cirrus-like"):
        log, platform = str(tmp_path / f"{site}.csv"), str(tmp_path / f"{site}.xml")
        assert main(["workload", "generate", "site", "--cluster", site, "--jobs", "150", "--out", log]) == 0
        assert main(["platform", "new", "--cluster", site, "-o", platform]) == 0
        words = ["--workload", log, "--platform", platform, "--cluster", site, *on()]
        out = tmp_path / f"{site}-run"
        assert main(["validate", "fcfs+easy", *words, "--out", str(out)]) == 0
        (found,) = out.glob("**/validation.json")
        assert json.loads(found.read_text())
        for world in ("fast", "batsim"):
            assert next(out.glob(f"**/{world}/jobs.csv")).exists()
