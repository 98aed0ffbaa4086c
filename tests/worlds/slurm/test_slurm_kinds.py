"""Agents of every kind of decision in the live world: no job waits for ever, and ended ones are forgotten."""

import heapq
import math
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_policies import rule
from trained_agents import train

from bridge.commands import request
from bridge.commands.request import CommandRequest
from bridge.policy_name import parse_policy
from bridge.scheduler import session
from bridge.worlds.slurm.audit import AuditLog, replay
from bridge.worlds.slurm.live_scheduler import LiveEvent, LivePolicy, LiveScheduler

NODES, JOBS = 16, 150
#: Kind of decision -> how such an agent is trained.
AGENTS = {
    "pick": ("--fast", "rlscheduler"),
    "backfill": ("--fast", "rlbackfilling"),
    "inspect": ("--fast", "schedinspector"),
    "pick and backfill": ("--fast", "sem", "--setting", "atlas"),
    "pick, multi-resource": ("--fast", "mrsch"),
}
RULES = ("lookahead(saf)", "sjf+conservative", "wfp3+easy")


def deciding(policy: str) -> LivePolicy:
    entry: Any = request.scheduler("event")
    return entry.dispatcher_config(CommandRequest((parse_policy(policy),)))[0]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("agents")
    return {
        kind: str(train(folder / kind.replace(" ", "-").replace(",", ""), *words))
        for kind, words in AGENTS.items()
    }


def live(who: LivePolicy, audit: AuditLog) -> tuple[dict[str, float], int]:
    """Play a day of a small machine: jobs come, start, end, and some starts do not come true."""
    draw, book, serial = np.random.default_rng(3), LiveScheduler(NODES, who, 0.0), count()
    queue: list[tuple[float, int, str, str]] = []
    for k in range(JOBS):
        heapq.heappush(queue, (40.0 * k + 1, next(serial), "wait", str(k)))
    starts: dict[str, float] = {}
    most = 0
    while queue or len(starts) < JOBS:
        wake = book.wake_at
        assert queue or wake < math.inf, "jobs wait, and nothing will ever happen again"
        if queue and queue[0][0] <= wake:
            now, _, what, job = heapq.heappop(queue)
        else:
            now, what, job = wake, "wake", ""
        details: dict[str, Any] = {}
        if what == "wait":
            nodes = int(draw.integers(1, NODES // 2))
            details = {"id": int(job) + 1, "nodes": nodes, "length": 600, "submit": now, "user": "u"}
        events = [LiveEvent(what, now, job, details)]
        book.apply_event(events[0])
        decided = book.decide(now)
        audit.write_pass(now, events, decided)
        for key in decided:
            back = draw.random() < 0.1
            starts[key] = now
            heapq.heappush(queue, (now + (2 if back else 300), next(serial), "back" if back else "end", key))
        most = max(most, book.n_jobs_ever)
    return starts, most


@pytest.mark.parametrize("kind", [*AGENTS, *RULES])
def test_who_forgets_the_ended_jobs_decides_the_same(
    kind: str, trained: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = deciding(trained.get(kind, kind))
    if kind == "inspect":  # an agent of a second rejects nearly everything
        who = replace(who, policy=replace(who.policy, retry_after=60.0, max_rejects=5))  # type: ignore[type-var]
    head = {"policy": "", "nodes": NODES, "origin": 0.0}
    audit = AuditLog(tmp_path / "one", head)
    starts, most = live(who, audit)
    audit.close()
    assert len(starts) == JOBS
    assert most >= JOBS
    monkeypatch.setattr(session, "_MET", 20)
    monkeypatch.setattr(session, "_TIMES", 2)
    again, fewer = live(who, AuditLog(None, head))
    assert again == starts
    assert fewer < most
    assert replay(tmp_path / "one", who).differences == ()


def test_an_inspector_is_asked_again_though_nothing_happens(trained: dict[str, str]) -> None:
    who = deciding(trained["inspect"])
    never = replace(who, decider=lambda *_: -1)  # type: ignore[type-var]
    book = LiveScheduler(4, never, 0.0)
    book.apply_event(
        LiveEvent("wait", 5.0, "1", {"id": 1, "nodes": 1, "length": 60, "submit": 5.0, "user": ""})
    )
    assert book.decide(5.0) == []
    assert book.wake_at == 605.0
    book.apply_event(LiveEvent("wake", 605.0))
    assert book.decide(605.0) == []
    assert book.wake_at == 1205.0


def test_a_rule_is_never_to_be_woken() -> None:
    assert LiveScheduler(4, rule("fcfs"), 0.0).wake_at == math.inf
