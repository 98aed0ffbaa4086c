"""Shared by the tests of platforms: where files are, and the reasons to skip."""

import functools
import os
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from bridge.simgrid.interpreter import find_interpreter

CORPUS = Path(__file__).with_name("corpus")
SHIPPED = Path(__file__).parents[2] / "platforms"


@functools.cache
def _missing() -> str:
    try:
        find_interpreter()
    except BridgeError as error:
        return str(error)
    return ""


def need_simgrid() -> None:
    """Skip the test if no interpreter has SimGrid."""
    if _missing():
        pytest.skip(f"SimGrid: {_missing()}")


def golden_batsim() -> Path:
    """Folder of the recordings of the real Batsim; skip the test without them."""
    root = os.environ.get("BRIDGE_GOLDEN")
    if not root:
        pytest.skip("BRIDGE_GOLDEN is not set")
    return Path(root) / "batsim"
