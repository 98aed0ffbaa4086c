"""The brute-force scheduler of clusters: answers by hand, and `standard` on one exclusive partition."""

from collections.abc import Sequence
from typing import Any

import cluster_micro_cases
import numpy as np
import pytest
import reference
from cluster_micro_cases import MICRO_CASES, REFUSED
from cluster_reference.case_text import format_case, parse_case
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_any_case, draw_case, refused_jobs
from cluster_reference.scheduler import simulate
from cluster_reference.shrink import shrink, without_jobs


@pytest.mark.parametrize("name", MICRO_CASES)
def test_answers_by_hand(name: str) -> None:
    micro = MICRO_CASES[name]
    jobs = simulate(micro.case)["jobs"]
    assert [(job["start"], job["nodes"]) for job in jobs] == micro.answers
    assert {number: jobs[number]["reason"] for number in micro.reasons} == micro.reasons
    case, answers = micro.without_backfilling()
    assert [(job["start"], job["nodes"]) for job in simulate(case)["jobs"]] == answers


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_node_can_hold_is_refused(name: str) -> None:
    assert refused_jobs(REFUSED[name][0]) == {0}


def test_every_row_has_a_case() -> None:
    assert {micro.row for micro in MICRO_CASES.values()} == set(cluster_micro_cases.ROWS)


def plain_case(seed: int, order: str, backfill: str) -> tuple[dict[str, Any], list[reference.Job]]:
    """Return jobs on one exclusive partition of equal nodes, for both references."""
    rng = np.random.default_rng([seed, 38])
    n, nodes = int(rng.integers(1, 30)), int(rng.integers(1, 9))
    submit, run = np.sort(rng.integers(0, 40, n)), rng.integers(1, 9, n)
    request, estimate = run + rng.integers(0, 6, n), run + rng.integers(-3, 6, n)
    case: dict[str, Any] = {
        "order": order,
        "backfill": backfill,
        "nodes": [{"cores": 2}] * nodes,
        "partitions": {"all": {"nodes": list(range(nodes)), "exclusive": True}},
        "jobs": [],
    }
    jobs = []
    for j in range(n):
        demand, length = int(rng.integers(1, nodes + 1)), max(1, int(estimate[j]))
        times = {"submit": int(submit[j]), "run": int(run[j]), "request": int(request[j]), "estimate": length}
        case["jobs"].append({**times, "nodes": demand})
        lengths = [length * reference.SECOND] * 3
        jobs.append(
            reference.Job(
                j, int(submit[j]) * reference.SECOND, int(run[j]) * reference.SECOND, *lengths, (demand,)
            )
        )
    return case, jobs


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("order", ["fcfs", "lcfs", "sjf", "ljf"])
def test_one_exclusive_partition_is_standard(order: str, backfill: str) -> None:
    for seed in range(15):
        case, jobs = plain_case(seed, order, backfill)
        reference.simulate("standard", jobs, [len(case["nodes"])], order, backfill)
        results = simulate(case)["jobs"]
        assert [job["start"] * reference.SECOND for job in results] == [job.start for job in jobs], (
            format_case(case)
        )
        if backfill == "easy":
            reserved = [
                -1 if job["reserved"] is None else job["reserved"] * reference.SECOND for job in results
            ]
            assert reserved == [job.reserved for job in jobs], format_case(case)


def lives_by_instant(lives: Sequence[dict[str, Any]], instant: int) -> list[int]:
    return [life["job"] for life in lives if life["start"] <= instant < life["end"]]


@pytest.mark.parametrize("parts", [PARTS, PARTS + TIMED_PARTS], ids=["untimed", "timed"])
def test_random_cases_end_and_keep_to_their_rules(parts: tuple[str, ...]) -> None:
    """What must hold whatever the rules decide: array limits, licences, singletons, times."""
    for seed in range(30):
        case = draw_case(seed, parts=parts, backfills=("none", "easy", "conservative"))
        result = simulate(case)
        lives = [life for life in result["lives"] if life["end"] > life["start"]]
        for instant in {life["start"] for life in lives}:
            numbers = lives_by_instant(lives, instant)
            assert len(numbers) == len(set(numbers))
            jobs = [case["jobs"][number] for number in numbers]
            for name, count in case.get("licences", {}).items():
                assert sum(job.get("licences", {}).get(name, 0) for job in jobs) <= count
            for job in jobs:
                if "array" in job:
                    tasks = [other for other in jobs if other.get("array") == job["array"]]
                    assert len(tasks) <= job["array_limit"]
                if job.get("depends") == "singleton":
                    same = [o for o in jobs if (o.get("user"), o.get("name")) == (job["user"], job["name"])]
                    assert [o for o in same if o.get("depends") == "singleton"] == [job]
        for job, outcome in zip(case["jobs"], result["jobs"], strict=True):
            if outcome["start"] is not None:
                assert outcome["start"] >= max(job["submit"], job.get("begin", 0), job.get("hold_until", 0))
                assert not job.get("hold")


def test_a_case_is_text_and_back() -> None:
    for seed in range(20):
        case = draw_case(seed, parts=PARTS + TIMED_PARTS)
        assert parse_case(format_case(case)) == case


def test_drawn_cases_fit_the_cluster() -> None:
    for seed in range(20):
        assert refused_jobs(draw_case(seed)) == set()
    assert any(refused_jobs(draw_any_case(seed)) for seed in range(20))


def test_shrinking_keeps_what_fails() -> None:
    """A planted fault: two jobs of one GPU type run at one time."""

    def fails(case: dict[str, Any]) -> bool:
        result = simulate(case)
        gpu = {number for number, job in enumerate(case["jobs"]) if job.get("vector", {}).get("gpus")}
        lives = [life for life in result["lives"] if life["job"] in gpu]
        return any(
            a["start"] < b["end"] and b["start"] < a["end"] for a in lives for b in lives if a is not b
        )

    seed = next(seed for seed in range(200) if fails(draw_case(seed)))
    small = shrink(draw_case(seed), fails)
    assert fails(small)
    assert len(small["jobs"]) <= 3
    assert not any(fails(without_jobs(small, {number})) for number in range(len(small["jobs"])))
