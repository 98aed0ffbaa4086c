"""Nothing that is frozen has moved: agents' worth and schedules, tiny trainings, messages of deciding."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from golden_cases import HERE, POOL_AGENTS, SESSIONS, TRAININGS, ZOO, workload_of
from golden_runs import differences, judged_and_replayed, judged_on_pool, session, trained, write_workloads

#: PyTorch's kernels differ between machines in float32's last digits, of which a training makes more.
TRAINING_TOLERANCE = 1e-5


def golden(name: str) -> Any:
    return json.loads((HERE / "data" / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the workload of two resources, where the runs and trainings go."""
    path = tmp_path_factory.mktemp("golden")
    write_workloads(path)
    return path


@pytest.mark.parametrize("agent", ZOO)
def test_agents_of_the_zoo(agent: str, folder: Path) -> None:
    assert not differences(golden(agent), judged_and_replayed(agent, workload_of(agent, folder), folder))


@pytest.mark.parametrize("agent", POOL_AGENTS)
def test_agents_of_the_pool(agent: str) -> None:
    assert not differences(golden(agent), judged_on_pool(agent))


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="goldens are of PyTorch 2.13")
def test_trainings(folder: Path) -> None:
    for name in TRAININGS:  # one is the teacher of another
        assert not differences(golden(f"training-{name}"), trained(name, folder), TRAINING_TOLERANCE), name


@pytest.mark.parametrize("kind", SESSIONS)
def test_messages_of_a_session(kind: str) -> None:
    assert not differences(golden(f"session-{kind}"), session(kind))


def test_differences_are_found() -> None:
    same = {"a": [1, 2.0], "b": float("nan"), "c": None}
    assert not differences(same, {**same, "a": [1, 2.0 + 1e-12], "d": "more"})
    assert differences(same, {**same, "a": [1, 2.0 + 1e-7]}) == [".a[1]: 2.0000001, not 2.0"]
    expected = [".c: is missing", ".a[0]: 2, not 1", ".b: 0.0, not nan"]
    assert differences(same, {"a": [2, 2.0], "b": 0.0}) == expected
    assert differences([1], [1, 2]) and differences({"a": True}, {"a": 1})
