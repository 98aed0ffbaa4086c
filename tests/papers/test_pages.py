"""Pages are what their records say, in every clone; training curves are kept as data."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

from bridge.learn.checkpoint_files import PROGRESS
from bridge.learn.recipe import with_training
from bridge.study.cells import Cell
from bridge.study.store import Store
from papers import curves, headlines, pages, pictures, ranking, store, studies
from papers.curves import Curve
from papers.lines import PAPERS
from papers.mrsch import sizes

TABLE = "sem-theta"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone that has the data of the results and no log, and nothing that was trained here."""
    results = tmp_path / "results"
    shutil.copytree(store.RESULTS, results)
    monkeypatch.setattr(store, "RESULTS", results)
    monkeypatch.setattr(studies, "CELLS", tmp_path / "studies")
    monkeypatch.delenv("BRIDGE_TRACES", raising=False)
    studies.studies.cache_clear()
    return results


@pytest.mark.parametrize("paper", [pytest.param("rlbackfilling", marks=pytest.mark.slow), "sem"])
def test_a_clone_writes_the_pages_that_are_there(
    clone: Path, paper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "HEADLINES", (headlines.of(paper),))  # the whole index is another test's
    there = {path.name: path.read_text(encoding="utf-8") for path in clone.glob("*.md")}
    drawn = {path.name for path in clone.glob("*.svg")}
    *written, index = pages.write((paper,))
    assert len(written) == len(studies.studies(paper)) + 1 > 2
    assert f"]({paper}-headline.svg)" in index.read_text(encoding="utf-8")
    for path in written:
        assert path.read_text(encoding="utf-8") == there[path.name], "run `python -m papers report`"
    assert {path.name for path in clone.glob("*.svg")} == drawn


@pytest.mark.parametrize("paper", studies.PAPERS)
def test_every_study_is_one(paper: str) -> None:
    names = [study.name for study, _ in studies.studies(paper)]
    assert names == list(dict.fromkeys(names))
    assert all((store.RESULTS / f"{name}.md").exists() for name in names)


@pytest.mark.slow
def test_the_index_has_a_table_and_a_picture_of_each_paper() -> None:
    index = (store.RESULTS / "README.md").read_text(encoding="utf-8")
    assert "cells done" not in index
    for headline in PAPERS:
        assert headlines.table(headline).markdown().rstrip() in index, "run `python -m papers report`"
        assert f"]({headline.paper}-headline.svg)" in index
        assert (store.RESULTS / f"{headline.paper}-headline.svg").exists()
        page = (store.RESULTS / f"{headline.paper}.md").read_text(encoding="utf-8")
        assert page.index(headlines.table(headline).markdown().rstrip()) < page.index("\n## ")
        assert all(text in index for text in headline.cannot)


def test_no_page_says_that_the_clamp_is_all_there_is_to_the_paper_s_numbers() -> None:
    for path in store.RESULTS.glob("rlschert*.md"):
        text = path.read_text(encoding="utf-8")
        assert "do the same" not in text
        assert "does the same" not in text


def test_a_line_of_a_paper_s_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers beside their bases' on the same sequences; what is not run is said as such."""
    monkeypatch.setattr(headlines, "_metrics", lambda _: ["bsld", "bsld"])
    best = headlines.Value(5.0, 8.0)
    run = {kind: headlines.Value(6.0, 8.0, "1 of 5 seeds", oracle=True) for kind in headlines.KINDS[:3]}
    none: dict[str, headlines.Value | None] = dict.fromkeys(headlines.KINDS)
    words = headlines.Value(7.0)
    lines = [
        headlines.HeadlineEntry("a", {**run, "best rule": best}, None, "SJF", "worse +20 %", True),
        headlines.HeadlineEntry("b", none, words, "", "", True),
    ]
    monkeypatch.setattr(headlines, "entries", lambda _: lines)
    value = "6.00* (-25 %, 1 of 5 seeds)"
    assert headlines.table(headlines.of("sem")).rows == [
        ["a", value, value, value, "SJF: 5.00 (-38 %)", "worse +20 %"],
        ["b", "no number", "not run; by the paper's text: 7.00", "not run", "not run", "not run"],
    ]
    said = headlines.sentence(headlines.of("sem"))
    assert said.startswith("Compared with the best rule, of 1 recommended agents: 0 better, 1 worse, 0 not")
    missing, oracle = said.split(". ")[1:]
    assert missing == "In 1 of 2 rows no training *as the code* was run"
    assert oracle == "Policies marked * read true run times."


def test_the_winner_of_a_log_is_named() -> None:
    def row(name: str, mean: float, learnt: bool) -> dict[str, object]:
        more = {"wait": 3600.0, "utilisation": 0.5}
        head = {"row": name, "log": "L", "learnt": learnt, "seeds": 2, "more": more}
        return head | {"windows": 9, "windows_apart": 4, "mean": {"mean": mean, "b": 3}}

    rows = [row("FCFS + EASY", 8.0, False), row("SJF", 4.0, False), row("agent", 5.0, True)]
    rows.append(row(ranking.HOLDS_BACK, 1.0, True))
    difference = {"mean": 1.0, "low": 0.5, "high": 1.5, "b": 7, "kind": "t"}
    best = [{"row": "agent", "log": "L", "verdict": "worse", "difference": difference}]
    table = ranking.winners({"metric": "bsld", "rows": rows, "best_rules": best})
    assert table.rows == [
        [
            *("L", "9 (4)", "3", "SJF: 4.00 (1.00 h, 50.0 %)", "agent: 5.00 (1.00 h, 50.0 %, 2 seeds)"),
            *("worse: +1.00 [+0.50, +1.50] t", "FCFS + EASY: 8.00 (1.00 h, 50.0 %)"),
        ]
    ]


def learnt(cell: Cell) -> None:
    """Leave what a training of 22 epochs leaves of its progress."""
    folder = Store(studies.CELLS).agent(cell.agent_key)
    folder.mkdir(parents=True)
    nan, n = float("nan"), 22
    table = {
        "epoch": np.arange(1, n + 1),
        "train_mean": [4.0] * n,
        "base_mean": [10.0] * n,
        "valid_mean": [nan, *[4.0] * (n - 1)],
        "valid_base": [nan] + [5.0] * (n - 1),
        "entropy": np.linspace(2.0, 1.0, n),
    }
    pd.DataFrame(table).to_parquet(folder / PROGRESS)


@pytest.mark.usefixtures("clone")
def test_a_curve_is_kept_once() -> None:
    (study, cells) = studies.studies("sem")[0]
    cell = next(cell for cell in cells if cell.agent_key)
    learnt(cell)
    store.path_of(f"{study.name}-curves", ".jsonl").unlink()
    for _ in range(2):
        curves.keep_all(study, cells, Store(studies.CELLS))
    ((row, fresh),) = curves.read(study.name).items()
    assert row == (cell.row, cell.log)
    assert [curve.agents for curve in fresh] == [(cell.agent_key,)]
    assert fresh[0].validated == tuple((epoch, 0.8) for epoch in range(2, 23))
    assert fresh[0].learning == tuple((epoch, 0.4, 0.4, 0.4) for epoch in (20, 21, 22))
    assert fresh[0].entropy == ((1, 2.0), (2, pytest.approx(1.95238)), (22, 1.0))


@pytest.mark.usefixtures("clone")
def test_a_curve_is_of_the_log_by_its_name_and_of_cells_that_are_done() -> None:
    """Two logs may be one file."""
    (study, cells) = studies.studies("sem")[0]
    kept = Store(studies.CELLS)
    agents = [cell for cell in cells if cell.agent_key]
    files = {"other": agents[0].file, "Theta": agents[0].file, "twice": agents[0].file}
    two = [replace(agents[0], log="Theta"), replace(agents[1], log="twice", tests=agents[1].tests[:1])]
    for cell in two:
        learnt(cell)
    store.path_of(f"{study.name}-curves", ".jsonl").unlink()
    curves.keep_all(replace(study, files=files), two, kept)
    assert [log for _, log in curves.read(study.name)] == ["Theta"]  # the other one is not done
    kept.save(two[1].key, {"best_epoch": 1})
    curves.keep_all(replace(study, files=files), two, kept)
    assert [log for _, log in curves.read(study.name)] == ["Theta", "twice"]


@pytest.mark.usefixtures("clone")
def test_the_curve_of_a_training_that_went_on_takes_the_place_of_the_shorter_one() -> None:
    (study, cells) = studies.studies("sem")[0]
    shorter: Any = next(cell for cell in cells if cell.agent_key).shortest
    longer = replace(shorter, recipe=with_training(shorter.recipe, {"longest": 999}))
    path = store.path_of(f"{study.name}-curves", ".jsonl")
    before = [Curve("r", "l", agents, ((5, 0.9),)) for agents in (("a", shorter.agent_key), ("b",))]
    curves.write(path, before)
    Store(studies.CELLS).save(longer.key, {"best_epoch": 22})
    curves.keep_all(study, [longer], Store(studies.CELLS))
    assert len(curves.read(study.name)["r", "l"]) == 2, "it has not learnt here"
    learnt(longer)
    curves.keep_all(study, [longer], Store(studies.CELLS))
    left = [curve.agents for found in curves.read(study.name).values() for curve in found]
    assert sorted(left) == sorted([("b",), (longer.agent_key,)])


def test_means_of_curves_weigh_every_agent_the_same() -> None:
    three = Curve("r", "l", ("a", "b", "c"), ((5, 0.9), (10, 0.6)), ((20, 0.8, 0.7, 0.9),))
    one = Curve("r", "l", ("d",), ((5, 0.5),), ((20, 0.4, 0.4, 0.4), (21, 0.3, 0.3, 0.3)))
    validated = curves.together([three, one], "validated")
    assert validated["mean"].to_dict() == pytest.approx({5: 0.8, 10: 0.6})
    held = curves.together([three, one], "validated", hold=True)
    assert held["mean"].to_dict() == pytest.approx({5: 0.8, 10: (3 * 0.6 + 0.5) / 4})
    learning = curves.together([three, one], "learning")
    assert learning.loc[20].to_dict() == pytest.approx({"agents": 4, "mean": 0.7, "low": 0.4, "high": 0.9})
    assert learning["agents"].to_dict() == {20: 4, 21: 1}
    assert curves.seeds_of([three, one]) == 4


def test_shares_of_rejected_picks_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [Curve("r", "l", (name,), (), rejected=((1, share), (9, share / 2))) for name, share in _SHARES]
    told = {("r", "l"): agents, ("other", "l"): [Curve("other", "l", ("c",), ())]}
    monkeypatch.setattr(curves, "read", lambda _: told)
    assert curves.rejections("t")[2:] == ["- r, l: epoch 1: 50 %, epoch 9: 25 %"]
    monkeypatch.setattr(curves, "read", lambda _: {})
    assert curves.rejections("t") == []


_SHARES = (("a", 0.4), ("b", 0.6))


@pytest.mark.usefixtures("clone")
def test_a_page_tells_who_waits_where_it_is_measured() -> None:
    (text,) = (
        table for table in sizes.section(studies.findings("mrsch", "mrsch-c1-c5")) if "| C1 |" in table
    )
    assert text in (store.RESULTS / "mrsch-c1-c5.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert {(log, row) for log, row, *_ in rows} >= {("C1", "FCFS + EASY"), ("C5", "SJF + EASY")}
    for _, _, small, large, longest, ratio in rows:
        assert float(small) < float(large) < float(longest)
        low, high = (float(large) + d for d in (-0.006, 0.006))  # waits have two digits, the ratio has one
        assert low / (float(small) + 0.006) - 0.05 <= float(ratio) <= high / (float(small) - 0.006) + 0.05
    assert sizes.section(studies.findings("mrsch", "mrsch-s1-s5")) == []


@pytest.mark.usefixtures("clone")
def test_rows_that_validate_nothing_are_not_in_the_picture_of_curves() -> None:
    path = store.path_of("sem-theta-curves", ".jsonl")
    curves.write(
        path, [Curve(row, "Theta", ("a",), seen) for row, seen in (("SEM", ((5, 0.9),)), ("last", ()))]
    )
    picture = pictures.curves("sem-theta")
    assert picture is not None
    drawn = picture.read_text()
    assert "SEM (1 seed)" in drawn
    assert "last (1 seed)" not in drawn
