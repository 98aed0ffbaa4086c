"""The environment variables that bridge reads, in one list: for `bridge doctor` and for the documentation."""

import os
from typing import NamedTuple


class Variable(NamedTuple):
    name: str
    purpose: str
    default: str


VARIABLES: tuple[Variable, ...] = (
    Variable("BRIDGE_CACHE", "folder of compiled kernels and fetched logs", "the user's cache folder"),
    Variable("BRIDGE_TRACES", "folder of logs that are found by their names", "no folder"),
    Variable("BRIDGE_DATA", "folder of job sets of the time-stepped pool", "the current folder"),
    Variable("BRIDGE_SIMGRID_PYTHON", "Python that has SimGrid's bindings", "the one that bridge finds"),
    Variable("BRIDGE_PYTHON", "Python that the script again.sh of a run starts", "the one that made the run"),
    Variable("SLURM_CONF", "slurm.conf of the live commands", "/etc/slurm/slurm.conf"),
    Variable("NUMBA_DISABLE_JIT", "1 = kernels run as plain Python, for debuggers", "0"),
    Variable("BRIDGE_GOLDEN", "tests only: schedules that other simulators made", "those tests are skipped"),
    Variable(
        "BRIDGE_FUZZ",
        "tests only: how many random inputs `make test-slow` gives to each tested part of bridge",
        "25000",
    ),
    Variable("BATSIM", "tests only: a Batsim to test against", "those tests are skipped"),
)


def describe_variables() -> list[tuple[Variable, str]]:
    """Return each variable with its value; empty: it is not set."""
    return [(variable, os.environ.get(variable.name, "")) for variable in VARIABLES]
