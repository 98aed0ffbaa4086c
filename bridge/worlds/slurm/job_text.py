"""What a job asks for and what it has, read from squeue and `scontrol show job` with details.

Users' own words stand in the text, too. Who forges a line there misleads the agent about his own job only,
and Slurm then does not start it: it checks every start itself.
"""

import math
import re
from dataclasses import dataclass, replace

from bridge.cluster.request_texts import parse_constraints, parse_licenses
from bridge.cluster.slurm_nodes import gpus_of
from bridge.cluster.slurm_values import amount, node_names
from bridge.worlds.slurm.client import QueueEntry, is_suspended_by_us
from bridge.worlds.slurm.site_jobs import NodePart, PlacedJob, SiteRequest

_DETAIL = re.compile(r"^ +Nodes=(\S+) CPU_IDs=([\d,-]+) Mem=(\d{1,15}) GRES=(\S*)$", re.MULTILINE | re.ASCII)
_ARRAY = re.compile(r"JobId=\d+ ArrayJobId=(\d{1,18}) ")
_THROTTLE = re.compile(r"JobId=\d+ ArrayJobId=\d+ \S+ ArrayTaskThrottle=(\d{1,9}) ")


class RefusedError(Exception):
    """A job asks for what an agent cannot decide on; the text says what."""


@dataclass(frozen=True)
class _JobText:
    """The settings of a `show job` answer that a request is read from."""

    answer: str

    def number(self, name: str, default: int) -> int:
        match = re.search(rf"^   (?:\S+ )*{re.escape(name)}=(\d{{1,12}})\b", self.answer, re.MULTILINE)
        return int(match[1]) if match else default

    def last(self, name: str) -> str:
        """Return a setting that stands at the end, behind users' own words."""
        texts: list[str] = re.findall(rf"^   {name}=(\S+)$", self.answer, re.MULTILINE)
        return texts[-1] if texts and texts[-1] not in ("(null)", "N/A") else ""

    @property
    def is_exclusive(self) -> bool:
        return re.search(r"^   OverSubscribe=(?:NO|EXCLUSIVE) ", self.answer, re.MULTILINE) is not None

    @property
    def may_requeue(self) -> bool:
        return self.number("Requeue", 1) > 0 and self.number("BatchFlag", 1) > 0

    @property
    def stood(self) -> float:
        """For how long it was suspended by the time at which it was last suspended, or went on (s)."""
        last, start = self.number("SuspendTime", 0), self.number("StartTime", 0)
        return float(max(last - start - self.number("SecsPreSuspend", 0), 0)) if last and start else 0.0

    @property
    def array(self) -> tuple[int, int]:
        """The array whose tasks may not all run at once, and how many may; -1 and 0 without."""
        array, limit = _ARRAY.match(self.answer), _THROTTLE.match(self.answer)
        return (int(array[1]), int(limit[1])) if array and limit else (-1, 0)

    @property
    def node_counts(self) -> tuple[int, int]:
        """How many nodes it asks for, at least and at most; 0 at most: it does not say."""
        match = re.search(r"^   NumNodes=(\d{1,9})(?:-(\d{1,9}))? ", self.answer, re.MULTILINE)
        return (int(match[1]), int(match[2] or 0)) if match else (0, 0)

    @property
    def memory(self) -> tuple[str, bool]:
        """The memory that it states, and whether that is of each CPU."""
        match = re.search(r"^   MinCPUsNode=\d+ MinMemory(CPU|Node)=(\S+) ", self.answer, re.MULTILINE)
        return (match[2], match[1] == "CPU") if match else ("0", False)

    def mebibytes(self, cores: int) -> int:
        """Return the memory of a node or task with so many cores; -1: all that the node has."""
        text, of_cpu = self.memory
        if text == "0":
            return -1
        try:
            return -(-amount(text, 1, cores) // (1 << 20)) * (cores if of_cpu else 1)
        except ValueError as error:
            raise RefusedError(str(error)) from error


def request_of(row: QueueEntry, answer: str, threads: int = 1) -> SiteRequest:
    """Return what a waiting job asks for; `threads`: CPUs that Slurm gives as one core.

    RefusedError: nothing that an agent decides on.
    """
    text = _JobText(answer)
    _check_words(row)
    low, high = text.node_counts
    if low < 1:
        raise RefusedError("asks for no nodes")
    tasks, of_task = text.number("NumTasks", 1), text.number("CPUs/Task", 1)
    array, array_limit = text.array
    request = SiteRequest(
        partition=row.partition,
        nodes=low,
        exclusive=text.is_exclusive,
        features=row.features,
        licenses=row.licenses,
        reservation=row.reservation,
        nodelist=row.required,
        exclude=row.excluded,
        array=array,
        array_limit=array_limit,
        qos=row.qos,
        may_requeue=text.may_requeue,
    )
    on_each = text.number("NtasksPerN:B:S:C", 0)
    if high == 0 and tasks > 1 and not on_each and text.memory[1]:
        return _anywhere(request, row, text, tasks, _rounded(of_task, threads))
    if high == 0:  # one node, or as many as so many tasks on each give
        nodes = math.ceil(tasks / on_each) if on_each else 1
        cores = of_task * min(on_each or tasks, tasks)
    elif low != high:
        raise RefusedError(f"asks for {low} to {high} nodes")
    else:
        nodes = low
        cores = max(math.ceil(row.cores / nodes), of_task * math.ceil(tasks / nodes))
    cores = _rounded(max(cores, text.number("MinCPUsNode", 1)), threads)
    gpus, kind = _gpus(row, text, nodes, tasks)
    return replace(request, nodes=nodes, cores=cores, memory=text.mebibytes(cores), gpus=gpus, gpu_type=kind)


def _anywhere(request: SiteRequest, row: QueueEntry, text: _JobText, tasks: int, cores: int) -> SiteRequest:
    """Return the request of a job whose tasks may lie on any number of nodes."""
    if row.gres or text.last("TresPerJob"):
        raise RefusedError("asks for GPUs, and leaves the number of nodes to Slurm")
    gpus, kind = _generic(text.last("TresPerTask"))
    memory = text.mebibytes(cores)
    return replace(request, nodes=0, tasks=tasks, cores=cores, memory=memory, gpus=gpus, gpu_type=kind)


def _check_words(row: QueueEntry) -> None:
    if "+" in row.label:
        raise RefusedError("a component of a heterogeneous job")
    for parse, words, kind in (
        (parse_constraints, row.features, "features"),
        (parse_licenses, row.licenses, "licenses"),
    ):
        try:
            parse(words)
        except ValueError as error:
            raise RefusedError(f"asks for {kind} {words}") from error
    if re.search(r"[\[*]", row.features):  # one feature for all nodes, or numbers of nodes with a feature
        raise RefusedError(f"asks for features {row.features}")


def _rounded(cores: int, threads: int) -> int:
    return -(-cores // threads) * threads


def _gpus(row: QueueEntry, text: _JobText, nodes: int, tasks: int) -> tuple[int, str]:
    """Return the GPUs of each node and their type."""
    if text.last("TresPerSocket"):
        raise RefusedError("asks for GPUs of each socket")
    on_node, of_job = _generic(row.gres), _generic(text.last("TresPerJob"))
    of_task = _generic(text.last("TresPerTask"))
    if on_node[0]:
        return on_node
    if of_job[0] and nodes > 1:
        raise RefusedError("asks for GPUs of all its nodes together")
    return of_job if of_job[0] else (of_task[0] * math.ceil(tasks / nodes), of_task[1])


def _generic(text: str) -> tuple[int, str]:
    """Return how many GPUs of which type a text asks for; RefusedError: for several types, or others."""
    words = [word for word in text.split(",") if not word.startswith("cpu")]  # beside them since Slurm 23.11
    try:
        gpus, others = gpus_of(",".join(words).replace("=", ":"))
    except ValueError as error:
        raise RefusedError(f"asks for {text}") from error
    if others or len(gpus) > 1:
        raise RefusedError(f"asks for {text}")
    for kind, count in gpus.items():
        return count, "" if kind == "gpu" else kind
    return 0, ""


def parts_of(answer: str, hosts: frozenset[str]) -> tuple[NodePart, ...]:
    """Return what a running job has on its nodes, by its details; all of nodes that they do not name."""
    parts: list[NodePart] = []
    left = set(hosts)
    whole = _JobText(answer).is_exclusive
    for names, cpus, memory, gres in _DETAIL.findall(answer):
        own = [name for name in node_names(names) if name in left]
        left.difference_update(own)
        if own:
            cores = sum(_length(span) for span in cpus.split(","))
            parts.append(NodePart(tuple(own), cores, int(memory), _gpus_on_node(gres), whole))
    if left:
        parts.append(NodePart(tuple(sorted(left)), whole=True))
    return tuple(parts)


def _length(span: str) -> int:
    low, _, high = span.partition("-")
    return int(high or low) - int(low) + 1 if low else 0


def _gpus_on_node(text: str) -> dict[str, int]:
    try:
        return dict(gpus_of(text)[0])
    except ValueError:
        return {}


def placed_of(row: QueueEntry, answer: str, length: float, now: float, *, is_ours: bool) -> PlacedJob:
    """Return a job that has nodes, by its details; `is_ours`: the agent may stop it."""
    text, start = _JobText(answer), float(row.start if row.start > 0 else now)
    by_us = row.state == "SUSPENDED" and is_suspended_by_us(answer)
    return PlacedJob(
        row.key,
        start,
        min(length, 1e9),
        parts_of(answer, row.names),
        row.licenses,
        *text.array,
        number=row.raw,
        partition=row.partition if is_ours else "",
        qos=row.qos,
        may_requeue=text.may_requeue,
        suspended=float(text.number("SuspendTime", round(now))) if by_us else -1.0,
        stood=text.stood,
    )


def array_of(answer: str) -> tuple[int, int]:
    """Return the array of a job whose tasks may not all run at once, and how many may; -1 and 0 without."""
    return _JobText(answer).array
