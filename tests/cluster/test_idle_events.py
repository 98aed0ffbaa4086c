"""Events of a calendar that do nothing are named, and priorities that weigh nothing."""

from pathlib import Path

import pytest
from cli_commands import run_bridge

import bridge
from bridge.cluster.check import check_cluster

SITE = """
partitions = [{ name = "work" }]
[[nodes]]
name = "n"
count = 4
[[nodes]]
name = "m"
count = 1
state = "down"
"""
#: Job 1 has the nodes until 100 s; jobs 2 and 3 wait, and come one after the other.
LOG = [(1, 0, 100, 4), (2, 10, 100, 4), (3, 20, 100, 4)]
IDLE = [
    (5, 'event = "up", nodes = ["n"]', "its nodes are up by then"),
    (5, 'event = "drain", nodes = ["m"]', "its nodes are down by then"),
    (5, 'event = "partition_state", partition = "work", state = "up"', "partition 'work' is up by then"),
    (5, 'event = "cancel", job = "999"', "no job that is played has the id '999'"),
    (5, 'event = "hold", job = "x"', "no job that is played has the id 'x'"),
    (15, 'event = "cancel", job = "3"', "job '3' is submitted later, at 20 s"),
    (100, 'event = "cancel", job = "1"', "job '1' has started by then"),
    (150, 'event = "cancel", job = "2"', "job '2' has started by then"),
    (400, 'event = "release", job = "2"', "job '2' has started by then"),
]
BUSY = [
    (5, 'event = "up", nodes = ["ALL"]'),  # m is down
    (6, 'event = "drain", nodes = ["m"]'),
    (7, 'event = "down", nodes = ["m"]'),
    (8, 'event = "up", nodes = ["m"]'),
    (30, 'event = "cancel", job = "3"'),
]


@pytest.fixture(autouse=True)
def _log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i} {s} 0 {t} {n} -1 -1 {n} {t} -1 1 1 1 1 1 1 -1 -1" for i, s, t, n in LOG]
    Path("log.swf").write_text("; MaxNodes: 4\n" + "\n".join(rows) + "\n")


def write_site(*events: tuple[int, str]) -> None:
    calendar = ", ".join(f"{{ time = {time}, {event} }}" for time, event in events)
    Path("site.toml").write_text(f"calendar = [{calendar}]\n{SITE}")


def warnings_of_replay() -> list[str]:
    outcome = run_bridge("replay", "log.swf", "--cluster", "site.toml")
    assert outcome.status == 0
    return [line for line in outcome.err.splitlines() if "calendar" in line]


@pytest.mark.parametrize(("time", "event", "why"), IDLE)
def test_a_replay_names_an_event_that_does_nothing(time: int, event: str, why: str) -> None:
    write_site((time, event))
    kind = event.split('"')[1]
    said = f"calendar[0] ({kind} at {time} s) does nothing: {why}"
    assert warnings_of_replay() == [f"bridge: warning: {said}"]
    with pytest.warns(UserWarning) as caught:
        run = bridge.replay("log.swf", cluster="site.toml")
    assert run.config["idle_events"] == [said]
    assert [text for text in (str(one.message) for one in caught) if "calendar" in text] == [said]


def test_others_are_not_named() -> None:
    write_site(*BUSY)
    assert warnings_of_replay() == []


def test_the_check_of_a_cluster_names_them() -> None:
    write_site(*BUSY, *[(9, event) for _, event, _ in IDLE[:1]])
    found = [one for one in check_cluster(bridge.read_cluster("site.toml")) if "calendar" in one.path]
    assert [(one.severity, one.path, one.what) for one in found] == [
        ("unused", "calendar[5]", "changes nothing: its nodes are up by then")
    ]


@pytest.mark.parametrize(
    ("priority", "is_fcfs"), [("", True), ("age = 1", False), ("tres = { nodes = 2 }", False)]
)
def test_priorities_without_weights_are_named(priority: str, is_fcfs: bool) -> None:
    Path("site.toml").write_text(f"name = 'c'\npriority = {{ {priority} }}\n{SITE}")
    outcome = run_bridge("replay", "log.swf", "--cluster", "site.toml", "--policy", "multifactor+easy")
    said = "order multifactor is fcfs here: all weights in [priority] of cluster 'c' are 0"
    assert (said in outcome.err, outcome.status) == (is_fcfs, 0)
