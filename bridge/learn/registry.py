"""Installed policies, found through entry points: ours and those of third parties alike.

A package provides a policy by one entry point of the group ``bridge.policies``: the policy's name = an object
reference to a mapping of settings to recipes, the first of which is the default. Nothing here imports torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from bridge.errors import BridgeError
from bridge.learn.recipe import Recipe
from bridge.learn.slotted_recipe import SlottedRecipe

GROUP = "bridge.policies"
#: Recipes of both schedulers: the event-driven one and the slotted pool.
AnyRecipe = Recipe | SlottedRecipe


@dataclass(frozen=True)
class Installed:
    """A policy that a package provides.

    Attributes:
        name: the entry point's.
        package: name and version of the distribution.
        settings: setting -> recipe, the default first; empty if broken.
        error: why it cannot be used; empty if it can.
    """

    name: str
    package: str
    settings: Mapping[str, AnyRecipe]
    error: str = ""


def _package(point: EntryPoint) -> str:
    if point.dist is None:
        return "unknown"
    return f"{point.dist.name} {point.dist.version}"


def _load(point: EntryPoint) -> Installed:
    """Load one entry point; whatever goes wrong in its package is told, never raised."""
    package = _package(point)

    def broken(why: str) -> Installed:
        return Installed(point.name, package, {}, f"{point.value}: {why}")

    try:
        settings = point.load()
    except (Exception, SystemExit) as error:
        return broken(f"{type(error).__name__}: {error}")
    if not isinstance(settings, Mapping) or not settings:
        return broken("is no mapping of settings to recipes")
    for setting, recipe in settings.items():
        if not isinstance(recipe, AnyRecipe):
            return broken(f"the setting {setting!r} is no Recipe but a {type(recipe).__name__}")
        if (recipe.name, recipe.setting) != (point.name, setting):
            return broken(
                f"the setting {setting!r} calls itself {recipe.name}/{recipe.setting}, "
                f"not {point.name}/{setting}"
            )
        try:
            recipe.check()
        except BridgeError as error:
            return broken(f"the setting {setting!r}: {error.what}")
    return Installed(point.name, package, dict(settings))


def policies() -> dict[str, Installed]:
    """Return all installed policies by name, broken ones with their errors.

    Two packages that provide the same name make it ambiguous, and so broken.
    """
    found: dict[str, Installed] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, _package(point))):
        if (before := found.get(point.name)) is None:
            found[point.name] = _load(point)
        elif _package(point) != before.package:
            both = f"{before.package}, {_package(point)}"
            found[point.name] = Installed(
                point.name, both, {}, "several packages provide this name: uninstall one"
            )
    return found


def _close(word: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"Did you mean {close[0]}? " if close else ""


def find_recipe(name: str, setting: str = "") -> AnyRecipe:
    """Return a policy's recipe in a setting, by default its first, whichever scheduler it is for.

    Raises:
        BridgeError: nobody provides the policy, it is broken, or it has no such setting.
    """
    found = policies()
    policy = found.get(name)
    if policy is None:
        listed = f"Installed: {', '.join(found)}." if found else "None is installed: reinstall bridge."
        raise BridgeError("unknown policy", where=repr(name), remedy=_close(name, found) + listed)
    if policy.error:
        raise BridgeError(
            f"the policy is broken: {policy.error}",
            where=name,
            remedy=f"It comes from {policy.package}: update or uninstall it.",
        )
    chosen = setting or next(iter(policy.settings))
    if chosen not in policy.settings:
        raise BridgeError(
            f"{name} has no such setting",
            where=repr(setting),
            remedy=f"{_close(setting, policy.settings)}Settings: {', '.join(policy.settings)}.",
        )
    return policy.settings[chosen]


def recipe_of(name: str, setting: str = "") -> Recipe:
    """Return a policy's recipe for the event-driven scheduler.

    Raises:
        BridgeError: as `find_recipe`, or the policy is for the slotted pool.
    """
    recipe = find_recipe(name, setting)
    if isinstance(recipe, SlottedRecipe):
        raise _of_other(name, "the slotted pool", "the event-driven scheduler")
    return recipe


def slotted_recipe_of(name: str, setting: str = "") -> SlottedRecipe:
    """Return a policy's recipe for the slotted pool.

    Raises:
        BridgeError: as `find_recipe`, or the policy is for the event-driven scheduler.
    """
    recipe = find_recipe(name, setting)
    if isinstance(recipe, Recipe):
        raise _of_other(name, "the event-driven scheduler", "the slotted pool")
    return recipe


def _of_other(name: str, its: str, other: str) -> BridgeError:
    return BridgeError(
        f"decides for {its}, not for {other}", where=name, remedy="`bridge policies` tells them apart."
    )
