"""A tiny study on the bundled log: rules, an agent that learns for two epochs, a row that cannot be."""

from pathlib import Path

import pytest

from bridge.study.cells import Cell, cells_of
from bridge.study.reading import read_studies
from bridge.study.spec import Study

TINY = """\
title = "Tiny"
logs = ["bundled-128"]
more = ["wait"]
seeds = 2

[[tests]]
sequences = 12
length = 32

[[rows]]
name = "FCFS"
[[rows]]
name = "SJF"
setup = { order = "sjf" }
[[rows]]
name = "agent"
policy = "rlbackfilling"
[rows.changes.training]
epochs = 2
trajectories = 4
length = 32
validate_every = 1
iterations = 2
critic_iterations = 2
"""
#: Too few jobs for its windows.
BROKEN = """
[[rows]]
name = "broken"
setup = { first = 20 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def broken(tmp_path: Path) -> list[Cell]:
    """The cells of a study of which one cannot be."""
    path = tmp_path / "broken.toml"
    path.write_text(TINY + BROKEN)
    return cells_of(read_studies(path)[0])


@pytest.fixture
def tiny(file: Path) -> Study:
    (study,) = read_studies(file)
    return study


@pytest.fixture
def cells(tiny: Study) -> list[Cell]:
    return cells_of(tiny)
