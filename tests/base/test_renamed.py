"""Public names of before can be imported, warn, and are the new things; others of moved modules are gone."""

import importlib

import pytest

from bridge.base.renamed import RENAMED

NAMES = [(module, name, target) for module, names in RENAMED.items() for name, target in names.items()]


@pytest.mark.parametrize(("module", "name", "target"), NAMES)
def test_an_old_name_is_the_new_thing(module: str, name: str, target: str) -> None:
    place, _, attribute = target.partition(":")
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now {place}.{attribute}"):
        old = getattr(importlib.import_module(module), name)
    assert old is getattr(importlib.import_module(place), attribute)


def test_what_was_never_there_is_not_there() -> None:
    with pytest.raises(ImportError, match="Nothing"):
        from bridge.fast.setup import Nothing  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("bridge.fast.nothing")
