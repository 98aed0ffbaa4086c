"""Kicks: ending a tiny allocation makes slurmctld schedule at once, in place of within a second."""

import re
import subprocess
import time

from bridge.worlds.slurm.client import Client, Control

#: Kicks a second, at most.
_OFTEN = 0.1
#: What the allocations are called.
_NAME = "bridge-kick"
_GRANTED = re.compile(r"Granted job allocation (\d+)")


class ScheduleTrigger:
    """A pool of `size` idle allocations in a partition of their own; empty = no kicks.

    `control` asks what an id is now: a slurmctld that was killed may have given a kick's id to a job.
    """

    def __init__(self, client: Client, control: Control, partition: str, size: int = 4) -> None:
        self._client, self._control, self._partition = client, control, partition
        self._size = size if partition else 0
        self._ready: list[str] = []
        self._coming: list[subprocess.Popen[str]] = []
        self._leaving: list[subprocess.Popen[str]] = []
        self._last = 0.0
        self.count = 0
        if partition:
            self._clear()

    def _clear(self) -> None:
        """End what an earlier agent has left behind."""
        me = self._client.call("id", "-un").strip()
        self._client.call("scancel", "-p", self._partition, "-n", _NAME, "-u", me)

    def trigger(self) -> None:
        """End one allocation, if one is ready and the last kick is not too near."""
        now = time.monotonic()
        if self._ready and now - self._last >= _OFTEN:
            ident = self._ready.pop()
            if not self._is_kick(ident):
                return
            self._last = now
            self.count += 1
            self._leaving.append(self._start_process(["scancel", ident]))

    def _is_kick(self, ident: str) -> bool:
        answer = self._control(f"show job {ident}")
        named = answer.startswith(f"JobId={ident} JobName={_NAME}\n")
        return named and f"\n   Partition={self._partition} " in answer

    def reset(self) -> None:
        """slurmctld has been away: what it had granted may be gone, and the ids others' now."""
        self._ready = []
        if self._partition:
            self._clear()

    def refill(self) -> None:
        """Collect what was granted, and ask for what is missing."""
        self._leaving = [process for process in self._leaving if process.poll() is None]
        for process in [process for process in self._coming if process.poll() is not None]:
            self._coming.remove(process)
            assert process.stderr is not None
            if match := _GRANTED.search(process.stderr.read()):
                self._ready.append(match[1])
            process.stderr.close()
        if len(self._ready) + len(self._coming) < self._size and len(self._coming) < 2:
            words = ["salloc", "--no-shell", "-J", _NAME, "-p", self._partition, "-n1", "-t", "UNLIMITED"]
            self._coming.append(self._start_process(words, subprocess.PIPE))

    def _start_process(self, words: list[str], errors: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            words, env=self._client.env, stdout=quiet, stderr=errors, encoding="utf-8", errors="replace"
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
