"""What a study's tables say: intervals over seeds and windows, and the commands that write them."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli_commands import run_bridge, run_ok, run_refused

from bridge.base.errors import BridgeError
from bridge.study import report
from bridge.study.cells import cells_of
from bridge.study.picture import draw
from bridge.study.reading import read_studies
from bridge.study.results import StudyResults, document_of
from bridge.study.store import Store
from bridge.study.windows import RowValues, interval, judged, n_disjoint, spread
from bridge.study.work import run_cell


def values(of: object, length: int = 10, step: int = 10) -> RowValues:
    array = np.atleast_2d(np.array(of, np.float64))
    return RowValues(array, np.arange(array.shape[1], dtype=np.int64) * step, length)


def test_windows_apart_are_counted() -> None:
    assert n_disjoint(np.array([0, 5, 10, 19, 20, 40]), 10) == 4
    assert n_disjoint(np.array([3]), 10) == 1


def test_intervals_hold_the_training_s_variance() -> None:
    draw = np.random.default_rng(1)
    windows = draw.normal(0, 1, 100)
    alike = values([windows, windows, windows])
    apart_by_seed = values([windows - 3, windows, windows + 3])
    one, other = interval(alike), interval(apart_by_seed)
    assert one.mean == pytest.approx(other.mean)
    assert one.high - one.low == pytest.approx(2 * 1.96 * windows.std() / 10, rel=0.1)
    assert other.high - other.low > 5 * (one.high - one.low)
    base = values([windows])
    assert judged(interval(alike, values([windows - 1])), "bsld") == "worse"
    assert judged(interval(alike, values([windows - 1])), "utilisation") == "better"
    assert judged(interval(apart_by_seed, base), "bsld") == "not distinguishable"


def test_the_spread_of_seeds_is_that_of_a_mean_of_seeds() -> None:
    draw = np.random.default_rng(2)
    covered = 0
    for _ in range(60):
        seeds = draw.normal(0, 1, 5)
        found = interval(values(seeds[:, None] + draw.normal(0, 1, 40)[None, :] * 0.01))
        covered += found.low <= 0 <= found.high
    assert covered >= 48  # of 60: near 95 %, fewer seeds give a little less


def test_no_interval_where_all_windows_overlap() -> None:
    found = interval(values([[1.0, 2.0, 3.0]], length=100, step=1))
    assert np.isnan(found.low)
    assert judged(found, "bsld") == "too few separate windows to tell"


def test_seeds_spread_is_said_where_windows_give_no_interval() -> None:
    mine, base = values([[1.0, 2.0, 3.0], [3.0, 4.0, 8.0]]), values([[2.0, 2.0, 2.0]])
    assert spread(mine) == (2.0, 5.0)
    assert spread(mine, base) == (0.0, 3.0)
    found = {**interval(mine).as_dict(), "seeds": spread(mine)}
    assert report.interval("bsld", found) == "3.50 (seeds 2.00 to 5.00; no interval)"
    assert report.interval("bsld", interval(base).as_dict()) == "2.00 (no interval)"


def test_commands(file: Path) -> None:
    store = ["--store", str(file.parent / "store")]
    cells = json.loads(run_ok("study", "show", file, *store, "--json"))["cells"]
    assert not any(cell["done"] for cell in cells)
    told = run_bridge("study", "run", file, *store, "--workers", 1)
    assert (told.status, "4 of 4 cells done (4 now), 0 failed" in told.err) == (0, True)
    assert "4 of 4 cells done\n" in run_ok("study", "show", file, *store)
    out = run_ok("study", "report", file, *store, "--row", "agent", "--seeds", 1)
    assert "These rows are left out, and so are the differences to them: FCFS, SJF." in out
    command = shlex.join(["bridge", "study", "run", str(file), "--seeds", "1", "--row", "agent", *store])
    for suffix in ("md", "html"):
        assert command in (file.parent / "tiny" / f"study.{suffix}").read_text()
    document = json.loads(run_ok("study", "report", file, *store, "--json"))
    expected = [("FCFS", 1, 12), ("SJF", 1, 12), ("agent", 2, 12)]
    assert [(row["row"], row["seeds"], row["windows"]) for row in document["rows"]] == expected
    assert all(1 < row["windows_apart"] <= 12 for row in document["rows"])
    assert [(one["row"], one["seeds"]) for one in document["comparisons"]] == [("SJF", 1), ("agent", 2)]
    for suffix in ("md", "html", "json"):
        assert "agent" in (file.parent / "tiny" / f"study.{suffix}").read_text()
    agent = document["rows"][2] | {"epochs": [10, 10], "best_epochs": [8, 9]}
    late = document | {"rows": [*document["rows"][:2], agent]}
    assert "2 of 2 †1" in report.summary(late, report.tests_of(late)[0]).markdown()
    assert any("last fifth of the training (1 of all 2)." in note for note in report.notes_of(late))
    kept = document["rows"][2]["kept"]
    keys = [cell["key"] for cell in cells if cell["seed"]]
    found = [Store(file.parent / "store").cell(key) or {} for key in keys]
    validated = {one["seed"]: one["validated"] for one in found}
    assert kept["seed"] == min(validated, key=lambda seed: validated[seed])
    assert kept["mean"]["mean"] == document["rows"][2]["by_seed"][str(kept["seed"])]
    told = report.details(document, agent["test"])[0].markdown()
    assert f"{kept['mean']['mean']:.2f} [" in told and f"] t (seed {kept['seed']}) |" in told
    blind = {**agent, "best_epochs": []}  # it validates nothing
    told = report.details(document | {"rows": [blind]}, blind["test"])[0].markdown()
    assert "the last of 10 |" in told and "†" not in told
    file.write_text(file.read_text() + '[[rows]]\nname = "broken"\nsetup = { estimator = "predicted(no)" }\n')
    told = run_bridge("study", "run", file, *store, "--workers", 1)
    said = "failed: broken on bundled-128: estimator 'predicted(no)': the workload has no column"
    assert (told.status, said in told.err) == (1, True)
    assert "Failed: broken on bundled-128" in run_ok("study", "report", file, *store)


def test_rows_of_other_jobs_are_neither_compared_nor_rivals(file: Path) -> None:
    rules = file.read_text().partition("[[rows]]")[0]
    rows = (
        ("FCFS", ""),
        ("LCFS", 'order = "lcfs"'),
        ("of other jobs", 'order = "sjf", preset = "rlbackfilling"'),
    )
    for name, setup in rows:
        rules += f'[[rows]]\nname = "{name}"\nsetup = {{ {setup} }}\n' + 'base = "FCFS"\n' * (name != "FCFS")
    file.write_text(rules)
    (study,) = read_studies(file)
    store = Store(file.parent / "store")
    cells = cells_of(study)
    for cell in cells:
        run_cell(cell, store, "x")
    document = document_of(study, cells, store)
    assert [one["row"] for one in document["comparisons"]] == ["LCFS"]
    means = {one["row"]: one["mean"]["mean"] for one in document["rows"]}
    assert min(means, key=lambda row: means[row]) == "of other jobs"
    findings, test = StudyResults(study, cells, store), study.tests[0].name
    told = findings.comparison("of other jobs", "FCFS", "bundled-128", test)
    assert told is not None and told["verdict"] == "not judged on the same windows"
    rival = findings.best_rule("FCFS", "bundled-128", test)
    assert rival is not None and rival["base"] in ("FCFS", "LCFS")


def test_a_difference_of_shares_is_in_points_and_of_others_in_percent_too(tmp_path: Path) -> None:
    row = {"row": "agent", "log": "A", "base": "SJF", "test": "held-out", "seeds": 1, "base_seeds": 1}
    gap = {
        "difference": {"mean": 0.02, "low": 0.01, "high": 0.03, "b": 7, "kind": "t"},
        "percent": 40.0,
        "base_mean": 0.05,
    }
    document = {
        "metric": "utilisation",
        "more": [],
        "rows": [],
        "comparisons": [row | gap | {"verdict": "better", "windows_apart": 9}],
    }
    shown = "| agent − SJF | A | 1, 1 | 7 | {} | {} | better |"
    (points,) = report.details(document, "held-out")
    assert shown.format("+2.0 [+1.0, +3.0] t", "") in points.markdown()
    (percent,) = report.details(document | {"metric": "bsld"}, "held-out")
    assert shown.format("+0.02 [+0.01, +0.03] t", "+40.0") in percent.markdown()
    for metric, said in (("utilisation", "points of utilisation"), ("bsld", "% of its bsld")):
        path = draw(document | {"metric": metric}, "held-out", tmp_path / "a.svg")
        assert path is not None and f"difference to the base, {said}; 95 % intervals" in path.read_text()


def test_what_else_is_said_is_folded(file: Path) -> None:
    plain = file.read_text()
    for details in ("", "Seeds < differ."):
        file.write_text(f'details = "{details}"\n{plain}')
        (study,) = read_studies(file)
        document = document_of(study, cells_of(study), Store(file.parent / "store"))
        told = report.markdown(document, "", "bridge study run")
        assert (f"<summary>What else was found</summary>\n\n{details}\n\n</details>" in told) is bool(details)
        shown = report.page(document, "", "bridge study run")
        assert ("<summary>What else was found</summary><p>Seeds &lt; differ.</p>" in shown) is bool(details)


def test_a_new_study_is_read_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    run_ok("study", "new", file, "--log", "bundled-128")
    file.write_text("longest = 9\n" + file.read_text())
    (study,) = read_studies(file, seeds=1, epochs=2, sequences=5)
    assert (study.seeds, study.epochs, study.longest, study.tests[0].sequences) == (1, 2, (), 5)
    store = tmp_path / "store"
    said = " ".join(run_ok("study", "show", file, "--store", store).split())
    assert "0 of 5 cells done; what the rest costs is not known yet; there is no store" in said
    assert " 0 s of one core" not in said
    for command in ("report", "archive", "keep"):
        said = run_refused("study", command, file, "--store", store)
        assert said.startswith(f"{store}: there is no such store")
    assert not store.exists()
    assert "--force" in run_refused("study", "new", file, "--log", "bundled-128")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "x"\nlogs = ["bundled-128"]\n[[rows]]\nname = "a"\n[[rows]]\nname = "a"', "two rows are"),
        ('title = "x"\nlogs = []\nrows = []', "has no rows"),
        ('title = "x"\nlogs = ["a"]\n[[rows]]\nname = "a"\nordr = 1', "unknown field 'ordr'"),
        ('title = "x"\nlogs = ["a"]\n[[rows]]\nname = "a"\npolicy = "nobody"', "unknown policy"),
        (
            'title = "x"\nlogs = ["a"]\n[[rows]]\nname = "a"\n[[comparisons]]\nrow = "a"\nbase = "b"',
            "compares 'b', which is no row",
        ),
        (
            'title = "x"\nlogs = ["a"]\nheld_out_from = 0.5\n[[rows]]\nname = "a"\npolicy = "rlbackfilling"',
            "learns from 0.6 of the log",
        ),
    ],
)
def test_what_is_no_study_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(BridgeError, match=said) as caught:
        read_studies(path)
    assert "wrong.toml" in caught.value.where


def test_a_page_opens_with_one_or_two_sentences_and_folds_the_rest() -> None:
    words = " ".join(["word"] * 40)
    assert report.split_opening("One. Two 2.5 and e.g. this. *Three*.") == (
        "One. Two 2.5 and e.g. this. *Three*.",
        "",
    )
    assert report.split_opening(f"One is short. Two {words}.\n") == ("One is short. Two " + words + ".", "")
    assert report.split_opening(f"One is a longer one than that. Two\n{words}. C.\n\n- a list") == (
        "One is a longer one than that.",
        f"Two {words}. C.\n\n- a list",
    )
