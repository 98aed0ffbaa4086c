"""RLSchert's tables: what is played and trained, what is kept, and that the page says what its data say."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

import numpy as np
import pandas as pd

from bridge.errors import BridgeError
from bridge.learn.recipe import PictureNetwork
from bridge.policies.rlschert import SETTINGS
from bridge.pool.synthetic import synthetic
from papers import store, studies
from papers.__main__ import cli
from papers.rlschert import agents, command, driven, page, play, running
from papers.rlschert.agents import Data, Pupil
from papers.rlschert.found import estimate, results
from papers.rlschert.play import Wanted
from papers.rlschert.study import CLAMP, HONEST, METHODS, TABLES, TEST, Sample

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


def _results(sums: list[list[float]], jobs: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"slowdown": [np.array(s) for s in sums], "jobs": [np.array(jobs)] * len(sums)})


def test_means_are_over_jobs_and_intervals_over_sequences() -> None:
    found = estimate(_results([[10.0, 30.0]], [4, 6]), "slowdown")
    # 40 / 10 jobs; linearised: 4 + (10 − 16) / 5 and 4 + (30 − 24) / 5, with t(0.975, 1) = 12.706
    assert found.mean == pytest.approx(4.0)
    assert found.high - found.mean == pytest.approx(12.7062 * 1.2 * 2**0.5 / 2**0.5, rel=1e-4)
    seeds = estimate(_results([[8.0, 32.0], [12.0, 28.0]], [4, 6]), "slowdown")
    assert (seeds.mean, seeds.low, seeds.high) == pytest.approx((found.mean, found.low, found.high))
    base = _results([[9.0, 28.5]], [4, 6])
    apart = estimate(_results([[10.0, 30.0]], [4, 6]), "slowdown", base)
    assert apart.mean == pytest.approx(0.25)
    assert apart.high - apart.low == pytest.approx(0.0, abs=1e-9)  # a quarter more in both


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    """Keep results in an empty folder; jobs, sequences and agents are small."""
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(store, "WORK", tmp_path / "work")
    tables = tuple(replace(t, sample=replace(t.sample, sequences=3, steps=15)) for t in TABLES)
    loads = tuple(Sample(f"rate {r:g}", 18, rate=r, sequences=3, steps=15) for r in (0.5,))
    sizes = tuple(Sample(f"{u} units", 18, units=u, sequences=3, steps=15) for u in (12, 20))
    for name, value in (("TABLES", tables), ("LOADS", loads), ("SIZES", sizes)):
        for module in (play, page):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    tiny = {
        name: replace(
            recipe,
            network=PictureNetwork(hidden=(8,)),
            training=replace(recipe.training, sequences=2, steps=10, valid_sequences=2),
        )
        for name, recipe in SETTINGS.items()
    }
    monkeypatch.setattr(agents, "SETTINGS", tiny)
    path = tmp_path / "jobs.csv"
    lines = [f"{k},{2 + k % 5},{1 + k % 4},{10 * (1 + k % 6)},{2 + k % 5}" for k in range(20)]
    path.write_text("\n".join(["job_id,real,para,cores,running", *lines]) + "\n")
    return agents.data_of(path)


def test_rows_are_run_once_and_smoke_rows_say_so(here: Data) -> None:
    said: list[str] = []
    who = (ROWS["SAF"], ROWS["RLSchert"], ROWS["RLSchert, learned kill"])
    wanted = Wanted(who, seeds=1, smoke=2, objectives=("slowdown",), labels=(HONEST,), say=said.append)
    play.tables(wanted, here)
    tables, sweeps = store.read(play.MAIN), store.read(play.SWEEPS)
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
    settings = ("kill", "recommended", "rule-kill")  # the last one taught the first
    assert [name.rpartition("-honest")[0] for name in folders] == [f"rlschert-{name}" for name in settings]
    assert (store.WORK / "agents" / folders[0] / "teacher" / "agent.json").is_file()
    said.clear()
    play.tables(wanted, here)
    assert said == []
    written = page.write()
    expected = [*(f"rlschert-figure-{number}.svg" for number in (10, 11, 12, 13)), "rlschert.md"]
    assert [path.name for path in written] == expected


def test_errors_while_jobs_run_are_measured_once_and_stand_on_the_page(here: Data) -> None:
    said: list[str] = []
    wanted = Wanted((), say=said.append)
    # of lengths 2, 3, 4, 5 and 6, four of each, all are believed to be 4
    data = replace(here, jobs=replace(here.jobs, beliefs=np.full_like(here.jobs.beliefs, 4)))
    for _ in range(2):
        running.run(wanted, data)
    assert said == ["the authors', of logged jobs, while running"]
    measured = store.read(running.ACCURACY)
    assert running.rows(measured) == [["the authors', of logged jobs", "all", "–", *["37.3"] * 10]]
    written = page.write()
    assert "rlschert-figure-6.svg" in {path.name for path in written}
    text = next(path for path in written if path.name == "rlschert.md").read_text()
    assert "| the authors', of logged jobs | all | – | 37.3 | 37.3 |" in text


@pytest.mark.usefixtures("here")
def test_the_page_tells_who_is_driven_by_which_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(studies, "agent", lambda *_: None)
    driven.run(Wanted((), say=said.append), synthetic(20, seed=1))  # the agent has not learnt here
    assert (said, driven.rows(store.read(driven.FILE))) == ([], [])
    made = {"SAF": [10.0, 30.0], "RLSchert": [8.0, 24.0]}
    data = pd.DataFrame(
        {"row": who, "test": predictor, "slowdown": np.array(values), "jobs": np.array([4, 6])}
        for predictor in driven.PREDICTORS
        for who, values in made.items()
    )
    # means 40 / 10 and 32 / 10; linearised: 2.8, 5.2 and 2.24, 4.16, so the difference is -0.56, -1.04
    for row, predictor in zip(driven.rows(data), driven.PREDICTORS, strict=True):
        assert row == [
            *(predictor, "4.00 [-11.25, 19.25]", "3.20 [-9.00, 15.40]"),
            *("-0.80 [-3.85, +2.25]", "not distinguishable"),
        ]


def test_a_smoke_row_replaces_no_full_training(here: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {name: replace(r, training=replace(r.training, epochs=1)) for name, r in agents.SETTINGS.items()}
    monkeypatch.setattr(agents, "SETTINGS", short)
    wanted = Wanted((ROWS["DeepRM"],), seeds=2, objectives=("completion",), labels=(CLAMP,))
    play.tables(wanted, here)
    before = store.read(play.MAIN)
    assert (list(before["seed"]), list(before["smoke"])) == ([1, 2], [0, 0])
    assert before["oracle"].all()
    play.tables(replace(wanted, seeds=1, smoke=2), here)
    pd.testing.assert_frame_equal(store.read(play.MAIN), before)


def test_parts_that_train_nobody_judge_the_agents_that_exist(here: Data) -> None:
    said: list[str] = []
    who = (ROWS["SAF"], ROWS["RLSchert, learned kill"])
    wanted = Wanted(who, smoke=2, labels=(HONEST,), objectives=("slowdown",), say=said.append)
    parts = ("table-9", "convergence", "figure-12", "figure-13")
    agents.trained(Pupil("kill", HONEST, smoke=2), 4, here, said.append)
    command.run(wanted, parts, 0, here.path)
    killer = "RLSchert, learned kill (slowdown)"
    for file in (play.TABLE_9, play.CURVES, play.HOLES):
        found = store.read(file)
        mine = found[found["row"] == killer]
        assert set(mine["seed"]) == {4}, file
        assert len(mine) == (4 if file == play.TABLE_9 else 1)
    assert set(store.read(play.KILLED)["row"]) == {killer}
    assert len(list((store.WORK / "agents").iterdir())) == 2  # and the killer's teacher
    said.clear()
    command.run(wanted, parts, 0, here.path)
    assert said == []
    text = page.page(page.read())
    assert "RLSchert, learned kill (slowdown, honest, 1 seed):" in text


def test_agents_of_other_pools_learn_for_fewer_epochs_and_other_jobs_have_other_agents(here: Data) -> None:
    assert Pupil("recommended", HONEST).recipe.training.epochs == 200
    assert Pupil("recommended", HONEST, units=12).recipe.training.epochs == 100
    assert Pupil("recommended", HONEST, units=12, smoke=2).recipe.training.epochs == 2
    logged, other = Pupil("kill", CLAMP, "completion"), replace(here, sha256="0" * 64, word="synthetic")
    assert logged.folder(2, here).name.startswith("rlschert-kill-clamp-completion-20-")
    assert logged.folder(2, other).name.startswith("rlschert-synthetic-kill-clamp-completion-20-")
    assert logged.folder(2, here).name.split("-")[-2:] != logged.folder(2, other).name.split("-")[-2:]
    assert logged.command(2, here).endswith(
        '--row "RLSchert, learned kill" --label "oracle clamp" --objective completion --seeds 2'
    )


def test_without_the_logged_jobs_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIDGE_DATA", raising=False)
    monkeypatch.delenv("BRIDGE_TRACES", raising=False)
    with pytest.raises(BridgeError, match="the logged VASP jobs are needed"):
        agents.data_of(None)


def test_unknown_rows_come_with_the_list() -> None:
    rlschert = cli.commands["rlschert"]
    with pytest.raises(BridgeError, match="no such row") as error:
        rlschert.main(["--row", "nobody"], standalone_mode=False)
    assert "SAF, rule kill" in error.value.remedy


def test_the_command_line_knows_all_parts() -> None:
    rlschert = cli.commands["rlschert"]
    option = next(p for p in rlschert.params if p.name == "parts")
    named = option.help.removeprefix("Only this: ").partition(". ")[0].split(", ")
    assert sorted(named) == sorted(command.PARTS)
    with pytest.raises(BridgeError, match="no such part"):
        rlschert.main(["--part", "table-99"], standalone_mode=False)
    with pytest.raises(BridgeError, match="this part needs the logged jobs"):
        rlschert.main(["--jobs", "synthetic", "--part", "table-9"], standalone_mode=False)


def test_the_page_is_what_its_data_say() -> None:
    written = (store.RESULTS / "rlschert.md").read_text(encoding="utf-8")
    again = page.page(page.read())
    assert written == again, "run `python -m papers rlschert --seeds 0`"


def test_what_is_kept_has_the_paper_s_heuristics_to_the_printed_digit() -> None:
    data = store.read(play.MAIN)
    for table in TABLES:
        for row in ("SJF", "SAF", "SJF, rule kill", "SAF, rule kill"):
            found = results(data, row, table.sample, CLAMP)
            printed = ROWS[row].paper[table.number]
            digits = len(printed.partition(".")[2])
            assert f"{estimate(found, table.metric).mean:.{digits}f}" == printed
    tetris = estimate(results(data, "Tetris", TEST, CLAMP), "slowdown")
    assert f"{tetris.mean:.2f}" == "13.77"
