"""Kicks: ending a tiny allocation makes slurmctld schedule at once, in place of within a second."""

import re
import subprocess
import time

from bridge.slurm.client import Client

#: Kicks a second, at most.
_OFTEN = 0.1
_GRANTED = re.compile(r"Granted job allocation (\d+)")


class Kicks:
    """A pool of idle allocations in a partition of their own.

    Args:
        client: Slurm.
        partition: where they lie; empty = no kicks.
        size: how many are kept.
    """

    def __init__(self, client: Client, partition: str, size: int = 4) -> None:
        self._client, self._partition, self._size = client, partition, size if partition else 0
        self._ready: list[str] = []
        self._coming: list[subprocess.Popen[str]] = []
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._last = 0.0
        self.count = 0
        if partition:
            self._clear()

    def _clear(self) -> None:
        """End what an earlier agent has left behind."""
        self._client.call("scancel", "-p", self._partition, "-n", "bridge-kick", "-u", self._me())

    def _me(self) -> str:
        return self._client.call("id", "-un").strip()

    def kick(self) -> None:
        """End one allocation, if one is ready and the last kick is not too near."""
        now = time.monotonic()
        if self._ready and now - self._last >= _OFTEN:
            self._last = now
            self.count += 1
            self._leaving.append(
                subprocess.Popen(
                    ["scancel", self._ready.pop()],
                    env=self._client.env,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )

    def tend(self) -> None:
        """Collect what was granted, and ask for what is missing."""
        self._leaving = [process for process in self._leaving if process.poll() is None]
        for process in [process for process in self._coming if process.poll() is not None]:
            self._coming.remove(process)
            assert process.stderr is not None
            if found := _GRANTED.search(process.stderr.read()):
                self._ready.append(found[1])
            process.stderr.close()
        if len(self._ready) + len(self._coming) < self._size and len(self._coming) < 2:
            words = [
                "salloc",
                "--no-shell",
                "-J",
                "bridge-kick",
                "-p",
                self._partition,
                "-n1",
                "-t",
                "UNLIMITED",
            ]
            self._coming.append(
                subprocess.Popen(
                    words, env=self._client.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
                )
            )

    def close(self) -> None:
        """Give the allocations back."""
        for process in self._coming:
            process.terminate()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
        if self._partition:
            self._clear()
