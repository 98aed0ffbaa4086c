"""An agent beside a real slurmctld whose partitions preempt; skipped where Slurm is not installed."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_live_slurm import Fake, last_run, replay_audit

from bridge.slurm_demo import cluster


@pytest.fixture(scope="module")
def fake() -> Iterator[Fake]:
    if cluster.missing() or os.getuid() != 0:
        pytest.skip("Slurm (slurmctld slurmd slurm-client munge) is not installed, or this is not root")
    folder = Path(tempfile.mkdtemp(prefix="bridge-slurm-"))
    folder.chmod(0o755)
    there = Fake(folder, cluster.PREEMPTING, nodes=4, preempt=True)
    yield there
    cluster.stop(folder)


@pytest.fixture(autouse=True)
def cleared(fake: Fake) -> Iterator[None]:
    """Let no test wait for what another one has left."""
    yield
    fake.clear()


def submit(fake: Fake, partition: str, node: str, ready: str = "/dev/null") -> str:
    """Submit a job that has a whole node for long; it makes `ready` once it does not mind SIGTERM."""
    options = ("-p", partition, "-w", node, "-N1", "-c8", "-t", "5", "-o", "/dev/null")
    script = f"trap '' TERM; touch {ready}; sleep 120"
    return fake.client.call("sbatch", "--parsable", *options, "--wrap", script).strip()


def state(fake: Fake, job: str) -> str:
    return fake.job_fields(job)["JobState"]


def test_running_jobs_are_requeued_cancelled_after_their_grace_and_suspended(
    fake: Fake, tmp_path: Path
) -> None:
    fake.start("fcfs+easy")
    partitions = ("requeue", "cancel", "suspend")
    ready = [tmp_path / partition for partition in partitions]
    requeued, cancelled, suspended = (
        submit(fake, partition, f"n{k}", str(ready[k])) for k, partition in enumerate(partitions)
    )
    fake.until(lambda: all(fake.runs(job) for job in (requeued, cancelled, suspended)))
    fake.until(lambda: all(path.exists() for path in ready))
    before = time.time()
    words = ("-p", "high", "-N3", "--ntasks-per-node=1", "-c8", "-x", "n3", "-t", "5")
    high = fake.submit(*words, seconds=6)
    fake.until(lambda: fake.runs(high))
    assert fake.jobs()[high].start >= before + 3  # the grace of 4 s, in whole seconds
    assert fake.jobs()[high].names == {"n0", "n1", "n2"}
    assert state(fake, cancelled) == "CANCELLED"
    assert state(fake, suspended) == "SUSPENDED"
    again = fake.job_fields(requeued)
    assert (again["JobState"], again["Restarts"], again["Priority"]) == ("PENDING", "1", "0")
    fake.until(lambda: fake.jobs().keys() == {requeued, suspended})
    fake.until(lambda: fake.runs(suspended))
    fake.client.call("scancel", requeued, suspended)
    fake.until(lambda: not fake.jobs())
    said = fake.end()
    assert "jobs are preempted by tier of partitions" in said
    report = fake.report()
    # Until the grace is over the cores of the suspended job are free: it goes on meanwhile, and stands again.
    assert [report[name] for name in ("requeued", "cancelled", "suspended")] == [1, 1, 2]
    assert (report["lost"], report["moved"], report["withdrawn"]) == ([], [], 0)
    assert replay_audit(last_run(fake.audit, tmp_path / "last.jsonl"))["differences"] == []


@pytest.mark.slow
def test_a_suspended_job_goes_on_when_the_agent_is_dead(fake: Fake) -> None:
    fake.start("fcfs+easy")
    job = submit(fake, "suspend", "n0")
    fake.until(lambda: fake.runs(job))
    high = submit(fake, "high", "n0")
    fake.until(lambda: fake.runs(high))
    assert state(fake, job) == "SUSPENDED"
    fake.end(signal.SIGKILL)
    for partition in cluster.PREEMPTING:
        (fake.directory / partition / "heartbeat").write_text(f"{time.time() - 40:.0f}\n")
    subprocess.run([str(fake.directory / "watchdog.sh")], check=True)
    fake.until(lambda: fake.runs(job))
    fake.client.call("scancel", job, high)
    fake.until(lambda: not fake.jobs())


@pytest.mark.slow
def test_a_dry_run_says_what_it_would_stop(fake: Fake) -> None:
    for partition in cluster.PREEMPTING:
        (fake.directory / partition / "gate_open").touch()
    job = submit(fake, "requeue", "n0")
    fake.until(lambda: fake.runs(job))
    (fake.directory / "high" / "gate_open").unlink()
    (fake.directory / "high" / "heartbeat").write_text(f"{time.time():.0f}\n")  # the gate holds
    high = submit(fake, "high", "n0")
    fake.start("fcfs+easy", "--dry-run")
    time.sleep(6)  # two polls
    said = fake.end(signal.SIGINT)
    assert f"would requeue {job}\n" in said
    assert f"would start {high} on n0\n" in said
    assert fake.runs(job)
    fake.client.call("scancel", job, high)
    fake.until(lambda: not fake.jobs())
