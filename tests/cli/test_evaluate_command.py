"""`bridge evaluate`: sequences computed by hand, published tables to the printed digit, and what is said."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_commands import ROWS, file_names, run_bridge, run_ok, run_refused

from bridge.commands import event
from bridge.judge import sequences

#: The first jobs that seed 1 draws among the small log's sequences of two: 2 and 3, 3 and 4, 4 and 5.
STARTS = [1, 2, 3]


def judged(*words: object) -> dict[str, Any]:
    """Run `bridge evaluate WORDS… --json`."""
    found: dict[str, Any] = json.loads(run_ok("evaluate", *words, "--json"))
    return found


# Alone on the machine, 3 waits 40 s for 2's end (2: 10 to 60, 3: 60 to 130). The other pairs start at once.
@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("bsld", [(1 + 110 / 70) / 2, 1, 1]),
        ("slowdown", [(1 + 110 / 70) / 2, 1, 1]),
        ("wait", [20, 0, 0]),
        ("turnaround", [(50 + 110) / 2, (70 + 20) / 2, (20 + 10) / 2]),
        ("bsld.max", [110 / 70, 1, 1]),
        ("wait.max", [40, 0, 0]),
        ("wait.small", [40, 0, 0]),
        ("wait.large", [0, 0, 0]),
        ("utilisation", [340 / (4 * 120), 160 / (4 * 70), 30 / (4 * 20)]),
    ],
)
def test_metrics_of_sequences_by_hand(tiny: str, metric: str, values: list[float]) -> None:
    found = judged(tiny, "--length", 2, "--sequences", 3, "--metric", metric)
    assert (found["workload"], found["metric"], found["length"], found["sequences"]) == ("tiny", metric, 2, 3)
    assert found["starts"] == STARTS
    (policy,) = found["policies"]
    assert policy["values"] == pytest.approx(values, rel=1e-12)
    assert policy["mean"] == pytest.approx(np.mean(values), rel=1e-12)
    assert (policy["difference"], policy["verdict"]) == (None, "")
    assert (policy["estimator"], policy["oracle"], policy["preset"]) == ("requested", False, "")


# With EASY the five jobs wait 0, 90, 0, 120 and 50 s; quartiles of their nodes (2, 4, 2, 1, 1) are 1 and 2.
@pytest.mark.parametrize(("metric", "value"), [("wait.small", (120 + 50) / 2), ("wait.large", 90 / 3)])
def test_waits_by_size_count_the_jobs_at_a_quartile(tiny: str, metric: str, value: float) -> None:
    found = judged(tiny, "--length", 5, "--sequences", 1, "--metric", metric)
    assert found["policies"][0]["values"] == [value]


def test_policies_are_paired_with_the_first_one(folder: Path) -> None:
    # Five days, each beginning with the small log's five jobs, on day k (1 … 5) with times k times as long.
    # Mean waits by hand: 52 k with EASY (0 90 0 120 50), 90 k without (0 90 130 120 110).
    rows = [
        f"{5 * k + i} {k * (99_000 + submit)} -1 {k * run} {n} -1 -1 {n} {k * request} -1 1 {user}"
        for k in (1, 2, 3, 4, 5)
        for i, submit, run, n, request, user in ROWS
    ]
    (folder / "days.swf").write_text("; MaxProcs: 4\n" + "".join(f"{row} 1 -1 1 -1 -1 -1\n" for row in rows))
    options = "--backfill none --backfill easy --length 5 --sequences 5 --seed 38342 --metric wait"
    found = judged("days.swf", *shlex.split(options))
    assert found["starts"] == [0, 10, 5, 20, 15]
    days = np.array([1, 3, 2, 5, 4])
    base, easy = found["policies"]
    assert (base["backfill"], base["difference"], base["verdict"]) == ("none", None, "")
    assert base["values"] == pytest.approx(90 * days, rel=1e-12)
    assert easy["values"] == pytest.approx(52 * days, rel=1e-12)
    # Student's t with 4 degrees of freedom; the days' numbers have a standard deviation of √(5/2)
    half = 2.7764451051977934 * (5 / 2) ** 0.5 / 5**0.5
    for interval, factor in ((base["ci95"], 90), (easy["ci95"], 52), (easy["difference"], -38)):
        assert interval["mean"] == pytest.approx(3 * factor, rel=1e-12)
        assert sorted((interval["low"], interval["high"])) == pytest.approx(
            sorted(((3 - half) * factor, (3 + half) * factor)), rel=1e-9
        )
    assert easy["verdict"] == "better"
    row = run_ok("evaluate", "days.swf", *shlex.split(options)).splitlines()[5]
    expected = ["fcfs+easy", "156.00", "53.9 … 258.1 t", "-114.00", "-188.6 … -39.4 t", "better"]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == expected


def test_same_seed_same_sequences(tiny: str) -> None:
    words = ("--length", 2, "--sequences", 8)
    assert judged(tiny, *words, "--seed", 1) == judged(tiny, *words)
    assert judged(tiny, *words, "--seed", 2)["starts"] != judged(tiny, *words)["starts"]


def test_orders_times_backfillings_times_estimators_each_once(tiny: str) -> None:
    words = shlex.split("--order fcfs --order sjf --order fcfs --backfill none --backfill easy")
    words += shlex.split("--estimator requested --estimator actual --length 2 --sequences 2")
    found = judged(tiny, *words)
    policies = [(p["order"], p["backfill"], p["estimator"], p["oracle"]) for p in found["policies"]]
    assert policies == [
        (order, backfill, estimator, estimator == "actual")
        for order in ("fcfs", "sjf")
        for backfill in ("none", "easy")
        for estimator in ("requested", "actual")
    ]
    out = run_ok("evaluate", tiny, *words)
    for name in ("fcfs, requested ", "fcfs, actual* ", "sjf+easy, requested ", "sjf+easy, actual* "):
        assert f"│ {name}" in out
    assert "* true run times are read (oracle)." in out


def test_a_backfilling_without_its_order_is_refused(tiny: str) -> None:
    said = run_refused("evaluate", tiny, "--length", 1, "--policy", "sjf+easy", "--backfill", "none")
    assert said.startswith("--backfill: is the backfilling of --order\n  Write it behind the policy's name")


def test_table_of_one_policy(tiny: str) -> None:
    out = run_ok("evaluate", tiny, "--length", 1, "--sequences", 1, "--backfill-order", "sjf")
    assert "tiny: bsld, 1 sequence of 1 job, protocol standard" in out
    expected = ["fcfs+easy by sjf", "1.00", "–", "base", "", ""]
    assert [cell.strip() for cell in out.splitlines()[4].split("│")[1:-1]] == expected
    assert "b = 1 independent block" in out


def test_utilisation_is_shown_as_a_fraction_and_higher_is_better() -> None:
    # EASY packs better than plain FCFS on every sequence of the bundled workload.
    words = shlex.split("--backfill none --backfill easy --sequences 12 --length 100 --metric utilisation")
    base, easy = judged("bundled-128", *words)["policies"]
    assert easy["difference"]["low"] > 0
    assert easy["verdict"] == "better"
    row = next(line for line in run_ok("evaluate", "bundled-128", *words).splitlines() if "fcfs+easy" in line)
    assert f" {easy['mean']:.4f} " in row
    assert f" {easy['ci95']['low']:.4f} … {easy['ci95']['high']:.4f} " in row
    assert 0 < base["mean"] < easy["mean"] < 1


@pytest.mark.parametrize(
    ("length", "sequences", "b", "kind", "how"),
    [
        (256, 60, 5, "t", "Student's t over their means (t)."),
        (32, 200, 28, "bootstrap", "circular block bootstrap."),
    ],
)
def test_says_over_how_many_blocks_intervals_are(
    length: int, sequences: int, b: int, kind: str, how: str
) -> None:
    words = ("bundled-128", "--length", length, "--sequences", sequences, "--order", "fcfs", "--order", "sjf")
    out = run_ok("evaluate", *words)
    assert f"b = {b} independent blocks of neighbouring sequences: 95 % intervals by {how}" in out
    for one in judged(*words)["policies"]:
        assert (one["ci95"]["b"], one["ci95"]["kind"]) == (b, kind)
    rows = [line for line in out.splitlines() if line.startswith("│ sjf")]
    assert [row.count(" t ") for row in rows] == [2 if kind == "t" else 0]


def test_too_few_blocks_give_no_interval(tiny: str) -> None:
    out = run_ok("evaluate", tiny, "--length", 5, "--sequences", 3)
    said = "b = 1 independent block of neighbouring sequences: too few for an interval, which needs 5"
    assert said in out
    found = judged(tiny, "--length", 5, "--sequences", 3, "--order", "fcfs", "--order", "sjf")
    assert found["policies"][0]["ci95"] == {
        "mean": pytest.approx(3.56),
        "low": None,
        "high": None,
        "b": 1,
        "kind": None,
    }
    assert found["policies"][1]["verdict"] == "too few separate windows to tell"


def test_json_tells_what_was_dropped_on_stderr_only(odd: str) -> None:
    told = run_bridge("evaluate", odd, "--length", 2, "--sequences", 1, "--json")
    assert json.loads(told.out)["sequences"] == 1
    assert told.err.splitlines()[0] == "bridge: 1 record dropped: cancelled before it started (job 6)"
    assert len(told.err.splitlines()) == 2


@pytest.mark.parametrize(
    ("log", "seed", "published"),
    [
        ("lublin_256", 40, ["192.89", "138.89", "55.62", "50.90"]),
        ("lublin_256_new2", 17, ["163.06", "248.02", "85.63", "129.83"]),
    ],
)
def test_rlbackfilling_table_4_to_the_printed_digit(
    traces: Path, log: str, seed: int, published: list[str]
) -> None:
    orders = ["fcfs", "wfp3", "sjf", "f1"]
    words = [word for order in orders for word in ("--order", order)]
    words += ["--protocol", "schedgym", "--sequences", "10", "--length", "1024", "--seed", str(seed)]
    found = judged(traces / f"{log}.swf.gz", *words)
    assert [f"{p['mean']:.2f}" for p in found["policies"]] == published
    assert [len(p["values"]) for p in found["policies"]] == [10] * 4
    assert [p["order"] for p in found["policies"]] == orders
    out = run_ok("evaluate", traces / f"{log}.swf.gz", *words)
    shown = [line.split("│")[2].strip() for line in out.splitlines() if line.startswith("│ ")]
    assert shown == published


def test_easy_with_actual_run_times_is_easy_ar(traces: Path) -> None:
    # RLBackfilling 2023, SDSC-SP2: EASY, EASY-AR for FCFS and SJF
    words = "--order fcfs --order sjf --estimator requested --estimator actual --protocol schedgym --seed 29"
    found = judged(traces / "SDSC-SP2-1998-4.2-cln.swf.gz", *words.split())
    assert [f"{p['mean']:.2f}" for p in found["policies"]] == ["292.82", "169.24", "187.61", "103.43"]
    assert [p["oracle"] for p in found["policies"]] == [False, True, False, True]


def test_presets_bring_their_own_loading_and_sampling(traces: Path) -> None:
    log = traces / "lublin_256.swf.gz"
    found = judged(
        log, "--protocol", "schedgym", "--preset", "rlscheduler", "--order", "sjf", "--order", "f1"
    )
    assert (found["sequences"], found["length"]) == (10, 1024)
    assert [f"{p['mean']:.2f}" for p in found["policies"]] == ["73.31", "75.07"]
    words = ["--preset", "schedinspector", "--order", "sjf", "--backfill", "none"]
    found = judged(log, "--protocol", "schedgym", *words)
    assert (found["sequences"], found["length"]) == (50, 256)
    assert f"{found['policies'][0]['mean']:.4f}" == "333.1956"  # published: 333.19


def test_interrupted_prints_the_policies_that_are_finished(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = sequences.values_of, []

    def until_the_third(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(event, "values_of", until_the_third)
    words = shlex.split("--order fcfs --order sjf --order saf --order f1 --length 2 --sequences 3 --json")
    told = run_bridge("evaluate", tiny, *words)
    assert told.status == 130
    assert [p["order"] for p in json.loads(told.out)["policies"]] == ["fcfs", "sjf"]
    expected = ["bridge: interrupted; 2 of 4 policies are finished:", "", "bridge: interrupted", ""]
    assert told.err.split("\n") == expected


def test_interrupted_in_the_first_policy_prints_nothing(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(event, "values_of", at_once)
    told = run_bridge("evaluate", tiny, "--length", 2, "--sequences", 3)
    assert (told.status, told.out, told.err) == (130, "", "\nbridge: interrupted\n")


def test_writes_nothing(tiny: str, folder: Path) -> None:
    run_ok("evaluate", tiny, "--length", 2, "--sequences", 2)
    assert file_names(folder) == {tiny}


def test_a_metric_that_is_not_defined_is_refused(folder: Path) -> None:
    idle = "".join(f"{k} {k} -1 0 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n" for k in range(1, 9))
    (folder / "idle.swf").write_text("; MaxProcs: 4\n" + idle)
    words = shlex.split("--protocol schedgym --preset schedinspector --length 2 --sequences 2")
    for metric in ("slowdown", "utilisation"):
        said = run_refused("evaluate", "idle.swf", *words, "--metric", metric)
        assert f"{metric} is not defined: all jobs ran for 0 s\n  Compare by bsld" in said
    assert judged("idle.swf", *words)["policies"][0]["values"] == [1, 1]
