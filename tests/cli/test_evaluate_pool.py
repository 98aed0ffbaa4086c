"""`bridge evaluate --scheduler pool`: published numbers to the printed digit, and what is refused."""

import json
import shlex
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok


def test_published_numbers(vasp_path: Path) -> None:
    words = shlex.split(
        "--policy saf --policy sjf --kill none --kill rule --seed 314159 --oracle-clamp --json"
    )
    found = json.loads(run_ok("evaluate", "--scheduler", "slotted", "--data", vasp_path, *words))
    slowdown = {(p["policy"], p["kill"]): round(p["slowdown"], 4) for p in found["policies"]}
    assert slowdown == {
        ("saf", "none"): 10.2344,
        ("saf", "rule"): 10.3285,
        ("sjf", "none"): 10.2923,
        ("sjf", "rule"): 10.2457,
    }
    assert round(found["policies"][0]["completion_time"], 4) == 80.3036


def test_synthetic_jobs_need_no_data() -> None:
    words = shlex.split("--scheduler slotted --policy sjf --steps 20 --sequences 2 --pool-units 12")
    out = run_ok("evaluate", *words)
    assert "sequences of 20 steps" in out
    assert "sjf" in out
    found = json.loads(run_ok("evaluate", *words, "--json"))
    assert (found["pool"]["units"], found["synthetic"], len(found["policies"])) == (12, True, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--scheduler slotted --order sjf", "the time-stepped pool has no --order"),
        ("bundled-128 --kill rule", "the event-driven scheduler has no --kill"),
        ("bundled-128 --policy saf+rule", "is a policy of the time-stepped pool"),
        ("", "Missing argument 'LOG|CHECKPOINT'"),
        ("--scheduler slotted --data nowhere.csv", "nowhere.csv"),
    ],
)
def test_what_would_be_ignored_is_refused(words: str, says: str) -> None:
    told = run_bridge("evaluate", *shlex.split(words))
    assert told.status in (1, 2) and told.out == ""
    assert says in told.err
