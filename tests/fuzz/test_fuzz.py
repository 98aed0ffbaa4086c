"""Whatever stands in a file, name or frame, a reader gives a value or one `BridgeError`, soon, silently."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz_judge import complaint, reduced
from fuzz_targets import TARGETS, seeds, warm_up
from mutators import mutate

#: Inputs of a target: in every run, and in a long one (`BRIDGE_FUZZ` overrides), which is done in chunks.
FEW, MANY, CHUNKS = 100, int(os.environ.get("BRIDGE_FUZZ", "25000")), 5
#: Small inputs that once went wrong, as ``TARGET--NAME``.
FAILING = Path(__file__).parent / "failing"
#: Targets on which something still goes wrong, and why.
KNOWN_FAILING: dict[str, str] = {}


def target_or_known(name: str) -> object:
    """Return a target's name, or a file's, as a parameter; one that is known to fail may."""
    reason = KNOWN_FAILING.get(name.partition("--")[0], "")
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason) if reason else ())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to read in, which is the working one, too: names in a text mean files there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def faults(name: str, numbers: range, folder: Path) -> Iterator[str]:
    """Yield what goes wrong, each kind once, with the smallest input."""
    target, kinds = TARGETS[name], set()
    warm_up(name, folder)
    for number in numbers:
        data = mutate(random.Random(f"{name} {number}"), seeds(name), target.form)
        if (fault := complaint(target.read, data, folder)) and fault not in kinds:
            kinds.add(fault)
            yield f"{fault}: input {number}, reduced {reduced(target.read, data, folder)[:300]!r}"


@pytest.mark.parametrize("name", [*map(target_or_known, TARGETS)])
def test_seeds_are_sound(name: str, folder: Path) -> None:
    assert warm_up(name, folder) > 0
    assert [complaint(TARGETS[name].read, seed, folder) for seed in seeds(name)] == [""] * len(seeds(name))


@pytest.mark.parametrize("name", [*map(target_or_known, TARGETS)])
def test_a_few_inputs(name: str, folder: Path) -> None:
    assert list(faults(name, range(FEW), folder)) == []


@pytest.mark.parametrize("file", [target_or_known(path.name) for path in sorted(FAILING.iterdir())])
def test_what_once_went_wrong(file: str, folder: Path) -> None:
    name = file.partition("--")[0]
    warm_up(name, folder)
    assert complaint(TARGETS[name].read, (FAILING / file).read_bytes(), folder) == ""


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", [*map(target_or_known, TARGETS)])
def test_a_million_inputs(name: str, chunk: int, folder: Path) -> None:
    size = MANY // CHUNKS
    assert list(faults(name, range(FEW + chunk * size, FEW + (chunk + 1) * size), folder)) == []
