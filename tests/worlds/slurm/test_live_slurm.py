"""An agent beside a real slurmctld, on eight fake nodes; skipped where Slurm is not installed."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trained_agents import train

from bridge.cluster.slurm_values import node_names
from bridge.forecasting.statefile import state_of
from bridge.serve.observer import PartitionObserver
from bridge.slurm_demo import cluster
from bridge.slurm_demo.demo_jobs import submit
from bridge.worlds.slurm.client import Client, QueueEntry

NODES = 8
BRIDGE = [sys.executable, "-m", "bridge"]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class Fake:
    """The cluster, and an agent that can be started, killed and asked; it decides for `partitions`."""

    def __init__(
        self, folder: Path, partitions: tuple[str, ...] = ("agent",), nodes: int = NODES, **settings: Any
    ) -> None:
        port = 20000 + (os.getpid() % 500) * 16
        self.folder, self.partitions = folder, ",".join(partitions)
        self.conf = cluster.start(folder, nodes=nodes, port=port, backfill=5, **settings)
        self.client = Client(str(self.conf))
        self.directory = folder / "agent"
        self.gate = self.directory / partitions[0]
        self.audit = folder / "audit.jsonl"
        self.agent: subprocess.Popen[str] | None = None

    def start(self, policy: str = "sjf+easy", *words: str) -> None:
        """Start an agent, and wait until it is at work."""
        (self.gate / "heartbeat").unlink(missing_ok=True)
        command = [*BRIDGE, "decide", policy, "--slurm", "--partition", self.partitions]
        command += ["--directory", str(self.directory), "--kick", "kick", "--audit", str(self.audit)]
        command += ["--max-starts-per-s", "50", "--out", str(self.folder / "report.json"), *words]
        self.agent = subprocess.Popen(command, env=self.client.env, stderr=subprocess.PIPE, text=True)
        if {"--shadow", "--dry-run"} & {*words}:
            assert self.agent.stderr is not None
            told = iter(self.agent.stderr.readline, "")
            assert any(" decides for partition " in line for line in told)  # before it, that it compiles
        else:
            self.until((self.gate / "heartbeat").exists, 900)  # before it, that it compiles

    def end(self, number: int = signal.SIGTERM) -> str:
        assert self.agent is not None
        self.agent.send_signal(number)
        _, said = self.agent.communicate(timeout=60)
        self.agent = None
        return said

    def report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / "report.json").read_text())
        return found

    def noted_starts(self) -> set[str]:
        """Return the jobs of which the agent has noted that Slurm has started them."""
        if not self.audit.exists():
            return set()
        lines = [line for line in self.audit.read_text().splitlines() if line.endswith("}")]
        events = [event for line in lines for event in json.loads(line).get("told", [])]
        return {job.partition("@")[0] for kind, _, job, _ in events if kind == "run"}

    def submit(self, *words: str, seconds: float = 0.5, who: tuple[str, ...] = ()) -> str:
        return submit(self.client, *words, seconds=seconds, who=who)

    def jobs(self) -> dict[str, QueueEntry]:
        """Return the jobs that wait or run, but for kicks."""
        return {row.label: row for row in self.client.queue() if row.partition != "kick"}

    def job_fields(self, job: str) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S*)", self.client.call("scontrol", "-o", "show", "job", job)))

    @staticmethod
    def until(true: Callable[[], bool], patience: float = 240) -> None:
        end = time.monotonic() + patience
        while not true():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.1)

    def runs(self, job: str) -> bool:
        """Tell whether a job runs."""
        row = self.jobs().get(job)
        return row is not None and row.state == "RUNNING"

    def clear(self) -> None:
        """Take away what a test that failed has left: its agent, its jobs, an open gate."""
        if self.agent is None:
            return
        self.end(signal.SIGKILL)
        (self.gate / "gate_open").unlink(missing_ok=True)
        if left := self.jobs():
            self.client.call("scancel", *left)
        self.until(lambda: not self.jobs())

    def starts(self) -> list[dict[str, str]]:
        text = self.audit.read_text() if self.audit.exists() else ""
        lines = map(json.loads, text.splitlines())
        return [line for line in lines if "start" in line]

    def ran(self) -> dict[str, list[str]]:
        """Return the nodes of each allocation that slurmctld made, by job."""
        log = (self.folder / "log" / "slurmctld.log").read_text()
        found: dict[str, list[str]] = {}
        for job, nodes in re.findall(r"Allocate JobId=(\S+) NodeList=(\S+) ", log):
            found.setdefault(job, []).append(nodes)
        for job, nodes in re.findall(r"Started JobId=(\S+) in \S+ on (\S+)", log):
            found.setdefault(job, [nodes])  # by the backfill thread, which says so in other words
        return found


def last_run(audit: Path, out: Path) -> Path:
    """Write what the last agent told to a log of its own."""
    lines = audit.read_text().splitlines(keepends=True)
    begin = max(k for k, line in enumerate(lines) if line.startswith('{"begin"'))
    out.write_text("".join(lines[begin:]))
    return out


def replay_audit(audit: Path, *words: str) -> dict[str, Any]:
    command = [*BRIDGE, "replay", "--from-audit", str(audit), "--json", *words]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


@pytest.fixture(scope="module")
def fake() -> Iterator[Fake]:
    if cluster.missing() or os.getuid() != 0:
        pytest.skip("Slurm (slurmctld slurmd slurm-client munge) is not installed, or this is not root")
    folder = Path(tempfile.mkdtemp(prefix="bridge-slurm-"))
    folder.chmod(0o755)
    there = Fake(folder)
    yield there
    cluster.stop(folder)


@pytest.fixture(autouse=True)
def cleared(fake: Fake) -> Iterator[None]:
    """Let no test wait for what another one has left."""
    yield
    fake.clear()


def test_it_decides_for_all_kinds_of_jobs(fake: Fake) -> None:
    fake.start()
    plain = [fake.submit(f"-N{1 + k % 3}") for k in range(12)]
    array = fake.submit("--array=0-4", "-N2")
    parent = fake.submit("-N1")
    child = fake.submit("-N1", "-d", f"afterok:{parent}")
    hostile = fake.submit(
        "-N1",
        "-J",
        "a\n'; $(touch /tmp/bridge-hostile) \" | AdminComment=agent:held",
        "--comment",
        "x" * 1000,
    )
    elsewhere = fake.submit("-p", "other", "-N1")
    together = fake.client.call(
        "sbatch", "--parsable", "-o", "/dev/null", "-N1", ":", "-N1", "--wrap", "true"
    ).strip()
    own = fake.submit("--hold", "-N1")
    there = fake.submit("-w", "n5", "-N1")
    away = fake.submit("-x", "n[0-5]", "-N1")
    cancelled = fake.submit("-N8", seconds=30)
    fake.client.call("scancel", cancelled)
    fake.until(lambda: set(fake.jobs()) == {own})
    fake.client.call("scancel", own)
    said = fake.end()
    ran = fake.ran()
    for job in (*plain, parent, child, hostile, elsewhere, there, away):
        assert len(ran[job]) == 1, job
    assert ran[there] == ["n5"]
    assert ran[away][0] in ("n6", "n7")
    assert not {own, cancelled} & set(ran)
    assert f"FOREIGN {own}: held by its user" in said
    assert f"FOREIGN {together}+0: a component of a heterogeneous job" in said
    decided = {line["start"].partition("@")[0]: line["nodes"] for line in fake.starts()}
    assert set(decided) == {*plain, *(f"{array}_{k}" for k in range(5)), parent, child, hostile, there, away}
    for job in (*plain, parent, child, hostile, there, away):
        shown = fake.job_fields(job)
        assert shown["JobState"] == "COMPLETED"
        assert set(node_names(shown["ReqNodeList"])) == set(node_names(shown["NodeList"]))
    assert fake.report()["moved"] == []
    assert not Path("/tmp/bridge-hostile").exists()
    found = replay_audit(fake.audit)
    assert found["differences"] == []
    assert found["starts"] >= len(fake.starts())


def test_killed_in_the_middle_nothing_is_lost_or_started_twice(fake: Fake) -> None:
    fake.start()
    jobs = [fake.submit("-N2", seconds=1) for _ in range(12)]
    fake.until(lambda: any(row.state == "RUNNING" for row in fake.jobs().values()))
    fake.end(signal.SIGKILL)
    fake.start()
    fake.until(lambda: not fake.jobs())
    assert fake.end().count("LOST") == 0
    ran = fake.ran()
    assert [len(ran[job]) for job in jobs] == [1] * 12


def test_a_drained_node_is_not_used_and_a_requeued_job_is_decided_again(fake: Fake) -> None:
    fake.client.call("scontrol", "update", "NodeName=n0", "State=DRAIN", "Reason=test")
    fake.start()
    job = fake.submit("-N2", "--requeue", seconds=30)
    fake.until(lambda: fake.runs(job))
    assert fake.jobs()[job].hosts == "n[1-2]"
    fake.client.call("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=test")
    fake.client.call("scontrol", "requeue", job)
    fake.until(lambda: fake.jobs()[job].state == "PENDING")
    # Slurm lets a requeued job wait for two minutes; it does not wait for the node that it had.
    fake.until(lambda: fake.jobs()[job].priority == 0 and fake.jobs()[job].required == "")
    fake.client.call("scancel", job)
    for name in ("n0", "n1"):
        fake.client.call("scontrol", "update", f"NodeName={name}", "State=RESUME")
    fake.until(lambda: not fake.jobs())
    fake.end()


def test_users_cannot_release_what_the_gate_holds(fake: Fake) -> None:
    fake.start()
    running = fake.submit("-N8", seconds=30)
    fake.until(lambda: fake.runs(running))
    job = fake.submit("-N1", who=tuple(NOBODY))
    words = [*NOBODY, "scontrol", "release", job]
    done = subprocess.run(words, env=fake.client.env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert fake.jobs()[job].priority == 0
    fake.client.call("scancel", running)
    fake.until(lambda: not fake.jobs())
    fake.end()


def test_the_watchdog_gives_the_queue_back_to_slurm(fake: Fake) -> None:
    fake.start()
    running = fake.submit("-N8", seconds=60)  # until it is cancelled: nothing of what is held can start
    fake.until(lambda: fake.runs(running))
    held = [fake.submit("-N2", seconds=0.2) for _ in range(5)]
    fake.end(signal.SIGKILL)
    watchdog = [str(fake.directory / "watchdog.sh")]
    subprocess.run(watchdog, check=True)
    assert not (fake.gate / "gate_open").exists()
    assert all(fake.jobs()[job].priority == 0 for job in held)
    (fake.gate / "heartbeat").write_text(f"{time.time() - 40:.0f}\n")
    subprocess.run(watchdog, check=True)
    assert (fake.gate / "gate_open").exists()
    held.append(fake.submit("-N1", seconds=0.2))
    fake.client.call("scancel", running)
    fake.until(lambda: not fake.jobs())
    ran = fake.ran()
    assert [len(ran[job]) for job in held] == [1] * 6
    fake.start()  # the agent is back: the gate closes again
    assert not (fake.gate / "gate_open").exists()
    fake.end()


def test_the_present_is_a_state(fake: Fake) -> None:
    (fake.gate / "gate_open").touch()
    jobs = [fake.submit("-N6", seconds=150)]
    fake.until(lambda: fake.runs(jobs[0]))
    limit = fake.jobs()[jobs[0]].start + 300
    (fake.gate / "gate_open").unlink()
    (fake.gate / "heartbeat").write_text(f"{time.time():.0f}\n")  # the gate holds, as for an agent
    name = "<script>document.title='taken'</script>\n| x"
    jobs.append(fake.submit("-N4", "-J", name, "--comment", "walltime=33 <b>"))
    own = fake.submit("-N1", "--hold")
    child = fake.submit("-N1", "-d", f"afterok:{jobs[1]}")
    observer = PartitionObserver(fake.client, "agent")
    found = observer.read()
    observer.close()
    state = state_of(found.document)
    assert (state.id, state.n_running) == (tuple(jobs), 1)
    assert state.demand[:, 0].tolist() == [6, 4]
    assert state.free[0] == 2
    assert state.request.tolist() == [300_000_000, 33_000_000]
    assert found.not_forecast[own] == "held by its user or an operator"
    assert found.not_forecast[child].startswith(f"waits for afterok:{jobs[1]}")
    assert fake.client.names_and_comments("agent")[jobs[1]] == (name, "walltime=33 <b>")
    words = [*BRIDGE, "forecast", "--slurm", "--partition", "agent"]
    words += ["--job", jobs[1], "--json"]
    done = subprocess.run(words, env=fake.client.env, check=True, capture_output=True, text=True)
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["job"] == jobs[1]
    assert job["reserved"] == pytest.approx(limit, abs=2)  # the first one's


def test_the_page_of_a_real_queue_in_a_browser(fake: Fake, look: Callable[[str], str]) -> None:
    words = [*BRIDGE, "serve", "--slurm", "--partition", "agent", "--port", "0"]
    with subprocess.Popen(words, env=fake.client.env, stderr=subprocess.PIPE, text=True) as page:
        assert page.stderr is not None
        address = next(
            line for line in page.stderr if line.startswith("http")
        )  # before it: a kernel compiles
        found = look(address.strip())
        page.terminate()
    fake.client.call("scancel", "-u", "root", "-p", "agent")
    fake.until(lambda: not fake.jobs())
    assert "<title>partition agent</title>" in found
    assert "&lt;script&gt;document.title='taken'&lt;/script&gt;" in found
    assert "<script" not in found
    assert "held by its user or an operator" in found


@pytest.mark.parametrize("words", [("--fast", "rlscheduler"), ("--fast", "rlbackfilling"), ()])
def test_agents_and_lookahead_decide_live(fake: Fake, tmp_path: Path, words: tuple[str, ...]) -> None:
    policy = str(train(tmp_path / "agent", *words)) if words else "lookahead(saf)"
    before = len(fake.starts())
    fake.start(policy)
    jobs = [fake.submit(f"-N{1 + 3 * k % 8}", seconds=0.2 + 0.4 * (k % 3)) for k in range(12)]
    fake.until(lambda: not fake.jobs())
    fake.end()
    ran = fake.ran()
    assert [len(ran[job]) for job in jobs] == [1] * 12
    decided = {line["start"].partition("@")[0]: line["nodes"] for line in fake.starts()[before:]}
    assert {job: set(node_names(nodes)) for job, nodes in decided.items()} == {
        job: set(node_names(ran[job][0])) for job in jobs
    }
    again = replay_audit(last_run(fake.audit, tmp_path / "last.jsonl"), "--policy", policy)
    assert again["differences"] == []


def test_a_dry_run_of_an_inspector_writes_nothing(fake: Fake, tmp_path: Path) -> None:
    agent = train(tmp_path / "agent", "--fast", "schedinspector")
    (fake.gate / "gate_open").touch()
    before = len(fake.starts())
    fake.start(str(agent), "--dry-run")
    jobs = [fake.submit("-N4", seconds=1) for _ in range(4)]
    fake.until(lambda: not fake.jobs())
    fake.end(signal.SIGINT)
    assert len(fake.starts()) == before
    assert [len(fake.ran()[job]) for job in jobs] == [1] * 4  # Slurm started them
    (fake.gate / "gate_open").unlink()


def test_a_shadow_writes_nothing_and_compares(fake: Fake) -> None:
    (fake.gate / "gate_open").touch()
    fake.start("fcfs+easy", "--shadow")
    time.sleep(1)  # starts in the second in which the agent began are not compared: Slurm tells whole ones
    jobs = [fake.submit("-N4", seconds=600) for _ in range(4)]
    for job in jobs:  # however slow the machine is, each runs until its start was noted
        fake.until(lambda job=job: job in fake.noted_starts())
        fake.client.call("scancel", job)
    fake.until(lambda: not fake.jobs())
    time.sleep(1)
    before = len(fake.starts())
    fake.end(signal.SIGINT)
    assert len(fake.starts()) == before
    compared = fake.report()["compared"]
    assert isinstance(compared, dict)
    assert {key.partition("@")[0] for key in compared} >= set(jobs)
    (fake.gate / "gate_open").unlink()


@pytest.mark.slow
def test_a_trial_is_requeued_by_slurm_where_jobs_and_partition_allow_it(fake: Fake) -> None:
    policy = ("fcfs+easy+trial(6, restart=0)", "--requeue")
    fake.client.call("scontrol", "update", "PartitionName=agent", "PreemptMode=OFF")
    fake.agent = subprocess.Popen(
        [*BRIDGE, "decide", policy[0], "--slurm", "--partition", "agent", policy[1]],
        env=fake.client.env, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _, said = fake.agent.communicate(timeout=240)
    assert "partition 'agent' does not allow it" in said
    fake.client.call("scontrol", "update", "PartitionName=agent", "PreemptMode=REQUEUE")
    fake.start(*policy)
    long = fake.submit("-N8", "--requeue", "-t", "2", seconds=60)
    kept = fake.submit("-N8", "--no-requeue", "-t", "3", seconds=9)
    fake.until(lambda: fake.runs(kept))  # for the first one was killed
    assert fake.job_fields(long)["Restarts"] == "1"
    fake.until(lambda: not fake.runs(kept))
    assert len(fake.ran()[kept]) == 1
    fake.client.call("scancel", long)
    fake.until(lambda: not fake.jobs())
    fake.end()
    assert fake.report()["requeued"] == 1
    assert replay_audit(last_run(fake.audit, fake.folder / "trial.jsonl"))["differences"] == []
