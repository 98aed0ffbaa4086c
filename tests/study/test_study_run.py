"""A study is carried out once, survives kills, and goes on bit for bit; two runs do not spoil each other."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bridge.base import compile_notice
from bridge.base.compile_notice import announce, announce_by
from bridge.base.errors import BridgeError
from bridge.learn.checkpoint_files import PROGRESS, RESUME
from bridge.learn.trainer import EpochRecord, Trainer
from bridge.study.cells import Cell, cells_of, prefer_shorter_trainings
from bridge.study.executor import CellOutcome, Processes, try_cell
from bridge.study.runner import StudyRun
from bridge.study.spec import Study
from bridge.study.store import VOID, Claim, Store
from bridge.study.work import run_cell


class Loop:
    """Carries cells out here, one after the other."""

    width = 1

    def __init__(self, store: Store, token: str) -> None:
        self.store, self.token = store, token
        self.over: list[CellOutcome] = []

    @property
    def room(self) -> int:
        return 1 - len(self.over)

    def start(self, cell: Cell) -> None:
        self.over.append(try_cell(cell, self.store, self.token))

    def collect_ended(self, seconds: float) -> list[CellOutcome]:  # noqa: ARG002
        found, self.over = self.over, []
        return found

    def close(self) -> None:
        pass


def results(store: Store, cells: list[Cell]) -> list[Any]:
    """What was found, without what was measured."""
    return [(found := store.cell(cell.key)) and found["tests"] for cell in cells]


def looped(store: Store, cells: list[Cell]) -> StudyRun:
    run = StudyRun(cells, store)
    run.carry_out(Loop(store, run.token))
    return run


def test_what_is_done_is_not_done_again_and_changes_make_new_cells(
    tiny: Study, cells: list[Cell], tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    run = looped(store, cells)
    assert (len(run.state.done), run.state.failed) == (4, {})
    before = {path: path.read_bytes() for path in (tmp_path / "store" / "cells").iterdir()}
    again = looped(store, cells)
    assert again.state.before == 4
    assert {path: path.read_bytes() for path in (tmp_path / "store" / "cells").iterdir()} == before
    renamed = [replace(row, name=f"{row.name}!") for row in tiny.rows]
    assert {c.key for c in cells_of(replace(tiny, rows=tuple(renamed)))} == {c.key for c in cells}
    more = cells_of(replace(tiny, tests=(replace(tiny.tests[0], seed=2),)))
    assert not {c.key for c in more} & {c.key for c in cells}
    assert {c.agent_key for c in more} == {c.agent_key for c in cells}, "the agents are the same ones"
    assert not {c.key for c in cells_of(replace(tiny, epochs=3)) if c.seed} & {c.key for c in cells}
    assert list((tmp_path / "store" / "work").iterdir()) == []
    assert list((tmp_path / "store" / "claims").iterdir()) == []


def test_a_killed_worker_costs_one_cell_its_time_only(
    cells: list[Cell], broken: list[Cell], tmp_path: Path
) -> None:
    alone, store = Store(tmp_path / "alone"), Store(tmp_path / "store")
    looped(alone, cells)
    lines: list[str] = []
    killed: list[int] = []

    def tick(run: StudyRun) -> None:
        for key, (cell, _) in run.state.running.items():
            claim = store.claimed(key)
            if not killed and cell.seed and claim and claim.epoch:
                killed.append(claim.pid)
                os.kill(claim.pid, signal.SIGKILL)

    run = StudyRun(broken, store, lines.append, tick)
    run.look = 0.02
    state = run.carry_out(Processes(store, run.token, 2))
    assert len(killed) == 1
    assert sum("its worker died; again" in line for line in lines) == 1
    assert results(store, cells) == results(alone, cells)
    assert [broken[k].row for k in range(5) if broken[k].key in state.failed] == ["broken"]
    (error,) = state.failed.values()
    assert "too few for sequences of 32" in error
    assert store.failed.reason(next(iter(state.failed))) == error
    assert list((tmp_path / "store" / "work").iterdir()) == []


def test_workers_say_once_that_they_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_notice, "_say", compile_notice.log_line)
    monkeypatch.setattr(compile_notice, "_is_announced", False)
    texts: list[str] = []
    processes = Processes(Store(tmp_path), "runner", 2)
    for _worker in range(2):  # what `_begin` makes of a worker's announcement
        announce_by(lambda text: processes._ends.send_bytes(text.encode()))
        announce("compiling…")
    announce_by(texts.append)
    processes.collect_ended(0.0)
    processes.close()
    assert texts == ["compiling…"]


def test_an_interrupted_training_goes_on_bit_for_bit(
    cells: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = next(cell for cell in cells if cell.seed == 1)
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    run_cell(agent, whole, "a")
    said: list[int] = []
    claim = Store.claim

    def stop(self: Store, key: str, one: Claim) -> None:
        said.append(one.epoch)
        claim(self, key, one)
        if len(said) == 2:  # the first epoch is saved
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "claim", stop)
        with pytest.raises(KeyboardInterrupt):
            run_cell(agent, parts, "a")
    assert [bool(list(path.glob(RESUME))) for path in (tmp_path / "parts" / "work").iterdir()] == [True]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "claim", stop)
        run_cell(agent, parts, "b")
    assert said == [0, 1, 0, 2], "the first epoch was not learnt again"
    assert results(parts, [agent]) == results(whole, [agent])
    assert list((tmp_path / "parts" / "work").iterdir()) == []
    for name in ("weights.safetensors", "resume.safetensors"):
        one, other = (s.agent(agent.agent_key) / name for s in (whole, parts))
        if name.startswith("weights"):
            assert one.read_bytes() == other.read_bytes()


def test_what_a_training_has_left_damaged_is_named_and_not_copied_again(
    cells: list[Cell], tmp_path: Path
) -> None:
    agent, store = next(cell for cell in cells if cell.seed == 1), Store(tmp_path / "store")
    whole = Store(tmp_path / "whole")
    run_cell(agent, whole, "a")
    left = tmp_path / "store" / "work" / f"{agent.agent_key}.0"
    shutil.copytree(whole.agent(agent.agent_key), left)
    whole_file, known = (left / RESUME).read_bytes(), (left / "agent.json").read_text()
    for name in (RESUME, RESUME, "agent.json", "agent.json"):
        (left / RESUME).write_bytes(whole_file if name != RESUME else whole_file[:100])
        (left / "agent.json").write_text("{}" if name != RESUME else known)
        with pytest.raises(BridgeError) as caught:
            run_cell(agent, store, "a")
        assert caught.value.where == str(left / name)
        assert caught.value.remedy == f"Remove {left}: what was trained there begins anew."
        assert list((tmp_path / "store" / "work").iterdir()) == [left]
    shutil.rmtree(left)
    run_cell(agent, store, "a")
    assert results(store, [agent]) == results(whole, [agent])
    (tmp_path / "store" / "cells" / f"{agent.key}.json").unlink()
    weights = store.agent(agent.agent_key) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(BridgeError, match="is damaged") as caught:
        run_cell(agent, store, "a")
    assert caught.value.remedy == f"Remove {weights.parent}: what was trained there begins anew."
    for name in ("weights.safetensors", "agent.json"):
        (weights.parent / name).unlink()
        with pytest.raises(BridgeError) as caught:
            run_cell(agent, store, "a")
        assert caught.value.remedy == f"Remove {weights.parent}: what was trained there begins anew."
    shutil.rmtree(weights.parent)
    run_cell(agent, store, "a")
    assert results(store, [agent]) == results(whole, [agent])


def best_in_the_fifth(self: Trainer) -> float:
    """Stand in for validation."""
    value = abs(5.0 - self.epoch)
    if value < self._best:
        self._remember_best(value, "greedy")
    return value


def test_a_longer_training_goes_on_from_the_shorter_one(
    tiny: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "_validate", best_in_the_fifth)
    changes = {"training": tiny.rows[-1].changes["training"] | {"trajectories": 16}}  # some have no decisions
    study = replace(tiny, rows=(*tiny.rows[:-1], replace(tiny.rows[-1], changes=changes)))
    short, long = (cells_of(one)[-1] for one in (study, replace(study, longest=(20,))))
    at_once, parts = Store(tmp_path / "once"), Store(tmp_path / "parts")
    found = run_cell(short, parts, "a")
    assert (found["best_epoch"], found["epochs"]) == (2, 2)
    base = pd.read_parquet(parts.agent(short.agent_key) / PROGRESS)["valid_base"].iloc[-1]
    assert found["validated"] == pytest.approx(3.0 / base)
    begun: list[int] = []
    step = Trainer.step

    def counted(self: Trainer) -> EpochRecord:
        begun.append(self.epoch)
        return step(self)

    monkeypatch.setattr(Trainer, "step", counted)
    for store, first in ((parts, 2), (at_once, 0)):
        begun.clear()
        found = run_cell(long, store, "a")
        assert (found["best_epoch"], found["epochs"], begun) == (5, 7, list(range(first, 7)))
    assert results(parts, [long]) == results(at_once, [long])
    assert parts.agent(short.agent_key).exists(), "it is another cell's"
    step_store, six = Store(tmp_path / "steps"), cells_of(replace(study, longest=(6,)))[-1]
    stepped = cells_of(replace(study, longest=(6, 20)))[-1]
    assert (stepped.key, stepped.shorter) == (long.key, (short, six))
    found = run_cell(six, step_store, "a")
    assert (found["best_epoch"], found["epochs"]) == (5, 6)
    begun.clear()
    run_cell(stepped, step_store, "a")
    assert begun == [6]
    assert results(step_store, [stepped]) == results(at_once, [long])


def test_what_ended_at_an_earlier_step_counts(tiny: Study, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    short, six, asked = (cells_of(replace(tiny, longest=to))[-1] for to in ((), (6,), (6, 20)))

    def keys() -> tuple[str, str]:
        (plan,), (now,) = (
            prefer_shorter_trainings([asked], store),
            prefer_shorter_trainings([asked], store, for_now=True),
        )
        return plan.key, now.key

    late, ended = ({"best_epoch": best, "epochs": 6} for best in (6, 2))
    store.save(short.key, late)
    assert keys() == (asked.key, short.key)
    store.save(six.key, late)
    assert keys() == (asked.key, six.key)
    store.save(six.key, ended)
    assert keys() == (six.key, six.key)
    store.save(asked.key, ended)
    store.save(six.key, late)
    assert keys() == (asked.key, asked.key)


def test_what_has_ended_is_not_trained_on(tiny: Study, cells: list[Cell], tmp_path: Path) -> None:
    """A shorter training counts as the longer one where it would not have gone on."""
    store, asked = Store(tmp_path / "store"), cells_of(replace(tiny, longest=(20,)))
    assert [cell.key for cell in prefer_shorter_trainings(asked, store)] == [cell.key for cell in asked]
    looped(store, cells)
    one, other = (store.cell(cell.key) or {} for cell in cells if cell.seed)
    for found, cell, best in zip((one, other), [c for c in cells if c.seed], (1, 2), strict=True):
        store.save(cell.key, found | {"best_epoch": best})  # of two
    rules, agents = [c.key for c in cells if not c.seed], [c.key for c in cells if c.seed]
    longer = [cell.key for cell in asked if cell.seed]
    assert [cell.key for cell in prefer_shorter_trainings(asked, store)] == [*rules, agents[0], longer[1]]
    assert [cell.key for cell in prefer_shorter_trainings(asked, store, for_now=True)] == [*rules, *agents]
    store.save(longer[1], other)
    assert [cell.key for cell in prefer_shorter_trainings(asked, store, for_now=True)] == [
        *rules,
        agents[0],
        longer[1],
    ]
    store.save(agents[0], one | {"best_epoch": 0})  # of an old record, which does not know it
    assert [cell.key for cell in prefer_shorter_trainings(asked, store)] == [*rules, *longer]
    blind = {"training": tiny.rows[-1].changes["training"] | {"validation": [0.5, 0.5]}}
    study = replace(tiny, rows=(replace(tiny.rows[-1], changes=blind),))
    assert cells_of(replace(study, longest=(20,))) == cells_of(study), "nothing says whether it has ended"


def test_two_runs_at_once_do_not_spoil_each_other(file: Path, cells: list[Cell], tmp_path: Path) -> None:
    alone, store = Store(tmp_path / "alone"), Store(tmp_path / "store")
    words = [sys.executable, "-m", "bridge", "study", "run", str(file), "--store", str(store.folder)]
    runs = [subprocess.Popen([*words, "--workers", "1"], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    looped(alone, cells)
    said = [run.communicate(timeout=300)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert all("4 of 4 cells done" in lines for lines in said)
    assert results(store, cells) == results(alone, cells)
    assert len(store.done()) == 4


def test_what_another_run_has_in_hand_is_left_to_it_while_it_lives(cells: list[Cell], tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    key = cells[0].key
    store.claim(key, Claim.own("another"))
    held = store.claimed(key)
    assert held is not None
    assert held.runner == "another"
    run = StudyRun(cells[:1], store)
    run._look()
    assert run.state.elsewhere == {key}
    path = tmp_path / "store" / "claims" / f"{key}.json"
    os.utime(path, (0, path.stat().st_mtime - VOID - 1))
    assert store.claimed(key) is None, "its holder is silent"
    store.claim(key, replace(Claim.own("another"), pid=2**22 + 1))
    assert store.claimed(key) is None, "its holder is dead"
    path.write_text(json.dumps({"half": 1}))
    assert store.claimed(key) is None


def test_an_attempt_that_a_faster_one_has_removed_counts_as_done(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.attempt("key") as slow:
        with store.attempt("key") as fast:
            (fast / "agent").write_text("the same bits")
        assert not slow.exists()
        raise FileNotFoundError(slow)
    assert (store.agent("key") / "agent").read_text() == "the same bits"
    with pytest.raises(FileNotFoundError), store.attempt("other") as alone:
        raise FileNotFoundError(alone)
