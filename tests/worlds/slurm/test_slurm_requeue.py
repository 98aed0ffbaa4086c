"""Speculation and trials on a live machine: jobs that allow it are killed, requeued, and decided again."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_policies import Deciding
from test_slurm_agent import Slurm
from test_slurm_book import wait

from bridge.base.errors import BridgeError
from bridge.scheduler.protocol import Policy
from bridge.worlds.slurm import agent as agents
from bridge.worlds.slurm.agent import SlurmAgent
from bridge.worlds.slurm.audit import replay
from bridge.worlds.slurm.client import HELD, Client, may_requeue
from bridge.worlds.slurm.live_scheduler import LiveEvent, LiveScheduler
from bridge.worlds.slurm.settings import AgentConfig

#: Compiling takes longer; see `worlds/fast/test_actions_without_compiler.py`.
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]


def acting(action: str) -> Deciding:
    return Deciding(Policy("fcfs", "easy", action=action))


def waiting(job: str, time: float, nodes: int, length: float, permits: int = 1) -> LiveEvent:
    event = wait(job, time, nodes, length)
    return replace(event, details={**event.details, "permits": permits})


def test_a_trial_is_stopped_and_comes_again_when_it_waits() -> None:
    book = LiveScheduler(4, acting("trial(300)"), 0.0)
    book.apply_event(waiting("1", 1, 4, 900))
    book.apply_event(waiting("2", 1, 4, 950))
    assert (book.decide(1), book.stopped, book.wake_at) == (["1"], [], 301.0)
    book.apply_event(LiveEvent("wake", 301))
    assert (book.decide(301), book.stopped) == (["2"], ["1"])
    assert "1" not in book  # until Slurm says that it waits
    book.apply_event(waiting("1", 310, 4, 900, permits=0))
    book.apply_event(LiveEvent("end", 320, "2"))
    assert (book.decide(320), book.stopped) == (["1"], [])
    assert book.wake_at == float("inf")  # it was tried


def test_a_speculating_job_gives_way_to_the_head() -> None:
    book = LiveScheduler(4, acting("speculative(600)"), 0.0)
    for event in (waiting("1", 1, 3, 100), waiting("2", 2, 4, 50), waiting("3", 3, 1, 500)):
        book.apply_event(event)
    assert book.decide(3) == ["1", "3"]
    again = LiveScheduler(4, acting("speculative(600)"), 0.0)
    for event in book.snapshot_events():
        again.apply_event(event)
    for one in (book, again):  # a scheduler that is rebuilt knows who speculates
        one.apply_event(LiveEvent("end", 50, "1"))
        assert (one.decide(50), one.stopped) == (["2"], ["3"])
    again.apply_event(LiveEvent("on", 50, "3", {"start": 3}))  # Slurm has refused to requeue it
    again.apply_event(LiveEvent("end", 60, "3"))
    assert again.n_jobs_ever == 4


def test_nobody_permits_it_who_does_not_say_so() -> None:
    book = LiveScheduler(4, acting("speculative(600)"), 0.0)
    for event in (wait("1", 1, 3, 100), wait("2", 2, 4, 50), wait("3", 3, 1, 500)):
        book.apply_event(event)
    assert book.decide(3) == ["1"]


ANSWER = (
    "JobId=7 JobName=Requeue=1 Restarts=0 \n   UserId=u(1) GroupId=g(1) MCS_label=N/A\n   Priority=0 Nice=0\n"
    "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n   Command=/x\n   Comment=a\n"
)


def test_slurm_says_who_may_be_requeued() -> None:
    assert may_requeue(ANSWER)
    assert not may_requeue(ANSWER.replace("   Requeue=1 Restarts=0", "   Requeue=0 Restarts=0"))
    assert not may_requeue(ANSWER.replace("   Requeue=1 Restarts=0", "   Requeue=1 Restarts=1"))


class Requeueing(Slurm):
    """Obeys `scontrol`: releases start jobs where they were pinned, a requeue takes until `settle`."""

    mode = "REQUEUE"
    allows_requeue = Client.allows_requeue

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.pins: dict[str, str] = {}
        self.leaving: list[str] = []
        self.restarts: dict[str, int] = {}
        self.refuses = False
        self.now = 1000.0

    def call(self, *words: str) -> str:
        return f"PartitionName=agent PreemptMode={self.mode} State=UP" if "partition" in words else ""

    def control(self, command: str, _: float = 0) -> str:
        self.said.append(command)
        word, _, label = command.partition(" ")
        if command.startswith("show job"):
            number = self.restarts.get(label.partition(" ")[2], 0)
            own = f"   Requeue=1 Restarts={number} BatchFlag=1\n   AdminComment={HELD} \n   Comment=(null)"
            return f"JobId=1 JobName=x\n{own}"
        if command.startswith("update") and "ReqNodeList=" in command:
            self.pins[command.split()[1].removeprefix("JobId=")] = command.partition("ReqNodeList=")[2]
        elif word == "hold":
            self.rows[label] = replace(self.rows[label], priority=0)
        elif word == "release":
            self.start(label, self.pins[label], int(self.now))
        elif word == "requeuehold":
            if self.refuses:
                return "slurm_requeue error: Requested operation is presently disabled"
            self.leaving.append(label)
            self.restarts[label] = self.restarts.get(label, 0) + 1
        return ""

    def settle(self) -> None:
        """Let the jobs that were requeued wait again."""
        for label in self.leaving:
            self.rows[label] = replace(self.rows[label], state="PENDING", hosts="", start=-1, priority=0)
        self.leaving = []


@pytest.fixture(name="slurm")
def requeueing(monkeypatch: pytest.MonkeyPatch) -> Requeueing:
    slurm = Requeueing()
    monkeypatch.setattr(agents, "POLL", 0.0)
    monkeypatch.setattr(agents, "LOOK", 0.0)
    monkeypatch.setattr(agents.time, "time", lambda: slurm.now)

    class Controlled:
        def __init__(self, _: Any, **_settings: Any) -> None: ...
        def __call__(self, command: str, patience: float = 0) -> str:
            return slurm.control(command, patience)

        def close(self) -> None: ...

    monkeypatch.setattr(agents, "Control", Controlled)
    monkeypatch.setattr(SlurmAgent, "_let_go", lambda _: None)
    return slurm


def beside(slurm: Slurm, action: str, **settings: Any) -> SlurmAgent:
    options = {"partition": "agent", "requeue": True} | settings
    name = f"fcfs+easy+{action}"
    return SlurmAgent(AgentConfig(**options), acting(action), slurm, name)  # type: ignore[arg-type]


def test_a_head_waits_for_the_nodes_of_those_who_give_way(slurm: Requeueing, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    agent = beside(slurm, "speculative(600)", audit=log)
    slurm.submit("1", 3, 100.0)
    slurm.submit("2", 4, 50.0)
    slurm.submit("3", 1, 500.0)
    agent.step()
    agent.step()
    assert {label: row.state for label, row in slurm.rows.items()} == {
        "1": "RUNNING", "2": "PENDING", "3": "RUNNING",
    }  # fmt: skip
    del slurm.rows["1"]
    slurm.now = 1050.0
    for _ in range(3):
        agent.step()
    assert "requeuehold 3" in slurm.said
    assert (slurm.rows["2"].state, agent.tracking.jobs["2@100"].phase) == ("PENDING", "awaiting")
    slurm.settle()
    slurm.now = 1055.0
    agent.step()
    assert slurm.rows["2"].state == "RUNNING"
    assert agent.tracking.jobs["3@100"].phase == "held"
    assert agent.counters.requeued == 1
    del slurm.rows["2"]
    for _ in range(3):
        agent.step()
    assert slurm.rows["3"].state == "RUNNING"
    assert slurm.said.count("requeuehold 3") == 1
    agent.close()
    assert not replay(log, acting("speculative(600)")).differences


def test_who_may_not_be_requeued_runs_on(slurm: Requeueing) -> None:
    agent = beside(slurm, "trial(300)")
    slurm.refuses = True
    slurm.submit("1", 4, 900.0)
    slurm.submit("2", 4, 950.0)
    agent.step()
    slurm.now = 1301.0
    for _ in range(3):
        agent.step()
    assert [row.state for row in slurm.rows.values()] == ["RUNNING", "PENDING"]
    assert slurm.said.count("requeuehold 1") == 1
    del slurm.rows["1"]
    slurm.now = 1400.0
    for _ in range(3):
        agent.step()
    assert slurm.rows["2"].state == "RUNNING"


@pytest.mark.parametrize(
    ("action", "settings", "mode", "message"),
    [
        ("guest(300)", {}, "REQUEUE", "Slurm can kill and requeue jobs only"),
        ("trial(300)", {"requeue": False}, "REQUEUE", "Add --requeue"),
        ("trial(300)", {}, "OFF", "does not allow it"),
        ("trial(300)", {"mode": "shadow"}, "REQUEUE", "shadow kills no job"),
        ("", {}, "REQUEUE", "the policy requeues no job"),
    ],
)
def test_what_nobody_has_allowed_is_refused(
    slurm: Requeueing, action: str, settings: dict[str, Any], mode: str, message: str
) -> None:
    slurm.mode = mode
    with pytest.raises(BridgeError, match=message):
        beside(slurm, action, **settings)
