"""A scenario to record: the lines of a site, and what is submitted and commanded when."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster.imported import mending
from bridge.cluster.slurm_values import node_names
from bridge.worlds.fast.slurm.requests import options_of, parse_options

_REMEDY = "A line is a comment, NAME=VALUE of a slurm.conf, a sacctmgr command, or `SECONDS COMMAND`."
#: Columns that the options of a job go to by themselves; those of a heterogeneous one are `extra`.
_FIRST = ("job", "submit")


@dataclass(frozen=True)
class SbatchLine:
    """A job: seconds of the scenario's clock, label, words of sbatch, and what the script does."""

    time: float
    label: str
    words: tuple[str, ...]
    runtime: str

    @property
    def script(self) -> str:
        """The line that runs for as long as the job is to run."""
        if self.runtime.startswith("fail"):
            return f"sleep {self.runtime.removeprefix('fail') or 0}; exit 1"
        return f"sleep {self.runtime}"

    def row(self) -> dict[str, str]:
        """Return the job's line of jobs.csv."""
        row = {"job": self.label, "submit": f"{self.time:g}", "runtime": self.runtime}
        if ":" in self.words:
            return row | {"extra": shlex.join(self.words)}
        return row | parse_options(self.words)


@dataclass
class RecordingScenario:
    """What `read_scenario` has read: `about` in words, and seconds of the clock at which it is over."""

    name: str
    about: list[str] = field(default_factory=list)
    conf: list[str] = field(default_factory=list)
    accounting: list[str] = field(default_factory=list)
    jobs: list[SbatchLine] = field(default_factory=list)
    commands: list[tuple[float, str]] = field(default_factory=list)
    end: float = float("inf")

    def node_lines(self) -> Iterator[tuple[list[str], str]]:
        """Yield the nodes of each NodeName line, and its other words."""
        for line in self.conf:
            if match := re.match(r"NodeName=(\S+)\s*(.*)", line):
                yield list(node_names(match[1])), match[2]

    @property
    def users(self) -> set[str]:
        """The users whose jobs are submitted."""
        names = (options.get("user", "") for job in self.jobs for options in options_of(job.row()))
        return {name for name in names if name}


def read_scenario(path: Path) -> RecordingScenario:
    """Return the scenario of a file; BridgeError names the line that is none."""
    scenario = RecordingScenario(path.stem)
    labels: set[str] = set()
    for number, text in enumerate(files.read_text(path).splitlines(), start=1):
        line, place = text.strip(), f"{path}:{number}"
        if line.startswith("#"):
            scenario.about += [line.lstrip("# ")] if not scenario.conf else []
        elif line.startswith("sacctmgr "):
            scenario.accounting.append(line)
        elif re.match(r"[A-Za-z]+=", line):
            scenario.conf.append(line)
        elif match := re.fullmatch(r"(-?\d+(?:\.\d+)?)\s+(.+)", line):
            with mending(place):
                _add(scenario, float(match[1]), match[2], labels)
        elif line:
            raise BridgeError(f"{line[:60]!r} belongs to no scenario", where=place, remedy=_REMEDY)
    if not any(scenario.node_lines()) or not scenario.jobs:
        remedy = "State NodeName= and PartitionName= lines, and lines such as `0 sbatch -N1 -t 5 sleep 60`."
        raise BridgeError("has no nodes, or submits no jobs", where=str(path), remedy=remedy)
    scenario.jobs.sort(key=lambda job: job.time)
    scenario.commands.sort(key=lambda one: one[0])
    return scenario


def _add(scenario: RecordingScenario, time: float, text: str, labels: set[str]) -> None:
    words = shlex.split(text)
    if words == ["end"]:
        scenario.end = time
    elif words[0] == "sbatch":
        job = _submission(time, words[1:], len(scenario.jobs))
        if job.label in labels:
            raise ValueError(f"there are two jobs {job.label}")
        labels.add(job.label)
        scenario.jobs.append(job)
    elif words[0] in ("scontrol", "scancel"):
        scenario.commands.append((time, text))
    else:
        raise ValueError(f"{words[0]} is none of sbatch, scontrol, scancel, end")


def _submission(time: float, words: Sequence[str], number: int) -> SbatchLine:
    if len(words) < 2 or words[-2] not in ("sleep", "fail") or not re.fullmatch(r"\d+", words[-1]):
        raise ValueError("a job ends in `sleep SECONDS` or `fail SECONDS`")
    label = f"j{number}"
    kept: list[str] = []
    rest = list(words[:-2])
    while rest:
        word = rest.pop(0)
        if word in ("-J", "--job-name"):
            label = rest.pop(0) if rest else ""
        elif word.startswith("--job-name="):
            label = word.partition("=")[2]
        else:
            kept.append(word)
    if not re.fullmatch(r"[A-Za-z][\w-]*", label):
        raise ValueError(f"{label[:40]!r} is no name of a job")
    runtime = words[-1] if words[-2] == "sleep" else f"fail{words[-1]}"
    job = SbatchLine(time, label, tuple(kept), runtime)
    options_of(job.row())
    return job
