"""Gymnasium's own check of an environment, for which a warning is an error."""

import warnings
from typing import Any

from gymnasium.utils.env_checker import check_env


def check(env: Any) -> None:
    """Check an environment; one that was made by name under its very name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if env.spec is None:
            warnings.filterwarnings("ignore", message=".*not having a spec.*")
        check_env(env.unwrapped)
