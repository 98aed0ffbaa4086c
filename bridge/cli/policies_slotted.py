"""`bridge policies show` of agents of the slotted pool."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.learn.pool.recipe import PoolRecipe

_KILLS = {
    "none": "nobody kills",
    "rule": "the paper's rule kills, before every decision",
    "learned": "the agent kills",
}


def facts(recipe: "PoolRecipe") -> dict[str, Any]:
    """Return what follows from the recipe.

    ``weights`` are counted as the paper does, without biases and what says values; ``parameters`` are all
    that the agent needs to decide and to say values.
    """
    from bridge.learn.pool.network import network_of, weights
    from bridge.pool.encode import shape

    network = network_of(recipe)
    height, width = shape(recipe.pool)
    return {
        "name": recipe.name,
        "setting": recipe.setting,
        "scheduler": "slotted",
        "decision": recipe.decision,
        "algorithm": recipe.training.algorithm,
        "objective": recipe.pool.objective,
        "kill": recipe.kill,
        "estimator": recipe.estimator,
        "rows": height,
        "columns": width,
        "state_size": height * width,
        "actions": recipe.pool.actions,
        "weights": weights(network),
        "parameters": sum(p.numel() for n, p in network.named_parameters() if not n.startswith("critic.")),
    }


def lines(recipe: "PoolRecipe", found: dict[str, Any], package: str) -> Iterator[tuple[str, str]]:
    """Yield what is shown, line by line; `found` are its `facts`."""
    pool, network, training = recipe.pool, recipe.network, recipe.training
    yield f"{recipe.name}/{recipe.setting}", recipe.summary
    yield "source", recipe.source
    yield "package", package
    kills = " or which running one is killed," if recipe.kill == "learned" else ""
    yield "decision", f"{recipe.decision}: which waiting job is booked,{kills} or that time moves"
    yield "state", f"{found['rows']} × {found['columns']} = {found['state_size']:,} numbers"
    yield "actions", f"{found['actions']}: {pool.slots} slots, none, {pool.kill_slots} kill slots"
    convolutions = zip(network.channels, network.kernels, network.strides, strict=True)
    layers = [f"{c} of {k} × {k} every {s}" for c, k, s in convolutions]
    layers.append("-".join(map(str, network.hidden)))
    counts = (
        f"{found['weights']:,} weights ({found['parameters']:,} parameters with biases and the value head)"
    )
    yield "network", f"{network.kind} {', '.join(layers)}, {counts}"
    yield "objective", pool.objective
    again = f", the same job at most {recipe.most_kills} times" if recipe.most_kills else ""
    yield "kill", f"{recipe.kill}: {_KILLS[recipe.kill]}{again if recipe.kill == 'learned' else ''}"
    yield "estimator", recipe.estimator
    yield "mask", f"{recipe.mask}, idle {recipe.idle}"
    yield "pool", ", ".join(f"{k} {v}" for k, v in asdict(pool).items() if k != "objective")
    yield "training", ", ".join(f"{k} {v}" for k, v in asdict(training).items() if v != "")
    yield "deployed", recipe.deploy
