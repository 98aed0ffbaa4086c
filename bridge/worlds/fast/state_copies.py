"""Copies of a cluster's scheduler, by the types and axes that its fields declare."""

from collections.abc import Iterator
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from bridge.base.arrays import Array
from bridge.scheduler.cluster_state import ClusterFields
from bridge.scheduler.state import State
from bridge.scheduler.timed_state import TimedFields, TimedState

#: Arrays that hold something within one pass only, and may be large.
_OF_A_PASS = frozenset({"steps", "step_free", "profile_time", "profile_nodes"})
#: What only the world reads.
_LOGS = frozenset({"life_log", "life_nodes", "life_units"})
#: What a policy brings.
_RULES = frozenset({"switches", "program", "alt_program"})


@cache
def _axes(is_timed: bool) -> dict[str, tuple[Any, ...]]:
    """Return the axes of a state's fields, by name."""
    kinds = (State, ClusterFields, *((TimedFields,) if is_timed else ()))
    hints = [get_type_hints(kind, include_extras=True) for kind in kinds]
    return {name: hint.__metadata__[1:] for one in hints for name, hint in one.items()}


def copy_scheduler(state: Any, b: int = 0) -> Any:
    """Return one scheduler of a state, with arrays of its own."""
    axes = _axes(isinstance(state, TimedState))
    own: dict[str, Array] = {}
    for name in state._fields:
        array = getattr(state, name)
        if "B" in axes[name]:
            array = array[b : b + 1]
        is_scratch = name in _OF_A_PASS or name in _LOGS
        own[name] = np.zeros(array.shape, array.dtype).view(type(array)) if is_scratch else array.copy()
    return state._replace(**own)


def list_copied(target: Any, source: Any, n: int, b: int = 0) -> Iterator[tuple[Array, Array]]:
    """Yield target and source of what makes a copy equal to scheduler `b` again, for its first n jobs."""
    for name, axes in _axes(isinstance(source, TimedState)).items():
        if name in _OF_A_PASS or name in _RULES or name in _LOGS:
            continue
        to, array = getattr(target, name), getattr(source, name)
        if "B" in axes:
            array = array[b : b + 1]
        part = (slice(None), slice(n)) if axes[:2] == ("B", "L") else slice(None)
        yield to[part], array[part]
