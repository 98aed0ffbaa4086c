"""Installed policies, found through entry points: ours and those of third parties alike.

A package provides a policy by one entry point of the group ``bridge.policies``: the policy's name = an object
reference to a mapping of settings to recipes, the first of which is the default. Nothing here imports torch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, overload

from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed, installed, is_reference, load_reference, package_of
from bridge.base.suggestions import did_you_mean
from bridge.learn.checkpoint_files import SCHEDULERS
from bridge.learn.recipe import AnyRecipe, R, Recipe

GROUP = "bridge.policies"


@dataclass(frozen=True)
class Installed:
    """A policy that a package provides: setting -> recipe, the default first; or why it cannot be used."""

    name: str
    package: str
    settings: Mapping[str, AnyRecipe]
    error: str = ""


def _checked(point: EntryPoint) -> Installed:
    """Load one entry point; whatever goes wrong in its package is told, never raised."""
    package = package_of(point)
    try:
        return Installed(point.name, package, _settings(point.load(), point.name))
    except BridgeError as error:
        return Installed(point.name, package, {}, f"{point.value}: {error.what}")
    except (Exception, SystemExit) as error:
        return Installed(point.name, package, {}, f"{point.value}: {type(error).__name__}: {error}")


def _settings(settings: object, name: str = "") -> Mapping[str, AnyRecipe]:
    if not name and isinstance(settings, AnyRecipe):
        settings = {settings.setting: settings}
    if not isinstance(settings, Mapping) or not settings:
        raise BridgeError("is no mapping of settings to recipes")
    for setting, recipe in settings.items():
        if not isinstance(recipe, AnyRecipe):
            raise BridgeError(f"the setting {setting!r} is no Recipe but a {type(recipe).__name__}")
        if (name and recipe.name != name) or recipe.setting != setting:
            raise BridgeError(
                f"the setting {setting!r} calls itself {recipe.name}/{recipe.setting}, "
                f"not {name or recipe.name}/{setting}"
            )
        try:
            recipe.check()
        except BridgeError as error:
            raise BridgeError(f"the setting {setting!r}: {error.what}") from error
    return dict(settings)


def policies() -> dict[str, Installed]:
    """Return all installed policies by name, broken ones with their errors: also those of two packages."""
    points = installed(GROUP)
    return {name: _provided(name, points) for name in dict.fromkeys(point.name for point in points)}


def _provided(name: str, points: Iterable[EntryPoint]) -> Installed:
    """Return the policy of a name that some of the entry points have."""
    ours = [point for point in points if point.name == name]
    if len(ours) == 1:
        return _checked(ours[0])
    twice = "several packages provide this name: uninstall one"
    return Installed(name, ", ".join(map(package_of, ours)), {}, twice)


def find_policy(name: str) -> Installed:
    """Return an installed policy by name, or that of ``module:ATTR``, a recipe or settings -> recipes.

    BridgeError: there is none, or ``module:ATTR`` is not `Typed`.
    """
    if is_reference(name) and isinstance(name, Typed):
        return Installed(name, "your own module", _settings(load_reference(name)))
    points = installed(GROUP)
    policies_by_name = dict.fromkeys(point.name for point in points)
    if name not in policies_by_name:
        listed = (
            f"Installed: {', '.join(policies_by_name)}."
            if policies_by_name
            else "None is installed: reinstall bridge."
        )
        hint = (
            "Code is loaded only where it is typed. "
            if is_reference(name)
            else did_you_mean(name, policies_by_name)
        )
        raise BridgeError("unknown policy", where=repr(name), remedy=hint + listed)
    policy = _provided(name, points)
    if policy.error:
        remedy = f"It comes from {policy.package}: update or uninstall it."
        raise BridgeError(f"the policy is broken: {policy.error}", where=name, remedy=remedy)
    return policy


def find_recipe(name: str, setting: str = "") -> AnyRecipe:
    return recipe_in(find_policy(name), setting)


def recipe_in(policy: Installed, setting: str = "") -> AnyRecipe:
    """Return a policy's recipe in a setting, by default its first; refuses a setting that it has not."""
    settings = policy.settings
    chosen = setting or next(iter(settings))
    if chosen not in settings:
        remedy = f"{did_you_mean(setting, settings)}Settings: {', '.join(settings)}."
        raise BridgeError(f"{policy.name} has no such setting", where=repr(setting), remedy=remedy)
    return settings[chosen]


@overload
def recipe_of(name: str, setting: str = "") -> Recipe: ...
@overload
def recipe_of(name: str, setting: str, kind: type[R]) -> R: ...
def recipe_of(name: str, setting: str = "", kind: Any = Recipe) -> Any:
    """Return an installed policy's recipe for one scheduler; errors as `find_recipe`."""
    recipe = find_recipe(name, setting)
    if not isinstance(recipe, kind):
        what = f"decides for {SCHEDULERS[recipe.scheduler]}, not for {SCHEDULERS[kind.scheduler]}"
        raise BridgeError(what, where=name, remedy="`bridge policies` tells them apart.")
    return recipe
