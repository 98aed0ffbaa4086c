"""What the pool's recipes bring to learning (`bridge.learn.kinds`), and what they are made of."""

from collections.abc import Iterator
from typing import Any

from bridge.config.fields import record_of
from bridge.learn.kinds import Kind
from bridge.pool.network import network_of, weights
from bridge.pool.observation import shape
from bridge.pool.recipe import PoolRecipe

_KILLS = {
    "none": "nobody kills",
    "rule": "the paper's rule kills, before every decision",
    "learned": "the agent kills",
}


def _of_pool(recipe: PoolRecipe) -> dict[str, Any]:
    """Return what follows from a recipe.

    ``weights`` are counted as the paper does, without biases and what says values; ``parameters`` are all
    that the agent needs to decide and to say values.
    """
    network = network_of(recipe)
    height, width = shape(recipe.pool)
    return {
        "name": recipe.name,
        "setting": recipe.setting,
        "scheduler": recipe.scheduler,
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


def _pool_lines(recipe: PoolRecipe, facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    pool, network, training = recipe.pool, recipe.network, recipe.training
    kills = " or which running one is killed," if recipe.kill == "learned" else ""
    yield "decision", f"{recipe.decision}: which waiting job is booked,{kills} or that time moves"
    yield "state", f"{facts['rows']} × {facts['columns']} = {facts['state_size']:,} numbers"
    yield "actions", f"{facts['actions']}: {pool.slots} slots, none, {pool.kill_slots} kill slots"
    convolutions = zip(network.channels, network.kernels, network.strides, strict=True)
    layers = [f"{c} of {k} × {k} every {s}" for c, k, s in convolutions]
    layers.append("-".join(map(str, network.hidden)))
    counts = (
        f"{facts['weights']:,} weights ({facts['parameters']:,} parameters with biases and the value head)"
    )
    yield "network", f"{network.kind} {', '.join(layers)}, {counts}"
    yield "objective", pool.objective
    again = f", the same job at most {recipe.most_kills} times" if recipe.most_kills else ""
    yield "kill", f"{recipe.kill}: {_KILLS[recipe.kill]}{again if recipe.kill == 'learned' else ''}"
    yield "estimator", recipe.estimator
    yield "mask", f"{recipe.mask}, idle {recipe.idle}"
    yield "pool", ", ".join(f"{k} {v}" for k, v in record_of(pool).items() if k != "objective")
    yield "training", ", ".join(f"{k} {v}" for k, v in record_of(training).items() if v != "")
    yield "deployed", recipe.deploy


KIND = Kind(PoolRecipe, network_of, _of_pool, _pool_lines)
