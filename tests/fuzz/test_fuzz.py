"""Whatever stands in a file, name or frame, a reader gives a value or one `BridgeError`, soon, silently."""

import os
from pathlib import Path

import pytest
from fuzz_judge import complaint, in_child
from fuzz_targets import TARGETS, outcomes, seeds, warm_up

#: Inputs of a target: in every run, and in a long one (`BRIDGE_FUZZ` overrides), which is done in chunks.
FEW, MANY, CHUNKS = 100, int(os.environ.get("BRIDGE_FUZZ", "25000")), 5
#: Small inputs that once went wrong, as ``TARGET--NAME``.
FAILING = Path(__file__).parent / "failing"


#: Targets on which something still goes wrong, and why.
@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to read in, which is the working one, too: names in a text mean files there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def faults(name: str, first: int, last: int, folder: Path) -> list[str]:
    """Return what goes wrong with the inputs of these numbers."""
    warm_up(name, folder)
    found = in_child(outcomes(name, first, last, folder), first)
    return [f"input {number}: {fault}" for number, fault in found if fault]


@pytest.mark.parametrize("name", [*TARGETS])
def test_seeds_are_sound(name: str, folder: Path) -> None:
    assert warm_up(name, folder) > 0
    assert [complaint(TARGETS[name].read, seed, folder) for seed in seeds(name)] == [""] * len(seeds(name))


@pytest.mark.parametrize("name", [*TARGETS])
def test_a_few_inputs(name: str, folder: Path) -> None:
    assert faults(name, 0, FEW, folder) == []


@pytest.mark.parametrize("name", sorted({path.name.partition("--")[0] for path in FAILING.iterdir()}))
def test_what_once_went_wrong(name: str, folder: Path) -> None:
    """All inputs of a target in one process: each process of its own is a copy of this large one."""
    warm_up(name, folder)
    files = sorted(FAILING.glob(f"{name}--*"))
    read = TARGETS[name].read
    outcomes = in_child(((k, complaint(read, path.read_bytes(), folder)) for k, path in enumerate(files)), 0)
    assert {files[k].name: fault for k, fault in outcomes} == {path.name: "" for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", [*TARGETS])
def test_a_million_inputs(name: str, chunk: int, folder: Path) -> None:
    size = MANY // CHUNKS
    assert faults(name, FEW + chunk * size, FEW + (chunk + 1) * size, folder) == []
