"""What a policy is made of, as `bridge policies show` has it: facts that follow from a recipe, and lines.

Here for the event-driven scheduler, which is also described to `bridge.learn.kinds`.
"""

from collections.abc import Iterator
from typing import Any

from bridge.config.fields import record_of
from bridge.learn.kinds import Kind, kind_of
from bridge.learn.network import actor_of, parameter_counts
from bridge.learn.recipe import AnyRecipe, Recipe

_ANSWERS = {
    "pick": "which of the waiting jobs runs next",
    "backfill": "which waiting job runs before the blocked head",
    "inspect": "whether the order's pick may run now, or waits",
    "preempt": "which running job gives way to the blocked head",
    "trial": "which waiting job is tried next",
    "pick+backfill": "which of the waiting jobs runs next, and which run before a blocked one",
}


def facts(recipe: AnyRecipe) -> dict[str, Any]:
    return kind_of(recipe.scheduler).facts(recipe)


def lines(recipe: AnyRecipe, facts: dict[str, Any], package: str) -> Iterator[tuple[str, str]]:
    yield f"{recipe.name}/{recipe.setting}", recipe.summary
    yield "source", recipe.source
    yield "package", package
    yield from kind_of(recipe.scheduler).lines(recipe, facts)


def _of_event(recipe: Recipe) -> dict[str, Any]:
    encoder, parameters = recipe.encoder, parameter_counts(recipe)
    return {
        "name": recipe.name,
        "setting": recipe.setting,
        "decision": recipe.decision,
        "algorithm": recipe.algorithm,
        "resources": encoder.resources,
        "rows": encoder.rows,
        "features": encoder.width,
        "running_rows": sum(encoder.running_rows),
        "running_features": len(encoder.running_columns),
        "queued_rows": encoder.queued_rows,
        "queued_features": len(encoder.queued_columns),
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
    if encoder.running_rows:
        state.append(f"{facts['running_rows']:,} × {facts['running_features']}")
    if encoder.queued_rows:
        state.append(f"{facts['queued_rows']:,} × {facts['queued_features']}")
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
        uncapped = setup.rules()[0].uncapped
        most = "as many as it likes" if uncapped else f"at most {recipe.max_rejects} a job"
        yield "rejections", f"{most}, {recipe.retry_after:g} s apart"
    yield "reward", _pairs(recipe.reward)
    yield "training", _pairs(recipe.training)
    if recipe.algorithm != "ppo":
        yield recipe.algorithm, _pairs(getattr(recipe, recipe.algorithm))
    yield "deployed", recipe.deploy
    yield "held out", f"from {recipe.test_from:.0%} of the log on"


def _pairs(settings: Any) -> str:
    values_set = ((name, value) for name, value in record_of(settings).items() if value not in ("", ()))
    values = ((name, value if isinstance(value, list | tuple) else [value]) for name, value in values_set)
    return ", ".join(f"{name} {'–'.join(map(str, value))}" for name, value in values)


KIND = Kind(Recipe, actor_of, _of_event, _event_lines)
