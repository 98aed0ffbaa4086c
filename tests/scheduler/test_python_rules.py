"""Rules in Python: one that says what a built-in says gives its schedule; wrong answers are errors."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from load_examples import example
from small_jobs import make_jobs, prepared, starts
from test_agents import busy_jobs
from test_session import drive

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import Encoder
from bridge.scheduler.names import BACKFILLS
from bridge.scheduler.order import compile_feature, order
from bridge.scheduler.protocol import SWITCHED, Policy
from bridge.scheduler.python_rules import JobsView
from bridge.worlds.fast.replay import replay, replay_sequences


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "_registered", {})
    yield


def sjf(queue: JobsView) -> npt.NDArray[np.float64]:
    return -queue.requested


def wfp3(queue: JobsView) -> npt.NDArray[np.float64]:
    return (queue.waited / queue.requested) ** 3 * queue.nodes


def first(candidates: JobsView) -> int:
    assert len(candidates) > 0
    return 0


POOLED = [name for name, rules in SWITCHED.items() if not rules.needs_cluster]
RULES = {"sjf": sjf, "wfp3": wfp3}


@pytest.mark.parametrize("rules", POOLED)
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("name", RULES)
def test_an_order_in_python_gives_the_built_in_schedule(name: str, backfill: str, rules: str) -> None:
    if backfill not in SWITCHED[rules].backfills or (name == "wfp3" and rules.startswith("schedgym")):
        pytest.skip("the protocol has no such rule, or one of its own by this name")
    plugins.register("order", "mine", RULES[name])
    jobs = busy_jobs(1)
    expected = replay(prepared(jobs, Policy(name, backfill), rules))
    found = replay(prepared(jobs, Policy("mine", backfill), rules))
    assert (found.start == expected.start).all()
    assert (found.past == expected.past).all()


@pytest.mark.parametrize("rules", POOLED)
@pytest.mark.parametrize("name", ["fcfs", "wfp3", "mine"])
def test_a_backfilling_rule_in_python_gives_the_built_in_schedule(name: str, rules: str) -> None:
    if SWITCHED[rules].lone_by_easy:
        pytest.skip("the protocol decides about a lone candidate itself")
    plugins.register("order", "mine", sjf)
    plugins.register("backfill", "first-fit", first)
    jobs = busy_jobs(2)
    expected = replay(prepared(jobs, Policy(name, "easy"), rules))
    found = replay(prepared(jobs, Policy(name, "first-fit"), rules))
    assert (found.start == expected.start).all()


@pytest.mark.parametrize(("name", "backfill"), [("mine", "conservative"), ("wfp3", "first-fit")])
def test_rules_in_python_decide_in_the_detailed_world_alike(name: str, backfill: str) -> None:
    plugins.register("order", "mine", wfp3)
    plugins.register("backfill", "first-fit", first)
    p = prepared(busy_jobs(3), Policy(name, backfill))
    assert drive(p) == replay(p).start.tolist()


def test_sequences_are_replayed_under_rules_in_python() -> None:
    plugins.register("order", "mine", sjf)
    jobs, where = busy_jobs(4), np.array([0, 7, 20])
    expected = replay_sequences(prepared(jobs, Policy("sjf", "easy")), where, 30)
    found = replay_sequences(prepared(jobs, Policy("mine", "easy")), where, 30)
    assert all((a.start == b.start).all() for a, b in zip(expected, found, strict=True))


#: Job 2 is blocked until 10; 3 and 4 fit behind it, 5 would delay it.
ROWS = [(0, 10, 10, 6), (1, 5, 5, 8), (2, 4, 4, 2), (2, 8, 8, 2), (2, 20, 20, 2)]


def test_what_a_backfilling_rule_sees_and_may_choose() -> None:
    seen: list[JobsView] = []

    def last(candidates: JobsView) -> int | None:
        seen.append(candidates)
        return len(candidates) - 1 if len(seen) == 1 else None

    plugins.register("backfill", "last", last)
    assert starts(ROWS, 8, backfill="last") == [0, 10, 15, 2, 15]
    view = seen[0]
    assert view.id.tolist() == [3, 4]
    expected = ([2, 2], [4, 8], [0, 0])
    assert (view.submitted.tolist(), view.requested.tolist(), view.waited.tolist()) == expected
    assert (view.nodes.tolist(), view.demand.tolist()) == ([2, 2], [[2], [2]])
    assert (view.now, view.free.tolist(), view.gap, view.extra.tolist()) == (2.0, [2], 8.0, [0])

    last.guard = False  # type: ignore[attr-defined]
    seen.clear()
    assert starts(ROWS, 8, backfill="last") == [0, 22, 27, 27, 2]
    assert seen[0].id.tolist() == [3, 4, 5]


@pytest.mark.parametrize("wrong", ["no", 2, -1, 1.5, [0]])
def test_wrong_choices_are_refused(wrong: object) -> None:
    plugins.register("backfill", "wrong", lambda _: wrong)
    with pytest.raises(BridgeError, match="is no place among 2 jobs"):
        starts(ROWS, 8, backfill="wrong")


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ([1.0], r"scores of the shape \(1,\) for 2 jobs"),
        (None, "returned scores of the shape|returned no scores"),
        ("high", "returned no scores"),
        ([1.0, np.nan], "the score of job 3 is not a finite number"),
    ],
)
def test_wrong_scores_are_refused(wrong: object, what: str) -> None:
    def bad(queue: JobsView) -> object:
        return np.zeros(len(queue)) if len(queue) < 2 else wrong

    plugins.register("order", "wrong", bad)
    with pytest.raises(BridgeError, match=what) as caught:
        starts([(0, 10, 10, 6), (1, 5, 5, 8), (2, 4, 4, 8)], 8, order="wrong", backfill="none")
    assert caught.value.where == "order bad"


def test_a_plug_in_may_be_an_expression() -> None:
    plugins.register("order", "lightest", "-t*n")
    plugins.register("feature", "node_hours", "t * n / 3600")
    assert order("lightest").expression == "-t*n"
    own = compile_feature("2 * node_hours + 1", {})
    assert own.tolist() == compile_feature("2 * (t * n / 3600) + 1", {}).tolist()
    assert compile_feature("node_hours", {}).tolist() == compile_feature("t * n / 3600", {}).tolist()
    plugins.register("feature", "endless", "endless + 1")
    with pytest.raises(BridgeError, match="nested too deeply"):
        compile_feature("endless", {})
    with pytest.raises(BridgeError, match="unknown variable 'node_hours'"):
        order("node_hours + 1")


def test_an_estimator_in_python() -> None:
    plugins.register("estimator", "half", lambda jobs: jobs.requested / 2)
    believed = prepared(make_jobs(ROWS, [8]), Policy(), estimator="half").estimate
    assert (believed.waiting / 1e6).tolist() == [5, 2.5, 2, 4, 10]
    assert not believed.oracle
    for wrong in ([1.0], np.full(5, np.nan), np.zeros(5)):
        plugins.register("estimator", "wrong", lambda _, wrong=wrong: wrong)
        with pytest.raises(BridgeError, match="must be positive seconds"):
            prepared(make_jobs(ROWS, [8]), Policy(), estimator="wrong")


@pytest.mark.parametrize(
    "policy",
    [
        Policy("sjff"),
        Policy("a.b:c"),
        Policy(backfill="eazy"),
        Policy(backfill="a.b:c"),
        Policy(candidate_order="mine"),
        Policy(backfill="first-fit", agent=frozenset({"backfill"})),
    ],
)
def test_what_nobody_brings_or_does_not_go_together(policy: Policy) -> None:
    plugins.register("order", "mine", sjf)
    plugins.register("backfill", "first-fit", first)
    with pytest.raises(BridgeError) as caught:
        prepared(make_jobs(ROWS, [8]), policy)
    names = {policy.order, policy.backfill}
    if names & {"sjff", "eazy"}:
        assert "Did you mean" in caught.value.remedy
    if "a.b:c" in names:
        assert "typed on the command line, never from a file" in caught.value.remedy


def test_agents_learn_beside_compiled_rules_only() -> None:
    plugins.register("order", "mine", sjf)
    jobs = busy_jobs(1)
    p = prepared(jobs, Policy("mine", "easy", agent=frozenset({"backfill"})))
    with pytest.raises(BridgeError, match="rules of the compiled core only") as caught:
        Batch(p, Encoder("backfill", {"n": "n"}, window=8).compile({}), 1, len(jobs))
    assert caught.value.where == "order 'mine'"


def test_the_example() -> None:
    own = example("own_rules")
    plugins.register("order", "smallest", own.smallest_first)
    plugins.register("backfill", "longest", own.longest_that_fits)
    plugins.register("estimator", "half", own.half_the_request)
    plugins.register("feature", "node_hours", own.NODE_HOURS)
    jobs = busy_jobs(5)
    expected = replay(prepared(jobs, Policy("saf", "easy")))
    assert (replay(prepared(jobs, Policy("smallest", "easy"))).start == expected.start).all()
    assert len(replay(prepared(jobs, Policy("smallest", "longest"))).start) == len(jobs)
    assert prepared(jobs, Policy(), estimator="half").estimate.waiting.min() == 60 * 10**6
    compile_feature("log(node_hours + 1)", {})
