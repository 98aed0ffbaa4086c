"""Rows of the time-stepped pool: heuristics, agents, and one that another agent of its seed teaches."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.pool.evaluate import evaluate, jobs_of
from bridge.pool.settings import EvaluationOptions
from bridge.pool.study_rows import linear
from bridge.study.cells import Cell, cells_of, prefer_shorter_trainings
from bridge.study.reading import read_studies
from bridge.study.results import document_of
from bridge.study.runner import CostModel
from bridge.study.spec import Study
from bridge.study.store import Store
from bridge.study.work import run_cell

POOL = """\
title = "Pool"
logs = ["jobs"]
files = { jobs = "pool:synthetic" }
metric = "slowdown"
more = ["completion"]
seeds = 1

[[tests]]
seed = 5
sequences = 3
drawn = { rate = 0.6, steps = 20 }

[[rows]]
name = "SAF"
pool = { rule = "saf" }
[[rows]]
name = "SAF, kills"
pool = { rule = "saf", kill = "rule", settings = { oracle_clamp = true } }
[[rows]]
name = "rule kill"
policy = "rlschert"
setting = "rule-kill"
changes = { training = { epochs = 1, sequences = 2, steps = 10, valid_sequences = 2, lessons = 1 } }
[[rows]]
name = "kill"
policy = "rlschert"
setting = "kill"
teacher = "rule kill"
changes = { training = { epochs = 1, sequences = 2, steps = 10, valid_sequences = 2, lessons = 1 } }
"""


@pytest.fixture
def pool(tmp_path: Path) -> Study:
    path = tmp_path / "pool.toml"
    path.write_text(POOL)
    (study,) = read_studies(path)
    return study


def test_heuristics_are_judged_as_the_pool_judges_them(pool: Study, tmp_path: Path) -> None:
    plain, clamped = cells_of(pool)[:2]
    found = run_cell(plain, Store(tmp_path / "store"), "x")["tests"][0]
    own = evaluate(jobs_of("synthetic"), "saf", "none", EvaluationOptions(5, 0.6, 20, 3))
    for metric in ("slowdown", "completion"):
        assert np.mean(found["values"][metric]) == pytest.approx(getattr(own, metric))
    assert found["jobs"] == sum(len(s.id) for s in own.schedules)
    assert (found["oracle"], len(found["starts"])) == (False, 3)
    assert run_cell(clamped, Store(tmp_path / "store"), "x")["tests"][0]["oracle"]
    assert plain.key != clamped.key


def test_whom_the_clamp_teaches_nothing_else_learns_once(tmp_path: Path) -> None:
    path = tmp_path / "clamp.toml"
    training = "training = { epochs = 1, sequences = 2, steps = 10, valid_sequences = 2, lessons = 1 }"
    rows = "".join(
        f'[[rows]]\nname = "{setting}{clamp}"\npolicy = "rlschert"\nsetting = "{setting}"\n'
        f"changes = {{ pool = {{ oracle_clamp = {clamp} }}, {training} }}\n"
        for setting in ("deeprm", "recommended")
        for clamp in ("false", "true")
    )
    path.write_text(POOL.partition("[[rows]]")[0].replace("seeds = 1", "seeds = 2") + rows)
    (study,) = read_studies(path)
    store, cells = Store(tmp_path / "store"), cells_of(study)
    (plain, clamped, *others), later = cells[:4], cells[4:]
    assert plain.agent_key == clamped.agent_key
    assert len({cell.agent_key for cell in others}) == 2, "beliefs that change are clamped in training, too"
    assert len({cell.key for cell in cells}) == len(cells) == 8
    honest, oracle = (run_cell(cell, store, "x") for cell in (plain, clamped))
    assert len(list((tmp_path / "store" / "agents").iterdir())) == 1
    store.save(plain.key, honest | {"seconds": 2.0, "train_seconds": 1.5})  # on any machine
    store.save(clamped.key, oracle | {"seconds": 0.5, "train_seconds": 0.0})
    costs = CostModel(cells, store)
    assert costs.of_all([plain, clamped]) == [0.0, 0.0], "its agent is there"
    assert costs.of_all(later[:2]) == [2.0, 0.0], "the second one takes the first one's agent"
    assert [one["tests"][0]["oracle"] for one in (honest, oracle)] == [False, True]
    assert honest["tests"][0]["values"] == oracle["tests"][0]["values"]
    assert oracle["made_of"]["pool"]["oracle_clamp"]


def test_a_teacher_that_is_not_there_any_more_costs_too(pool: Study, tmp_path: Path) -> None:
    store, cells = Store(tmp_path / "store"), {cell.row: cell for cell in cells_of(pool)}
    teacher, pupil = cells["rule kill"], cells["kill"]
    assert pupil.teacher == teacher
    costs = CostModel((), store)
    assert costs.of_all([pupil]) == [None]
    for cell, seconds in ((teacher, 4.0), (pupil, 8.0)):
        costs.add(cell, {"seconds": seconds, "train_seconds": seconds})
    assert costs.of_all([pupil]) == [12.0]
    assert costs.of_all([teacher, pupil]) == [4.0, 8.0]
    store.agent(teacher.agent_key).mkdir(parents=True)
    assert costs.of_all([pupil]) == [8.0]


def test_who_was_taught_by_a_teacher_that_has_ended_is_not_taught_anew(pool: Study, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    short, asked = ({cell.row: cell for cell in cells_of(one)} for one in (pool, replace(pool, longest=(9,))))
    teacher, pupil = short["rule kill"], short["kill"]
    longer = asked["rule kill"].key, asked["kill"].key
    ended, late = ({"best_epoch": best, "epochs": 10} for best in (1, 10))

    def keys(*, for_now: bool = False) -> tuple[str, ...]:
        found = prefer_shorter_trainings(asked.values(), store, for_now=for_now)
        return tuple(cell.key for cell in found if cell.recipe)

    store.save(pupil.key, ended)
    assert keys() == longer, "its teacher may go on"
    assert keys(for_now=True) == (longer[0], pupil.key)
    store.save(teacher.key, late)
    assert keys() == longer
    assert keys(for_now=True) == (teacher.key, pupil.key)
    store.save(teacher.key, ended)
    assert keys() == keys(for_now=True) == (teacher.key, pupil.key)
    store.save(pupil.key, late)
    assert keys() == (teacher.key, replace(asked["kill"], teacher=teacher).key)
    assert keys(for_now=True) == (teacher.key, pupil.key)


def test_on_a_log_the_pool_has_another_size(tmp_path: Path) -> None:
    path = tmp_path / "sizes.toml"
    sizes = '[changes_on."12 units"]\npool = { units = 12 }\ntraining = { epochs = 2 }\n'
    files = 'files = { "20 units" = "pool:synthetic", "12 units" = "pool:synthetic" }'
    head, tests, rows = POOL.partition("[[tests]]")
    rest = [line for line in head.splitlines() if not line.startswith(("logs", "files"))]
    path.write_text("\n".join([*rest, 'logs = ["20 units", "12 units"]', files, sizes, tests + rows]))
    (study,) = read_studies(path)
    wide, narrow = ({c.row: c for c in cells_of(study) if c.log == log} for log in study.logs)
    rules = [wide["SAF, kills"].heuristic, narrow["SAF, kills"].heuristic]
    assert [(rule.settings.units, rule.settings.oracle_clamp) for rule in rules if rule] == [
        (20, True),
        (12, True),
    ]
    agents: list[Any] = [wide["kill"].recipe, narrow["kill"].recipe]
    assert [(one.pool.units, one.training.epochs) for one in agents] == [(20, 1), (12, 2)]
    teachers = [one["kill"].teacher for one in (wide, narrow)]
    assert [t.agent_key for t in teachers if t] == [one["rule kill"].agent_key for one in (wide, narrow)]
    assert wide["rule kill"].agent_key != narrow["rule kill"].agent_key


def test_an_agent_is_taught_by_the_one_of_its_seed(pool: Study, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    cells = {cell.row: cell for cell in cells_of(pool)}
    pupil = cells["kill"]
    assert pupil.teacher is not None
    assert pupil.teacher.agent_key == cells["rule kill"].agent_key
    run_cell(pupil, store, "x")
    assert store.agent(pupil.teacher.agent_key).exists()
    assert store.cell(cells["rule kill"].key) is None  # it has learnt, and has not been judged
    document = document_of(pool, list(cells.values()), store)
    (row,) = (row for row in document["rows"] if row["row"] == "kill")
    assert (row["seeds"], row["windows"], row["windows_apart"], row["epochs"]) == (1, 3, 3, [1])


def test_the_mean_of_sequences_is_that_of_all_jobs() -> None:
    values = linear(np.array([6.0, 8.0]), np.array([1.0, 3.0]))
    assert values.mean() == pytest.approx(14 / 4)
    assert linear(np.array([6.0, 8.0]), np.array([2.0, 2.0])).tolist() == [3.0, 4.0]


def test_what_the_pool_has_not(pool: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIDGE_DATA", raising=False)
    with pytest.raises(BridgeError, match="no such file"):
        jobs_of("pool:nowhere.csv.gz")
    cell = Cell(**{**vars(cells_of(pool)[0]), "metrics": ("bsld",)})
    with pytest.raises(BridgeError, match="no such metric"):
        run_cell(cell, Store(tmp_path / "store"), "x")
