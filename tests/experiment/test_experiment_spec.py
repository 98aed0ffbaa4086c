"""Experiments as TOML, options and command lines."""

import dataclasses
import errno
import shlex
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from experiment_helpers import PLATFORMS

from bridge.base.errors import BridgeError
from bridge.cli.main import cli
from bridge.cli.options import experiment_options_given
from bridge.cli.run import run
from bridge.experiment.prepare import prepare_experiment
from bridge.experiment.spec import Detailed, Experiment, parse, platform_file, read_document, refuse_programs
from bridge.worlds.fast.scheduler_config import SchedulerConfig

FULL = Experiment(
    workload="log.swf",
    on="batsim",
    seed=3,
    threshold=60.0,
    malformed="drop",
    setup=SchedulerConfig(
        "(w/t)**3*n", "conservative", estimator="noisy(0.1)", first=9, nodes=12, cancelled="keep"
    ),
    detailed=Detailed(
        platform="p.xml", profile="io:0.1", walltime="factor:2", placement="contiguous", energy=True,
        image="oarteam/batsim:4.0.0", options=("--mmax", "12"), idle_timeout=10.0,
        fidelity="io_aware", stage_in=0.5, checkpoints=2,
    ),
)  # fmt: skip


def test_toml_and_back(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(tomli_w.dumps(FULL.as_dict()))
    assert parse(read_document(tmp_path / "e.toml"), "e.toml") == FULL
    assert Experiment("x").as_dict() == {"workload": "x"}


def test_the_command_line_says_the_same() -> None:
    words = shlex.split(FULL.command())
    assert words[:2] == ["bridge", "run"]
    with cli.make_context("bridge", ["run"], resilient_parsing=True) as parent:
        context = run.make_context("run", words[2:], parent=parent)
    assert parse({}, "the options", experiment_options_given(context)) == FULL


def test_the_fast_world_takes_no_option_that_it_would_ignore() -> None:
    document = {"workload": "a", "detailed": {"platform": "p.xml", "profile": "io:0.1", "dvfs": 0.5}}
    made = parse(document, "e.toml", {"order": "saf"})  # what the file says of it waits there
    assert made.detailed.profile == "io:0.1"
    assert made.command() == "bridge run --workload a --order saf --platform p.xml"
    for name, value in {
        "profile": "io",
        "dvfs": 0.5,
        "shutdown_after": 10.0,
        "placement": "topology",
    }.items():
        with pytest.raises(BridgeError, match=f"the fast world has no {name}\n  Add --on simgrid"):
            parse(document, "e.toml", {name: value})
        assert getattr(parse(document, "e.toml", {name: value, "on": "simgrid"}).detailed, name) == value
    assert parse(document, "e.toml", {"power_budget": 5.0}).detailed.power_budget == 5.0


def test_inputs_that_find_no_room_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = prepare_experiment(parse({"workload": "bundled-128"}, "e", {"first": 9, "platform": "sp2-128"}))

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(BridgeError, match=r"platform\.xml: cannot write: No space left on device\n  Choose"):
        task.write_inputs(tmp_path)


def test_options_win_over_the_file() -> None:
    document = {"workload": "a", "setup": {"order": "sjf", "first": 5}}
    made = parse(document, "e", {"order": "saf", "platform": "p.xml", "on": "simgrid"})
    assert made == Experiment(
        "a", on="simgrid", setup=SchedulerConfig(order="saf", first=5), detailed=Detailed("p.xml")
    )
    assert document == {"workload": "a", "setup": {"order": "sjf", "first": 5}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "no workload"),
        ({"workload": 3}, "workload cannot be 3"),
        ({"workload": "a", "seed": True}, "seed cannot be True"),
        ({"workload": "a", "threshold": "x"}, "threshold cannot be 'x'"),
        ({"workload": "a", "sede": 3}, "unknown field 'sede'"),
        ({"workload": "a", "setup": {"ordre": "fcfs"}}, "unknown field 'ordre'"),
        ({"workload": "a", "setup": "fcfs"}, "is no table"),
        ({"workload": "a", "detailed": {"options": [1]}}, r"options\[0\] cannot be 1"),
        ({"workload": "a", "detailed": {"energy": 1}}, "energy cannot be 1"),
    ],
)
def test_documents_are_checked(document: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        parse(document, "e.toml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"on": "slow"}, "on cannot be 'slow'"),
        ({"threshold": 0.0}, "threshold cannot be 0.0\n.*above 0"),
        ({"setup": SchedulerConfig(protocol="cqsim")}, "standard protocol only"),
        ({"setup": SchedulerConfig(protocol="x")}, "protocol cannot be 'x'"),
        ({"setup": SchedulerConfig(cancelled="x")}, "cancelled cannot be 'x'"),  # type: ignore[arg-type]
        ({"detailed": Detailed()}, "needs a platform"),
        ({"detailed": Detailed("p", placement="x")}, "placement cannot be 'x'"),
        ({"detailed": Detailed("p", profile="x")}, "unknown profile"),
        ({"detailed": Detailed("p", walltime="x")}, "unknown walltime"),
        ({"on": "simgrid"}, "one way to start Batsim"),
    ],
)
def test_senseless_experiments_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        dataclasses.replace(FULL, **change).check()


def test_a_sound_experiment_passes() -> None:
    FULL.check()
    Experiment("a", setup=SchedulerConfig(protocol="cqsim")).check()


def test_the_seed_goes_into_noisy_estimates() -> None:
    assert FULL.seeded().estimator == "noisy(0.1, 3)"
    kept = dataclasses.replace(FULL, setup=SchedulerConfig(estimator="noisy(0.1, 7)"))
    assert kept.seeded().estimator == "noisy(0.1, 7)"


def test_files_are_found_from_the_toml_file_s_folder(tmp_path: Path) -> None:
    (tmp_path / "log.swf").touch()
    (tmp_path / "e.toml").write_text('workload = "log.swf"\n[detailed]\nplatform = "teaching-16"\n')
    document = read_document(tmp_path / "e.toml")
    assert document == {"workload": str(tmp_path / "log.swf"), "detailed": {"platform": "teaching-16"}}


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="cannot be read"):
        read_document(tmp_path / "none.toml")
    (tmp_path / "e.toml").write_text("workload = ")
    with pytest.raises(BridgeError, match="not valid TOML"):
        read_document(tmp_path / "e.toml")


def test_shipped_platforms_have_names() -> None:
    assert platform_file("teaching-16").samefile(PLATFORMS / "teaching-16.xml")
    with pytest.raises(BridgeError, match="neither a platform file"):
        platform_file("nowhere")


def test_the_page_shows_every_field_of_the_file() -> None:
    page = (Path(__file__).parents[2] / "docs/experiments.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    made = parse(tomllib.loads(text), "docs/experiments.md")
    refuse_programs(made, {}, "docs/experiments.md")  # the file works as it stands
    assert made.detailed == Detailed("sp2-128")  # the page shows the defaults
    assert all(f"`--{word}" in page for word in ("program ", "image ", "option="))
    document = tomllib.loads(text.replace("\n# cluster", "\ncluster"))  # in place of nodes
    for part, hidden in (
        (made, {"agent", "cross_protocol"}),
        (made.setup, {"action", "blocked"}),
        (made.detailed, {"program", "image", "options"}),  # only typed
    ):
        name = {SchedulerConfig: "setup", Detailed: "detailed"}.get(type(part), "")
        shown = document[name] if name else document
        assert {*shown} | {*hidden} == {field.name for field in dataclasses.fields(part)}
