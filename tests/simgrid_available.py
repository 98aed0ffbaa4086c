"""Whether SimGrid's Python bindings are on this machine, and the command of the platform model under them."""

import pytest

from bridge.base.errors import BridgeError
from bridge.worlds import simgrid

try:
    COMMAND = simgrid.command()
    WHY_NOT = ""
except BridgeError as error:
    COMMAND = []
    WHY_NOT = str(error).splitlines()[0]

needs_simgrid = pytest.mark.skipif(not COMMAND, reason=WHY_NOT or "SimGrid")
