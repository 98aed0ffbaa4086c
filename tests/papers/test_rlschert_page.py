"""RLSchert's page: who plays again, what is kept, that it says what its data say; and the printed numbers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

import numpy as np
import pandas as pd
from click.testing import CliRunner

from bridge.base.errors import BridgeError
from bridge.policies.rlschert import SETTINGS
from bridge.pool.jobset import read_vasp
from bridge.pool.recipe import PoolRecipe
from bridge.pool.synthetic import synthetic
from bridge.report.folding import fold_tables
from bridge.study import windows
from bridge.study.cells import cells_of
from bridge.study.reading import read_studies
from bridge.study.results import StudyResults
from bridge.study.spec import Study
from bridge.study.store import Store
from bridge.study.windows import PoolDraw, interval, judged
from bridge.study.work import run_cell
from papers import store, studies
from papers.__main__ import cli
from papers.rlschert import (
    command,
    contestants,
    figures,
    measures,
    page,
    predictor_runs,
    running,
    sweeps,
    worlds,
)
from papers.rlschert.results import RowResults, estimate, seeds_of

TABLES = {study.name: study for study in read_studies(studies.file_of("rlschert"))}


def _printed(table: str, row: str) -> float | None:
    (found,) = (one for one in TABLES[table].rows if one.name == row)
    return found.published.get("VASP jobs")


def test_published_numbers() -> None:
    tables = ("rlschert-6", "rlschert-7", "rlschert-8")
    for row, numbers in {
        "SAF, oracle clamp": (11.44, 10.23, 80.3),
        "RLSchert, oracle clamp": (9.7, 8.93, 76.27),
        "RLSchert, rule kill, oracle clamp": (8.93, 8.69, None),
        "RLSchert, learned kill, oracle clamp": (8.83, 8.32, 76.18),
    }.items():
        assert tuple(_printed(table, row) for table in tables) == numbers
    rows = [row for row in TABLES["rlschert-6"].rows if row.name.endswith(", oracle clamp")]
    assert len(rows) == 14
    assert all(row.published for row in rows)
    for row in TABLES["rlschert-7"].rows:
        assert bool(row.policy) != bool(row.pool)
        kill = SETTINGS[row.setting].kill if row.policy else row.pool.kill
        said = row.name.removesuffix(", oracle clamp").partition(", ")[2]
        assert said == {"none": "", "rule": "rule kill", "learned": "learned kill"}[kill]


def test_pools_of_other_sizes_have_other_agents_which_learn_for_fewer_epochs() -> None:
    study = TABLES["rlschert-11"]
    (row,) = (one for one in study.rows if one.name == "RLSchert")
    units = {log: study.for_log(row, log).recipe(None, 0) for log in study.logs}
    found = {log: (recipe.pool.units, recipe.training.epochs) for log, recipe in units.items()}
    assert found == {
        "12 units": (12, 100),
        "16 units": (16, 100),
        "20 units": (20, 200),
        "24 units": (24, 100),
    }


def test_what_is_kept_has_the_paper_s_heuristics_to_the_printed_digit() -> None:
    for table, metric in (
        ("rlschert-6", "slowdown"),
        ("rlschert-7", "slowdown"),
        ("rlschert-8", "completion"),
    ):
        found = studies.findings("rlschert", table)
        test = TABLES[table].tests[-1].name
        for row in ("SJF", "SAF", "SJF, rule kill", "SAF, rule kill"):
            ((_, kept),) = found.of(f"{row}, oracle clamp", "VASP jobs", test)
            printed = f"{_printed(table, f'{row}, oracle clamp')}"
            digits = len(printed.partition(".")[2])
            assert f"{np.mean(kept['values'][metric]):.{digits}f}" == printed
    ((_, kept),) = studies.findings("rlschert", "rlschert-7").of(
        "Tetris, oracle clamp", "VASP jobs", contestants.TEST
    )
    assert f"{np.mean(kept['values']['slowdown']):.2f}" == "13.77"


def _results(sums: list[list[float]], jobs: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"slowdown": [np.array(s) for s in sums], "jobs": [np.array(jobs)] * len(sums)})


def test_means_are_over_jobs_and_intervals_over_sequences() -> None:
    jobs = [4, 6] * 3
    found = estimate(_results([[10.0, 30.0] * 3], jobs), "slowdown")
    # 40 / 10 jobs; linearised: 4 + (10 − 16) / 5 and 4 + (30 − 24) / 5, thrice, with t(0.975, 5) = 2.5706
    assert found.mean == pytest.approx(4.0)
    assert found.high - found.mean == pytest.approx(2.5706 * 1.2 / 5**0.5, rel=1e-4)
    seeds = estimate(_results([[8.0, 32.0] * 3, [12.0, 28.0] * 3], jobs), "slowdown")
    assert (seeds.mean, seeds.low, seeds.high) == pytest.approx((found.mean, found.low, found.high))
    base = _results([[9.0, 28.5] * 3], jobs)
    apart = estimate(_results([[10.0, 30.0] * 3], jobs), "slowdown", base)
    assert apart.mean == pytest.approx(0.25)
    assert apart.high - apart.low == pytest.approx(0.0, abs=1e-9)  # a quarter more in both


def test_rules_need_no_seeds() -> None:
    assert seeds_of(RowResults(pd.DataFrame({"seed": [0]}))) == "–"
    assert seeds_of(RowResults(pd.DataFrame({"seed": [2, 4]}))) == "2"
    assert seeds_of(RowResults(pd.DataFrame())) == "0"


SMALL = """\
title = "small"
name = "rlschert-7"
logs = "VASP jobs"
files = { "VASP jobs" = "pool:PATH" }
seeds = 2
metric = "slowdown"
more = ["completion"]
tests = [
  { name = "200 held-out sequences", seed = 3, sequences = 2, drawn = { rate = 1.0, steps = 12 } },
  { name = "the paper's test set", seed = 4, sequences = 3, drawn = { rate = 1.0, steps = 15 } },
]
rows = [
  { name = "SAF", pool = { rule = "saf", settings = { units = 6 } } },
  { name = "SAF, rule kill", pool = { rule = "saf", kill = "rule", settings = { units = 6 } } },
  { name = "RLSchert", policy = "rlschert", setting = "recommended", changes = CHANGES },
  { name = "RLSchert, rule kill", policy = "rlschert", setting = "rule-kill", changes = CHANGES },
]
"""
_TINY = (
    "{ network = { hidden = [8] }, pool = { units = 6 }, training = "
    "{ epochs = 1, lessons = 1, sequences = 2, steps = 10, valid_sequences = 2 } }"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """A small study in place of the paper's; results and agents are kept in empty folders."""
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(store, "WORK", tmp_path / "work")
    monkeypatch.setattr(studies, "CELLS", tmp_path / "studies")
    path, file = tmp_path / "jobs.csv", tmp_path / "study.toml"
    lines = [f"{k},{2 + k % 5},{1 + k % 4},{10 * (1 + k % 6)},{2 + k % 5}" for k in range(20)]
    path.write_text("\n".join(["job_id,real,para,cores,running", *lines]) + "\n")
    file.write_text(SMALL.replace("PATH", str(path)).replace("CHANGES", _TINY))
    monkeypatch.setattr(studies, "files_of", lambda _: (file,))
    monkeypatch.setattr(page, "headline", lambda _: "")
    studies.studies.cache_clear()
    (study,) = read_studies(file)
    yield study
    studies.studies.cache_clear()


def _train(study: Study, row: str, seed: int) -> None:
    (cell,) = (one for one in cells_of(study) if (one.row, one.seed) == (row, seed))
    run_cell(cell, Store(studies.CELLS), "x")


def test_rules_and_agents_that_have_learnt_here_play_once(here: Study) -> None:
    said: list[str] = []
    _train(here, "RLSchert, rule kill", 2)
    rows = {"SAF, rule kill", "RLSchert, rule kill", "RLSchert"}
    for _ in range(2):
        contestants.judge(page.KILLED, rows, measures.killed, said.append)
    assert said == [
        "SAF, rule kill on VASP jobs: the paper's test set",
        "RLSchert, rule kill on VASP jobs, seed 2: the paper's test set",
    ]
    found = store.read(page.KILLED)
    assert list(zip(found["row"], found["seed"], strict=True)) == [
        ("RLSchert, rule kill", 2),
        ("SAF, rule kill", 0),
    ]
    contestants.judge(page.HOLES, {"SAF"}, measures.holes, said.append)
    assert len(np.asarray(store.read(page.HOLES)["jobs"].iloc[0])) == 3
    _train(here, "RLSchert, rule kill", 1)
    said.clear()
    contestants.judge(page.KILLED, rows, measures.killed, said.append)
    assert said == ["RLSchert, rule kill on VASP jobs, seed 1: the paper's test set"]
    assert sorted(store.read(page.KILLED)["seed"]) == [0, 1, 2]
    written = page.write()
    assert [path.name for path in written] == [
        "rlschert-figure-12.svg",
        "rlschert-figure-13.svg",
        "rlschert.md",
    ]
    assert "| RLSchert, rule kill | 2 | " in written[-1].read_text()


def test_an_agent_that_was_trained_on_plays_again_and_others_stay(here: Study) -> None:
    said: list[str] = []
    for seed in (1, 2):
        _train(here, "RLSchert, rule kill", seed)
    contestants.judge(page.KILLED, {"RLSchert, rule kill"}, measures.killed, said.append)
    found = store.read(page.KILLED)
    found.loc[found["seed"] == 1, "agent"] = "one that learnt for less long"
    found.to_parquet(store.path_of(page.KILLED))
    said.clear()
    contestants.judge(page.KILLED, {"RLSchert, rule kill"}, measures.killed, said.append)
    assert said == ["RLSchert, rule kill on VASP jobs, seed 1: the paper's test set"]
    again = store.read(page.KILLED)
    assert list(again["seed"]) == [1, 2]
    assert again["agent"].str.len().tolist() == [16, 16]


def test_what_fewer_predictions_cost_is_told_of_agents_that_correct_them(here: Study) -> None:
    drawn = [PoolDraw(rate=1.0, steps=15, predictable=share) for share in (0.0, 1.0)]
    names = ("0 % predicted", "100 % predicted")
    tests = tuple(
        windows.TestSet(name=n, seed=4, sequences=6, pool_draw=d) for n, d in zip(names, drawn, strict=True)
    )
    study = replace(here, tests=tests)
    cells = [cell for cell in cells_of(study) if cell.row in ("SAF", "RLSchert, rule kill")]
    for cell in cells:
        run_cell(cell, Store(studies.CELLS), "x")
    found = StudyResults(study, cells, Store(studies.CELLS))
    none, every = (found.values("RLSchert, rule kill", "VASP jobs", name) for name in names)
    apart = interval(none, every)
    assert sweeps.shares(found) == [
        f"RLSchert, rule kill, against 100 % predicted: 0 % predicted {judged(apart, 'slowdown')} "
        f"({apart.mean:+.2f} [{apart.low:+.2f}, {apart.high:+.2f}] t)."
    ]


def test_rules_of_the_page_need_not_play_again() -> None:
    """The digests of what is kept are those that would be asked for."""
    rules = {cell.row: cell for cell in contestants.table()[1] if cell.heuristic}
    asked = contestants.test().as_key()
    for file in (page.HOLES, page.KILLED):
        found = store.read(file)
        for row in found[found["seed"] == 0]["row"]:
            assert contestants.is_done(file, contestants.head_of(rules[row], contestants.TEST, asked)), (
                file,
                row,
            )
    for world, (platform, profile) in worlds.WORLDS.items():
        words = ["--platform", platform, "--profile", profile]
        for row in ("SJF", "SAF", "SAF, rule kill"):
            assert contestants.is_done(
                worlds.FILE, contestants.head_of(rules[row], world, words, worlds.SEQUENCES)
            )


def test_both_worlds_are_asked_for_rules_and_the_first_seed(
    here: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: list[tuple[str, ...]] = []

    def bridge(*words: str) -> str:
        typed.append(words)
        told = {"slowdown": 2.0 + len(typed), "completion_time": 9.0, "kills": 1}
        return json.dumps({"policies": [{"fast": told, "detailed": told, "jobs": 40, "differing_starts": 3}]})

    monkeypatch.setattr(store, "bridge", bridge)
    for seed in (1, 2):
        _train(here, "RLSchert, rule kill", seed)
    for _ in range(2):
        worlds.run(lambda _: None)
    who = [words[1] for words in typed]
    agent = str(Store(studies.CELLS).agent(cells_of(here)[3].agent_key))
    assert who == ["saf", "saf", "saf+rule", "saf+rule", agent, agent]
    for words, (platform, profile) in zip(typed, [*worlds.WORLDS.values()] * 3, strict=True):
        assert words[0] == "validate"
        assert words[-5:] == ("--platform", platform, "--profile", profile, "--json")
        assert Path(words[words.index("--data") + 1]).name == "jobs.csv"
    rows = worlds.text(store.read(worlds.FILE))["rows"]
    found = {(world, row): rest for world, row, *rest in rows}
    assert found["delay", "SAF"] == ["3.00", "3.00", "+0.0 %", "1", "3 of 40"]
    assert found["delay", "RLSchert, rule kill"] == ["7.00", "7.00", "+133.3 %", "1", "3 of 40"]
    assert found["delay", "DeepRM"][0] == "not run"


def test_who_plays_again_has_what_its_table_has(here: Study) -> None:
    cells = {cell.row: cell for cell in cells_of(here)}
    kept = run_cell(cells["SAF"], Store(studies.CELLS), "x")
    contestants.judge("sums", {"SAF"}, measures.sums, lambda _: None)
    again = estimate(store.read("sums"), "slowdown").mean
    found = StudyResults(here, list(cells.values()), Store(studies.CELLS))
    assert again == pytest.approx(found.row("SAF", "VASP jobs", contestants.TEST)["mean"]["mean"])
    assert int(np.sum(store.read("sums")["jobs"].iloc[0])) == kept["tests"][1]["jobs"]


@pytest.mark.usefixtures("here")
def test_errors_while_jobs_run_are_measured_once_and_stand_on_the_page(tmp_path: Path) -> None:
    said: list[str] = []
    logged = read_vasp(tmp_path / "jobs.csv")
    # of lengths 2, 3, 4, 5 and 6, four of each, all are believed to be 4
    jobs = replace(logged, beliefs=np.full_like(logged.beliefs, 4))
    for _ in range(2):
        running.run(jobs, said.append)
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
    predictor_runs.run(synthetic(20, seed=1), said.append)  # the agent has not learnt here
    assert (said, predictor_runs.rows(store.read(predictor_runs.FILE))) == ([], [])
    made = {"SAF": [10.0, 30.0] * 3, "RLSchert": [8.0, 24.0] * 3}
    data = pd.DataFrame(
        {"row": who, "test": predictor, "slowdown": np.array(values), "jobs": np.array([4, 6] * 3)}
        for predictor in predictor_runs.PREDICTORS
        for who, values in made.items()
    )
    # means 40 / 10 and 32 / 10; linearised: 2.8, 5.2 and 2.24, 4.16, thrice; differences -0.56, -1.04
    for row, predictor in zip(predictor_runs.rows(data), predictor_runs.PREDICTORS, strict=True):
        assert row == [
            *(predictor, "4.00 [2.62, 5.38] t", "3.20 [2.10, 4.30] t"),
            *("-0.80 [-1.08, -0.52] t", "better"),
        ]


def test_without_the_logged_jobs_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIDGE_DATA", raising=False)
    from bridge.study.cells import load_log

    load_log.cache_clear()
    with pytest.raises(BridgeError, match="no such file") as error:
        contestants.jobs()
    assert "$BRIDGE_DATA" in error.value.remedy


@pytest.mark.usefixtures("here")
def test_the_command_runs_parts_and_goes_on_where_one_cannot_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROOT", tmp_path)
    assert set(command.runs()) == set(command.PARTS)
    begun: list[str] = []

    def part(name: str) -> Callable[[Callable[[str], None]], None]:
        def run(say: Callable[[str], None]) -> None:
            say(f"begins {name}")
            begun.append(name)
            if name == "figure-6":
                raise BridgeError("no such file", where="jobs.csv")

        return run

    monkeypatch.setattr(command, "runs", lambda: {name: part(name) for name in command.PARTS})
    rlschert = cli.commands["rlschert"]
    told = CliRunner().invoke(rlschert, [])
    assert begun == [name for name in command.PARTS if name != "worlds"]
    assert told.exit_code == 1
    assert "figure-6: jobs.csv: no such file" in told.stderr
    assert "rlschert.md" in told.stdout
    begun.clear()
    told = CliRunner().invoke(rlschert, ["worlds", "driven"])
    assert (begun, told.exit_code) == (["driven", "worlds"], 0)
    told = CliRunner().invoke(rlschert, ["table-99"])
    assert told.exit_code == 2
    assert "figure-12" in told.stderr


def test_everybody_on_the_page_is_a_row_of_the_table() -> None:
    rows = {row.name for row in TABLES["rlschert-7"].rows}
    assert {*figures.WITH_HOLES, *figures.WITH_KILLS} <= rows
    assert isinstance(TABLES["rlschert-7"].rows[-1].recipe(None, 0), PoolRecipe)


def test_the_page_is_what_its_data_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for how it opens, see `tests/papers/test_pages.py`."""
    written = (store.RESULTS / "rlschert.md").read_text(encoding="utf-8")
    opening = written.partition("2021.\n\n")[2].partition("\nIts tables of agents")[0]
    assert "rlschert-headline.svg" in opening
    monkeypatch.setattr(page, "headline", lambda _: opening)
    again = fold_tables(page.page(page.read()))
    assert written == again, "run `python -m papers rlschert`"
