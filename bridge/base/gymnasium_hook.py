"""Makes the environments known to Gymnasium as soon as it is imported, and imports nothing before.

Gymnasium loads no other package's environments by itself, and `bridge` has to run where there is no
Gymnasium. Standard library only.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_GYMNASIUM, _REGISTER = "gymnasium", "bridge.env.register"


class _Finder:
    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _GYMNASIUM:
            return None
        finders = [f for f in sys.meta_path if not isinstance(f, _Finder)]
        specs = (finder.find_spec(name, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                import_module(_REGISTER)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Register the environments: now if Gymnasium is loaded, else when it is imported."""
    if _GYMNASIUM in sys.modules:
        import_module(_REGISTER)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
