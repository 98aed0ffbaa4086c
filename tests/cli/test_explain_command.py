"""`bridge explain`: the table, the picture, the file in the checkpoint, and what cannot be explained."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_commands import file_names, run_ok, run_refused
from training_commands import FILES, TINY, write_config

from bridge.base.cache import shipped_agents


@pytest.fixture
def trained(folder: Path) -> Path:
    write_config(folder)
    run_ok("train", *TINY, "--epochs", "1", "--out", "a")
    return Path("a")


def test_table_picture_and_file(trained: Path) -> None:
    out = run_ok("explain", trained, "--sequences", "5", "--out", "x.png")
    assert "a on bundled-128" in out
    assert "5 sequences of 64 jobs" in " ".join(out.split())
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")
    assert file_names(trained) == FILES | {"explanation.parquet"}
    table = pq.read_table(trained / "explanation.parquet")
    assert table.column_names == ["feature", "kind", "value", "cdf"]
    features = json.loads((trained / "agent.json").read_text())["recipe"]["encoder"]["features"]
    assert set(table["feature"].to_pylist()) == set(features)
    frame = table.to_pandas()
    assert frame.groupby(["feature", "kind"]).size().max() <= 200
    assert (frame.groupby(["feature", "kind"])["cdf"].max() == 1).all()


def test_an_agent_that_comes_with_bridge_is_found_from_any_folder_and_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = {
        path: path.stat().st_mtime_ns for path in shipped_agents()["zoo/rlbackfilling-lublin-1"].iterdir()
    }
    monkeypatch.chdir(tmp_path)
    run_ok("explain", "zoo/rlbackfilling-lublin-1", "--workload", "bundled-128", "--sequences", "2")
    assert {path: path.stat().st_mtime_ns for path in Path(next(iter(before))).parent.iterdir()} == before
    assert list(tmp_path.iterdir()) == []


def test_json_is_sorted_and_repeats_itself(trained: Path) -> None:
    words = ("explain", trained, "--sequences", "5", "--no-save", "--json")
    text = run_ok(*words)
    assert file_names(trained) == FILES
    found = json.loads(text)
    distances = [feature["distance"] for feature in found["features"]]
    assert distances == sorted(distances, reverse=True)
    assert (found["decision"], found["sequences"], found["length"]) == ("backfill", 5, 64)
    assert found["chosen"] == found["decisions"] < found["rows"]
    for feature in found["features"]:
        assert list(feature["all_quantiles"]) == sorted(feature["all_quantiles"])
        assert (feature["chosen_are"] is None) == (feature["distance"] == 0)
    assert run_ok(*words) == text


def test_only_held_out_jobs_are_played(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bridge.learn import explain as engine

    seen: list[np.ndarray] = []
    whole = engine.explain
    monkeypatch.setattr(engine, "explain", lambda *given: seen.append(given[2]) or whole(*given))
    run_ok("explain", trained, "--sequences", "4")
    test_from = json.loads((trained / "agent.json").read_text())["recipe"]["test_from"]
    assert seen[0].tolist()[0] == round(3000 * test_from)
    assert seen[0].tolist()[-1] == 3000 - 64
    assert len(seen[0]) == 4


def test_another_log(trained: Path, tiny: str) -> None:
    assert "5 held-out jobs are too few for a sequence of 64" in run_refused(
        "explain", trained, "--workload", tiny
    )
    kept = json.loads((trained / "agent.json").read_text())
    (trained / "agent.json").write_text(json.dumps({**kept, "sha256": "0" * 64}))
    error = run_refused("explain", trained)
    assert "the log bundled-128 has changed" in error
    assert "--workload bundled-128" in error
    run_ok("explain", trained, "--workload", "bundled-128", "--sequences", "3")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "is no checkpoint"),
        (["tiny.toml"], "is no checkpoint"),
        (["a", "--out", "x.pdf"], "pictures are saved as .png or .svg"),
    ],
)
@pytest.mark.usefixtures("trained")
def test_what_cannot_be_explained(words: list[str], said: str) -> None:
    assert said in run_refused("explain", *words)
    assert file_names(Path("a")) == FILES
