"""Checkpoints: there and back, and one clear error for each kind of damage."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_training import TINY

from bridge.base.cache import AGENT, is_checkpoint
from bridge.base.errors import BridgeError
from bridge.learn.checkpoint import Provenance, load, read_agent, read_tensors, write_agent, write_tensors
from bridge.learn.checkpoint_files import WEIGHTS
from bridge.learn.network import actor_of, critic_of

ORIGIN = Provenance(
    workload="logs/a.swf",
    workload_name="a",
    jobs=600,
    sha256="ab" * 32,
    seed=3,
    constants={"max_run": 1234.5},
    versions={"torch": "2"},
    command="bridge train --fast",
)


def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    return {
        f"{name}.{k}": v
        for name, network in (("actor", actor_of(TINY)), ("critic", critic_of(TINY)))
        for k, v in network.state_dict().items()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "agent"
    path.mkdir()
    write_agent(path, TINY, ORIGIN)
    write_tensors(path / WEIGHTS, tensors(), {"epoch": "7", "mode": "sample"})
    return path


def test_there_and_back(folder: Path) -> None:
    agent = load(folder)
    assert (agent.recipe, agent.origin, agent.epoch, agent.name) == (TINY, ORIGIN, 7, "agent")
    assert agent.mode == "sample"
    expected = {k.removeprefix("actor."): v for k, v in tensors().items() if k.startswith("actor.")}
    state = agent.actor.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[k], expected[k]) for k in expected)
    assert is_checkpoint(folder)
    assert not is_checkpoint(folder.parent)
    assert {path.name for path in folder.iterdir()} == {AGENT, WEIGHTS}


def test_the_files_hold_no_code(folder: Path) -> None:
    assert json.loads((folder / AGENT).read_text())["recipe"]["encoder"]["features"] == TINY.encoder.features
    assert not (folder / WEIGHTS).read_bytes().startswith((b"PK", b"\x80"))  # neither a zip nor a pickle


def test_the_encoder_uses_the_training_workloads_constants(folder: Path) -> None:
    assert load(folder).encoder().encoder == TINY.encoder


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        document = json.loads((folder / AGENT).read_text())
        change(document)
        (folder / AGENT).write_text(json.dumps(document))

    return apply


def rewritten(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        own = tensors()
        change(own)
        write_tensors(folder / WEIGHTS, own, {"epoch": "7", "mode": "sample"})

    return apply


def cut(name: str, keep: int) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:keep])

    return apply


def rewrite(was: str, now: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        text = (folder / AGENT).read_text()
        assert was in text
        (folder / AGENT).write_text(text.replace(was, now))

    return apply


def nan(own: dict[str, torch.Tensor]) -> None:
    own["actor.layers.0.weight"][0, 0] = float("nan")


@pytest.mark.parametrize(
    ("damage", "where", "said"),
    [
        (lambda f: (f / AGENT).unlink(), "", "is no checkpoint"),
        (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "is missing"),
        (cut(AGENT, 100), AGENT, "is not JSON"),
        (cut(AGENT, 0), AGENT, "is not JSON"),
        (lambda f: (f / AGENT).write_bytes(b"\xff\xfe{"), AGENT, "is not JSON"),
        (lambda f: (f / AGENT).write_text("[" * 100_000), AGENT, "is not JSON"),
        (lambda f: (f / AGENT).write_text("[1, 2]"), AGENT, "not a checkpoint of this version"),
        (edited(lambda d: d.update(format=99)), AGENT, "not a checkpoint of this version"),
        (edited(lambda d: d.pop("recipe")), AGENT, "recipe is no table"),
        (edited(lambda d: d["constants"].update(max_run="long")), AGENT, "constants.max_run cannot be"),
        (edited(lambda d: d.update(seed="three")), AGENT, "seed cannot be 'three'"),
        (edited(lambda d: d.update(seed=-1)), AGENT, "seed cannot be -1"),
        (edited(lambda d: d.update(seed=2**63)), AGENT, "seed cannot be 9223372036854775808"),
        (edited(lambda d: d["recipe"].update(colour="red")), AGENT, "unknown field 'colour'"),
        (edited(lambda d: d["recipe"]["training"].update(epochs=0)), AGENT, "training.epochs cannot be 0"),
        (edited(lambda d: d["recipe"]["actor"].update(kind="x")), "'x'", "unknown network"),
        (edited(lambda d: d["recipe"]["actor"].update(hidden=[9])), WEIGHTS, "not of the network"),
        (edited(lambda d: d["recipe"]["actor"].update(hidden=[2**70])), AGENT, r"hidden\[0\] cannot be"),
        (edited(lambda d: d["recipe"]["actor"].update(hidden=[10**6] * 3)), "kernel", "is too large"),
        (edited(lambda d: d["recipe"]["actor"].update(hidden=[10**4] * 2)), WEIGHTS, "not of the network"),
        (edited(lambda d: d["recipe"]["encoder"].update(window=2**60)), "window", "a window of"),
        (edited(lambda d: d["recipe"].update(name="a\ud800")), AGENT, "is not JSON: .* surrogate"),
        (rewrite('"seed": 3', '"seed": ' + "9" * 5000), AGENT, "is not JSON"),
        (rewrite('"seed": 3', '"seed": 1e9999'), AGENT, "is not JSON"),
        (rewrite("1234.5", "1" + "0" * 390), AGENT, "is not JSON: .* out of range"),
        (cut(WEIGHTS, 200), WEIGHTS, "is damaged"),
        (cut(WEIGHTS, 4), WEIGHTS, "is damaged"),
        (cut(WEIGHTS, 0), WEIGHTS, "is damaged"),
        (lambda f: (f / WEIGHTS).write_bytes(b"\xff" * 500), WEIGHTS, "is damaged"),
        (rewritten(lambda own: own.pop("actor.layers.0.bias")), WEIGHTS, "not of the network"),
        (rewritten(lambda own: own.update({"actor.extra": torch.ones(1)})), WEIGHTS, "not of the network"),
        (
            rewritten(lambda own: own.update({"actor.layers.0.weight": torch.ones(2, 2)})),
            WEIGHTS,
            "not of the network",
        ),
        (rewritten(nan), WEIGHTS, "a weight is not a finite number"),
        (lambda f: write_tensors(f / WEIGHTS, tensors(), {}), WEIGHTS, "does not say of which epoch"),
        (lambda f: write_tensors(f / WEIGHTS, tensors(), {"epoch": "7"}), WEIGHTS, "not say how it answers"),
    ],
)
def test_damage_is_one_error_that_names_the_file(
    folder: Path, damage: Callable[[Path], None], where: str, said: str
) -> None:
    damage(folder)
    with pytest.raises(BridgeError, match=said) as error:
        load(folder)
    assert where in error.value.where


def test_a_constant_that_the_features_need_is_missing(folder: Path) -> None:
    edited(lambda d: d["recipe"]["encoder"].update(features={"x": "t/max_run"}))(folder)
    edited(lambda d: d.update(constants={}))(folder)
    recipe, origin = read_agent(folder)
    with pytest.raises(BridgeError, match="unknown variable 'max_run'"):
        recipe.encoder.compile(origin.constants)


def test_a_failed_write_leaves_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder / WEIGHTS).read_bytes()

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save", full)
    with pytest.raises(BridgeError, match="No space left on device"):
        write_tensors(folder / WEIGHTS, tensors(), {})
    assert (folder / WEIGHTS).read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {AGENT, WEIGHTS}


def test_tensors_and_texts_there_and_back(tmp_path: Path) -> None:
    meta = {"history": json.dumps([{"a": 0.1, "b": float("nan")}])}
    write_tensors(tmp_path / "x", {"a": torch.arange(6).reshape(2, 3).T, "b": torch.tensor(3.0)}, meta)
    got, texts = read_tensors(tmp_path / "x")
    assert (got["a"].tolist(), got["b"].item(), texts) == ([[0, 3], [1, 4], [2, 5]], 3.0, meta)


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    texts = {name: "é" * k for k, name in enumerate("abcdefgh")}
    for name in ("x", "y"):
        write_tensors(tmp_path / name, tensors(), texts)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    got, meta = read_tensors(tmp_path / "x")
    assert meta == texts
    assert all(torch.equal(got[k], v) for k, v in tensors().items())
