"""An agent without root: an Operator by slurmdbd and MariaDB decides for other users' jobs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.base.jit import CACHE
from bridge.slurm_demo import cluster
from bridge.slurm_demo.demo_jobs import submit
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.install import rights

#: Debian's accounts that are always there: the agent's, and a user's.
AGENT, USER = "games", "nobody"


def by(name: str) -> list[str]:
    return ["setpriv", f"--reuid={name}", "--regid=65534", "--clear-groups"]


def until(true: Callable[[], bool], patience: float = 240) -> None:
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)


@pytest.fixture(name="client")
def accounted() -> Iterator[Client]:
    if cluster.missing(accounting=True) or os.getuid() != 0:
        pytest.skip("Slurm, slurmdbd and mariadb-server are not installed, or this is not root")
    if subprocess.run([*by(AGENT), sys.executable, "-c", "import bridge"], check=False).returncode:
        pytest.skip("other users cannot run this Python")
    folder = Path(tempfile.mkdtemp(prefix="bridge-slurm-dbd-"))
    folder.chmod(0o755)
    port = 36000 + (os.getpid() % 400) * 16
    yield Client(str(cluster.start(folder, nodes=4, port=port, accounting=True, agent=AGENT)))
    cluster.stop(folder)


@pytest.mark.slow
def test_an_operator_decides_for_others(client: Client, tmp_path: Path) -> None:
    folder = Path(client.env["SLURM_CONF"]).parent
    cluster.allow(client, USER)
    configured = {"slurmuser": "root(0)"}
    words = [*by(AGENT), sys.executable, "-c", (
        "from bridge.worlds.slurm.client import Client; from bridge.worlds.slurm.install import rights; "
        "found = rights(Client(), {'slurmuser': 'root(0)'}); print(found.well, found.detail)"
    )]  # fmt: skip
    told = subprocess.run(words, env=client.env, capture_output=True, text=True, check=True).stdout
    assert told.startswith("False")  # not yet
    cluster.allow(client, AGENT, "Operator")
    told = subprocess.run(words, env=client.env, capture_output=True, text=True, check=True).stdout
    assert told == f"True {AGENT}: Operator\n"
    assert rights(client, configured).is_ok
    work = tmp_path / "work"
    work.mkdir()
    for one in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        one.chmod(0o755)
    audit = work / "audit.jsonl"
    words = [*by(AGENT), sys.executable, "-m", "bridge", "decide", "sjf+easy", "--slurm"]
    words += ["--partition", "agent"]
    words += ["--directory", str(folder / "agent"), "--kick", "kick", "--audit", str(audit)]
    if CACHE.exists():  # what is compiled already
        shutil.copytree(CACHE, work / "cache" / CACHE.name)
    for one in (work, *work.rglob("*")):
        shutil.chown(one, AGENT)
    env = {**client.env, "BRIDGE_CACHE": str(work / "cache"), "HOME": str(work)}
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as agent:
        until((folder / "agent" / "agent" / "heartbeat").exists, 900)
        jobs = [submit(client, f"-N{n}", seconds=0.5, who=by(USER)) for n in (1, 2, 4, 1)]
        until(lambda: not [row for row in client.queue() if row.partition == "agent"])
        kicks = [row.user for row in client.queue() if row.partition == "kick"]
        agent.send_signal(signal.SIGTERM)
        _, said = agent.communicate(timeout=60)
    assert "REFUSED" not in said
    assert set(kicks) == {AGENT}
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    starts = {line["start"].partition("@")[0]: line["answer"] for line in lines if "start" in line}
    assert starts == {job: ["", ""] for job in jobs}
    words = ["sacct", "-n", "-P", "-X", "-a", "-S", "now-1days", "-r", "agent", "--format=JobID,State,User"]
    wanted = sorted(f"{job}|COMPLETED|{USER}" for job in jobs)
    until(lambda: sorted(client.call(*words).split()) == wanted, 60)
