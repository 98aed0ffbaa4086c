"""The audit log, and deciding again from it."""

import json
from pathlib import Path

import pytest
from deciding import rule
from test_slurm_book import wait

from bridge.errors import BridgeError
from bridge.slurm.audit import Audit, policy_of, replay
from bridge.slurm.book import Book, Event


def logged(path: Path) -> None:
    """Write the log of a short run."""
    audit = Audit(path, {"policy": "fcfs+easy", "nodes": 4, "origin": 0.0})
    book = Book(4, rule("fcfs"), 0.0)
    for now, events in (
        (3.0, [wait("1", 1, 3, 100), wait("2", 2, 4, 50), wait("3", 3, 1, 90)]),
        (50.5, [Event("end", 50, "1")]),
        (60.0, [Event("end", 60, "3"), wait("4", 60, 1, 20)]),
    ):
        for event in events:
            book.tell(event)
        audit.passed(now, events, book.decide(now))
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
