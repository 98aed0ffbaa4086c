"""What several commands share: options, how a policy is named, outputs that may be written, what is said."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from bridge.base.cache import shipped_agents
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.base.plugins import Typed
from bridge.commands import request as backends
from bridge.commands.request import CommandBackend, CommandRequest
from bridge.config.fields import Constraint, fields_of
from bridge.config.options import RuleChoice, given_on_command_line, group, options
from bridge.experiment.spec import Detailed, Experiment, policy_fields
from bridge.policy_name import parse_policy, typed_policy
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.report.picture_files import kind_of_picture
from bridge.scheduler.names import ALIASES
from bridge.worlds.fast.scheduler_config import SchedulerConfig

F = TypeVar("F", bound=Callable[..., Any])
#: The schedulers, and what else the pool may be called.
SCHEDULERS = ("event", "pool", *ALIASES)

#: How a policy is named, see `bridge.policy_name`.
NAMING = "sjf+easy, saf+rule on the pool, an agent's folder, or module:ATTR"
#: Headings in the help.
RULES, POOL = "Rules and jobs", "Time-stepped pool"
CLAMP = (
    "Replace a later estimate of a job by its estimate at submission, if that is nearer to the true length. "
    "This is an oracle; the paper's numbers were measured with it."
)
#: Types of parameters: files, folders, policies (rules of the user's own are loaded when they are typed), and
#: what else may be ``module:ATTR``.
FILE, FOLDER = click.Path(path_type=Path), click.Path(path_type=Path, file_okay=False)
POLICY = click.types.FuncParamType(typed_policy)
NAME = click.types.FuncParamType(Typed)
#: The types of options that name one rule.
RULE = {name: RuleChoice(fields_of(SchedulerConfig)[name].of) for name in ("order", "backfill", "estimator")}


def flag(name: str, help_text: str) -> Callable[[F], F]:
    return click.option(name, is_flag=True, help=help_text)


def number(
    name: str, help_text: str, least: int = 1, most: int | None = None, **more: Any
) -> Callable[[F], F]:
    """Return a decorator that adds an option for a whole number; its default, if it has one, is shown."""
    usual: dict[str, Any] = {"type": click.IntRange(least, most), "show_default": "default" in more}
    return click.option(name, help=help_text, **usual | more)


def file_option(name: str, help_text: str, metavar: str = "FILE", **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option which names a file or a folder, for a parameter of that name."""
    to = more.pop("to", name[2:].replace("-", "_"))
    usual: dict[str, Any] = {"metavar": metavar, "type": FILE}
    return click.option(name, to, help=help_text, **usual | more)


def folder_option(name: str, help_text: str, **more: Any) -> Callable[[F], F]:
    return file_option(name, help_text, "DIR", type=FOLDER, **more)


def log_or_agent(text: str) -> str:
    """Return where an agent that comes with bridge lies, by ``zoo/NAME``; other texts as they are."""
    return text if is_there(text) else str(shipped_agents().get(text, text))


def policy_option(help_text: str, to: str = "policy", **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds the option for a policy, by its name; unless ``multiple``, for one."""
    more.setdefault("metavar", "POLICY")
    if not more.get("multiple"):
        default = more.pop("default", None)
        more |= {"multiple": True, "callback": _only_one, "default": None if default is None else [default]}
    return click.option("--policy", to, type=POLICY, help=help_text, **more)


def _only_one(_ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the value of an option that may stand once: the last one would win without a word."""
    if len(values) > 1:
        what = f"one policy is asked for, not {len(values)}; see bridge evaluate"
        raise click.BadParameter(what, param=param)
    return values[0] if values else None


json_option = click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
force_option = click.option("--force", is_flag=True, help="Replace what is there.")
out_folder_option = click.option("--out", metavar="DIR", type=FILE, help="Write the run to this new folder.")
malformed_option = options(Experiment, "malformed", heading=RULES)
agent_options = options(Experiment, "agent", "cross_protocol", heading="Policy")
cross_protocol_option = options(Experiment, "cross_protocol", heading="Policy")
estimator_option = options(SchedulerConfig, "estimator", heading="Policy")
detailed_options = options(Detailed, heading="Platform")
rule_options = options(
    SchedulerConfig, heading=RULES, exclude=("order", "backfill", "candidate_order", "estimator")
)
_SCHEDULER = (
    "The scheduler. event: event-driven. pool: RLSchert's time-stepped pool.  [default: pool for policies "
    "and agents of the pool, else event]"
)
scheduler_option = group(POOL, click.option("--scheduler", type=click.Choice(SCHEDULERS), help=_SCHEDULER))
_WHO = f"The policy: {NAMING}."
#: One policy, by its name or by the parts of it; and several.
one_policy = group(
    "Policy",
    policy_option(_WHO),
    options(SchedulerConfig, "order", "backfill", "candidate_order"),
)
policies_option = group("Policies", policy_option(f"{_WHO} May be repeated.", "policies", multiple=True))


def repeatable_option(part: str, help_text: str, **more: Any) -> Callable[[F], F]:
    more = {"type": RULE[part], "metavar": None} | more if part in RULE else more
    return click.option(f"--{part}", multiple=True, help=f"{help_text} May be repeated.", **more)


def field_options(kind: Any, **helps: str) -> Callable[[F], F]:
    """Return a decorator that adds these fields of a dataclass as options, with this command's own help."""
    changes: Any = {name: Constraint(help=text) for name, text in helps.items()}
    return options(kind, *helps, **changes)


def pool_options(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds options of the pool: its size, and these of what is played."""
    data = click.option("--data", metavar="FILE", help="Job set (CSV), or `synthetic`.  [default: synthetic]")
    played = (data, options(EvaluationOptions, *names)) if names else ()
    return group(POOL, *played, options(PoolConfig, "units", "slots"))


def select_backend(scheduler: str | None, request: CommandRequest, command: str) -> CommandBackend:
    """Return the scheduler that was chosen, or is the policies' own; refuse options that it does not have."""
    entry = backends.scheduler_for(request) if scheduler is None else backends.scheduler(scheduler)
    refuse_options(entry.unsupported_options(command, request.typed), entry.title)
    return entry


def experiment_options(*names: str, **changes: Any) -> Callable[[F], F]:
    return options(Experiment, *names, heading=RULES, **changes)


def experiment_options_given(ctx: click.Context, policy: str | None = None) -> dict[str, Any]:
    """Return the options of an experiment that were typed; a policy that is named twice is a UsageError."""
    options = (
        given_on_command_line(ctx, Experiment)
        | given_on_command_line(ctx, SchedulerConfig)
        | given_on_command_line(ctx, Detailed)
    )
    if policy is None:
        if "agent" in options:
            options["agent"] = Typed(options["agent"])
        return options
    parts = ("agent", "order", "backfill")
    if twice := [f"--{name}" for name in parts if name in options]:
        raise click.UsageError(f"{', '.join(twice)} is part of --policy {policy}; leave it out")
    return options | policy_fields(parse_policy(policy))


def option_name(name: str) -> str:
    """Return a parameter of the command that runs as it is typed."""
    param = next(param for param in click.get_current_context().command.params if param.name == name)
    return next((word for word in param.opts if word.startswith("--")), param.human_readable_name)


def refuse_cluster(name: str | None) -> None:
    """Refuse (BridgeError) a cluster beside a present, which has nodes of its own."""
    if name is not None:
        what, remedy = "a run has its own cluster, and other states are of one pool", "Leave out --cluster."
        raise BridgeError(what, where=f"--cluster {name}", remedy=remedy)


def refuse_options(names: Iterable[str], whom: str) -> None:
    """Refuse (UsageError) options that would be ignored, by the names of their parameters."""
    words = sorted(map(option_name, names))
    if words:
        raise click.UsageError(f"{whom} has no {', '.join(words)}")


def check_output(out: Path, force: bool, *, inside: Path | None = None) -> None:
    """Refuse (BridgeError), before the long work, a file that cannot be written, or replaced without `force`.

    A folder `inside` will be made, or made anew: what is in there is no matter.
    """
    if inside is not None and out.parent.absolute() == inside.absolute():
        return
    if out.exists() and not out.is_file():
        raise BridgeError("exists and is not a file", where=str(out), remedy="Name a new file.")
    if out.exists() and not force:
        remedy = "Name a new file, or add --force."
        raise BridgeError("the file already exists", where=str(out), remedy=remedy)
    if not out.parent.exists():
        raise BridgeError("its folder does not exist", where=str(out), remedy="Make the folder first.")
    check_folder(out)


def check_picture(out: Path, force: bool) -> None:
    """Refuse as `check_output`, and (BridgeError) a file whose suffix is none of a picture."""
    kind_of_picture(out)
    check_output(out, force)


def check_folder(path: Path) -> None:
    """Refuse (BridgeError) a path whose nearest folder above it that exists cannot be written to."""
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise BridgeError(f"{folder} is not a folder", where=str(path), remedy="Choose another place.")
    if not os.access(folder, os.W_OK | os.X_OK):
        what = f"cannot write: no right to write to {folder}"
        raise BridgeError(what, where=str(path), remedy="Choose a writable folder.")
