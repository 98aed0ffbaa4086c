"""The seam: what a command asks of a scheduler, whichever of the two it is.

The event-driven scheduler (`bridge.scheduler`) and RLSchert's time-stepped pool (`bridge.pool`) are state
machines of their own. Around them everybody goes through `CommandBackend`: `bridge.commands.event` and
`bridge.pool.commands` are its two entries.
"""

import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from bridge.base.cache import is_checkpoint
from bridge.base.progress import ProgressReporter
from bridge.config import from_tables
from bridge.config.fields import fields_of
from bridge.learn.checkpoint_files import is_of_pool
from bridge.policy_name import PolicyName
from bridge.scheduler.names import ALIASES

if TYPE_CHECKING:
    from bridge.learn.training import TrainingData
    from bridge.worlds.batsim.dispatcher import DispatcherConfig
    from bridge.worlds.batsim.process import DecisionProcess
    from bridge.worlds.batsim.wire_scheduler import WireScheduler

T = TypeVar("T")
#: Scheduler -> the module of its entry.
_ENTRIES = {"event": "bridge.commands.event", "pool": "bridge.pool.commands"}


@dataclass(frozen=True)
class CommandRequest:
    """A request to a command.

    Attributes:
        policies: who decides.
        log: where jobs come from, if one was named: a log, or an agent's folder.
        typed: options that were typed, by the names of their parameters.
    """

    policies: tuple[PolicyName, ...]
    log: str = ""
    typed: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, kind: type[T], base: T | None = None) -> T:
        """Return a settings dataclass from the options given; BridgeError: a value is out of range."""
        own = {name: value for name, value in self.typed.items() if name in fields_of(kind)}
        return from_tables(kind, own, "the options", base)

    def process(self, scheduling: "DispatcherConfig | WireScheduler[Any]") -> "DecisionProcess":
        """Return the process that decides by this, as it was typed."""
        from bridge.worlds.batsim.process import DecisionProcess

        energy, strict = (self.typed.get(name, False) for name in ("energy", "strict"))
        version = self.typed.get("batsim")
        dialect = f"batsim{version}" if version else ""
        return DecisionProcess(scheduling, dialect=dialect, energy=energy, strict=strict)

    @property
    def agents(self) -> list[str]:
        """Folders of the agents, and modules of the user's own, each once."""
        names = (policy.agent or policy.plugin for policy in self.policies)
        return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class CommandOutput:
    """Output of a command: `document`, as JSON values; lines and tables; warnings."""

    document: dict[str, Any]
    output: Sequence[Any]
    problems: Sequence[str] = ()


class StoppedError(KeyboardInterrupt):
    """The user interrupted the work; holds the output of the finished part."""

    def __init__(self, outcome: CommandOutput, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message


class CommandBackend(Protocol):
    """One scheduler, as commands know it; its name on the command line, its title in sentences."""

    name: str
    title: str

    def unsupported_options(self, command: str, typed: Collection[str]) -> Iterable[str]:
        """Return the parameters, of those that were typed for a command, that mean nothing to it."""

    def evaluate(self, request: CommandRequest, watch: ProgressReporter) -> CommandOutput:
        """Judge policies on the same sequences of jobs.

        BridgeError: something does not fit. StoppedError: it was stopped when some policies were finished.
        """

    def validate(
        self, request: CommandRequest, on: str, out: Path | None, watch: ProgressReporter
    ) -> CommandOutput:
        """Compare policies in the fast world with the same on a platform.

        `on` is the detailed world, `out` a new folder for the outcome and all runs; None: nowhere.
        BridgeError: an input cannot work, or a simulation failed.
        """

    def decide(self, request: CommandRequest) -> "tuple[DecisionProcess, str]":
        """Return the decision process of one simulation on a platform, and its label.

        BridgeError: no such policy, or it is for another scheduler.
        """

    def load_training_data(self, recipe: Any, request: CommandRequest, digest: str = "") -> "TrainingData":
        """Return the training data of a recipe: the request's log.

        `digest`: the digest of the jobs that a training that goes on began with. BridgeError: the jobs cannot
        be read.
        """


@runtime_checkable
class Live(CommandBackend, Protocol):
    """A scheduler that can decide in a world whose clock is not ours, such as a real Slurm."""

    def dispatcher_config(self, request: CommandRequest) -> "tuple[DispatcherConfig, str]":
        """Return the dispatcher's configuration and the policy's label; BridgeError: as `decide`."""


def scheduler(name: str) -> CommandBackend:
    name = ALIASES.get(name, name)
    return cast(CommandBackend, importlib.import_module(_ENTRIES[name]).SCHEDULER)


def scheduler_for(request: CommandRequest) -> CommandBackend:
    """Return the scheduler of a log, or of policies: the pool, if one of them is only for it."""
    if request.log and not is_checkpoint(request.log):
        return scheduler("event")
    agents = (request.log, *(policy.agent for policy in request.policies))
    pool = any(agent and is_checkpoint(agent) and is_of_pool(agent) for agent in agents)
    return scheduler("pool" if pool or any(policy.only_pool for policy in request.policies) else "event")
