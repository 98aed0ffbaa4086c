"""One life of a job, from its submission to its end or its requeue; from the cells of `sacct` or jobcomp."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Literal

from bridge.cluster import slurm_values as values
from bridge.workload.table import TallyEntry

#: The states that accounting knows; a cancelled job's may name who did it.
STATES = re.compile(
    r"(BOOT_FAIL|CANCELLED|COMPLETED|COMPLETING|CONFIGURING|DEADLINE|FAILED|LAUNCH_FAILED|NODE_FAIL"
    r"|OUT_OF_MEMORY|PENDING|PREEMPTED|RECONFIG_FAIL|REQUEUED|REQUEUE_FED|REQUEUE_HOLD|RESIZING|REVOKED|RUNNING"
    r"|SIGNALING|SPECIAL_EXIT|STAGE_OUT|STOPPED|SUSPENDED|TIMEOUT)( by .+)?"
)
#: States in which a job has not come to an end.
WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT", "REQUEUE_FED"})
AT_WORK = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING"})


@dataclass(frozen=True)
class JobLife:
    """One life of a job. Times in seconds since 1970, None where there is none; amounts by resource.

    Attributes:
        label: the id as users see it: ``12``, a task ``12_3`` of an array, a component ``30+1``.
        number: Slurm's own number of it, of which no other job has the same at that time.
        is_numbered: whether `number` is its own; that of a task may not be listed: it is the array's then.
        elapsed: seconds at work, None if unknown.
        suspended: seconds suspended, None if unknown.
        limit: seconds; infinite = unlimited, None = the partition's.
        requested, allocated: demands by resource (memory in bytes), as asked and as granted.
        words: what else is known: user, account, partition, qos, name, exit code.
    """

    label: str
    number: int
    state: str
    submit: float
    eligible: float | None
    start: float | None
    end: float | None
    elapsed: float | None
    suspended: float | None
    limit: float | None
    requested: Mapping[str, int]
    allocated: Mapping[str, int]
    words: Mapping[str, str]
    is_numbered: bool = True

    @property
    def identity(self) -> int | str:
        """What no other job has at that time."""
        return self.number if self.is_numbered else self.label

    @property
    def ran(self) -> bool:
        """Whether it has come to an end after a start."""
        return self.start is not None and (self.end is not None or self.elapsed is not None)


#: What becomes of records; ``ignored`` ones say something that no log holds.
Kind = Literal["dropped", "repaired", "noted", "ignored"]


@dataclass
class RecordCounter:
    """Records that are left out, mended or remarkable, counted by reason; with ids or lines as examples."""

    _ids: dict[tuple[Kind, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    _firsts: dict[str, str] = field(default_factory=dict)

    def refuse(self, error: Exception, examples: str, number: int) -> None:
        """Count what is no record, under the first error of its kind; `examples`: what numbers are."""
        message = str(error) if isinstance(error, ValueError) else "not as Slurm writes a job"
        # Without what differs from row to row.
        kind = re.sub(r"^['\"].*['\"] (is|names)", r"\1", message, flags=re.DOTALL)
        self.drop(f"no record ({self._firsts.setdefault(kind, message)}; examples are {examples})", number)

    def drop(self, why: str, number: int) -> None:
        self._ids["dropped", why].append(number)

    def count_repaired(self, why: str, number: int) -> None:
        self._ids["repaired", why].append(number)

    def note(self, why: str, number: int) -> None:
        self._ids["noted", why].append(number)

    def ignore(self, why: str, number: int) -> None:
        """Count a record that says what no log holds."""
        self._ids["ignored", why].append(number)

    def tally(self) -> dict[str, TallyEntry]:
        return {why: TallyEntry(kind, len(ids), tuple(ids[:3])) for (kind, why), ids in self._ids.items()}


#: Column of `sacct`, in small letters -> what it is called among a life's words.
WORDS = {
    "user": "user",
    "account": "account",
    "partition": "partition",
    "qos": "qos",
    "jobname": "name",
    "exitcode": "exit_code",
    "reason": "reason",
    "cluster": "cluster",
    "workdir": "directory",
    "submitline": "command",
    "constraints": "constraints",
    "reservation": "reservation",
    "licenses": "licenses",
    "nodelist": "node_list",
}
#: Columns without which nothing can be said of a job.
NEEDED = ("jobid", "state", "submit", "start")
#: Columns that are read, besides those of `WORDS`.
READ = frozenset(
    (
        *("jobid", "jobidraw", "state", "submit", "eligible", "start", "end", "elapsedraw", "elapsed"),
        *(
            "suspended",
            "timelimitraw",
            "timelimit",
            "reqtres",
            "alloctres",
            "reqnodes",
            "nnodes",
            "allocnodes",
        ),
        *("reqcpus", "ncpus", "alloccpus", "reqmem", "reqgres", "allocgres", "nodelist", "uid"),
    )
)
#: Columns that users fill with any text.
FREE = frozenset(
    (
        *("jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "wckey", "extra"),
        *("constraints", "stdin", "stdout", "stderr"),
    )
)


def life(cells: Mapping[str, str], zone: tzinfo) -> JobLife:
    """Return the life that a row tells of; ValueError: a cell is not what its column holds.

    `cells`: column of `sacct`, in small letters -> text; any but `NEEDED` may be missing. `zone`: of dates.
    """
    state = STATES.fullmatch(cells["state"].rstrip("+"))
    if not state:
        raise ValueError(f"{cells['state'][:40]!r} is no state of a job")
    label, elapsed = cells["jobid"], cells.get("elapsedraw") or cells.get("elapsed")
    submit = values.instant(cells["submit"], zone)
    if submit is None:
        raise ValueError("it was never submitted")
    requested = _requested(cells)
    number, is_numbered = _number(cells.get("jobidraw") or label)
    return JobLife(
        label=label,
        number=number,
        is_numbered=is_numbered,
        state=state[1],
        submit=submit,
        eligible=values.instant(cells.get("eligible", ""), zone),
        start=values.instant(cells["start"], zone),
        end=values.instant(cells.get("end", ""), zone),
        elapsed=values.duration(elapsed) if elapsed else None,
        suspended=values.duration(cells["suspended"]) if cells.get("suspended") else None,
        limit=values.limit(cells.get("timelimitraw") or cells.get("timelimit", ""), minutes=True),
        requested=requested,
        allocated=_allocated(cells, requested),
        words=_words(cells),
    )


def _words(cells: Mapping[str, str]) -> dict[str, str]:
    words = {WORDS[name]: text for name, text in cells.items() if name in WORDS and text != "(null)"}
    words["user"] = words.get("user") or cells.get("uid", "")
    return {word: text for word, text in words.items() if text}


def _number(text: str) -> tuple[int, bool]:
    """Return a job's number and whether it is its own, or else its array's; ValueError: it is none."""
    match = re.fullmatch(r"(\d{1,18})(_\d+|_\[[^\]]*\]|\+\d+)?", text, re.ASCII)
    if not match:
        raise ValueError(f"{text[:40]!r} is no id of a job")
    return int(match[1]), not match[2]


def _whole(cells: Mapping[str, str], *names: str) -> int:
    """Return the first of some cells that is filled, as a whole number; 0 if none is."""
    text = next((cells[name] for name in names if cells.get(name)), "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def _requested(cells: Mapping[str, str]) -> dict[str, int]:
    amounts = values.resources(cells.get("reqtres", ""))
    plain = {"nodes": _whole(cells, "reqnodes", "nnodes"), "cores": _whole(cells, "reqcpus", "ncpus")}
    amounts = {name: number for name, number in plain.items() if number} | amounts
    amounts = values.generic(cells.get("reqgres", ""), times=max(amounts.get("nodes", 1), 1)) | amounts
    return _memory(cells, amounts) | amounts


def _allocated(cells: Mapping[str, str], requested: Mapping[str, int]) -> dict[str, int]:
    amounts = values.resources(cells.get("alloctres", ""))
    plain = {"nodes": _whole(cells, "allocnodes", "nnodes"), "cores": _whole(cells, "alloccpus", "ncpus")}
    named = cells.get("nodelist", "")
    if not plain["nodes"] and named and named != "None assigned":
        plain["nodes"] = sum(1 for _ in values.node_names(named))
    amounts = {name: number for name, number in plain.items() if number} | amounts
    amounts = values.generic(cells.get("allocgres", "")) | amounts
    return amounts and _memory(cells, amounts, requested) | amounts


def _memory(cells: Mapping[str, str], *demands: Mapping[str, int]) -> dict[str, int]:
    """Return the memory that was asked for (ReqMem), of so many nodes or cores, unless the first has it."""
    text = cells.get("reqmem", "")
    if text in ("", "?") or "main_memory" in demands[0]:
        return {}
    nodes, cores = (next((of[name] for of in demands if name in of), 1) for name in ("nodes", "cores"))
    size = values.amount(text, nodes, cores)
    return {"main_memory": size} if size else {}
