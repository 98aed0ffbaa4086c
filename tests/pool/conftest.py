"""The logged jobs of the paper."""

from pathlib import Path

import pytest

from bridge.pool.jobset import JobSet, read_vasp


@pytest.fixture(scope="session")
def vasp(vasp_path: Path) -> JobSet:
    return read_vasp(vasp_path)
