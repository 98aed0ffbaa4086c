"""Command-line options made of a settings dataclass: type, bounds, choices, default and help are the field's.

No option has a default of its own: what was not typed is not in `typed`, so that a file, an agent or the
dataclass's own default decides.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from bridge.base import plugins
from bridge.config.fields import Constraint, SettingField, fields_of, split

F = TypeVar("F", bound=Callable[..., Any])


class RuleChoice(click.Choice[str]):
    """The name of a rule, ours or one that others bring; ``module:ATTR``, which runs the user's own code."""

    def __init__(self, of: Constraint) -> None:
        super().__init__([word for word in of.words() if word], case_sensitive=False)
        self.of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if self.of.knows(plugins.allow_reference(self.of.plugin or "", plugins.Typed(value))):
            return value
        return super().convert(value, param, ctx)


#: In a context's `meta`: the help shows every option.
_SHOW_ALL = "bridge.help_all"


class Command(click.Command):
    """A command whose help shows its options by heading, those without one last.

    `folds`: headings of which ``--help`` shows these parameters only, and ``--help-all`` all.
    """

    def __init__(self, *args: Any, folds: Mapping[str, Sequence[str]] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.folds = folds or {}
        if folds:
            count = sum(map(self._is_folded, self.params))
            help_text = f"Show all options, {count} more: {', '.join(folds)}."
            how: Any = {"is_flag": True, "expose_value": False, "is_eager": True}
            self.params.append(click.Option(["--help-all"], help=help_text, callback=_show_all_help, **how))

    def _is_folded(self, param: click.Parameter) -> bool:
        heading = getattr(param, "group", "")
        return heading in self.folds and param.name not in self.folds[heading]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None and (_SHOW_ALL in ctx.meta or not self._is_folded(param)):
                groups.setdefault(getattr(param, "group", ""), []).append(record)
        rest = groups.pop("", [])
        for heading, records in [*groups.items(), ("Options", rest)]:
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _show_all_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOW_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def group(heading: str, *options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options (`click.option`) under a heading, in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            before = len(getattr(command, "__click_params__", ()))
            command = option(command)
            for param in getattr(command, "__click_params__", [])[before:]:
                param.group = getattr(param, "group", "") or heading
        return command

    return add


def options(
    kind: Any, *names: str, heading: str = "", exclude: Iterable[str] = (), **changes: Constraint
) -> Callable[[F], F]:
    """Return a decorator that adds an option for each plain field of a dataclass; a parameter has its key.

    `names`: of the fields, all if none is named, `exclude` those; `heading`: in the help, for fields that
    name no group; `changes`: by field, what this command says otherwise.
    """
    left_out = set(exclude)
    fields = [
        f for name, f in fields_of(kind).items() if name not in left_out and (not names or name in names)
    ]

    def add(command: F) -> F:
        for field in reversed(fields):
            if not dataclasses.is_dataclass(field.hint) and field.of.option != "-":
                of = field.of.merge(changes.get(field.key, Constraint()))
                command = option_of(dataclasses.replace(field, of=of), heading)(command)
        return command

    return add


def option_of(field: SettingField, heading: str) -> Callable[[F], F]:
    of, hint = field.of, field.hint
    args = typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint, inner = next(pair for pair in map(split, args) if pair[0] is not type(None))
        of, args = inner.merge(of), typing.get_args(hint)
    more: dict[str, Any] = {}
    if typing.get_origin(hint) is tuple:
        hint, inner = split(args[0])
        of = inner.merge(of)
        more = {"multiple": True} if args[-1:] == (...,) else {"nargs": len(args)}
    name = of.option or "--" + field.key.replace("_", "-")
    if hint is not bool:
        more["type"] = _type(hint, of)
    elif of.option is None:
        name = f"{name}/--no-{name[2:]}"
    elif "/" not in name:
        more["is_flag"] = True
    help_text = of.help or _sentence(field.about)
    if of.open and of.words():
        text, default, rest = help_text.partition("  [default")
        help_text = f"{text} Known: {', '.join(of.words())}.{default}{rest}"
    if field.default not in (None, "", (), False, dataclasses.MISSING) and "[default" not in help_text:
        default_text = (
            " ".join(map(str, field.default)) if isinstance(field.default, tuple) else f"{field.default}"
        )
        help_text += f"  [default: {default_text.removesuffix('.0')}]"
    more |= {"default": None, "metavar": of.metavar, "help": help_text}
    return group(of.group or heading, click.option(*name.split(), field.key, **more))


def _type(hint: Any, of: Constraint) -> Any:
    if typing.get_origin(hint) is Literal:
        return _choice(typing.get_args(hint))
    if of.plugin:
        return RuleChoice(of)
    if of.choices and not of.open:
        return _choice(of.words())
    low, high = (a if a is not None else b for a, b in ((of.ge, of.gt), (of.le, of.lt)))
    if hint is int and (low is not None or high is not None):
        least = None if low is None else int(low) + (of.ge is None)
        most = None if high is None else int(high) - (of.le is None)
        return click.IntRange(least, most)
    if hint is float and (low is not None or high is not None):
        return click.FloatRange(low, high, min_open=of.gt is not None, max_open=of.lt is not None)
    return click.Path(path_type=Path) if hint is Path else hint


def _choice(words: Iterable[str]) -> click.Choice[str]:
    return click.Choice([word for word in words if word], case_sensitive=False)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "]")) or not text else f"{text}."


def given_on_command_line(ctx: click.Context, kind: Any = None) -> dict[str, Any]:
    """Return the parameters that stand on the command line, by name: of one dataclass, or all."""
    line = click.core.ParameterSource.COMMANDLINE
    return {
        name: ctx.params[name]
        for name in (ctx.params if kind is None else fields_of(kind))
        if name in ctx.params and ctx.get_parameter_source(name) is line
    }
