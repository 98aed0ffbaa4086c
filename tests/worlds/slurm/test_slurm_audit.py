"""The audit log, and deciding again from it."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_policies import rule
from test_slurm_book import wait

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.audit import AuditLog, policy_of, replay
from bridge.worlds.slurm.gate import DiskError
from bridge.worlds.slurm.live_scheduler import LiveEvent, LiveScheduler


def logged(path: Path) -> None:
    audit = AuditLog(path, {"policy": "fcfs+easy", "nodes": 4, "origin": 0.0})
    book = LiveScheduler(4, rule("fcfs"), 0.0)
    for now, events in (
        (3.0, [wait("1", 1, 3, 100), wait("2", 2, 4, 50), wait("3", 3, 1, 90)]),
        (50.5, [LiveEvent("end", 50, "1")]),
        (60.0, [LiveEvent("end", 60, "3"), wait("4", 60, 1, 20)]),
    ):
        for event in events:
            book.apply_event(event)
        audit.write_pass(now, events, book.decide(now))
    audit.write({"time": 61.0, "foreign": "9@1", "why": "asks for gpu"})
    audit.close()


def test_the_same_decisions_come_of_it(tmp_path: Path) -> None:
    logged(tmp_path / "audit.jsonl")
    found = replay(tmp_path / "audit.jsonl", rule("fcfs"))
    assert (found.passes, found.starts, found.differences) == (3, 3, ())
    assert policy_of(tmp_path / "audit.jsonl") == "fcfs+easy"


def test_another_policy_decides_otherwise(tmp_path: Path) -> None:
    logged(tmp_path / "audit.jsonl")
    found = replay(tmp_path / "audit.jsonl", rule("lcfs", "none"))
    path = tmp_path / "audit.jsonl"
    assert found.differences == (f"{path}:2: decided 1 3, now 3", f"{path}:4: decided 2, now 4")


def test_several_runs_and_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    logged(path)
    logged(path)
    with path.open("a") as file:
        file.write('{"time": 70, "told": [["wa')
    assert replay(path, rule("fcfs")).passes == 6


def test_digests_chain(tmp_path: Path) -> None:
    for name in ("a", "b"):
        logged(tmp_path / name)
    lines = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert len({line["digest"] for line in lines}) == len(lines)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


@pytest.mark.parametrize("how", ["moved", "cut"])
def test_each_file_of_a_rotated_log_is_one(how: str, tmp_path: Path) -> None:
    path, old = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    audit = AuditLog(path, {"policy": "sjf+easy", "nodes": 4, "origin": 0.0})
    book = LiveScheduler(4, rule("sjf"), 0.0)

    def one(now: float, *events: LiveEvent) -> list[str]:
        for event in events:
            book.apply_event(event)
        decided = book.decide(now)
        audit.write_pass(now, events, decided)
        return decided

    long, short = wait("3", 2, 2, 900), wait("4", 3, 3, 300)
    assert one(3.0, wait("1", 1, 2, 100), wait("2", 1, 1, 10.5), long, short) == ["2", "1"]
    assert not audit.is_rotated()
    if how == "moved":
        path.rename(old)
    else:
        old.write_text(path.read_text())
        path.write_text("")
    assert audit.is_rotated()
    audit.rewrite(4.0, book.snapshot_events())
    assert not audit.is_rotated()
    assert one(11.25, LiveEvent("out", 11, details={"nodes": 1}), LiveEvent("end", 11.25, "2")) == []
    assert one(60.0, LiveEvent("end", 60, "1")) == ["4"]
    audit.close()
    found = [replay(one, rule("sjf")) for one in (old, path)]
    assert [(f.passes, f.starts, f.differences) for f in found] == [(1, 2, ()), (2, 1, ())]
    assert policy_of(path) == "sjf+easy"


def test_a_full_disk_has_a_name_and_a_remedy() -> None:
    with pytest.raises(DiskError, match="No space left on device\n  Make room there") as told:
        AuditLog(Path("/dev/full"), {"policy": "fcfs", "nodes": 4, "origin": 0.0})
    assert told.value.where == "/dev/full"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("hello\n", ":1"),
        ('{"begin": 99, "policy": "fcfs", "nodes": 4, "origin": 0}\n', ":1"),
        ('{"begin": 1, "policy": "fcfs", "nodes": 4, "origin": 0}\n{"told": 5, "decided": []}\n', ":2"),
    ],
)
def test_what_is_no_log(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text(text)
    with pytest.raises(BridgeError) as told:
        replay(path, rule("fcfs"))
    assert told.value.where == f"{path}{where}"


HEAD: dict[str, Any] = {"begin": 1, "policy": "fcfs+easy", "nodes": 4, "origin": 0.0}
JOB: dict[str, Any] = {"id": 1, "nodes": 1, "length": 60, "submit": 1, "user": "a"}
WAIT: list[Any] = ["wait", 1, "1", JOB]
#: The second line of a log that is none, and what is said of it.
DAMAGED: list[tuple[Any, str]] = [
    ([1], "is no line of an audit log: it is not a JSON object"),
    ({"time": 1, "told": 3}, "'told' is missing or not an array"),
    ({"time": "now", "told": []}, "'time' is missing or not a number"),
    ({"time": 1, "told": [], "decided": [{}]}, "'decided' is not an array of strings"),
    ({"time": 1, "told": [], "decided": ["7"]}, "run 7: is not known"),
    (HEAD | {"nodes": -4}, "is no beginning of an audit log: 'nodes' is -4, not 1 to 2147483648"),
    (HEAD | {"nodes": "4"}, "is no beginning of an audit log: 'nodes' is missing or not an integer"),
    (HEAD | {"origin": 1e308}, "is no beginning of an audit log: 'origin' is 1e+308, not a time"),
    (HEAD | {"policy": 7}, "is no beginning of an audit log: 'policy' is missing or not a string"),
    (HEAD | {"begin": 2}, "is no beginning of an audit log: 'begin' is 2, this version of bridge reads 1"),
    *(
        ({"time": 1, "told": events}, what)
        for events, what in (
            ([["wait", 1, "1"]], "an event: it is not [what, time, job, details]"),
            ([["wait", 1, {"a": 1}, {}]], "an event: 'job' is missing or not a string"),
            ([["submit", 1, "1", {}]], "the event 'submit' of job '1': there is no such event"),
            ([["wait", 1, "1", 5]], "the event 'wait' of job '1': 'details' is missing or not an object"),
            ([["wait", "x", "1", JOB]], "the event 'wait' of job '1': 'time' is missing or not a number"),
            ([["wait", 1e300, "1", JOB]], "'time' is 1e+300, not a time in seconds since 1970"),
            ([["wait", 1, "1", {"nodes": 1}]], "'id' is missing or not an integer"),
            ([["wait", 1, "1", JOB | {"id": 10**30}]], "'id' is 1000000000"),
            ([["wait", 1, "1", JOB | {"nodes": -1}]], "'nodes' is -1, not 0 to 2147483648"),
            ([["wait", 1, "1", JOB | {"length": -1}]], "'length' is -1"),
            ([["wait", 1, "1", JOB | {"nodes": 5}]], "can never run"),
            ([WAIT, WAIT], "wait 1: is known already"),
            ([["end", 1, "1", {}]], "end 1: is not known"),
            ([WAIT, ["run", 1, "1", {"start": 1}], ["gone", 1, "1", {}]], "gone 1: runs already"),
            ([WAIT, ["run", 1, "1", {"start": 1}], ["run", 1, "1", {"start": 1}]], "run 1: runs already"),
            ([["out", 1, "", {}]], "'nodes' is missing or not an integer"),
        )
    ),
]


@pytest.mark.parametrize(("line", "what"), DAMAGED)
def test_a_damaged_line_is_one_error_that_names_it(tmp_path: Path, line: object, what: str) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text(f"{json.dumps(HEAD)}\n{json.dumps(line)}\n")
    with pytest.raises(BridgeError) as error:
        replay(path, rule("fcfs"))
    assert error.value.where.startswith(f"{path}:2")
    assert what in f"{error.value.where}: {error.value.what}".partition(":2: ")[2]
