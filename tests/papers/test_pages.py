"""Pages are what their data say, in every clone; training curves are kept as data."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

from bridge.learn.folder import PROGRESS
from papers import curves, pages, pictures, store, study
from papers.curves import Curve

TABLE = "sem-theta"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone that has the data of the results, and nothing that was trained here."""
    results = tmp_path / "results"
    shutil.copytree(store.RESULTS, results)
    for made in (*results.glob("*-curves.svg"), *results.glob("*-convergence.svg")):
        made.unlink()
    monkeypatch.setattr(store, "RESULTS", results)
    monkeypatch.setattr(store, "WORK", tmp_path / "work")
    return results


def test_a_clone_draws_the_pages_that_are_there(clone: Path) -> None:
    there = {path.name: path.read_text(encoding="utf-8") for path in clone.glob("*.md")}
    written = pages.write()
    assert len(written) == len(study.tables()) + 1
    for path in written:
        assert path.read_text(encoding="utf-8") == there[path.name], "run `python -m papers report`"
    drawn = {path.name for path in clone.glob("*.svg")}
    assert drawn == {path.name for path in (store.ROOT / "docs" / "results").glob("*.svg")}


def test_no_table_of_agents_lacks_its_curves() -> None:
    for table in study.tables():
        there = store.agents(table.name).groupby("row")["agent"].agg(set).to_dict()
        found = curves.read(table.name)
        assert {row: {a for curve in kept for a in curve.agents} for row, kept in found.items()} == there


def _progress(folder: Path, waits: list[float]) -> Path:
    nan = float("nan")
    n = len(waits)
    table = {
        "epoch": np.arange(1, n + 1),
        "train_mean": waits,
        "base_mean": [10.0] * n,
        "valid_mean": [nan, *waits[1:]],
        "valid_base": [nan] + [5.0] * (n - 1),
        "entropy": np.linspace(2.0, 1.0, n),
    }
    folder.mkdir(parents=True)
    pd.DataFrame(table).to_parquet(folder / PROGRESS)
    return folder


def test_a_curve_is_kept_once_and_only_with_its_results(clone: Path, tmp_path: Path) -> None:
    folder = _progress(tmp_path / "new-s4", [4.0] * 22)
    before = curves.read(TABLE)["SEM, Theta"]
    curves.keep(TABLE, "SEM, Theta", folder)
    curves.keep(TABLE, "SEM, Theta", folder)
    assert curves.read(TABLE)["SEM, Theta"] == before  # it has not been judged
    results = store.agents(TABLE).query("row == 'SEM, Theta'").iloc[0].to_dict()
    store.add(TABLE, results | {"seed": 4, "agent": folder.name})
    (fresh,) = (curve for curve in curves.read(TABLE)["SEM, Theta"] if curve not in before)
    assert fresh.agents == ("new-s4",)
    assert fresh.validated == tuple((epoch, 0.8) for epoch in range(2, 23))
    assert fresh.learning == tuple((epoch, 0.4, 0.4, 0.4) for epoch in (20, 21, 22))
    assert fresh.entropy == ((1, 2.0), (2, pytest.approx(1.95238)), (22, 1.0))
    ((table, _),) = study.chosen((TABLE,), ("SEM, Theta",))
    assert "(mean of 4 seeds)" in pages.converging(table)[0]
    assert pictures.curves(table) == clone / f"{TABLE}-curves.svg"


def test_means_of_curves_weigh_every_agent_the_same() -> None:
    three = Curve("r", ("a", "b", "c"), ((5, 0.9), (10, 0.6)), ((20, 0.8, 0.7, 0.9),))
    one = Curve("r", ("d",), ((5, 0.5),), ((20, 0.4, 0.4, 0.4), (21, 0.3, 0.3, 0.3)))
    validated = curves.together([three, one], "validated")
    assert validated["mean"].to_dict() == pytest.approx({5: 0.8, 10: 0.6})
    learning = curves.together([three, one], "learning")
    assert learning.loc[20].to_dict() == pytest.approx({"agents": 4, "mean": 0.7, "low": 0.4, "high": 0.9})
    assert learning["agents"].to_dict() == {20: 4, 21: 1}
    assert curves.seeds_of([three, one]) == 4
