"""`bridge train`: what it leaves and says, what it refuses, and going on after any end."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cli_commands import file_names, limit_file_sizes, run_bridge, run_ok, run_refused, start_bridge
from training_commands import FILES, PATIENCE, TINY, agent, epochs_of, interrupted, write_config

DEFAULT = Path("agents/rlbackfilling-bundled-128-s1")


@pytest.fixture(autouse=True)
def config(folder: Path) -> None:
    write_config(folder)


def test_by_default_rlbackfilling_learns_on_the_bundled_workload() -> None:
    told = run_bridge("train", "--fast", *TINY)
    assert told.status == 0, told.err
    assert file_names(DEFAULT) == FILES
    kept = agent(DEFAULT)
    assert (kept["name"], kept["setting"], kept["protocol"]) == ("rlbackfilling", "recommended", "standard")
    assert (kept["workload"], kept["jobs"], kept["seed"]) == ("bundled-128", 3000, 1)
    assert kept["command"] == "bridge train --fast --config tiny.toml"
    lines = [line for line in told.err.splitlines() if line.startswith("bridge: epoch")]
    assert [line.split(":")[1] for line in lines] == [" epoch 1/2", " epoch 2/2"]
    number = r"[\d,.e+]+"
    beside = rf"{number} \(base {number}, ×[\d.]+\)"
    assert re.fullmatch(
        rf"bridge: epoch 2/2: bsld {beside}, valid {beside}, [\d.]+ s/epoch, 0:00:00 left", lines[1]
    )
    assert "training, epoch 2" in told.out
    assert re.search(r"validation, epoch [12]", told.out)
    assert f"bridge evaluate {DEFAULT}" in told.out
    assert f"bridge validate {DEFAULT}" in told.out
    assert f"bridge explain {DEFAULT}" in told.out
    assert pq.read_table(DEFAULT / "progress.parquet")["epoch"].to_pylist() == [1, 2]


def test_the_world_may_be_left_unsaid_and_the_folder_tells_what_was_asked() -> None:
    run_ok("train", "schedinspector", *TINY, "--order", "-t*n", "--seed", "7", "--epochs", "1")
    assert file_names(Path("agents")) == {"schedinspector-bundled-128-t-n-s7"}
    kept = agent(Path("agents/schedinspector-bundled-128-t-n-s7"))
    assert kept["recipe"]["setup"]["order"] == "-t*n"  # type: ignore[index]
    assert kept["recipe"]["training"]["epochs"] == 1  # type: ignore[index]


@pytest.mark.parametrize("policy", ["rlbackfilling", "rlscheduler", "schedinspector"])
def test_cqsim_trains_too_and_the_papers_settings_under_schedgym(policy: str) -> None:
    wanted = {"cqsim": ("--protocol", "cqsim"), "schedgym": ("--setting", "paper")}
    for protocol, words in wanted.items():
        run_ok("train", policy, *TINY, *words, "--out", protocol)
        setup = agent(Path(protocol))["recipe"]["setup"]  # type: ignore[index]
        assert (setup["protocol"], setup["preset"]) == (protocol, policy if protocol == "schedgym" else "")
        assert file_names(Path(protocol)) == FILES


def test_protocols_bring_and_take_their_presets() -> None:
    run_ok("train", "schedinspector", *TINY, "--protocol", "schedgym", "--epochs", "1", "--out", "a")
    assert agent(Path("a"))["recipe"]["setup"]["preset"] == "schedinspector"  # type: ignore[index]
    more = ("--setting", "paper", "--protocol", "standard", "--epochs", "1")
    run_ok("train", "schedinspector", *TINY, *more, "--out", "b")
    assert agent(Path("b"))["recipe"]["setup"]["preset"] == ""  # type: ignore[index]


def test_an_existing_folder_is_not_touched() -> None:
    run_ok("train", *TINY, "--epochs", "1", "--out", "a")
    before = {path.name: path.read_bytes() for path in Path("a").iterdir()}
    error = run_refused("train", *TINY, "--out", "a")
    assert error.startswith("a: exists already")
    assert "bridge train --resume --out a" in error
    assert {path.name: path.read_bytes() for path in Path("a").iterdir()} == before
    Path("file").write_text("")
    assert "file" in run_bridge("train", *TINY, "--out", "file").err
    Path("empty").mkdir()
    run_ok("train", *TINY, "--epochs", "1", "--out", "empty")


def test_going_on_needs_no_other_words() -> None:
    run_ok("train", "schedinspector", *TINY, "--order", "f1", "--seed", "3", "--epochs", "1", "--out", "a")
    told = run_bridge("train", "--resume", "--out", "a", "--epochs", "2")
    assert told.status == 0, told.err
    assert "bridge: epoch 2/2" in told.err
    assert "epoch 1/2" not in told.err
    assert "bit for bit" not in told.err
    kept = agent(Path("a"))
    assert (kept["name"], kept["seed"]) == ("schedinspector", 3)
    assert kept["recipe"]["setup"]["order"] == "f1"  # type: ignore[index]
    assert kept["recipe"]["training"]["epochs"] == 2  # type: ignore[index]
    assert pq.read_table("a/progress.parquet")["epoch"].to_pylist() == [1, 2]


def test_a_complete_training_has_nothing_left_to_do() -> None:
    run_ok("train", *TINY, "--out", "a")
    before = Path("a/weights.safetensors").read_bytes()
    told = run_bridge("train", "--resume", "--out", "a")
    assert (told.status, told.err) == (
        0,
        "bridge: a has learnt for all its 2 epochs already: nothing was trained; --epochs N asks for more\n",
    )
    assert "training, epoch 2" in told.out
    assert Path("a/weights.safetensors").read_bytes() == before
    assert "has learnt for 2 epochs already" in run_refused(
        "train", "--resume", "--out", "a", "--epochs", "1"
    )


def test_going_on_before_the_first_epoch_was_saved_begins() -> None:
    run_ok("train", *TINY, "--out", "whole")
    run_ok("train", *TINY, "--out", "a")
    for name in FILES - {"agent.json"}:
        (Path("a") / name).unlink()
    run_ok("train", "--resume", "--out", "a")
    assert Path("a/weights.safetensors").read_bytes() == Path("whole/weights.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "2"], "was trained with the seed 1, not 2"),
        (["--order", "sjf"], "was trained with setup.order fcfs, not sjf"),
        (["--protocol", "cqsim"], "was trained with setup.protocol standard, not cqsim"),
        (["--workload", "other.swf"], "was trained with the log of digest"),
        (["schedinspector"], "was trained with name rlbackfilling, not schedinspector"),
        (["--setting", "paper"], "was trained with setting recommended, not paper"),
        (["--config", "other.toml"], "was trained with training.gamma 1.0, not 0.9"),
    ],
)
def test_another_training_is_not_gone_on_with(tiny: str, words: list[str], said: str) -> None:
    run_ok("train", *TINY, "--epochs", "1", "--out", "a")
    before = {path.name: path.read_bytes() for path in Path("a").iterdir()}
    Path("other.swf").write_text(Path(tiny).read_text())
    Path("other.toml").write_text(Path("tiny.toml").read_text() + "gamma = 0.9\n")
    same = [] if "--config" in words or words == ["schedinspector"] else ["--config", "tiny.toml"]
    error = run_refused("train", "--resume", "--out", "a", *same, *words, "--epochs", "2")
    assert error.startswith("a: was trained with")
    assert said in error
    assert {path.name: path.read_bytes() for path in Path("a").iterdir()} == before


def test_going_on_with_other_versions_is_said() -> None:
    run_ok("train", *TINY, "--epochs", "1", "--out", "a")
    kept = agent(Path("a"))
    kept["versions"]["torch"] = "1.0"  # type: ignore[index]
    Path("a/agent.json").write_text(json.dumps(kept))
    told = run_bridge("train", "--resume", "--out", "a", "--epochs", "2")
    assert told.status == 0
    assert "began with torch 1.0 instead of" in told.err
    assert "not bit for bit" in told.err


def test_going_on_with_nothing_is_refused() -> None:
    assert "is no checkpoint" in run_refused("train", "--resume")
    assert not Path("agents").exists()
    Path("notes").mkdir()
    Path("notes/mine.txt").write_text("")
    assert run_refused("train", "--resume", "--out", "notes").startswith("notes: is no checkpoint")
    assert [path.name for path in Path("notes").iterdir()] == ["mine.txt"]


def test_a_training_that_was_killed_before_its_first_file_begins() -> None:
    """Both as it was typed, and with --resume; what the killed one has left is gone."""
    run_ok("train", *TINY, "--epochs", "1", "--out", "whole")
    for folder, words in {"a": (), "b": ("--resume",)}.items():
        Path(folder).mkdir()
        (Path(folder) / ".agent.json.x1y2z3.bridge-tmp").write_text('{"form')
        told = run_bridge("train", *TINY, *words, "--epochs", "1", "--out", folder)
        assert told.status == 0, told.err
        assert ("nothing was saved in b before it was stopped" in told.err) is (folder == "b")
        assert {path.name for path in Path(folder).iterdir()} == FILES
        assert (
            Path(folder, "weights.safetensors").read_bytes() == Path("whole/weights.safetensors").read_bytes()
        )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[training", "wrong.toml: not valid TOML"),
        ("[traning]\nepochs = 3\n", "unknown field 'traning'"),
        ("[training]\nepochs = 'many'\n", "wrong.toml: training.epochs cannot be 'many'"),
        ("[training]\nepochs = 0\n", "training.epochs cannot be 0"),
        ("[encoder.features]\nx = 'foo + t'\n", "unknown variable 'foo'"),
        ("[actor]\nkind = 'brain'\n", "unknown network"),
        ("[training]\nlength = 100000\n", "holds no episode of 100000"),
        ("[setup]\norder = 'nosuch'\n", "unknown order"),
    ],
)
def test_a_wrong_config_is_one_error_and_leaves_nothing(text: str, said: str) -> None:
    Path("wrong.toml").write_text(text)
    assert said in run_refused("train", "--config", "wrong.toml", "--out", "a")
    assert not Path("a").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rlbackfiling"], "unknown policy"),
        (["--setting", "best"], "rlbackfilling has no such setting"),
        (["--workload", "nosuch"], "nosuch"),
        (["--config", "nosuch.toml"], "nosuch.toml: cannot be read (No such file"),
        (["--backfill", "none"], "setup.backfill cannot be none"),
        (["--order", "t +"], "neither a named order nor an expression"),
        (["--out", "tiny.toml/a"], "cannot write"),
    ],
)
def test_wrong_words_are_one_error_and_leave_nothing(words: list[str], said: str) -> None:
    before = file_names(Path())
    first = [] if "--config" in words else TINY
    assert said in run_refused("train", *first, *words)
    assert file_names(Path()) == before


def test_a_machine_without_cuda() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert "PyTorch sees no CUDA device" in run_refused("train", *TINY, "--device", "cuda", "--out", "a")
    assert not Path("a").exists()


def test_tensorboard() -> None:
    run_ok("train", *TINY, "--epochs", "1", "--tensorboard", "--out", "a")
    run_ok("train", "--resume", "--epochs", "2", "--tensorboard", "--out", "a")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator("a/tensorboard")
    events.Reload()
    curve = events.Scalars("metric/train")
    assert [point.step for point in curve] == [1, 2]
    kept = pq.read_table("a/progress.parquet")["train_mean"].to_pylist()
    assert [point.value for point in curve] == pytest.approx(kept)
    assert {"metric/validation", "update/kl", "loss/value", "reward"} <= set(events.Tags()["scalars"])


def test_without_tensorboard_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    error = run_refused("train", *TINY, "--tensorboard", "--out", "a")
    assert "TensorBoard is not installed" in error
    assert "pip install tensorboard" in error


def test_ctrl_c_keeps_the_finished_epochs_and_says_how_to_go_on(folder: Path) -> None:
    run_ok("train", *TINY, "--epochs", "1", "--out", "warm")  # compiled kernels are only read from here on
    done, err = interrupted("my agent", 200, *TINY)
    assert err.rstrip().endswith(b"bridge: interrupted")
    assert 1 <= done < 200
    assert file_names(folder / "my agent") == FILES
    run_ok("train", "--resume", "--out", "my agent", "--epochs", done + 1)
    assert epochs_of("my agent") == list(range(1, done + 2))


def test_a_disk_that_fills_up_is_one_error_and_can_be_gone_on_with() -> None:
    run_ok("train", "--setting", "paper", *TINY, "--out", "whole")  # its critic takes more than 40 kB
    process = start_bridge("train", "--setting", "paper", *TINY, "--out", "a", preexec_fn=limit_file_sizes)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"a/weights.safetensors: cannot write: File too large" in err
    assert b"Traceback" not in err
    assert file_names(Path("a")) == {"agent.json"}
    run_ok("train", "--resume", "--out", "a")
    assert Path("a/weights.safetensors").read_bytes() == Path("whole/weights.safetensors").read_bytes()
