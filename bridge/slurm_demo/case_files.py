"""Write a recorded case: the folder that `bridge slurm case` plays."""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.scheduler.slurm.request_words import tasks_listed, tasks_of
from bridge.slurm_demo.case_log import CaseLog, LoggedRun, read_log
from bridge.slurm_demo.scenario import RecordingScenario
from bridge.worlds.fast.slurm.requests import options_of

_COLUMNS = (
    *("job", "episode", "submit", "submit_ms", "eligible", "start", "start_ms", "end", "end_ms", "free_ms"),
    *("partition", "nodes", "state", "priority", "by", "reasons"),
)


@dataclass
class JobLook:
    """What looks at the queue have of one job: its last state, and since when it waited for which reason."""

    state: str = ""
    eligible: float | None = None
    priority: str = ""
    reasons: list[tuple[float, str]] = field(default_factory=list)


@dataclass
class Notes:
    """What a recording notes besides slurmctld's log.

    Attributes:
        epoch: seconds since 1970 of time 0.
        ids: label -> id.
        refused: label -> what sbatch said.
        commands: when each was to be given, when it returned, and its words.
        looks: id as slurmctld logs it -> what was seen.
        suspended: when a job was seen to be suspended, or to go on: its id and state.
    """

    epoch: int
    ids: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    commands: list[tuple[float, float, str]] = field(default_factory=list)
    looks: dict[str, JobLook] = field(default_factory=dict)
    suspended: list[tuple[float, str, str]] = field(default_factory=list)

    def look(self, time: float, line: str) -> bool:
        """Note what a line of `scontrol -o show job` says; tell whether that job is still to end."""
        words = dict(re.findall(r"(\w+)=(\S*)", line))
        state = words.get("JobState", "")
        reason = (re.search(r" Reason=(.*?) Dependency=", line) or ["", ""])[1]
        for job in _ids_of(words):
            look = self.looks.setdefault(job, JobLook())
            if look.state != state and "SUSPENDED" in (look.state, state):
                self.suspended.append((time, job, state))
            look.state = state
            if state == "PENDING":
                look.priority = words.get("Priority", "")
                if not look.reasons or look.reasons[-1][1] != reason:
                    look.reasons.append((time, reason))
            if (stamp := words.get("EligibleTime", "")).isdecimal():  # seconds, as Slurm's clients are told
                look.eligible = float(stamp) - self.epoch
        return state in ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED")


def _ids_of(words: dict[str, str]) -> list[str]:
    if offset := words.get("HetJobOffset"):
        return [f"{words['HetJobId']}+{offset}"]
    if text := words.get("ArrayTaskId"):
        return [f"{words['ArrayJobId']}_{task}" for task in tasks_listed(text)]
    return [words["JobId"]]


def write_case(
    scenario: RecordingScenario, notes: Notes, text: str, out: Path, factor: float, slurm: str
) -> None:
    """Write a case's folder from the log's text; BridgeError: there is such a folder."""
    if out.exists():
        raise BridgeError("is there already", where=str(out), remedy="Give a new folder.")
    log = read_log(text)
    out.mkdir(parents=True)
    (out / "README").write_text("\n".join(scenario.about) + "\n", encoding="utf-8")
    about = {"epoch_of_time_0": notes.epoch, "time_factor": factor, "slurm": slurm}
    (out / "case.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
    (out / "cluster.conf").write_text("\n".join(scenario.conf) + "\n", encoding="utf-8")
    if scenario.accounting:
        (out / "assoc.txt").write_text("\n".join(scenario.accounting) + "\n", encoding="utf-8")
    rows = [job.row() for job in scenario.jobs if job.time <= scenario.end]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    _write(out / "jobs.csv", columns, ([row.get(name, "") for name in columns] for row in rows))
    if notes.commands:
        commands = ((f"{at:g}", f"{back:.1f}", words) for at, back, words in notes.commands)
        _write(out / "events.csv", ("time", "real_time", "command"), commands)
    passes = ((f"{time - notes.epoch:.3f}", kind) for time, kind in sorted(log.passes))
    _write(out / "cycles.csv", ("time", "kind"), passes)
    _write(out / "result.csv", _COLUMNS, _results(scenario, notes, log))
    if notes.refused:
        _write(out / "rejected.csv", ("job", "message"), notes.refused.items())
    if notes.suspended:
        labels = {number: label for label, number in notes.ids.items()}
        states = ((f"{time:.1f}", labels.get(job, job), state) for time, job, state in notes.suspended)
        _write(out / "suspended.csv", ("seen_at", "job", "state"), states)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _results(scenario: RecordingScenario, notes: Notes, log: CaseLog) -> list[list[str]]:
    rows = []
    for job in scenario.jobs:
        if job.label in notes.refused:
            rows.append([job.label, "0", *[""] * 10, "REJECTED", "", "", ""])
            continue
        number = notes.ids.get(job.label)
        if number is None:
            continue
        components = options_of(job.row())
        if len(components) > 1:
            suffixes = [f"+{k}" for k in range(len(components))]
        elif array := components[0].get("array"):
            suffixes = [f"_{task}" for task in tasks_of(array)[0]]
        else:
            suffixes = [""]
        for suffix in suffixes:
            own, alone = number + suffix, suffix in ("", "+0") or suffix.startswith("_")
            submit = log.submitted.get(number) if alone else None
            rows += _episodes(job.label + suffix, own, submit, notes, log)
    return rows


def _episodes(label: str, own: str, submit: float | None, notes: Notes, log: CaseLog) -> list[list[str]]:
    """Return a row for each run of a job, and one if it waits at the end."""
    look, runs = notes.looks.get(own, JobLook()), list(log.runs.get(own, []))
    requeues = log.requeued.get(own, [])
    rest: list[LoggedRun | None] = list(runs)
    if not runs or len(requeues) >= len(runs):
        rest.append(None)
    reasons = ";".join(f"{reason}@{time:.0f}" for time, reason in look.reasons)
    rows = []
    for episode, run in enumerate(rest):
        is_last = episode == len(rest) - 1
        came = submit if not episode else requeues[min(episode, len(requeues)) - 1] if requeues else submit
        times = [""] * 5
        if run is not None:
            times = [*_both(run.start, notes), *(_both(run.end, notes) if run.end else ("", ""))]
            times.append(_relative(run.free, notes) if run.free else "")
        state = look.state if is_last else "REQUEUED"
        eligible = f"{look.eligible:.0f}" if is_last and look.eligible is not None else ""
        first = [label, str(episode), "" if came is None else f"{came - notes.epoch:.0f}"]
        first.append("" if submit is None else _relative(submit, notes))
        last = [run.partition, run.nodes] if run is not None else ["", ""]
        by = run.by if run is not None else ""
        rows.append([*first, eligible, *times, *last, state, look.priority, by, reasons if is_last else ""])
    return rows


def _relative(time: float, notes: Notes) -> str:
    return f"{time - notes.epoch:.3f}"


def _both(time: float, notes: Notes) -> tuple[str, str]:
    return f"{(time - notes.epoch) // 1:.0f}", _relative(time, notes)
