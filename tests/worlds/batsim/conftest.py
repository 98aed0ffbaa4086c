"""A workload that all comparisons of both worlds read."""

import pytest

from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.table import Workload


@pytest.fixture(scope="session")
def bundled() -> Workload:
    return read(resolve("bundled-128"))
