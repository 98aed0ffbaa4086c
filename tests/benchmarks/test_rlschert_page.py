"""RLSchert's tables: what is played and trained, what is kept, and that the page says what its data say."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

import numpy as np
import pandas as pd

from benchmarks.papers import rlschert, rlschert_run, store
from benchmarks.papers.rlschert_rows import CLAMP, HONEST, METHODS, TABLES, TEST, Sample
from bridge.errors import BridgeError
from bridge.learn.slotted_recipe import PictureNetwork
from policies.rlschert import SETTINGS

ROWS = {method.row: method for method in METHODS}


def test_published_numbers() -> None:
    assert len(ROWS) == 14
    printed = {row: tuple(method.paper.get(n, "") for n in (6, 7, 8)) for row, method in ROWS.items()}
    assert printed["SAF"] == ("11.44", "10.23", "80.3")
    assert printed["RLSchert"] == ("9.7", "8.93", "76.27")
    assert printed["RLSchert, rule kill"] == ("8.93", "8.69", "")
    assert printed["RLSchert, learned kill"] == ("8.83", "8.32", "76.18")
    for method in METHODS:
        assert bool(method.rule) != bool(method.setting)
        assert not method.setting or SETTINGS[method.setting].kill == method.kill


@pytest.mark.parametrize(
    ("ours", "paper", "same"),
    [(80.304, "80.3", True), (80.36, "80.3", False), (11.2049, "11.2", True), (10.2351, "10.23", False)],
)
def test_a_number_is_the_printed_one_to_its_last_digit(ours: float, paper: str, same: bool) -> None:
    assert rlschert.as_printed(ours, paper) is same


def _results(sums: list[list[float]], jobs: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"slowdown": [np.array(s) for s in sums], "jobs": [np.array(jobs)] * len(sums)})


def test_means_are_over_jobs_and_intervals_over_sequences() -> None:
    found = rlschert.estimate(_results([[10.0, 30.0]], [4, 6]), "slowdown")
    # 40 / 10 jobs; linearised: 4 + (10 − 16) / 5 and 4 + (30 − 24) / 5, with t(0.975, 1) = 12.706
    assert found.mean == pytest.approx(4.0)
    assert found.high - found.mean == pytest.approx(12.7062 * 1.2 * 2**0.5 / 2**0.5, rel=1e-4)
    seeds = rlschert.estimate(_results([[8.0, 32.0], [12.0, 28.0]], [4, 6]), "slowdown")
    assert seeds == found
    base = _results([[9.0, 28.5]], [4, 6])
    apart = rlschert.estimate(_results([[10.0, 30.0]], [4, 6]), "slowdown", base)
    assert apart.mean == pytest.approx(0.25)
    assert apart.high - apart.low == pytest.approx(0.0, abs=1e-9)  # a quarter more in both


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rlschert_run.Data:
    """Keep results in an empty folder; jobs, sequences and agents are small."""
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(store, "WORK", tmp_path / "work")
    tables = tuple(replace(t, sample=replace(t.sample, sequences=3, steps=15)) for t in TABLES)
    loads = tuple(Sample(f"rate {r:g}", 18, rate=r, sequences=3, steps=15) for r in (0.5,))
    sizes = tuple(Sample(f"{u} units", 18, units=u, sequences=3, steps=15) for u in (12, 20))
    for module in (rlschert_run, rlschert):
        monkeypatch.setattr(module, "TABLES", tables)
        monkeypatch.setattr(module, "LOADS", loads)
        monkeypatch.setattr(module, "SIZES", sizes)
    tiny = {
        name: replace(
            recipe,
            network=PictureNetwork(hidden=(8,)),
            training=replace(recipe.training, sequences=2, steps=10, valid_sequences=2),
        )
        for name, recipe in SETTINGS.items()
    }
    monkeypatch.setattr(rlschert_run, "SETTINGS", tiny)
    path = tmp_path / "jobs.csv"
    lines = [f"{k},{2 + k % 5},{1 + k % 4},{10 * (1 + k % 6)},{2 + k % 5}" for k in range(20)]
    path.write_text("\n".join(["job_id,real,para,cores,running", *lines]) + "\n")
    return rlschert_run.data_of(path)


def test_rows_are_run_once_and_smoke_rows_say_so(here: rlschert_run.Data) -> None:
    said: list[str] = []
    who = [ROWS["SAF"], ROWS["RLSchert"], ROWS["RLSchert, learned kill"]]
    words = {"seeds": 1, "smoke": 2, "objectives": ["slowdown"], "labels": [HONEST], "say": said.append}
    rlschert_run.run(who, here, **words)  # type: ignore[arg-type]
    tables, sweeps = store.read(rlschert_run.MAIN), store.read(rlschert_run.SWEEPS)
    agents = ("RLSchert (slowdown)", "RLSchert, learned kill (slowdown)")
    assert set(zip(tables["row"], tables["label"], tables["test"], strict=True)) == {
        (row, label, test)
        for row, label in (("SAF", CLAMP), ("SAF", HONEST), *((agent, HONEST) for agent in agents))
        for test in ("training set", "test set")
    }
    assert set(sweeps[sweeps["kind"] == "agent"]["test"]) == {"rate 0.5", "20 units"}
    played = set(sweeps[sweeps["kind"] == "heuristic"]["test"])
    assert played == {"rate 0.5", "12 units", "20 units"}
    folders = sorted(path.name for path in (store.WORK / "agents").iterdir())
    assert [name.rpartition("-honest")[0] for name in folders] == ["rlschert-kill", "rlschert-recommended"]
    assert (store.WORK / "agents" / folders[0] / "teacher" / "agent.json").is_file()
    said.clear()
    rlschert_run.run(who, here, **words)  # type: ignore[arg-type]
    assert said == []
    written = rlschert.write()
    assert [path.suffix for path in written] == [".svg", ".svg", ".md"]
    text = written[-1].read_text(encoding="utf-8")
    assert "RLSchert: not run (oracle clamp)" in text
    assert "| RLSchert | none | 0–1 (smoke: 2 epochs) |" in text
    rlschert_run.run(who[1:2], here, **{**words, "labels": [CLAMP]})  # type: ignore[arg-type]
    text = rlschert.page(store.read(rlschert_run.MAIN), store.read(rlschert_run.SWEEPS))
    assert "| RLSchert | none | 1 (smoke: 2 epochs) | 9.7 |" in text
    assert "RLSchert: not run (oracle clamp)" not in text.partition("## Table 8")[0]
    assert "min a seed. A smoke row: 2 epochs show that it runs, no more." in text


def test_a_smoke_row_replaces_no_full_training(
    here: rlschert_run.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {
        name: replace(r, training=replace(r.training, epochs=1)) for name, r in rlschert_run.SETTINGS.items()
    }
    monkeypatch.setattr(rlschert_run, "SETTINGS", short)
    who, words = [ROWS["DeepRM"]], {"objectives": ["completion"], "labels": [CLAMP]}
    rlschert_run.run(who, here, seeds=2, **words)  # type: ignore[arg-type]
    before = store.read(rlschert_run.MAIN)
    assert (list(before["seed"]), list(before["smoke"])) == ([1, 2], [0, 0])
    assert before["oracle"].all()
    rlschert_run.run(who, here, seeds=1, smoke=2, **words)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(store.read(rlschert_run.MAIN), before)


def test_without_the_logged_jobs_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIDGE_DATA", raising=False)
    monkeypatch.delenv("BRIDGE_TRACES", raising=False)
    with pytest.raises(BridgeError, match="the logged VASP jobs are needed"):
        rlschert_run.data_of(None)


def test_unknown_rows_come_with_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])  # the program puts its own folder in front
    command = runpy.run_module("benchmarks.papers.__main__")["rlschert"]
    with pytest.raises(BridgeError, match="no such row") as error:
        command(["--row", "nobody"], standalone_mode=False)
    assert "SAF, rule kill" in error.value.remedy


def test_the_page_is_what_its_data_say() -> None:
    written = (store.RESULTS / "rlschert.md").read_text(encoding="utf-8")
    again = rlschert.page(store.read(rlschert_run.MAIN), store.read(rlschert_run.SWEEPS))
    assert written == again, "run `python -m benchmarks.papers rlschert --seeds 0`"


def test_what_is_kept_has_the_paper_s_heuristics_to_the_printed_digit() -> None:
    data = store.read(rlschert_run.MAIN)
    for table in TABLES:
        for row in ("SJF", "SAF", "SJF, rule kill", "SAF, rule kill"):
            found = rlschert.results(data, row, table.sample, CLAMP)
            assert rlschert.as_printed(
                rlschert.estimate(found, table.metric).mean, ROWS[row].paper[table.number]
            )
    tetris = rlschert.estimate(rlschert.results(data, "Tetris", TEST, CLAMP), "slowdown")
    assert f"{tetris.mean:.2f}" == "13.77"
