"""Fixed rules of inspection: their answers by hand, and what they are worth on the papers' own sequences."""

from collections.abc import Callable

import numpy as np
import pytest
from handmade import make_jobs

from bridge.env.batch import View
from bridge.fast.setup import Setup
from bridge.judge.sequences import SAMPLERS, sample, values_of
from bridge.learn.agent import schedules_by
from bridge.scheduler.protocol import Policy
from bridge.workload.table import Workload
from papers.schedinspector.rules import RULES, Rule


def answers(rule: Rule, rows: list[list[float]]) -> list[int]:
    seen = np.array(rows, np.float32)
    return rule(
        View(seen, np.arange(len(rows) + 1), np.arange(len(rows)), np.zeros((len(rows), 0), np.float32))
    ).tolist()


def test_reject_iff_blocked() -> None:
    rule = RULES["reject-blocked"]
    assert rule.encoder().decision == "inspect"
    assert tuple(rule.encoder().features.values()) == ("1 - fits",)
    assert answers(rule, [[0], [1], [0]]) == [0, 1, 0]


def test_or_larger_than_half_of_the_free_nodes() -> None:
    rule = RULES["reject-blocked-or-large"]
    assert tuple(rule.encoder().features.values()) == ("1 - fits", "n - free/2")
    # fits with room; fits and takes exactly half; fits and takes more; does not fit
    assert answers(rule, [[0, -2], [0, 0], [0, 0.5], [1, 3]]) == [0, 0, 1, 1]


@pytest.mark.parametrize(("max_rejects", "starts"), [(72, [0, 100, 20]), (0, [0, 100, 100])])
def test_a_rule_in_the_schedule_of_three_jobs(max_rejects: int, starts: list[float]) -> None:
    """4 nodes, shortest first. 1 takes 3 of them until 100; 2 comes at 10 and asks for 2; 3, shorter, for 1.

    SchedGym waits for its pick: at 10 that is 2, so that 3 waits with it until 100. Where the blocked pick is
    rejected, 3 is the next one, at 20, and fits.
    """
    jobs = make_jobs([(0, 100, 100, 3), (10, 50, 50, 2), (20, 10, 10, 1)], [4])
    setup, rule = Setup("sjf", "none", protocol="schedgym", preset="schedinspector"), RULES["reject-blocked"]
    policy = Policy("sjf", "none", agent=frozenset({"inspect"}), max_rejects=max_rejects)
    encoder = rule.encoder().compile({})
    (schedule,) = schedules_by(encoder, rule, setup.prepare(jobs, policy), np.zeros(1, np.int64), 3)
    assert (schedule.start / 1e6).tolist() == starts


def test_lublin_1_under_the_papers_protocol_to_the_printed_digit(log: Callable[[str], Workload]) -> None:
    setup = Setup("sjf", "none", protocol="schedgym", preset="schedinspector")
    jobs = setup.select(log("lublin_256"))
    starts = sample(SAMPLERS["schedinspector"], len(jobs), 50, 256, 1)
    base = values_of(setup.prepare(jobs), starts, 256, "bsld")
    rule = RULES["reject-blocked"]
    policy = Policy("sjf", "none", agent=frozenset({"inspect"}), max_rejects=72, retry_after=600.0)
    prepared, encoder = setup.prepare(jobs, policy), rule.encoder().compile({})

    def play(*arguments: object) -> object:
        return schedules_by(encoder, rule, *arguments)  # type: ignore[arg-type]

    rejecting = values_of(prepared, starts, 256, "bsld", None, play)  # type: ignore[arg-type]
    assert f"{base.mean():.2f}" == "333.20"
    assert f"{rejecting.mean():.2f}" == "109.28"
