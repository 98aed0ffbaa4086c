"""The agent without a Slurm: what a shadow would start, one job to a node, and how an agent ends."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_policies import rule
from test_slurm_jobs import ROW

from bridge.base.errors import BridgeError
from bridge.worlds.slurm import agent as agents
from bridge.worlds.slurm.agent import SlurmAgent
from bridge.worlds.slurm.audit import replay
from bridge.worlds.slurm.client import Node, QueueEntry, SlurmUnreachableError
from bridge.worlds.slurm.gate import DiskError
from bridge.worlds.slurm.install import write
from bridge.worlds.slurm.settings import AgentConfig
from bridge.worlds.slurm.tracking import MISSES

NAMES = ("n0", "n1", "n2", "n3")


class Slurm:
    """Stands for Slurm's commands: jobs by label, and who has nodes."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.rows: dict[str, QueueEntry] = {}

    def submit(self, label: str, nodes: int, limit: float) -> None:
        asked = {"nodes": nodes, "cores": nodes, "limit": limit}
        self.rows[label] = replace(ROW, label=label, raw=int(label), priority=9, **asked)  # type: ignore[arg-type]

    def start(self, label: str, hosts: str, start: int) -> None:
        self.rows[label] = replace(self.rows[label], state="RUNNING", hosts=hosts, start=start)

    def nodes(self, _: str) -> dict[str, Node]:
        """Return four nodes; those of running jobs are not idle."""
        used = {name for row in self.rows.values() for name in row.names}
        return {n: Node(n, "allocated" if n in used else "idle", 8, 1000, frozenset()) for n in NAMES}

    def queue(self, _: str = "") -> list[QueueEntry]:
        return list(self.rows.values())

    def reservations(self) -> list[Any]:
        return []

    def call(self, *_: str) -> str:
        return ""


@pytest.fixture(name="slurm")
def fake(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Return an empty machine; the agent looks at every step, and it is the second 1000."""
    monkeypatch.setattr(agents, "POLL", 0.0)
    monkeypatch.setattr(agents, "LOOK", 0.0)
    monkeypatch.setattr(agents.time, "time", lambda: 1000.0)
    return Slurm()


def beside(slurm: Slurm, said: Callable[[str], None] = lambda _: None, **settings: Any) -> SlurmAgent:
    told = AgentConfig(partition="agent", **({"mode": "shadow"} | settings))
    return SlurmAgent(told, rule("sjf"), slurm, "sjf+easy", said)  # type: ignore[arg-type]


def test_no_node_is_promised_twice(slurm: Slurm) -> None:
    agent = beside(slurm)
    slurm.submit("1", 3, 600.0)
    agent.step()
    slurm.submit("2", 2, 60.0)  # shorter, and Slurm has not started the first one yet
    slurm.submit("3", 1, 600.0)
    agent.step()
    assert {job: ours for job, (ours, _) in agent.counters.compared.items()} == {
        "1@100": 1000.0,
        "3@100": 1000.0,
    }
    slurm.start("1", "n[1-3]", 1002)  # on other nodes than here
    agent.step()
    assert "2@100" not in agent.counters.compared
    del slurm.rows["1"]
    for _ in range(MISSES):
        agent.step()
    expected = {"1@100": [1000.0, 1002.0], "2@100": [1000.0, -1.0], "3@100": [1000.0, -1.0]}
    assert agent.counters.compared == expected


def test_nodes_that_slurm_gives_to_another_job_are_gone(slurm: Slurm) -> None:
    agent = beside(slurm)
    slurm.submit("1", 3, 60.0)
    agent.step()
    slurm.submit("2", 4, 600.0)
    slurm.start("2", "n[0-3]", 1001)
    agent.step()
    assert agent.tracking.jobs["1@100"].phase == "held"
    assert agent.counters.compared == {"1@100": [1000.0, -1.0], "2@100": [-1.0, 1001.0]}


def test_what_would_be_over_has_no_nodes(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = beside(slurm)
    slurm.submit("1", 3, 60.0)
    agent.step()
    slurm.submit("2", 4, 600.0)
    agent.step()
    assert "2@100" not in agent.counters.compared
    monkeypatch.setattr(agents.time, "time", lambda: 1061.0)
    agent.step()
    assert agent.counters.compared["2@100"] == [1061.0, -1.0]
    slurm.start("1", "n[0-2]", 1070)
    agent.step()
    assert agent.counters.compared["1@100"] == [1000.0, 1070.0]


def test_jobs_that_ran_before_are_not_compared(slurm: Slurm) -> None:
    slurm.submit("1", 3, 60.0)
    slurm.start("1", "n[0-2]", 900)
    agent = beside(slurm)
    agent.step()
    assert agent.counters.compared == {}


def test_a_job_for_which_no_node_fits_would_not_start(slurm: Slurm) -> None:
    agent = beside(slurm, mode="dry-run")
    slurm.submit("1", 2, 60.0)
    slurm.rows["1"] = replace(slurm.rows["1"], required="n9")
    agent.step()
    assert (agent.counters.starts, agent.tracking.jobs["1@100"].phase) == (0, "blocked")


def test_the_same_comes_of_the_audit_log(slurm: Slurm, tmp_path: Path) -> None:
    agent = beside(slurm, audit=tmp_path / "audit.jsonl")
    for k in range(4):
        slurm.submit(str(k), k + 1, 60.0 * (4 - k))
        agent.step()
    slurm.start("3", "n[0-3]", 1001)
    agent.step()
    agent.close()
    assert replay(tmp_path / "audit.jsonl", rule("sjf")).differences == ()


def test_an_agent_that_cannot_write_its_log_opens_the_gate(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "agent", ["agent"], {})
    said: list[str] = []
    agent = beside(
        slurm, said.append, mode="live", directory=tmp_path / "agent", audit=tmp_path / "audit.jsonl"
    )
    monkeypatch.setattr(agents, "release", lambda *_: 3)

    def full() -> None:
        raise DiskError(tmp_path / "audit.jsonl", OSError(28, "No space left on device"))

    monkeypatch.setattr(agent, "step", full)
    with pytest.raises(DiskError, match=r"audit.jsonl: cannot write: No space left"):
        agent.run(lambda: False)
    assert said == ["the gate is open, and 3 jobs are Slurm's: nothing is decided unrecorded"]
    assert (tmp_path / "agent" / "agent" / "gate_open").exists()


def test_slurmctld_goes_and_comes_back(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    agent = beside(slurm, said.append)
    monkeypatch.setattr(agents.time, "sleep", lambda _: None)
    answers = iter([True, False, False])

    def queue(_: str = "") -> list[QueueEntry]:
        if next(answers):
            raise SlurmUnreachableError("no answer")
        return []

    slurm.queue = queue  # type: ignore[method-assign]
    stops = iter([False, False, False, True])
    agent.run(lambda: next(stops))
    assert said == ["slurmctld is away: no answer", "slurmctld is back"]


def test_kicks_need_their_partition(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    def nodes(partition: str) -> dict[str, Node]:
        if partition == "nosuch":
            raise BridgeError("has no nodes", where=partition)
        return {}

    monkeypatch.setattr(slurm, "nodes", nodes)
    with pytest.raises(BridgeError, match="nosuch"):
        beside(slurm, mode="live", kick="nosuch")
