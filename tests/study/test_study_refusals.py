"""What a study refuses: in its file, with its logs at hand, and when a log is replaced while it runs."""

import gzip
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_commands import run_bridge, run_refused

from bridge.base.errors import BridgeError
from bridge.study import windows
from bridge.study.cells import Cell, Logs, cells_of, load_log, sha256_of
from bridge.study.executor import try_cell
from bridge.study.reading import read_studies
from bridge.study.store import Store, damaged
from bridge.workload.catalogue import read_log, resolve

ROWS = """\
[[rows]]
name = "FCFS"
[[rows]]
name = "A"
policy = "rlbackfilling"
[[rows]]
name = "B"
policy = "rlbackfilling"
"""
HEAD = 'title = "x"\nlogs = ["bundled-128"]\n'
ROW = '[[rows]]\nname = "C"\n'


@pytest.mark.parametrize(
    ("head", "rows", "said", "remedy"),
    [
        (HEAD + 'metric = "bsldd"', "", "row 'FCFS' cannot be measured by 'bsldd'", "Did you mean bsld"),
        (HEAD + 'more = ["wait", "completion"]', "", "cannot be measured by 'completion'", "idle.fitting"),
        (
            HEAD,
            ROW + 'pool = { rule = "saf" }\nlogs = "pool:synthetic"',
            "'C' cannot be measured by 'bsld'",
            "Choose",
        ),
        (
            HEAD + 'metric = "slowdown"',
            ROW + 'pool = { rule = "saf" }\nlogs = "pool:synthetic"',
            "'C' cannot be measured by 'wait'",
            "`more` .which has two if it is not said",
        ),
        (HEAD, ROW + 'setup = { order = "sjff" }', "sjff", "sjf"),
        (HEAD, ROW + 'setup = { candidate_order = "wfp3" }', "candidates can only be", "sjf"),
        (HEAD, ROW + 'policy = "rlbackfilling"\nchanges = { setup = { order = "sjff" } }', "sjff", "sjf"),
        (
            HEAD,
            ROW + 'setup = { backfill = "none", candidate_order = "sjf" }',
            "row 'C': backfilling 'none': only EASY's candidates",
            "EASY",
        ),
        (HEAD, ROW + 'reject = ["nowt - 1"]', "row 'C': feature 'nowt - 1'", "head_w"),
        (HEAD, ROW + 'rule = "x"\nreject = ["w"]', "row 'C' has rule and reject", "but one"),
        (HEAD, 'pool = { rule = "saf" }', "row 'B' has policy and pool", "Leave all but one out"),
        (HEAD, ROW + 'setting = "paper"', "'C' learns nothing, but has setting", "policy"),
        (HEAD, 'setup = { order = "sjf" }', "row 'B' has a policy and a setup", "changes.setup"),
        (HEAD, ROW + 'pool = { rule = "saf" }\nsetup = { order = "sjf" }', "'C' has a pool and", "own"),
        (HEAD + "longest = [500, 250]", "", r"longest = \[500, 250\] does not ascend", r"\[250, 500\]"),
        (HEAD + "longest = 0", "", r"longest\[0\] cannot be 0", "at least 1"),
        (HEAD + "held_out_from = 1.0", "", "held_out_from cannot be 1.0", "below 1"),
        (HEAD + "tests = [{ behind = 1 }]", "", r"tests\[0\].behind cannot be 1", "below 1"),
        (HEAD + "tests = [{ length = 0 }]", "", r"tests\[0\].length cannot be 0", "at least 1"),
        (HEAD, 'teacher = "B"', "row 'B' would teach itself", "Leave a teacher out"),
        (HEAD, 'teacher = "FCFS"', "'FCFS' can teach .it learns nothing", "Rows that learn: A, B"),
        (HEAD, 'teacher = "nobody"', "no row 'nobody' can teach", "Rows that learn: A, B"),
        (
            HEAD,
            'teacher = "A"\n[[rows]]\nname = "C"\npolicy = "rlbackfilling"\nteacher = "D"\n'
            '[[rows]]\nname = "D"\npolicy = "rlbackfilling"\nteacher = "C"',
            "row 'C' would teach itself",
            "Leave a teacher out",
        ),
        (HEAD + "tables = [1, 2]", "", "tables is no list of tables", r"\[\[tables\]\]"),
        (HEAD + 'tables = "x"', "", "tables is no list of tables", r"\[\[tables\]\]"),
        ('title = "x"\nlogs = []', 'logs = ["bundled-128"]', "row 'FCFS' has no logs", "logs = "),
        (HEAD + "changes_on = { x = {} }", "", "changes_on names 'x', which is no log", "Logs: bundled-128"),
        (
            HEAD + "changes_on = { bundled-128 = { seetup = {} } }",
            "",
            "changes_on.bundled-128 has 'seetup', which no recipe has",
            "Did you mean setup",
        ),
        (
            HEAD + 'changes_on = { bundled-128 = { setup = { order = "sjff" } } }',
            "",
            "'bundled-128': setup.order|sjff",
            "sjf",
        ),
        (
            HEAD + "changes_on = { bundled-128 = { training = { epochs = 0 } } }",
            "",
            "epochs cannot be 0",
            "1",
        ),
        (
            HEAD + 'tables = [{ name = "a" }, { name = "b", rows = "c" }]',
            "",
            "rows = 'c' is no table with rows",
            "Tables: ",
        ),
        ('title = "x"\nlogs = ["a", "b", "a"]', "", "row 'FCFS' has the log 'a' twice", "Leave one out"),
        (HEAD, ROW + 'logs = ["a", "a"]', "row 'C' has the log 'a' twice", "Leave one out"),
        (HEAD + "seeds = 10001", "", "seeds cannot be 10001", "At most 10,000"),
        (HEAD, "seeds = 100000000000", "seeds of row 'B' cannot be 100000000000", "At most 10,000"),
        (HEAD + "tests = [{ sequences = 1000001 }]", "", "sequences of test 'held-out' cannot", "1,000,000"),
        (HEAD, 'base = ["A", "B"]', "row 'B' is compared with itself", "another base"),
        (HEAD + 'comparisons = [{ row = "A", base = "A" }]', "", "row 'A' is compared with itself", "base"),
        (HEAD, ROW + 'policy = "rlbackfilling"\nteacher = "A"', "row 'C' has a teacher", "Leave it out"),
        (
            HEAD,
            ROW + 'logs = ["pool:synthetic"]',
            "row 'C' is not of the .* 'pool:synthetic' is",
            "without pool:",
        ),
        (
            HEAD,
            ROW + 'policy = "rlbackfilling"\nlearnt_on = "pool:synthetic"',
            "row 'C' is not of",
            "without",
        ),
        (
            HEAD,
            ROW + 'pool = { rule = "saf" }',
            "row 'C' is of the .* 'bundled-128' is not",
            "begin with pool:",
        ),
        (
            HEAD + "tests = [{ drawn = { rate = 0.5 } }]",
            "",
            "sequences of the time-stepped pool",
            "leave `drawn` out",
        ),
        (HEAD + 'name = "../up"', "", "name cannot be '../up'", "one word"),
        (HEAD + 'name = ""', "", "name cannot be ''", "one word"),
        (HEAD + 'name = ".x"', "", "name cannot be '.x'", "one word"),
        (HEAD + 'name = "a\\n"', "", r"name cannot be 'a\\n'", "one word"),
    ],
)
def test_a_file_is_refused_before_anything_runs(
    head: str, rows: str, said: str, remedy: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(f"{head}\n{ROWS}{rows}\n")
    with pytest.raises(BridgeError) as caught:
        read_studies(path)
    assert "wrong.toml" in caught.value.where
    for text, words in ((said, str(caught.value)), (remedy, caught.value.remedy)):
        assert re.search(text, words), words


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("tests = [{ length = 1201 }]", "FCFS on bundled-128: test 'held-out': 1,200 jobs are too few"),
        ('metric = "utilisation.power"', "FCFS on bundled-128: there is no 'utilisation.power'"),
    ],
)
@pytest.mark.parametrize("command", ["show", "run"])
def test_what_the_log_cannot_bear_is_refused_at_the_start(
    head: str, said: str, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "long.toml"
    path.write_text(f"{HEAD}{head}\n{ROWS}")
    assert said in run_refused("study", command, path, "--store", tmp_path / "store")


@pytest.mark.parametrize("command", ["show", "run"])
def test_what_is_dropped_from_a_log_and_repaired_is_said_once(command: str, tmp_path: Path) -> None:
    jobs = ((k, 9 if k < 4 else 1, -1 if k > 90 else 60) for k in range(1, 101))
    rows = [f"{k} {k * 60} -1 60 {nodes} -1 -1 {nodes} {request}" for k, nodes, request in jobs]
    (tmp_path / "odd.swf").write_text("; MaxProcs: 4\n" + "".join(row + " -1" * 9 + "\n" for row in rows))
    (tmp_path / "odd.toml").write_text(
        f'title = "x"\nlogs = ["{tmp_path / "odd.swf"}"]\ntests = [{{ sequences = 2, length = 9 }}]\n'
        '[[rows]]\nname = "FCFS"\n[[rows]]\nname = "SJF"\nsetup = { order = "sjf" }\n'
    )
    told = run_bridge("study", command, tmp_path / "odd.toml", "--store", tmp_path / "store")
    assert told.err.count("odd.swf: 3 records dropped: larger than the machine") == 1
    assert told.err.count("odd.swf: 10 no requested time: run time taken") == 1


def test_nothing_is_held_out() -> None:
    with pytest.raises(BridgeError, match="none of 0 jobs is held out") as caught:
        windows.starts_of(windows.TestSet(), 0, 0.6)
    assert "held_out_from" in caught.value.remedy
    with pytest.raises(BridgeError, match="1 job is too few") as caught:
        windows.starts_of(windows.TestSet(), 2, 0.5)
    assert caught.value.remedy == "Use a longer log, or more of it."


@pytest.fixture
def shrinking(tmp_path: Path) -> list[Cell]:
    """Cells of a log that has been replaced since; the agent learns on it, and is judged on another."""
    log = tmp_path / "own.swf.gz"
    shutil.copy(resolve("bundled-128"), log)
    path = tmp_path / "study.toml"
    text = f'{HEAD}files = {{ own = "{log}" }}\ntests = [{{ sequences = 3, length = 32 }}]\n{ROWS}'
    path.write_text(text + 'learnt_on = "own"\n')
    (study,) = read_studies(path)
    rules = replace(study, logs=("own",), rows=study.rows[:1])
    cells = cells_of(rules) + cells_of(replace(study, seeds=1, rows=study.rows[2:]))
    lines = gzip.decompress(log.read_bytes()).splitlines(keepends=True)
    log.write_bytes(gzip.compress(b"".join(lines[:-5])))
    return cells


@pytest.mark.parametrize("logs", [load_log, read_log])
def test_a_log_that_was_replaced_fails_the_cell(shrinking: list[Cell], logs: Logs, tmp_path: Path) -> None:
    if logs is load_log:  # as in a process that has read nothing yet
        load_log.cache_clear()
        sha256_of.cache_clear()
    store = Store(tmp_path / "store")
    for cell in shrinking:
        ended = try_cell(cell, store, "x", logs)
        assert "own.swf.gz: the log was replaced" in ended.error
        assert "Run the study again" in ended.error
    assert store.done() == set()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_number_is_kept_that_is_none(value: float, tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(BridgeError, match="infinite or no number"):
        store.save("key", {"tests": [{"values": {"bsld": [1.0, value]}}]})
    assert store.done() == set()


def test_a_further_log_that_has_changed_makes_other_cells(tmp_path: Path) -> None:
    other, file = tmp_path / "other.swf", tmp_path / "study.toml"
    file.write_text(HEAD + ROWS + f"changes = {{ training = {{ logs = ['{other}'] }} }}\n")
    keys = []
    for run in (100, 200):
        jobs = (f"{k} {k} -1 {run} 1 -1 -1 1 300 -1 1 1 1 -1 1 -1 -1 -1\n" for k in range(1, 200))
        other.write_text("; MaxProcs: 4\n" + "".join(jobs))
        load_log.cache_clear()
        sha256_of.cache_clear()
        cells = cells_of(read_studies(file)[0])
        keys.append({cell.row: (cell.agent_key, cell.key) for cell in cells if cell.seed < 2})
    assert keys[0]["A"] == keys[1]["A"]
    assert keys[0]["B"][0] != keys[1]["B"][0]
    assert keys[0]["B"][1] != keys[1]["B"][1]


def test_what_only_cannot_be_read_is_not_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is whole must not be taken for a damaged one, where it is not ours to read."""
    store = Store(tmp_path)
    store.save("abc", {"row": "FCFS"})

    def barred(path: Path) -> object:
        raise BridgeError("cannot be read", where=str(path), remedy="Check the path.") from PermissionError()

    monkeypatch.setattr("bridge.study.store.read_json", barred)
    with pytest.raises(BridgeError) as caught:
        store.cell("abc")
    assert caught.value.remedy == "Check the path."
    with pytest.raises(BridgeError) as caught, damaged(tmp_path / "agents" / "x"):
        barred(tmp_path / "agents" / "x" / "agent.json")
    assert caught.value.remedy == "Check the path."


@pytest.mark.parametrize("damage", ["", "{\n", '{"row": NaN}', "null", "[1]"])
def test_a_damaged_cell_names_itself_and_the_remedy(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    store.save("abc", {"row": "FCFS"})
    assert store.cell("abc") == {"row": "FCFS"}
    (path,) = (tmp_path / "cells").iterdir()
    path.write_text(damage)
    with pytest.raises(BridgeError) as caught:
        store.cell("abc")
    assert caught.value.where.startswith(str(path))
    assert caught.value.remedy.startswith("Remove it: the cell is then done again")
