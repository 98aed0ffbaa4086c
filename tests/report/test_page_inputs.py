"""Inputs of the page: told apart by what they are, and refused with a reason when they are something else."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from page_material import (
    BOUND,
    EVALUATION,
    small_run,
    validation,
    write_checkpoint,
    write_json,
    write_validation,
)

from bridge.base.errors import BridgeError
from bridge.judge.run import write_run
from bridge.report.evaluation_document import BoundEntry, parse
from bridge.report.page import read_inputs


def test_every_kind_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "now.png").write_bytes(b"a picture")
    write_run(small_run(), tmp_path / "run")
    made = read_inputs(
        [
            tmp_path / "run",
            write_validation(tmp_path / "val"),
            write_json(tmp_path / "e.json", EVALUATION),
            write_checkpoint(tmp_path / "agent", setting="paper"),
            write_json(tmp_path / "bound.json", BOUND),
            tmp_path / "now.png",
        ]
    )
    assert made.sources == [
        ("run", "run", "bridge replay x"),
        ("val", "validation", "small"),
        ("e.json", "evaluation", "small, bsld, 4 windows of 10 jobs"),
        ("agent", "checkpoint", "tiny, paper"),
        ("bound.json", "bound", "small, 4 sequences"),
        ("now.png", "picture", ""),
    ]
    assert made.pictures == [("now.png", "data:image/png;base64,YSBwaWN0dXJl")]
    ((_, bound),) = made.bounds
    assert bound.rows[1] == BoundEntry("run times", "saf+easy", True, 30.0, -25.2, -40.6, 5.0)
    assert bound.rows[0].percent is None
    assert [name for name, _ in made.runs] == ["run"]
    ((_, val),) = made.validations
    assert list(val.runs) == ["fcfs+easy"]
    ((_, checkpoint),) = made.checkpoints
    assert checkpoint.evaluation is not None
    assert checkpoint.progress is not None
    assert checkpoint.explanation is not None


def test_a_validation_without_its_runs(tmp_path: Path) -> None:
    made = read_inputs([write_json(tmp_path / "elsewhere.json", validation())])
    assert made.validations[0][1].runs == {}


def test_a_bare_checkpoint(tmp_path: Path) -> None:
    write_json(tmp_path / "agent.json", {})
    ((_, checkpoint),) = read_inputs([tmp_path]).checkpoints
    assert (checkpoint.progress, checkpoint.evaluation, checkpoint.explanation) == (None, None, None)


def test_names_are_the_shortest_tails_that_differ(tmp_path: Path) -> None:
    paths = [write_json(tmp_path / name / "e.json", EVALUATION) for name in ("a", "b")]
    assert [name for name, _ in read_inputs(paths).evaluations] == ["a/e.json", "b/e.json"]
    assert [name for name, _ in read_inputs(paths[:1]).evaluations] == ["e.json"]
    with pytest.raises(BridgeError, match="is given twice"):
        read_inputs([paths[0], tmp_path / "a" / ".." / "a" / "e.json"])


@pytest.mark.parametrize(
    "text", ["", "[1", "[]", "3", '{"policies": []}', '{"policies": [{"order": "fcfs"}]}']
)
def test_other_files_are_refused_with_what_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BridgeError, match=r"x\.json.*\n.*takes run folders.*validations.*checkpoint folders"):
        read_inputs([tmp_path / "x.json"])


def test_other_folders_are_refused_with_what_is_accepted(tmp_path: Path) -> None:
    for paths in ([], [tmp_path], [tmp_path / "nowhere"]):
        with pytest.raises(BridgeError, match="takes run folders"):
            read_inputs(paths)


def test_a_validation_of_the_slotted_pool_names_its_runs(tmp_path: Path) -> None:
    write_json(tmp_path / "agreement.json", {})
    write_run(small_run(), tmp_path / "saf" / "1" / "fast")
    with pytest.raises(BridgeError, match="run by run") as raised:
        read_inputs([tmp_path])
    assert raised.value.remedy == f"Name its runs: {tmp_path / 'saf' / '1' / 'fast'}"
    assert read_inputs([tmp_path / "saf" / "1" / "fast"]).runs[0][0] == "fast"


def test_labels_of_policies() -> None:
    def entry(**keys: Any) -> dict[str, Any]:
        return {"values": [1.0]} | keys

    document = {
        "policies": [
            entry(order="fcfs", backfill="none"),
            entry(order="fcfs", backfill="easy", candidate_order="sjf"),
            entry(order="sjf", backfill="easy", estimator="requested"),
            entry(order="sjf", backfill="easy", estimator="actual", oracle=True),
            entry(agent="zoo/x", order="fcfs", backfill="easy"),
            entry(agent="zoo/x"),
        ]
    }
    assert [one.label for one in parse(document, "e").entries] == [
        "fcfs",
        "fcfs+easy by sjf",
        "sjf+easy, requested",
        "sjf+easy, actual *",
        "zoo/x (1)",
        "zoo/x (2)",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"values": []}, "policy 2: has no list `values` of finite numbers"),
        ({"values": [1, 2, 3, float("nan")]}, "is no JSON .NaN is not a JSON number"),
        ({"values": [1, 2, 3, True]}, "policy 2: has no list `values` of finite numbers"),
        ({"values": [1, 2, 3]}, "policy 2: has 3 values, not 4"),
        ({"agent": ""}, "policy 2: names neither an order nor an agent"),
    ],
)
def test_broken_evaluations(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    first, second = EVALUATION["policies"]
    path = write_json(tmp_path / "e.json", EVALUATION | {"policies": [first, second | change]})
    with pytest.raises(BridgeError, match=said):
        read_inputs([path])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": []}, "is no bound"),
        ({"rows": [1]}, "is no bound"),
        ({"length": None}, "is no bound"),
        ({"rows": [{"mean": "3"}]}, "row 1: holds something that is no number"),
        (
            {"rows": [{"mean": 3, "difference_percent": {"low": "x"}}]},
            "row 1: holds something that is no number",
        ),
    ],
)
def test_broken_bounds(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        read_inputs([write_json(tmp_path / "b.json", BOUND | change)])


def test_an_interval_that_is_not_told_is_none() -> None:
    entry = parse({"policies": [{"order": "fcfs", "values": [1.0, 3.0], "ci95": "later"}]}, "e").entries[0]
    assert (entry.mean.mean, entry.difference) == (2.0, None)
    assert math.isnan(entry.mean.low) and math.isnan(entry.mean.high)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("format",), 2, "format 2 is unknown"),
        (("inputs",), None, "inputs cannot be None"),
        (("policies", 0, "policy"), 3, r"policies\[0\].policy cannot be 3"),
        (("policies", 0, "fast", "wait.mean"), "long", r"policies\[0\].fast.wait.mean cannot be 'long'"),
        (("policies", 0, "stretch"), [1.0], r"stretch cannot be \[1.0\]"),
        (("policies", 0, "stretch"), [1.0, "x"], r"stretch\[1\] cannot be 'x'"),
        (("policies", 0, "jobs", "first"), 7, "jobs.first is no table"),
        (("ranks",), {"wait.mean": {"tau": "x"}}, "ranks.wait.mean.tau cannot be 'x'"),
    ],
)
def test_broken_validations(tmp_path: Path, keys: tuple[Any, ...], value: Any, said: str) -> None:
    document: Any = validation()
    part = document
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    with pytest.raises(BridgeError, match=said):
        read_inputs([write_json(tmp_path / "v.json", document)])


def test_broken_checkpoints(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "agent")
    rows = pd.read_parquet(folder / "explanation.parquet")

    def refused(said: str) -> None:
        with pytest.raises(BridgeError, match=said):
            read_inputs([folder])

    rows.assign(kind="best").to_parquet(folder / "explanation.parquet")
    refused("explanation.parquet: kind 'best' is neither 'chosen' nor 'all'")
    rows.drop(columns="cdf").to_parquet(folder / "explanation.parquet")
    refused("explanation.parquet: has no column 'cdf'")
    (folder / "explanation.parquet").write_bytes(b"PAR1 or not")
    refused("explanation.parquet: is no Parquet file, or a damaged one")
    pd.DataFrame({"epoch": [1], "kl": ["low"]}).to_parquet(folder / "progress.parquet")
    refused("progress.parquet: column 'kl' does not hold numbers")
    write_json(folder / "evaluation.json", {})
    refused("evaluation.json: is no evaluation")
    (folder / "agent.json").write_text("{")
    refused("agent.json:1: is no JSON")
    (folder / "agent.json").write_text("[]")
    refused("agent.json: is no JSON object")
