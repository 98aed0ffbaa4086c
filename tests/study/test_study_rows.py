"""Studies of several tables, fixed rules, tests by row and log, and the record that travels with a study."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_commands import run_bridge, run_ok, run_refused

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.study import archive
from bridge.study.cells import cells_of
from bridge.study.fixed_rules import RejectRule
from bridge.study.reading import read_studies
from bridge.study.report import markdown
from bridge.study.results import document_of
from bridge.study.store import Store
from bridge.study.work import run_cell

TABLES = """\
logs = ["small"]
files = { small = "bundled-128" }
more = []
record = "record.parquet"

[[tests]]
name = "far"
sequences = 12
length = 32
[[tests]]
name = "own"
sequences = 3
length = 32
held_out = false
seeds = { small = 7 }

[[tables]]
name = "one"
title = "One"
[[tables.rows]]
name = "SJF"
setup = { order = "sjf", backfill = "none" }
[[tables.rows]]
name = "timid"
setup = { order = "sjf", backfill = "none" }
reject = ["n - free/2"]
tests = ["own"]
published = { small = 2.5 }

[[tables]]
name = "two"
title = "Two"
[[tables.rows]]
name = "SJF again"
setup = { order = "sjf", backfill = "none" }
[[tables.rows]]
name = "never"
setup = { order = "sjf", backfill = "none" }
rule = "never"
"""


class Never:
    """Rejects nothing."""

    def __init__(self, resources: int) -> None:
        assert resources == 1

    def encoder(self) -> Encoder:
        return Encoder("inspect", {"fits": "fits"})

    def __call__(self, view: PackedObservations) -> np.ndarray:
        return np.zeros(len(view.offsets) - 1, np.int64)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(plugins._registered, ("rule", "never"), Never)
    path = tmp_path / "tables.toml"
    path.write_text(TABLES)
    return path


def test_tables_share_what_the_file_says_and_their_cells(tables: Path) -> None:
    one, two = read_studies(tables)
    assert [study.name for study in (one, two)] == ["one", "two"]
    first, timid, again, never = [cell for study in (one, two) for cell in cells_of(study)]
    assert first.key == again.key
    assert len({first.key, timid.key, never.key}) == 3
    assert (first.log, first.file) == ("small", "bundled-128")
    assert [test.seed for test in first.tests] == [1, 7]
    assert [test.name for test in timid.tests] == ["own"]


def test_a_table_may_have_the_rows_of_one_above(tmp_path: Path) -> None:
    path = tmp_path / "tables.toml"
    path.write_text(f'{TABLES}\n[[tables]]\nname = "three"\ntitle = "Three"\nrows = "one"\n')
    first, _, third = read_studies(path)
    assert [row.name for row in third.rows] == ["SJF", "timid"]
    assert [dict(row.published) for row in third.rows] == [{}, {}]
    assert [cell.key for cell in cells_of(third)] == [cell.key for cell in cells_of(first)]


@pytest.mark.parametrize(
    ("base", "compared"),
    [
        ("", [("timid", "SJF"), ("third", "SJF")]),
        ('base = "timid"', [("timid", "SJF"), ("third", "timid")]),
        ('base = ["timid", "SJF", "timid"]', [("timid", "SJF"), ("third", "timid"), ("third", "SJF")]),
    ],
)
def test_a_row_is_compared_with_one_base_or_with_several(
    tmp_path: Path, base: str, compared: list[tuple[str, str]]
) -> None:
    (study,) = read_studies(_bases(tmp_path, base))
    assert [(one.row, one.base) for one in study.compared] == compared


def test_every_base_is_a_row(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="compares 'nobody', which is no row"):
        read_studies(_bases(tmp_path, 'base = ["SJF", "nobody"]'))


def _bases(folder: Path, base: str) -> Path:
    path = folder / "bases.toml"
    rows = "".join(f'[[rows]]\nname = "{name}"\n' for name in ("SJF", "timid", "third"))
    path.write_text(f'title = "Bases"\nlogs = ["bundled-128"]\n{rows}{base}\n')
    return path


ON = """\
title = "On"
logs = ["plain", "other"]
files = { plain = "bundled-128", other = "bundled-128" }
[changes_on.other]
setup = { order = "saf" }
training = { epochs = 3 }
[[rows]]
name = "SJF"
setup = { order = "sjf", backfill = "none" }
[[rows]]
name = "agent"
policy = "rlbackfilling"
changes = { setup = { candidate_order = "sjf" }, training = { epochs = 9, trajectories = 5 } }
"""


def test_on_a_log_every_row_has_what_is_changed_there(tmp_path: Path) -> None:
    path = tmp_path / "on.toml"
    path.write_text(ON)
    (study,) = read_studies(path)
    cells = {(cell.row, cell.log): cell for cell in cells_of(study) if cell.seed < 2}
    assert [cells["SJF", log].setup.order for log in study.logs] == ["sjf", "saf"]
    assert {cells["SJF", log].setup.backfill for log in study.logs} == {"none"}
    recipes: list[Any] = [cells["agent", log].recipe for log in study.logs]
    assert [recipe.setup.order for recipe in recipes] == ["fcfs", "saf"]
    assert [recipe.setup.candidate_order for recipe in recipes] == ["sjf", "sjf"]
    assert [recipe.training.epochs for recipe in recipes] == [9, 3]
    assert [recipe.training.trajectories for recipe in recipes] == [5, 5]
    assert len({cell.key for cell in cells.values()}) == 4


def test_fixed_rules_are_played(tables: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    found = {c.row: run_cell(c, store, "x") for s in read_studies(tables) for c in cells_of(s)}
    values = {row: cell["tests"][-1]["values"]["bsld"] for row, cell in found.items()}
    assert values["never"] == values["SJF"] == values["SJF again"]
    assert values["timid"] != values["SJF"]


def test_a_rule_rejects_where_an_expression_is_above_0() -> None:
    rule = RejectRule(("1 - fits", "n - free/2"))
    assert tuple(rule.encoder().features.values()) == ("1 - fits", "n - free/2")
    seen = np.array([[0, -2], [0, 0], [0, 0.5], [1, 3]], np.float32)
    view = PackedObservations(seen, np.arange(5), np.arange(4), np.zeros((4, 0), np.float32))
    assert rule(view).tolist() == [0, 0, 1, 1]


def test_a_record_travels(tables: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        store = (tables, "--store", tmp_path / name)
        told = run_bridge("study", "run", *store, "--workers", 1, "--row", "SJF")
        assert told.status == 0
        assert "1 of 1 cells done" in told.err if name == "one" else "(0 now)" in told.err
        assert "1 cell kept" in run_ok("study", "archive", *store)
    run_ok("study", "report", tables, "--store", tmp_path / "two", "--table", "one")
    page = (tmp_path / "tables" / "one.md").read_text()
    assert "0 of 1" in page and "not run" in page and "12 windows of 32 jobs" in page


def test_a_row_that_failed_says_so_where_its_numbers_would_stand(tables: Path, tmp_path: Path) -> None:
    study, store = read_studies(tables)[0], Store(tmp_path / "store")
    cells = cells_of(study)
    store.failed.note(cells[0].key, "no luck")
    page = markdown(document_of(study, cells, store), "", "command")
    of_row = [line for line in page.splitlines() if line.startswith(f"| {cells[0].row} |")]
    assert of_row and all("failed, see the notes" in line for line in of_row)
    assert page.count("failed, see the notes") == len(of_row)
    assert "not run" in page
    assert f"- Failed: {cells[0].title}: no luck" in page


def test_what_only_some_cells_know_travels_as_it_is(tables: Path, tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    (rules, agent, *_) = cells_of(read_studies(tables)[0])
    found = run_cell(rules, one, "x")
    one.save(agent.key, found | {"validated": 0.25, "seed": 1})
    assert archive.pack([rules, agent], one, tmp_path / "record.parquet") == 2
    archive.unpack(tmp_path / "record.parquet", two)
    for cell in (rules, agent):
        here, there = (dict(store.cell(cell.key) or {}) for store in (one, two))
        assert [test["values"] for test in there.pop("tests")] == [t["values"] for t in here.pop("tests")]
        assert there == here
    assert [(two.cell(cell.key) or {})["validated"] for cell in (rules, agent)] == [None, 0.25]


@pytest.mark.parametrize("columns", [{"a": "x"}, {"key": "k", "made_of": "[" * 100_000, "logs": "{}"}])
def test_a_damaged_record_is_refused(tables: Path, tmp_path: Path, columns: dict[str, str]) -> None:
    pd.DataFrame({name: [text] for name, text in columns.items()}).to_parquet(
        tables.parent / "record.parquet"
    )
    said = run_refused("study", "run", tables, "--store", tmp_path / "store")
    assert said.startswith(f"{tables.parent / 'record.parquet'}: cannot be read")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('tests = ["own"]', 'tests = ["other"]', "has no test 'other'"),
        ('name = "two"', 'name = "one"', "two tables are called 'one'"),
        ('rule = "never"', 'rule = "never"\nbase = "nobody"', "compares 'nobody', which is no row"),
    ],
)
def test_what_is_no_table_is_refused(tables: Path, old: str, new: str, said: str) -> None:
    tables.write_text(TABLES.replace(old, new))
    with pytest.raises(BridgeError, match=said):
        read_studies(tables)


def test_a_row_that_no_table_has(tables: Path, tmp_path: Path) -> None:
    said = run_refused("study", "run", tables, "--store", tmp_path / "store", "--row", "SJV")
    assert said.startswith(f"{tables}: has no row 'SJV'\n  Choose SJF, ")


def test_a_rule_that_nobody_brings_is_refused_before_anything_runs(tables: Path, tmp_path: Path) -> None:
    tables.write_text(TABLES.replace('rule = "never"', 'rule = "nobody"'))
    store = ("--store", tmp_path / "store")
    for command in ("show", "run"):
        assert "rule 'nobody': unknown rule" in run_refused("study", command, tables, *store)
    run_ok("study", "report", tables, *store)  # what others have found can be looked at
