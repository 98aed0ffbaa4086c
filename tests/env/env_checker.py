"""Gymnasium's own check of an environment: a warning is an error. And which environments are checked."""

import os
import warnings
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env

from bridge.env.register import ENVIRONMENTS

#: Where jobs have several lives the kernels are others, and compile for minutes: see
#: `worlds/fast/test_actions_without_compiler.py`.
COMPILED = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]
NAMES = [
    pytest.param(name, marks=COMPILED if decision in ("preempt", "trial") else [])
    for name, decision in ENVIRONMENTS.items()
]


def check(env: Any) -> None:
    """Check an environment; one that was made by name under its very name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if env.spec is None:
            warnings.filterwarnings("ignore", message=".*not having a spec.*")
        check_env(env.unwrapped)
