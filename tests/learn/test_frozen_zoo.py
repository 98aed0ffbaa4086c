"""The shipped agents are the bytes that were measured, and their tensors keep names, types and shapes."""

import hashlib
import json
from pathlib import Path

import pytest

ZOO = Path(__file__).resolve().parents[2] / "zoo"
FROZEN = json.loads(Path(__file__).with_name("data").joinpath("zoo.json").read_text(encoding="utf-8"))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tensors(path: Path) -> dict[str, str]:
    """Return name -> type and shape of the tensors of a file in the safetensors format."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    header.pop("__metadata__", None)
    return {
        name: f"{one['dtype']} {'x'.join(map(str, one['shape']))}" for name, one in sorted(header.items())
    }


def test_every_agent_is_frozen() -> None:
    assert sorted(path.parent.name for path in ZOO.glob("*/agent.json")) == sorted(FROZEN)


@pytest.mark.parametrize("name", FROZEN)
def test_an_agent_is_what_was_measured(name: str) -> None:
    weights = ZOO / name / "weights.safetensors"
    assert tensors(weights) == FROZEN[name]["tensors"]
    assert digest(weights) == FROZEN[name]["weights"]
    assert digest(ZOO / name / "agent.json") == FROZEN[name]["agent"]
