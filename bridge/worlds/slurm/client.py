"""Slurm's own commands as the only way in and out: text, no shell, and a time limit on every call."""

import math
import os
import re
import secrets
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.cluster.slurm_values import limit, node_names

#: Longest time that any command may take (s): beyond it slurmctld counts as away.
PATIENCE = 10.0
#: The admin comment of jobs that the gate holds, and of those that the agent has suspended.
HELD, SUSPENDED = "agent:held", "agent:suspended"
_MARK = "\x1f"
#: Columns of squeue's poll, and their letters: none of them holds text that a user makes up.
_COLUMNS = (
    *("raw", "label", "state", "priority", "submit", "start", "limit", "nodes", "cores", "memory", "user"),
    *("reason", "dependency", "features", "gres", "reservation", "licenses", "required", "excluded"),
    *("hosts", "partition", "qos"),
)
_LETTERS = "AiTQVSlDCmurEfbvWnxNPq"
_NONE = frozenset({"", "(null)", "N/A", "None", "none"})
_CONF = "Set SLURM_CONF to the cluster's slurm.conf."


class SlurmUnreachableError(BridgeError):
    """slurmctld does not answer, or not in time."""


@dataclass(frozen=True)
class QueueEntry:
    """One job as squeue has it; times in seconds since 1970.

    Attributes:
        label: how Slurm's commands name it: ``12``, ``12_3`` for a task of an array, ``30+1``.
        raw: Slurm's number of it, which a task of an array has to itself only once it was touched.
        limit: seconds, infinite without one.
        nodes, cores: asked for.
        required, excluded, hosts: node lists as Slurm writes them, empty without.
        dependency, features, gres, reservation, licenses, qos: empty without.
    """

    label: str
    raw: int
    state: str
    priority: int
    submit: int
    start: int
    limit: float
    nodes: int
    cores: int
    memory: str
    user: str
    reason: str
    dependency: str
    features: str
    gres: str
    reservation: str
    licenses: str
    required: str
    excluded: str
    hosts: str
    partition: str
    qos: str = ""

    @property
    def key(self) -> str:
        """Id and submission time; they distinguish jobs of the same id after a crash of slurmctld."""
        return f"{self.label}@{self.submit}"

    def earliest_start(self, now: float) -> int:
        """Return when a job that waits may begin at the earliest, as its user or a requeue wants; 0 = now."""
        is_set_by_user = (
            self.priority == 0 or self.reason == "BeginTime"
        )  # else it is when Slurm expects it to start
        return self.start if is_set_by_user and self.start > now else 0

    @property
    def names(self) -> frozenset[str]:
        """The nodes that it has."""
        return frozenset(node_names(self.hosts)) if self.hosts else frozenset()


@dataclass(frozen=True)
class Node:
    """One node as sinfo has it: its state in small letters with its suffix, cores, memory (MB), features."""

    name: str
    state: str
    cores: int
    memory: int
    features: frozenset[str]


class Client:
    """Calls Slurm's commands, with slurm.conf `conf` (BridgeError: no such file), or the environment's."""

    def __init__(self, conf: str = "") -> None:
        self._rows: dict[str, QueueEntry] = {}
        path = os.environ.get("PATH", "")
        self.env = dict(os.environ, LC_ALL="C", SLURM_TIME_FORMAT="%s", PATH=f"{path}:/usr/sbin:/sbin")
        self.env["SLURM_BITSTR_LEN"] = "0"  # else tasks of arrays are listed up to 64 letters
        if conf:
            self.env["SLURM_CONF"] = conf
        named = self.env.get("SLURM_CONF", "")
        if named and not Path(named).is_file():  # else Slurm looks for it on the network, for minutes
            raise BridgeError("no such file", where=named, remedy=_CONF)

    def call(self, *words: str, patience: float = PATIENCE) -> str:
        """Return a command's output; Away: slurmctld is out of reach; BridgeError: it fails otherwise."""
        how: dict[str, Any] = {"env": self.env, "timeout": patience, "errors": "backslashreplace"}
        done: subprocess.CompletedProcess[str]
        try:
            done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False, **how)
        except FileNotFoundError as error:
            remedy = "Install Slurm's client commands (slurm-client)."
            raise BridgeError(f"there is no {words[0]}", where="PATH", remedy=remedy) from error
        except subprocess.TimeoutExpired as error:
            raise SlurmUnreachableError(f"{words[0]} did not answer within {patience:g} s") from error
        if done.returncode:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            what = lines[-1] if lines else f"exit status {done.returncode}"
            away = re.search("contact|connect|timed out", what, re.IGNORECASE)
            kind, remedy = (
                SlurmUnreachableError if away else BridgeError,
                _CONF if "configuration source" in what else "",
            )
            raise kind(what[:200], where=" ".join(words)[:80], remedy=remedy)
        return done.stdout

    def queue(self, partition: str = "") -> list[QueueEntry]:
        """Return the jobs that wait or run, by submission; each task of an array is one.

        A job that is as it was is the same object as before.
        """
        layout = _MARK.join(f"%{letter}" for letter in _LETTERS)
        one = ("-p", partition) if partition else ()
        states = "PENDING,RUNNING,SUSPENDED,COMPLETING,CONFIGURING"
        text = self.call("squeue", "-h", "-a", "-r", *one, "-t", states, "-o", layout)
        rows_before = self._rows  # most of thousands of jobs wait on as they are
        self._rows = {line: rows_before.get(line) or _row(line) for line in text.splitlines()}
        return sorted(self._rows.values(), key=lambda row: (row.submit, row.raw, row.label))

    def names_and_comments(self, partition: str) -> dict[str, tuple[str, str]]:
        """Return name and comment of the jobs that wait or run, by label: users' own words, of any kind.

        What stands between two jobs is made up anew each time, so that no name can look like another job.
        """
        mark = secrets.token_hex(16)
        layout = _MARK.join((f"{mark}%i", f"%j{mark}", "%k"))
        text = self.call("squeue", "-h", "-a", "-r", "-p", partition, "-t", "PENDING,RUNNING", "-o", layout)
        cells = text.split(mark)[1:]
        names = {}
        for first, second in zip(cells[::2], cells[1::2], strict=True):
            label, _, name = first.partition(_MARK)
            comment = second.removeprefix(_MARK).removesuffix("\n")
            names[label] = (name, "" if comment in _NONE else comment)
        return names

    def nodes(self, partition: str) -> dict[str, Node]:
        """Return the nodes of a partition by name, in Slurm's order; BridgeError: there are none."""
        layout = _MARK.join(("%N", "%T", "%c", "%m", "%f"))
        text = self.call("sinfo", "-h", "-N", "-p", partition, "-o", layout)
        nodes = {}
        for line in text.splitlines():
            name, state, cores, memory, features = line.split(_MARK)
            there = frozenset() if features in _NONE else frozenset(features.split(","))
            nodes[name] = Node(name, state.lower(), int(cores.rstrip("+")), int(memory.rstrip("+")), there)
        if not nodes:
            where = f"partition {partition!r}"
            raise BridgeError("has no nodes, or does not exist", where=where, remedy="See `sinfo -s`.")
        return nodes

    def allows_requeue(self, partition: str) -> bool:
        """Tell whether jobs of a partition may be killed and requeued: its PreemptMode says REQUEUE."""
        text = self.call("scontrol", "-o", "show", "partition", partition)
        return bool(re.search(r" PreemptMode=(?:\w+,)?REQUEUE(?:\s|,|$)", text))

    def reservations(self) -> list[tuple[float, float, frozenset[str]]]:
        reservations = []
        for line in self.call("scontrol", "-o", "show", "reservation").splitlines():
            cells = dict(re.findall(r"(\w+)=(\S*)", line))
            if cells.get("Nodes", "(null)") not in _NONE and cells.get("StartTime", "").isdigit():
                begin, end = float(cells["StartTime"]), float(cells.get("EndTime") or "inf")
                reservations.append((begin, end, frozenset(node_names(cells["Nodes"]))))
        return reservations


def _row(line: str) -> QueueEntry:
    cells_by_column = dict(zip(_COLUMNS, line.split(_MARK), strict=True))
    cells: dict[str, Any] = {name: "" if text in _NONE else text for name, text in cells_by_column.items()}
    cells |= {name: int(cells_by_column[name]) for name in ("raw", "priority", "submit", "cores")}
    cells |= {name: cells_by_column[name] for name in ("label", "state", "reason")}
    cells["start"] = int(cells_by_column["start"]) if cells_by_column["start"].isdigit() else -1
    cells["limit"] = limit(cells_by_column["limit"], minutes=False) or math.inf
    cells["nodes"] = int(cells_by_column["nodes"].partition("-")[0])
    return QueueEntry(**cells)


class Control:
    """One `scontrol` that stays open: a command costs a message to slurmctld, not a process.

    `details`: `show job` says what a job has on each of its nodes. `one_line`: it has one line a job.

    After each command a word that is none is sent, made up anew, and the answer ends where scontrol complains
    of it: whatever text a job carries, it cannot pass for the end of an answer.
    """

    def __init__(self, client: Client, *, details: bool = False, one_line: bool = False) -> None:
        flags = [*(["-d"] if details else []), *(["-o"] if one_line else [])]
        self._client, self._words = client, ["scontrol", *flags]
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, command: str, patience: float = PATIENCE) -> str:
        """Send one line and return the answer, empty if all is well; Away: none comes in time."""
        if "\n" in command or "\r" in command:
            raise ValueError("a command is one line")
        process = self._process or self._open()
        word = f"end-{secrets.token_hex(8)}"
        assert process.stdin is not None
        try:
            process.stdin.write(f"{command}\n{word}\n".encode())
            text = self._read(process, f"invalid keyword: {word}\n".encode(), patience)
        except (OSError, TimeoutError) as error:
            self.close()
            raise SlurmUnreachableError(f"scontrol does not answer ({error})", where=command[:60]) from error
        answer = text.decode(errors="backslashreplace").partition(f"{command}\n")[2]
        return answer.rpartition(f"scontrol: {word}\n")[0].strip("\n")

    def _open(self) -> subprocess.Popen[bytes]:
        pipe, env = subprocess.PIPE, self._client.env
        self._process = subprocess.Popen(
            self._words, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, bufsize=0
        )
        return self._process

    @staticmethod
    def _read(process: subprocess.Popen[bytes], end: bytes, patience: float) -> bytes:
        assert process.stdout is not None
        until, text = time.monotonic() + patience, bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while end not in text:
                if not selector.select(max(until - time.monotonic(), 0)):
                    raise TimeoutError(f"nothing for {patience:g} s")
                more = os.read(process.stdout.fileno(), 1 << 16)
                if not more:
                    raise OSError("it has ended")
                text += more
        return bytes(text)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def quoted_nodes(names: Sequence[str]) -> str:
    """Return nodes as Slurm's commands take them; BridgeError: a name must not stand in a command."""
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise BridgeError("is no name of a node", where=name[:60])
    return ",".join(names)


def walltime_from_comment(comment: str) -> float | None:
    """Return the requested time of a comment, ``walltime=S`` in seconds; None if it has none."""
    match = re.search(r"(?:^|[\s,;])walltime=(\d{1,9}(?:\.\d{1,6})?)(?:$|[\s,;])", comment)
    return float(match[1]) if match else None


def may_requeue(answer: str) -> bool:
    """Return whether a job may be requeued and was not yet, by `show job`; a user's text cannot say so."""
    own = answer.partition(" JobName=")[2].partition("\n")[2].partition(" Comment=")[0]
    return bool(re.search(r"^\s*Requeue=1 Restarts=0 ", own, re.MULTILINE))


def is_held_by_us(answer: str) -> bool:
    """Return whether our gate holds a job, by `show job`, not by the job's comment."""
    return _is_marked(answer, HELD)


def is_suspended_by_us(answer: str) -> bool:
    """Return whether the agent has suspended a job, as `is_held_by_us`; it may go on by now."""
    return _is_marked(answer, SUSPENDED)


def _is_marked(answer: str, mark: str) -> bool:
    return f"AdminComment={mark} " in answer.partition("Comment=(null)")[0].partition(" Comment=")[0] + " "
