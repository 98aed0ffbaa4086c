"""Replay job logs of supercomputers under a scheduling policy, fast or on a detailed platform."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bridge.base import gymnasium_hook, renamed
from bridge.base.version import __version__ as __version__

if TYPE_CHECKING:
    from bridge.api import (
        decide,
        evaluate,
        fidelity,
        forecast,
        load_agent,
        make_env,
        predict,
        read_cluster,
        read_workload,
        replay,
        train,
        validate,
    )

__all__ = [
    "decide",
    "evaluate",
    "fidelity",
    "forecast",
    "load_agent",
    "make_env",
    "predict",
    "read_cluster",
    "read_workload",
    "replay",
    "train",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load the public face when it is first used; the platform model's interpreter lacks what it needs."""
    if name in __all__:
        return getattr(import_module("bridge.api"), name)
    raise AttributeError(f"module 'bridge' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what this module offers."""
    return sorted({*globals(), *__all__})


gymnasium_hook.install()  # `gymnasium.make("bridge/Backfill-v0")` needs no further import
renamed.install()  # names of before, until a release has passed
