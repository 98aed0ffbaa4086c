"""`bridge policies`: what can be trained, and what it is made of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bridge.cli import options as shared
from bridge.cli.terminal import show as printed
from bridge.config.options import given_on_command_line
from bridge.report.table import Table

if TYPE_CHECKING:
    from bridge.learn.recipe import AnyRecipe
    from bridge.learn.registry import Installed


@click.group(invoke_without_command=True)
@shared.json_option
@click.pass_context
def policies(ctx: click.Context, as_json: bool) -> None:
    """List the installed policies: those of bridge and those of other packages.

    \b
    Examples:
      bridge policies
      bridge policies show rlbackfilling --setting paper
    """
    if ctx.invoked_subcommand is not None:
        return
    from bridge.learn import registry

    installed = list(registry.policies().values())
    printed([_listed(policy) for policy in installed], _names(installed), as_json)


def _listed(policy: "Installed") -> dict[str, Any]:
    return {
        "name": policy.name,
        "package": policy.package,
        "error": policy.error or None,
        "settings": [
            {name: getattr(recipe, name) for name in ("setting", "decision", "summary", "source", "protocol")}
            for recipe in policy.settings.values()
        ],
    }


def _names(installed: "Sequence[Installed]") -> list[Any]:
    if not installed:
        return ["No policy is installed. In a checkout: pip install -e ."]
    output: list[Any] = []
    for policy in installed:
        if policy.error:
            output += [f"{policy.name}  broken  {policy.package}", f"  {policy.error}\n"]
            continue
        first = next(iter(policy.settings.values()))
        settings = [(f"  {setting}", recipe.summary) for setting, recipe in policy.settings.items()]
        output += [f"{policy.name}  {first.decision}  {policy.package}", f"  {first.source}"]
        output += [Table(("", ""), settings, words=(1,)), ""]
    return [*output, "The first setting is the default. More: bridge policies show NAME"]


@policies.command()
@click.argument("name", type=shared.NAME)
@click.option("--setting", default="", help="One of its settings.  [default: the first]")
@shared.json_option
@click.option("--toml", "as_toml", is_flag=True, help="Print a file for `bridge train --config`.")
@shared.number(
    "--resources", "Number of resources of the machine, if the policy works with any number.", default=2
)
@click.pass_context
def show(
    ctx: click.Context, /, name: str, setting: str, as_json: bool, as_toml: bool, resources: int
) -> None:
    """Describe the policy NAME, one of those listed or module:ATTR: what it decides, sees and learns with.

    \b
    Examples:
      bridge policies show schedinspector --setting paper
      bridge policies show rlbackfilling --toml > mine.toml
      bridge policies show sem --setting theta --json
      bridge policies show rlschert --setting kill
    """
    from bridge.learn.checkpoint_files import SCHEDULERS
    from bridge.learn.recipe import Recipe
    from bridge.learn.registry import find_policy, recipe_in

    if as_json and as_toml:
        raise click.UsageError("--json and --toml exclude each other.")
    policy = find_policy(name)
    recipe = recipe_in(policy, setting)
    if as_toml:
        import tomli_w

        own = recipe.as_dict().items()
        kept = {k: v for k, v in own if k not in ("name", "setting", "source", "summary")}
        click.echo(tomli_w.dumps(kept), nl=False)
        return
    if isinstance(recipe, Recipe):
        recipe = recipe.for_resources(resources)
    else:
        shared.refuse_options({"resources"} & given_on_command_line(ctx).keys(), SCHEDULERS[recipe.scheduler])

    from bridge.learn import describe

    facts = describe.facts(recipe)
    output = [Table(("", ""), describe.lines(recipe, facts, policy.package), words=(1,)), *_features(recipe)]
    printed({"package": policy.package, **facts, "recipe": recipe.as_dict()}, output, as_json)


def _features(recipe: "AnyRecipe") -> list[Any]:
    from bridge.learn.recipe import Recipe

    if not isinstance(recipe, Recipe):
        return []
    encoder = recipe.encoder
    rows = [
        (whose + name, expression)
        for whose, features in (("", encoder.features), ("running: ", encoder.running), ("", encoder.machine))
        for name, expression in features.items()
    ]
    return ["", Table(("", ""), rows, title="features", words=(1,))]
