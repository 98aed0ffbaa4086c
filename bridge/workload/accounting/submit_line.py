"""What a line of sbatch, salloc or srun asks for where `sacct` has no column: SubmitLine, parsed.

Options in the job's script (``#SBATCH``) are not in it.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

#: Short options -> long ones; and short ones that have no value.
_SHORT = {
    "n": "ntasks",
    "N": "nodes",
    "c": "cpus-per-task",
    "L": "licenses",
    "d": "dependency",
    "b": "begin",
    "a": "array",
    "w": "nodelist",
    "x": "exclude",
    "C": "constraint",
    "H": "hold",
    "G": "gpus",
    "P": "dependency",
    "S": "core-spec",
}
_BARE = frozenset("HOQWhvksVKZX")
#: Long options without a value, unless it follows behind ``=``.
_FLAGS = frozenset(
    (
        *("exclusive", "hold", "requeue", "no-requeue", "parsable", "overcommit", "oversubscribe", "share"),
        *("spread-job", "contiguous", "test-only", "verbose", "quiet", "wait", "no-kill", "ignore-pbs"),
        *(
            "reboot",
            "use-min-nodes",
            "get-user-env",
            "nice",
            "propagate",
            "help",
            "usage",
            "version",
            "wrap-up",
        ),
        *("no-shell", "no-bell", "bell", "pty", "label", "unbuffered", "disable-status", "preserve-env"),
        *(
            "multi-prog",
            "no-allocate",
            "immediate",
            "kill-command",
            "stepmgr",
            "resv-ports",
            "join",
            "slurmd-debug",
        ),
    )
)
_NOW = re.compile(r"now(?:\+(?P<count>\d{1,9})(?P<unit>[a-z]*))?", re.ASCII)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?", re.ASCII)


@dataclass(frozen=True)
class SubmitOptions:
    """What a line of submission asks for; empty or None where it says nothing.

    Attributes:
        nodes, tasks, cores_per_task: numbers; of a range of nodes its lower end.
        is_range: whether nodes are a range.
        tasks_per_node: whether the line says how many tasks a node has.
        array_limit: tasks of its array that may run at one time.
        begin: as written, see `begin_of`.
        exclusive: whole nodes.
        hold: submitted as held.
    """

    nodes: int | None = None
    is_range: bool = False
    tasks: int | None = None
    cores_per_task: int | None = None
    tasks_per_node: bool = False
    licenses: str = ""
    dependency: str = ""
    begin: str = ""
    exclusive: bool = False
    array_limit: int | None = None
    nodelist: str = ""
    exclude: str = ""
    constraint: str = ""
    hold: bool = False


def parse_submit_line(line: str) -> SubmitOptions:
    """Return what a line asks for; what cannot be read in it says nothing."""
    options = dict(_options(line))
    nodes, is_range = _nodes(options.get("nodes", ""))
    limit = re.search(r"%(\d{1,9})$", options.get("array", ""))
    return SubmitOptions(
        nodes=nodes,
        is_range=is_range,
        tasks=_number(options.get("ntasks", "")),
        cores_per_task=_number(options.get("cpus-per-task", "")),
        tasks_per_node="ntasks-per-node" in options,
        licenses=options.get("licenses", ""),
        dependency=options.get("dependency", ""),
        begin=options.get("begin", ""),
        exclusive="exclusive" in options,
        array_limit=int(limit[1]) if limit else None,
        nodelist=options.get("nodelist", ""),
        exclude=options.get("exclude", ""),
        constraint=options.get("constraint", ""),
        hold="hold" in options,
    )


def _options(line: str) -> Iterator[tuple[str, str]]:
    """Yield the options before the script by their long names; the last one of a name counts."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    words = words[1:]
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if word == "--" or not word.startswith("-") or word == "-":
            return
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name not in _FLAGS:
                value, at = (words[at] if at < len(words) else ""), at + 1
            yield name, value
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            name = _SHORT.get(letter, letter)
            if letter in _BARE:
                yield name, ""
                continue
            if not letters:
                letters, at = (words[at] if at < len(words) else ""), at + 1
            yield name, letters.removeprefix("=")
            break


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def _nodes(text: str) -> tuple[int | None, bool]:
    """Return the least number of nodes, and whether there is another one; 1k is 1024."""
    match = re.fullmatch(r"(\d{1,9})(k?)(?:-(\d{1,9})(k?))?", text, re.ASCII)
    if not match:
        return None, False
    least = int(match[1]) * (1024 if match[2] else 1)
    most = least if match[3] is None else int(match[3]) * (1024 if match[4] else 1)
    return least, most != least


def begin_of(text: str, submit: float, zone: tzinfo) -> float | None:
    """Return the time of ``--begin``, s since 1970; None: it is of a form that is not read.

    Read are dates, ``now+2hours`` and ``16:00``, the next one after `submit`.
    """
    if match := _NOW.fullmatch(text):
        unit = match["unit"] or ""
        if unit[:1] not in _UNITS:
            return None
        return submit + int(match["count"] or 0) * _UNITS[unit[:1]]
    if _DATE.fullmatch(text):
        try:
            return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()
        except (ValueError, OverflowError):
            return None
    if match := _CLOCK.fullmatch(text):
        here = datetime.fromtimestamp(submit, zone)
        try:
            time = here.replace(
                hour=int(match[1]), minute=int(match[2]), second=int(match[3] or 0), microsecond=0
            )
        except ValueError:
            return None
        return (time if time.timestamp() >= submit else time + timedelta(days=1)).timestamp()
    return None
