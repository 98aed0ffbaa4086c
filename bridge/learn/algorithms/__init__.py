"""Algorithms of learning, found by name: ours, and those of installed packages.

Each is a subclass of `bridge.learn.learner.Learner`. A package provides one by an entry point of the group
``bridge.algorithms``: a name, which recipes then give as their ``algorithm`` = an object reference to the
class. One that is not installed is named ``module:ATTR`` on the command line, never in a file.
"""

import importlib
from typing import cast

from bridge.base.errors import BridgeError
from bridge.base.plugins import is_reference, load_named, load_reference
from bridge.learn.learner import Algorithm, Learner

GROUP = "bridge.algorithms"
#: Ours: name -> module and class.
OURS = {
    "ppo": ("bridge.learn.algorithms.ppo", "Ppo"),
    "gradient": ("bridge.learn.algorithms.gradient", "PolicyGradient"),
    "prediction": ("bridge.learn.algorithms.prediction", "FuturePrediction"),
    "evolution": ("bridge.learn.algorithms.evolution", "EvolutionStrategy"),
    "pool": ("bridge.pool.training", "PoolPpo"),
}


def find(name: str) -> Algorithm:
    """Return an algorithm by its name in recipes.

    BridgeError: there is none, it cannot be loaded, or it is ``module:ATTR`` and not `Typed`.
    """
    if name in OURS:
        module, class_name = OURS[name]
        return cast(Algorithm, getattr(importlib.import_module(module), class_name))
    own = is_reference(name)
    algorithm = load_reference(name, "--algorithm") if own else load_named(GROUP, name, "algorithm", OURS)
    if not (isinstance(algorithm, type) and issubclass(algorithm, Learner)):
        raise BridgeError("is no subclass of bridge.learn.learner.Learner", where=name)
    return algorithm
