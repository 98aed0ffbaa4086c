"""What fixed rules have in the environments of the authors' public code, to the printed digit.

A rule in the network's place takes the learning out: what is left is the environment. The numbers come from
runs of DIR-LAB/RLBackfilling (1ea8b1a) and DIR-LAB/SchedInspector (8f5f967).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="recipes need PyTorch")

from bridge.env.batch import PackedObservations
from bridge.env.reward import base_costs
from bridge.judge.sequences import SAMPLERS, compute_sequence_metric, sample
from bridge.learn.agent import schedules_by
from bridge.learn.recipe import Recipe
from bridge.learn.registry import find_recipe
from bridge.study.fixed_rules import BackfillRule, FixedRule, RejectRule
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.fast.episode import Scenario, prepare
from bridge.worlds.fast.replay import replay_sequences

Log = Callable[[str], Workload]

FILES = {
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln",
    "HPC2N": "HPC2N-2002-2.2-cln",
    "Lublin-1": "lublin_256",
    "Lublin-2": "lublin_256_new2",
}
SEEDS = {"SDSC-SP2": 29, "Lublin-1": 40, "Lublin-2": 17}
FIRST, SHORTEST = BackfillRule("0"), BackfillRule("-t")
BLOCKED, OR_LARGE = RejectRule(("1 - fits",)), RejectRule(("1 - fits", "n - free/2"))


class Counted:
    """A rule that counts the decisions that it answers."""

    def __init__(self, rule: FixedRule) -> None:
        self.rule, self.decisions = rule, 0

    def __call__(self, view: PackedObservations) -> np.ndarray:
        self.decisions += len(view.offsets) - 1
        return self.rule(view)


def code(policy: str, order: str, rule: FixedRule) -> Recipe:
    """Return the setting `code` of a policy, with an order and a rule's view in place of its own."""
    recipe = find_recipe(policy, "code")
    assert isinstance(recipe, Recipe)
    return replace(recipe, setup=replace(recipe.setup, order=order), encoder=rule.encoder())


def means(
    scenario: Scenario, rule: FixedRule, starts: np.ndarray, length: int, metrics: tuple[str, ...]
) -> tuple[list[float], int]:
    """Return the means of metrics over sequences that a rule has decided, and how often it was asked."""
    counted = Counted(rule)
    played = list(schedules_by(rule.encoder().compile({}), counted, scenario, starts, length))
    values = [
        [compute_sequence_metric(scenario, s, int(first), m) for s, first in zip(played, starts, strict=True)]
        for m in metrics
    ]
    return [float(np.mean(of)) for of in values], counted.decisions


@pytest.mark.parametrize(
    ("name", "order", "rule", "expected", "decisions"),
    [
        ("Lublin-1", "fcfs", FIRST, "302.06", 3_920),
        ("Lublin-1", "fcfs", SHORTEST, "107.76", 7_900),
        ("Lublin-1", "sjf", SHORTEST, "36.25", 3_953),
        ("Lublin-2", "fcfs", FIRST, "171.21", 2_287),
        ("Lublin-2", "fcfs", SHORTEST, "180.15", 5_723),
        ("Lublin-2", "sjf", SHORTEST, "106.28", 4_155),
        ("SDSC-SP2", "fcfs", FIRST, "199.70", 3_780),
        ("SDSC-SP2", "fcfs", SHORTEST, "171.49", 6_381),
        ("SDSC-SP2", "sjf", SHORTEST, "98.64", 4_061),
    ],
)
def test_authors_code_of_rlbackfilling(
    name: str, order: str, rule: BackfillRule, expected: str, decisions: int, log: Log
) -> None:
    recipe = code("rlbackfilling", order, rule)
    jobs = recipe.setup.select(log(FILES[name]))
    scenario = recipe.setup.build_scenario(jobs, recipe.policy())
    starts = sample(SAMPLERS["rlbackfilling"], len(jobs), 10, 1024, SEEDS[name])
    (bsld,), asked = means(scenario, rule, starts, 1024, ("bsld",))
    assert (f"{bsld:.2f}", asked) == (expected, decisions)


def test_authors_code_of_rlbackfilling_compares_with_fcfs_and_shortest_first_backfilling(log: Log) -> None:
    recipe = find_recipe("rlbackfilling", "code")
    assert isinstance(recipe, Recipe)
    sjf = replace(recipe, setup=replace(recipe.setup, order="sjf"))
    jobs = recipe.setup.select(log(FILES["Lublin-1"]))
    starts = np.array([300, 1500, 4000, 7777, 9000])
    of_fcfs, of_sjf = (
        base_costs(one.base().build_scenario(jobs), starts, 256, one.reward) for one in (recipe, sjf)
    )
    expected = [62.973118, 65.999142, 178.772414, 191.57026, 24.741703]
    assert np.round(of_fcfs, 6).tolist() == np.round(of_sjf, 6).tolist() == expected


def inspected(recipe: Recipe, jobs: Jobs, *, capped: bool) -> Scenario:
    """Return jobs under the inspector's environment; `capped`: 72 rejections of a job, as at its test."""
    rules, load = recipe.setup.rules()
    rules = replace(rules, uncapped=not capped)
    return prepare(jobs, rules, recipe.policy(), recipe.setup.estimator or rules.estimator, load)


@pytest.mark.parametrize(
    ("name", "rule", "capped", "expected", "utilisation"),
    [
        ("Lublin-1", BLOCKED, True, "109.28", "61.1"),
        ("Lublin-1", BLOCKED, False, "33.44", "60.9"),
        ("HPC2N", BLOCKED, False, "4.62", None),
        ("SDSC-SP2", OR_LARGE, True, "146.96", None),
        ("Lublin-1", OR_LARGE, True, "60.00", None),
    ],
)
def test_authors_code_of_schedinspector(
    name: str, rule: RejectRule, capped: bool, expected: str, utilisation: str | None, log: Log
) -> None:
    recipe = code("schedinspector", "sjf", rule)
    jobs = recipe.setup.select(log(FILES[name]))
    starts = sample(SAMPLERS["schedinspector"], len(jobs), 50, 256, 1)
    scenario = inspected(recipe, jobs, capped=capped)
    (bsld, used), _ = means(scenario, rule, starts, 256, ("bsld", "utilisation"))
    assert f"{bsld:.2f}" == expected
    assert utilisation in (None, f"{100 * used:.1f}")


#: RLBackfilling, Figure 1, on the whole log: actual run times, then up to 5, 10, 20, 40, 100 % more.
FIGURE_1 = {
    "fcfs": "279.5 276.8 275.0 277.0 294.3 316.4",
    "sjf": "106.6 112.1 111.3 110.0 119.8 126.5",
    "f1": "135.0 127.3 135.7 132.0 136.2 153.0",
    "wfp3": "227.6 1643.7 1682.3 1577.9 1722.1 1905.1",
}
NOISE = ("0.05", "0.1", "0.2", "0.4", "1")


@pytest.mark.parametrize(
    "order", ["fcfs", "wfp3", *(pytest.param(o, marks=pytest.mark.slow) for o in ("sjf", "f1"))]
)
def test_authors_code_of_rlbackfilling_on_the_whole_log_of_figure_1(order: str, log: Log) -> None:
    setup = replace(find_recipe("rlbackfilling", "paper").setup, order=order)
    jobs = setup.select(log(FILES["SDSC-SP2"]))

    def bsld(estimator: str) -> float:
        scenario = replace(setup, estimator=estimator).build_scenario(jobs)
        (schedule,) = replay_sequences(scenario, np.array([0]), len(jobs))
        return compute_sequence_metric(scenario, schedule, 0, "bsld")

    noisy = [np.mean([bsld(f"noisy({p}, {draw})") for draw in (1, 2, 3)]) for p in NOISE]
    assert " ".join(f"{mean:.1f}" for mean in [bsld("actual"), *noisy]) == FIGURE_1[order]
