"""`bridge policies`: what can be trained, and what it is made of."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.slotted import refuse_options

if TYPE_CHECKING:
    from bridge.learn.recipe import AnyRecipe, Recipe


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def policies(ctx: click.Context, as_json: bool) -> None:
    """List the policies that are installed, ours and those of other packages.

    \b
    Examples:
      bridge policies
      bridge policies show rlbackfilling --setting paper
    """
    if ctx.invoked_subcommand is not None:
        return
    from bridge.learn import registry

    found = list(registry.policies().values())
    if as_json:
        listed = [
            {
                "name": p.name,
                "package": p.package,
                "error": p.error or None,
                "settings": [
                    {
                        "setting": setting,
                        "decision": r.decision,
                        "summary": r.summary,
                        "source": r.source,
                        "protocol": _protocol(r),
                    }
                    for setting, r in p.settings.items()
                ],
            }
            for p in found
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    from rich.console import Console
    from rich.markup import escape

    from bridge.report.table import Table

    console = Console()
    if not found:
        console.print("No policy is installed. In a checkout: pip install -e .")
        return
    for policy in found:
        if policy.error:
            console.print(f"[bold]{escape(policy.name)}[/bold]  [red]broken[/red]  {escape(policy.package)}")
            console.print(f"  {escape(policy.error)}\n", highlight=False)
            continue
        first = next(iter(policy.settings.values()))
        console.print(
            f"[bold]{escape(policy.name)}[/bold]  {first.decision}  {escape(policy.package)}", highlight=False
        )
        console.print(f"  {escape(first.source)}", highlight=False)
        settings = [(f"  {setting}", recipe.summary) for setting, recipe in policy.settings.items()]
        console.print(Table(("", ""), settings, words=(1,)))
        console.print()
    console.print("The first setting is the default. More: bridge policies show NAME", highlight=False)


@policies.command()
@click.argument("name")
@click.option("--setting", default="", help="One of its settings.  [default: the first]")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print what `bridge train --config` reads.")
@click.option(
    "--resources",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Of the machine, where the policy is made for any number of them.",
)
@click.pass_context
def show(
    ctx: click.Context, /, name: str, setting: str, as_json: bool, as_toml: bool, resources: int
) -> None:
    """Describe the policy NAME: what it decides, sees and learns with.

    \b
    Examples:
      bridge policies show schedinspector --setting paper
      bridge policies show rlbackfilling --toml > mine.toml
      bridge policies show sem --setting theta --json
      bridge policies show rlschert --setting kill
    """
    from bridge.learn.pool.recipe import PoolRecipe
    from bridge.learn.registry import find_recipe
    from bridge.learn.registry import policies as installed

    if as_json and as_toml:
        raise click.UsageError("--json and --toml exclude each other.")
    recipe = find_recipe(name, setting)
    if as_toml:
        import tomli_w

        kept = {
            k: v for k, v in recipe.as_dict().items() if k not in ("name", "setting", "source", "summary")
        }
        click.echo(tomli_w.dumps(kept), nl=False)
        return
    package = installed()[name].package
    if isinstance(recipe, PoolRecipe):
        from bridge.cli import policies_slotted as described

        typed = ctx.get_parameter_source("resources") is click.core.ParameterSource.COMMANDLINE
        refuse_options(["resources"] if typed else [], "the slotted pool")
        facts = described.facts(recipe)
        lines = described.lines(recipe, facts, package)
    else:
        recipe = recipe.for_resources(resources)
        facts = _facts(recipe)
        lines = _lines(recipe, facts, package)
    if as_json:
        click.echo(json.dumps({"package": package, **facts, "recipe": recipe.as_dict()}, indent=2))
        return
    _print(lines)
    if not isinstance(recipe, PoolRecipe):
        _print_features(recipe)


def _protocol(recipe: "AnyRecipe") -> str:
    """Return under which rules an agent learns."""
    from bridge.learn.recipe import Recipe

    return recipe.setup.protocol if isinstance(recipe, Recipe) else "slotted"


def _facts(recipe: "Recipe") -> dict[str, Any]:
    """Return what follows from the recipe."""
    from bridge.learn.network import sizes

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


_ANSWERS = {
    "pick": "which of the waiting jobs runs next",
    "backfill": "which waiting job runs before the blocked head",
    "inspect": "whether the order's pick may run now, or waits",
    "pick+backfill": "which of the waiting jobs runs next, and which run before a blocked one",
}


def _print(lines: Iterable[tuple[str, str]]) -> None:
    from bridge.report.table import Table

    Table(("", ""), list(lines), words=(1,)).print()


def _print_features(recipe: "Recipe") -> None:
    from bridge.report.table import Table

    seen = Table(("", ""), title="features", words=(1,))
    encoder = recipe.encoder
    for whose, features in (("", encoder.features), ("running: ", encoder.running), ("", encoder.machine)):
        for name, expression in features.items():
            seen.add(whose + name, expression)
    click.echo()
    seen.print()


def _lines(recipe: "Recipe", facts: dict[str, Any], package: str) -> Iterator[tuple[str, str]]:
    """Yield what is shown besides the features, line by line."""
    from dataclasses import asdict

    setup, encoder = recipe.setup, recipe.encoder
    yield f"{recipe.name}/{recipe.setting}", recipe.summary
    yield "source", recipe.source
    yield "package", package
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
    yield "reward", ", ".join(f"{k} {v}" for k, v in asdict(recipe.reward).items())
    yield "training", ", ".join(f"{k} {_text(v)}" for k, v in asdict(recipe.training).items())
    if recipe.algorithm != "ppo":
        own = getattr(recipe, recipe.algorithm)
        yield recipe.algorithm, ", ".join(f"{k} {_text(v)}" for k, v in asdict(own).items())
    yield "deployed", recipe.deploy
    yield "held out", f"from {recipe.test_from:.0%} of the log on"


def _text(value: object) -> str:
    return "–".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
