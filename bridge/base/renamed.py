"""Names that were public under another one: importable until a release has passed, with a warning.

A module that is still there asks by its own ``__getattr__``; one that has moved is found by `install`.
Standard library only.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Module and name as they were -> as they are.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "bridge.config": {"Of": "bridge.config.fields:Constraint"},
    "bridge.config.fields": {"Of": "bridge.config.fields:Constraint"},
    "bridge.env.task": {
        "Task": "bridge.env.env_config:EnvConfig",
        "task": "bridge.env.env_config:build_env_config",
    },
    "bridge.fast.episode": {"Prepared": "bridge.worlds.fast.episode:Scenario"},
    "bridge.fast.setup": {"Setup": "bridge.worlds.fast.scheduler_config:SchedulerConfig"},
    "bridge.judge.metrics": {"compute": "bridge.judge.metrics:compute_metrics"},
    "bridge.learn.algorithms.event": {"EventLearner": "bridge.learn.algorithms.log_learner:LogLearner"},
    "bridge.learn.checkpoint": {
        "Checkpoint": "bridge.learn.checkpoint:LogAgent",
        "PoolCheckpoint": "bridge.pool.network:PoolCheckpoint",
    },
    "bridge.learn.learner": {
        "Assignment": "bridge.learn.learner:TrainingContext",
        "Learnt": "bridge.learn.learner:EpochResult",
    },
    "bridge.learn.own": {
        "OwnPolicy": "bridge.learn.user_policy:UserPolicy",
        "load_own": "bridge.learn.user_policy:load_user_policy",
    },
    "bridge.learn.recipe": {
        "Evolution": "bridge.learn.recipe:EvolutionConfig",
        "Gradient": "bridge.learn.recipe:PolicyGradientConfig",
        "Network": "bridge.learn.recipe:NetworkConfig",
        "PictureNetwork": "bridge.pool.recipe:PoolNetworkConfig",
        "PoolRecipe": "bridge.pool.recipe:PoolRecipe",
        "PoolTraining": "bridge.pool.recipe:PoolTrainingConfig",
        "Prediction": "bridge.learn.recipe:FuturePredictionConfig",
        "Training": "bridge.learn.recipe:TrainingConfig",
    },
    "bridge.pool.settings": {
        "Settings": "bridge.pool.settings:PoolConfig",
        **{
            name: f"bridge.scheduler.names:{name}"
            for name in ("ALIASES", "HEURISTICS", "KILLS", "Kill", "NAMES", "PREFIX", "RANDOM", "SAF", "SJF")
        },
        **{name: f"bridge.scheduler.names:{name}" for name in ("TETRIS", "TETRIS_STAR")},
    },
    "bridge.scheduler.outside": {"View": "bridge.scheduler.python_rules:JobsView"},
}


def getter(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module: it finds what was renamed, and warns."""

    def get(name: str) -> Any:
        target = RENAMED.get(module, {}).get(name)
        if target is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, attribute = target.partition(":")
        text = f"{module}.{name} is now {place}.{attribute}; the old name goes with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(place), attribute)

    return get


class _Moved(MetaPathFinder, Loader):
    """Finds modules that have moved: what is left of them are the names in `RENAMED`."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname in RENAMED:
            return ModuleSpec(fullname, self)
        is_package = any(name.startswith(f"{fullname}.") for name in RENAMED)
        return ModuleSpec(fullname, self, is_package=True) if is_package else None

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = getter(module.__name__)  # type: ignore[method-assign]


def install() -> None:
    """Let moved modules be found, once a process."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
