"""The seam between learning and schedulers: what the recipes of each bring, found by their `scheduler`.

Whoever adds a scheduler with agents of its own adds a line here, and a module with a `Kind` called ``KIND``.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bridge.learn.recipe import AnyRecipe

if TYPE_CHECKING:
    from torch import nn

#: Scheduler -> the module with its `Kind`, loaded when an agent of it is.
KINDS = {"event": "bridge.learn.describe", "pool": "bridge.pool.describe"}


@dataclass(frozen=True)
class Kind:
    """Recipes of one scheduler.

    Attributes:
        recipe: their class.
        network: makes the network that answers, with fresh weights.
        facts, lines: of `bridge policies show`, see `bridge.learn.describe`.
    """

    recipe: type[AnyRecipe]
    network: "Callable[[Any], nn.Module]"
    facts: Callable[[Any], dict[str, Any]]
    lines: Callable[[Any, dict[str, Any]], Iterator[tuple[str, str]]]


def kind_of(scheduler: str) -> Kind:
    """Return what the recipes of a scheduler bring, one of `KINDS`."""
    return cast(Kind, importlib.import_module(KINDS[scheduler]).KIND)
