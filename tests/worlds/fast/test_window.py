"""A replay through a small window of the log decides as one that holds the whole log."""

from dataclasses import replace

import numpy as np
import pytest
from small_jobs import make_jobs, prepared, random_rows

from bridge.scheduler.lookahead import Lookahead
from bridge.scheduler.protocol import Policy
from bridge.worlds.fast import replay as window
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay

FIELDS = ("start", "end", "how", "past", "reserved", "serial")


LENGTHS = pytest.mark.parametrize("length", [1, 7, 64])


def same(p: Scenario, length: int, monkeypatch: pytest.MonkeyPatch) -> Schedule:
    whole = replay(p)
    monkeypatch.setattr(window, "LENGTH", length)
    done: list[int] = []
    found = replay(p, done.append)
    for name in FIELDS:
        assert getattr(found, name).tolist() == getattr(whole, name).tolist(), name
    assert done == sorted(done)
    return found


@LENGTHS
@pytest.mark.parametrize("rules", ["standard", "cqsim"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3", "slurm"])
def test_every_rule(
    order: str, backfill: str, rules: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    rows = random_rows(rng, 400, span=2_000, run=60, slack=200, nodes=9, more=3)
    users = rng.integers(0, 5, 400).tolist()
    p = prepared(make_jobs([row[:4] for row in rows], [10], users=users), Policy(order, backfill), rules)
    found = same(p, length, monkeypatch)
    assert (found.end - found.start == p.jobs.run).all()


@LENGTHS
def test_more_jobs_at_one_instant_than_the_window_holds(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(100 * (k // 150), 5 + k % 7, 20, 1 + k % 3) for k in range(450)]
    same(prepared(make_jobs(rows, [4]), Policy("sjf", "easy")), length, monkeypatch)


@LENGTHS
def test_the_schedgym_family_overtakes_jobs_that_have_left(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random_rows(np.random.default_rng(3), 300, span=900, run=50, slack=100, nodes=5, more=2)
    found = same(
        prepared(make_jobs([row[:4] for row in rows], [8]), Policy("f1", "easy"), "schedgym"),
        length,
        monkeypatch,
    )
    assert (found.past >= 0).any()


@LENGTHS
def test_an_order_in_python_sees_all_jobs(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(k, 10, 10, 1 + k % 3) for k in range(100)]
    p = prepared(make_jobs(rows, [4]), Policy("lookahead(sjf)", "easy"))
    order = replace(p.compiled.order, lookahead=Lookahead(arrivals=60.0))
    same(replace(p, compiled=replace(p.compiled, order=order)), length, monkeypatch)
