"""An agent as an operator starts it: the command `bridge decide … --slurm`, in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bridge.errors import BridgeError
from bridge.slurm.client import Client


class AgentProcess:
    """An agent for partition ``agent`` of a cluster of `bridge.slurm.cluster`, kicking if told to.

    The folder gets agent.log, audit.jsonl and report.json. `cpu`: CPU seconds that it has used since it was
    at work, once it has ended.
    """

    def __init__(self, client: Client, folder: Path, policy: str, *, kick: bool = True) -> None:
        self._client, self._folder = client, folder
        self.audit, self.report = folder / "audit.jsonl", folder / "report.json"
        self._words = [sys.executable, "-m", "bridge", "decide", policy, "--slurm", "--partition", "agent"]
        self._words += ["--directory", str(folder / "agent"), "--audit", str(self.audit)]
        self._words += ["--max-starts-per-s", "50", "--out", str(self.report)]
        self._words += ["--kick", "kick"] if kick else []
        self.cpu = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process; 0 if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else 0

    def start(self) -> None:
        """Start it, and wait until it is at work; BridgeError: its last line says why not."""
        beat = self._folder / "agent" / "agent" / "heartbeat"
        said = self._folder / "agent.log"
        begun = time.time()
        with said.open("a") as out:
            self._process = subprocess.Popen(self._words, env=self._client.env, stdout=out, stderr=out)
        while not (beat.exists() and beat.stat().st_mtime > begun):
            if self._process.poll() is not None:
                lines = said.read_text(errors="replace").splitlines()
                raise BridgeError(f"the agent does not start: {(lines or ['it says nothing'])[-1]}")
            time.sleep(0.1)
        self._warm = self._used()

    def _used(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, number: int) -> None:
        """Send it a signal."""
        if self.pid:
            os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and count the CPU seconds that it used."""
        if self._process is None or not self.pid:
            return
        self.cpu += self._used() - self._warm
        self._process.send_signal(number)
        self._process.wait(60)
