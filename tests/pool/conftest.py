"""Where the logged jobs of the paper are: ``$BRIDGE_DATA``, or ``../data`` beside ``$BRIDGE_TRACES``."""

import os
from pathlib import Path

import pytest

from bridge.pool.jobset import JobSet, read_vasp


@pytest.fixture(scope="session")
def vasp_path() -> Path:
    """The file of logged VASP jobs."""
    data, traces = os.environ.get("BRIDGE_DATA"), os.environ.get("BRIDGE_TRACES")
    if not data and not traces:
        pytest.skip("neither BRIDGE_DATA nor BRIDGE_TRACES is set (folder of vasp_jobs.csv.gz)")
    folder = Path(data) if data else Path(str(traces)).parent / "data"
    path = folder / "vasp_jobs.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="session")
def vasp(vasp_path: Path) -> JobSet:
    """The logged VASP jobs."""
    return read_vasp(vasp_path)
