"""The trial: job list, tiny decision process, and runs on the embedded platform model."""

import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "platform"))
from platform_helpers import CORPUS, SHIPPED
from simgrid_available import needs_simgrid

from bridge.base.errors import BridgeError
from bridge.experiment.acceptance import AcceptancePeer, TrialResult, run_trial, workload
from bridge.experiment.acceptance_jobs import trial_jobs
from bridge.platform import read_platform
from bridge.wire.hosts import from_ids, text_of


def test_intervals() -> None:
    assert text_of(from_ids([0])) == "0"
    assert text_of(from_ids([0, 1, 2, 5, 7, 8])) == "0-2 5 7-8"


@pytest.mark.parametrize("path", [*SHIPPED.glob("*.xml"), *CORPUS.glob("good_*.xml")], ids=lambda p: p.stem)
def test_twenty_jobs_for_any_platform(path: Path) -> None:
    platform = read_platform(path)
    jobs = trial_jobs(platform)
    assert [job.ident for job in jobs] == [f"{i:02}" for i in range(1, 21)]
    count = len(platform.compute)
    for job in jobs:
        assert 0 < job.seconds < 60
        assert job.resources
        assert 0 <= min(job.resources) <= max(job.resources) < count
        assert list(job.resources) == sorted(set(job.resources))
        assert all(count <= number < count + len(platform.storage) for number in job.storage.values())


def test_times_by_hand() -> None:
    """teaching-16: 10 Gf, 125 MB/s and 50 us per node, storage links of 500 MB/s (pfs) and 1 GB/s (bb)."""
    jobs = {job.about: job for job in trial_jobs(read_platform(SHIPPED / "teaching-16.xml"))}
    assert jobs["delay that reaches its walltime"].seconds == 4
    assert jobs["delay that reaches its walltime"].state == "COMPLETED_WALLTIME_REACHED"
    expected = {"type": "parallel_homogeneous", "cpu": 2e10, "com": 0}
    assert jobs["computing on up to 16 hosts"].profiles["08"] == expected
    transfer = jobs["transfer from the first to the last host"]
    assert transfer.profiles["10"]["com"] == [0, 250e6, 0, 0]  # 2 s at 125 MB/s
    assert transfer.seconds == pytest.approx(2.0001)
    rounds = jobs["three rounds of computing, exchange, pause"]
    assert rounds.seconds == pytest.approx(3 * (0.5 + 2.0001 + 0.25))
    assert jobs["staging between two storage hosts"].profiles["20"]["nb_bytes"] == 1_000_000_000


def test_the_decision_process_runs_one_job_at_a_time() -> None:
    platform = read_platform(CORPUS / "good_full.xml")
    jobs = trial_jobs(platform)
    peer = AcceptancePeer(jobs, ["n0", "n1"])
    hosts = [{"name": "n0"}, {"name": "n1"}]
    begin = {"type": "SIMULATION_BEGINS", "data": {"compute_resources": hosts}}
    assert peer.answer({"now": 0.0, "events": [begin]}) == {"now": 0.0, "events": []}
    submitted = [{"type": "JOB_SUBMITTED", "data": {"job_id": f"w0!{i:02}"}} for i in (1, 2)]
    first = {"timestamp": 0.0, "type": "EXECUTE_JOB", "data": {"job_id": "w0!01", "alloc": "0"}}
    assert peer.answer({"now": 0.0, "events": submitted}) == {"now": 0.0, "events": [first]}
    assert peer.answer({"now": 1.0, "events": []})["events"] == []
    done = {"type": "JOB_COMPLETED", "data": {"job_id": "w0!01"}}
    second = {"timestamp": 10.0, "type": "EXECUTE_JOB", "data": {"job_id": "w0!02", "alloc": "0-1"}}
    assert peer.answer({"now": 10.0, "events": [done]})["events"] == [second]
    peer.answer({"now": 12.0, "events": [{"type": "SIMULATION_ENDS", "data": {}}]})
    assert peer.ended


def test_another_numbering_of_hosts_is_noticed() -> None:
    peer = AcceptancePeer([], ["n0", "n1"])
    begin = {"type": "SIMULATION_BEGINS", "data": {"compute_resources": [{"name": "n1"}, {"name": "n0"}]}}
    with pytest.raises(BridgeError, match="numbers the hosts otherwise"):
        peer.answer({"now": 0.0, "events": [begin]})


def test_workload() -> None:
    jobs = trial_jobs(read_platform(CORPUS / "good_full.xml"))
    made = workload(jobs, 2)
    assert made["nb_res"] == 2
    assert made["jobs"][2] == {"id": "03", "subtime": 0, "res": 1, "profile": "03", "walltime": 4.0}
    assert set(made["profiles"]) >= {row["profile"] for row in made["jobs"]}


def test_tolerance() -> None:
    job = trial_jobs(read_platform(CORPUS / "good_full.xml"))[0]
    good = "COMPLETED_SUCCESSFULLY"
    assert TrialResult(job, 10.000011, good).passed
    assert not TrialResult(job, 10.000013, good).passed
    assert not TrialResult(job, 10.0, "COMPLETED_FAILED").passed
    assert not TrialResult(job, None, None).passed


@needs_simgrid
@pytest.mark.parametrize("name", ["teaching-16", "sp2-128", "cluster-512", "theta-4360", "exact-512"])
def test_shipped_platforms_pass(name: str) -> None:
    results = run_trial(read_platform(SHIPPED / f"{name}.xml"))
    assert [(r.job.ident, r.seconds) for r in results if not r.passed] == []
    assert len(results) == 20


@needs_simgrid
@pytest.mark.parametrize("name", ["full", "star", "torus", "fat_tree", "dragonfly", "routing_kinds", "power"])
def test_corpus_passes(name: str) -> None:
    results = run_trial(read_platform(CORPUS / f"good_{name}.xml"))
    assert [(r.job.ident, r.job.seconds, r.seconds) for r in results if not r.passed] == []


@needs_simgrid
def test_recorded_platform_passes(golden: Path) -> None:
    path = golden / "batsim" / "homogeneous_fatpipe_backbone" / "platform.xml"
    assert all(result.passed for result in run_trial(read_platform(path)))


@needs_simgrid
def test_a_platform_that_differs_from_the_model_fails(tmp_path: Path) -> None:
    """The last host is half as fast in the simulation as in the closed forms: its jobs are late."""
    text = (CORPUS / "good_full.xml").read_text()
    path = tmp_path / "slower.xml"
    path.write_text(text.replace('id="n1" speed="2Gf"', 'id="n1" speed="1Gf"'))
    platform = dataclasses.replace(read_platform(CORPUS / "good_full.xml"), path=str(path))
    late = {r.job.about for r in run_trial(platform) if not r.passed}
    assert "computing on the last host" in late
    assert "computing on the first host" not in late
    assert not any(about.startswith(("delay", "transfer")) for about in late)


def test_programs_that_do_not_play_along(tmp_path: Path) -> None:
    platform = read_platform(CORPUS / "good_full.xml")
    with pytest.raises(BridgeError, match="cannot be started"):
        run_trial(platform, command=[str(tmp_path / "nothing")])
    with pytest.raises(BridgeError, match="status 3 before the simulation ended") as caught:
        run_trial(platform, command=[sys.executable, "-c", "import sys; print('no'); sys.exit(3)"])
    assert "It said: no" in caught.value.remedy
    with pytest.raises(BridgeError, match="did not finish in time"):
        run_trial(platform, command=[sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.3)


def test_unreachable_hosts_are_reported() -> None:
    platform = read_platform(CORPUS / "good_full.xml")
    del platform.root.routes["n0", "n1"]
    with pytest.raises(BridgeError, match="the trial jobs cannot be made"):
        run_trial(platform)
