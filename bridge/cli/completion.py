"""What the shell completes beside commands and options: workloads, policies, clusters, platforms, settings.

Names of files are completed, too. Nothing here is imported unless a shell asks.
"""

import os
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from bridge.base.cache import bundled_files, shipped_agents
from bridge.scheduler.names import BACKFILLS, CLUSTER_ORDERS, KILLS, NAMES, ORDERS, RECORDED

Complete = Callable[[click.Context, str], Iterable[str]]


def _workloads(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    yield from bundled_files("workloads", ".swf.gz")
    if traces := os.environ.get("BRIDGE_TRACES"):
        folder = Path(traces)
        yield from (path.name for path in sorted(folder.glob("*.swf*")) if path.is_file())


def _logs(ctx: click.Context, incomplete: str) -> Iterable[str]:
    yield from _workloads(ctx, incomplete)
    if ctx.info_name == "evaluate":
        yield from shipped_agents()


def _orders(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    return (*ORDERS, *CLUSTER_ORDERS)


def _policies(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Yield orders with EASY; behind a plus sign every rule; policies that can be trained for `train`."""
    order, plus, _ = incomplete.partition("+")
    if plus:
        rules = (*BACKFILLS, *KILLS) if order in NAMES else BACKFILLS
        yield from (f"{order}+{rule}" for rule in dict.fromkeys(rules))
        return
    yield from (f"{name}+easy" for name in _orders(ctx, incomplete))
    yield RECORDED
    yield from shipped_agents()


def _trainable(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    return sorted(point.name for point in entry_points(group="bridge.policies"))


def _settings(ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Return the settings of the policy that was typed before; of `train` without one, the default's."""
    from bridge.learn.registry import find_policy

    # an option that still waits for its value leaves the arguments unparsed, in ctx.args
    typed = [name for name in _trainable(ctx, "") if name in ctx.args]
    return tuple(find_policy(typed[0] if typed else "rlbackfilling").settings)


def _clusters(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    return bundled_files("clusters", ".toml")


def _platforms(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    return bundled_files("platforms", ".xml")


def _maps(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    return bundled_files("maps", ".toml")


#: Parameter -> its values; of one command where ``COMMAND PARAMETER`` is a key.
VALUES: dict[str, Complete] = {
    "log": _logs,
    "workload": _workloads,
    "base": _workloads,
    "policy": _policies,
    "policies": _policies,
    "validate names": _policies,
    "train policy": _trainable,
    "show name": _trainable,
    "order": _orders,
    "candidate_order": _orders,
    "train setting": _settings,
    "show setting": _settings,
    "cluster": _clusters,
    "site": _clusters,
    "platform": _platforms,
    "map_name": _maps,
}


def add_completions(command: click.Command) -> None:
    """Let the parameters of a command, and of all commands in it, be completed by their values."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            add_completions(inner)
    for parameter in command.params:
        complete = VALUES.get(f"{command.name} {parameter.name}") or VALUES.get(parameter.name or "")
        if complete is not None:
            parameter._custom_shell_complete = _completer(complete)


def _completer(complete: Complete) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def items(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = [name for name in complete(ctx, incomplete) if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file"), *map(CompletionItem, names)]

    return items
