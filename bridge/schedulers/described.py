"""What a policy is made of, as `bridge policies show` has it: facts that follow from a recipe, and lines."""

from collections.abc import Iterator
from typing import Any

from bridge.config.fields import record_of
from bridge.learn.network import sizes
from bridge.learn.pool_network import network_of, weights
from bridge.learn.recipe import AnyRecipe, PoolRecipe, Recipe
from bridge.pool.picture import shape

_ANSWERS = {
    "pick": "which of the waiting jobs runs next",
    "backfill": "which waiting job runs before the blocked head",
    "inspect": "whether the order's pick may run now, or waits",
    "pick+backfill": "which of the waiting jobs runs next, and which run before a blocked one",
}


_KILLS = {
    "none": "nobody kills",
    "rule": "the paper's rule kills, before every decision",
    "learned": "the agent kills",
}


def facts(recipe: AnyRecipe) -> dict[str, Any]:
    """Return what follows from a recipe."""
    return _of_pool(recipe) if isinstance(recipe, PoolRecipe) else _of_event(recipe)


def lines(recipe: AnyRecipe, found: dict[str, Any], package: str) -> Iterator[tuple[str, str]]:
    """Yield what is shown besides the features, line by line; `found` are the `facts`."""
    yield f"{recipe.name}/{recipe.setting}", recipe.summary
    yield "source", recipe.source
    yield "package", package
    yield from _pool_lines(recipe, found) if isinstance(recipe, PoolRecipe) else _event_lines(recipe, found)


def _of_event(recipe: Recipe) -> dict[str, Any]:
    encoder, parameters = recipe.encoder, sizes(recipe)
    return {
        "name": recipe.name,
        "setting": recipe.setting,
        "decision": recipe.decision,
        "algorithm": recipe.algorithm,
        "resources": encoder.resources,
        "rows": encoder.rows,
        "features": encoder.width,
        "running_rows": sum(encoder.places),
        "running_features": len(encoder.running_columns),
        "machine_numbers": len(encoder.machine_columns),
        "state_size": encoder.size,
        "actions": encoder.actions,
        "parameters": sum(parameters.values()),
        **{f"{which}_parameters": size for which, size in parameters.items()},
    }


def _event_lines(recipe: Recipe, facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    setup, encoder = recipe.setup, recipe.encoder
    answers = _ANSWERS[recipe.decision] + (", or none of them" if encoder.stop else "")
    yield "decision", f"{recipe.decision}: {answers}"
    state = [f"{facts['rows']} × {facts['features']}"]
    if encoder.places:
        state.append(f"{facts['running_rows']:,} × {facts['running_features']}")
    more = f", and {facts['machine_numbers']} of the machine" if encoder.machine else ""
    yield "state", f"{' + '.join(state)} = {facts['state_size']:,} numbers{more}"
    if recipe.algorithm != "ppo":
        yield "algorithm", recipe.algorithm
    yield "actions", str(facts["actions"])
    for which in ("actor", "critic"):
        network = getattr(recipe, which)
        if network.kind == "none":
            continue
        shape = "-".join(map(str, network.hidden)) + (
            f", then {'-'.join(map(str, network.head))}" if network.head else ""
        )
        yield which, f"{network.kind} {shape}, {facts[f'{which}_parameters']:,} parameters"
    yield "base", f"{setup.order}+{setup.backfill}"
    yield "protocol", setup.protocol + (f"/{setup.preset}" if setup.preset else "")
    if "backfill" in recipe.decision:
        yield "guard", recipe.guard
    if recipe.decision == "inspect":
        yield "rejections", f"at most {recipe.max_rejects} a job, {recipe.retry_after:g} s apart"
    yield "reward", _pairs(recipe.reward)
    yield "training", _pairs(recipe.training)
    if recipe.algorithm != "ppo":
        yield recipe.algorithm, _pairs(getattr(recipe, recipe.algorithm))
    yield "deployed", recipe.deploy
    yield "held out", f"from {recipe.test_from:.0%} of the log on"


def _pairs(settings: Any) -> str:
    """Return what a dataclass holds, in words."""
    given = ((name, value) for name, value in record_of(settings).items() if value not in ("", ()))
    values = ((name, value if isinstance(value, list | tuple) else [value]) for name, value in given)
    return ", ".join(f"{name} {'–'.join(map(str, value))}" for name, value in values)


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


def _pool_lines(recipe: PoolRecipe, found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    pool, network, training = recipe.pool, recipe.network, recipe.training
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
    yield "pool", ", ".join(f"{k} {v}" for k, v in record_of(pool).items() if k != "objective")
    yield "training", ", ".join(f"{k} {v}" for k, v in record_of(training).items() if v != "")
    yield "deployed", recipe.deploy
