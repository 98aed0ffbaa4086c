"""Whatever file is opened, no name in it is imported or called, and no program that it names is started."""

import json
import shutil
from pathlib import Path

import pytest
from cli_commands import run_bridge

from bridge.base import plugins

AUDIT = {"begin": 1, "nodes": 4, "origin": 0.0}
PASS = {"time": 3.0, "told": [], "decided": []}
STATE = {
    "format": "bridge-state", "version": 1, "now": 0, "capacity": {"nodes": 4}, "free": {"nodes": 4},
    "waiting": [{"id": "1", "submit": 0, "request": 60, "demand": {"nodes": 1}}],
}  # fmt: skip
STUDY = """\
title = "t"
logs = ["bundled-128"]
seeds = 1
[[rows]]
name = "one"
{row}
[[tests]]
name = "own"
sequences = 1
length = 4
"""
#: How a file may write the name of code.
NAMES = ("trap:RULE", "trap:RULE+easy", "sjf+trap:RULE", " trap:RULE", "trap:RULE ")


@pytest.fixture(autouse=True)
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a module that leaves a mark when it is imported; return where it would be."""
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\nRULE = print\n")
    monkeypatch.setattr(plugins, "_registered", {})
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sprung"


def opens(trap: Path, *words: object) -> str:
    """Run a command that opens a file; return its one error."""
    done = run_bridge(*words)
    assert done.status != 0, done.out
    assert not trap.exists(), f"{words} has loaded the module"
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_log(trap: Path, name: str) -> None:
    Path("audit.jsonl").write_text(f"{json.dumps(AUDIT | {'policy': name})}\n{json.dumps(PASS)}\n")
    opens(trap, "replay", "--from-audit", "audit.jsonl")
    said = opens(trap, "replay", "--from-audit", "audit.jsonl", "--policy", "nowhere:RULE")
    assert "cannot be loaded: ModuleNotFoundError" in said  # what is typed may be


def test_an_audit_log_says_how_to_go_on(trap: Path) -> None:
    Path("audit.jsonl").write_text(json.dumps(AUDIT | {"policy": "trap:RULE"}))
    said = opens(trap, "replay", "--from-audit", "audit.jsonl")
    assert "trap:RULE: is code of your own, which a file cannot load" in said
    assert "Name it on the command line: --policy trap:RULE" in said


@pytest.mark.parametrize("name", NAMES)
def test_a_state(trap: Path, name: str) -> None:
    Path("state.json").write_text(json.dumps(STATE | {"policy": name}))
    opens(trap, "forecast", "state.json")
    opens(trap, "whatif", "state.json", "--drain", "1")


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment(trap: Path, name: str) -> None:
    for field in ("agent = ", "[setup]\norder = ", "[setup]\nbackfill = ", "[setup]\nestimator = "):
        Path("e.toml").write_text(f'workload = "bundled-128"\n{field}{json.dumps(name)}\n')
        opens(trap, "run", "e.toml")


@pytest.mark.parametrize("name", NAMES)
def test_a_study(trap: Path, name: str) -> None:
    for field in ("policy", "rule", "order", "backfill", "pool"):
        Path("study.toml").write_text(STUDY.format(row=f"{field} = {json.dumps(name)}"))
        opens(trap, "study", "run", "study.toml", "--store", "store", "--workers", "1")


@pytest.mark.parametrize(
    ("part", "inner"),
    [
        ("algorithm", None), ("setup", "order"), ("setup", "backfill"), ("setup", "estimator"),
        ("actor", "kind"), ("critic", "kind"), ("encoder", "features"),
    ],
)  # fmt: skip
def test_an_agent(trap: Path, backfiller: Path, part: str, inner: str | None) -> None:
    shutil.copytree(backfiller, "agent")
    document = json.loads(Path("agent/agent.json").read_text())
    value = {"x": "trap:RULE"} if inner == "features" else "trap:RULE"
    recipe = document["recipe"]
    changed = value if inner is None else {**recipe.get(part, {}), inner: value}
    document["recipe"] = recipe | {part: changed, "training": {**recipe["training"], "epochs": 99}}
    Path("agent/agent.json").write_text(json.dumps(document))
    opens(trap, "train", "--resume", "--out", "agent")
    run_bridge(
        "evaluate", "agent", "--sequences", "1", "--length", "4"
    )  # a critic that is not asked may be wrong
    assert not trap.exists()


def test_an_agents_name_is_a_name(trap: Path, backfiller: Path) -> None:
    shutil.copytree(backfiller, "agent")
    document = json.loads(Path("agent/agent.json").read_text())
    document["recipe"]["name"] = "trap:RULE"
    Path("agent/agent.json").write_text(json.dumps(document))
    run_bridge("evaluate", "agent", "--sequences", "1", "--length", "4")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("field", "value", "typed_as"),
    [
        ("program", '"touch sprung"', "--program 'touch sprung'"),
        ("image", '"touch sprung"', "--image 'touch sprung'"),
        ("options", '["-l", "trap.so"]', "--option=-l --option=trap.so"),
    ],
)
def test_no_program_is_started_that_a_file_names(trap: Path, field: str, value: str, typed_as: str) -> None:
    head = 'workload = "bundled-128"\non = "batsim"\n[detailed]\nplatform = "sp2-128"\n'
    Path("e.toml").write_text(f"{head}{field} = {value}\n")
    said = opens(trap, "run", "e.toml")
    assert f"e.toml: names a program to start, or its options: {field} = " in said
    assert said.endswith(f"A file starts nothing. If you trust it, type it: {typed_as}\n")
