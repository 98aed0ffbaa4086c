"""What the actors of the model ask of the machinery that runs them.

An actor is a generator. It yields a request, a tuple that starts with one of the names below, and is resumed
with the answer once that has been carried out. There are two such machineries, and the actors cannot tell
them apart: :mod:`bridge.worlds.simgrid.simgrid_kernel` turns every actor into one of SimGrid's and every
request into SimGrid's own call; :mod:`bridge.worlds.simgrid.queue_kernel` is an ordered queue for
simulations in which nothing but time and the latency of internal messages matters. Requests of the same date
are served in the order in which SimGrid serves them.

| request | |
|---|---|
| sleep, seconds | at most 0 s is no sleep |
| put, mailbox, message[, bytes] | of one byte unless said; resumed when it has been received |
| get, mailbox, seconds or None | the message, or TIMED_OUT |
| pending, mailbox | whether somebody waits to put a message there |
| spawn, name, host, actor | a handle for kill; the new actor runs before its creator goes on |
| kill, handle | |
| join, handle | resumed when that actor has ended |
| exec, hosts, flops, bytes | a parallel task that is not started yet |
| run, task, seconds or None | DONE, TIMED_OUT, CANCELLED or BROKEN (a host or link of it failed) |
| cancel, task; remaining, task | the latter: the fraction that is left |
| compute, flops | on the actor's host, alone |
| set_pstate, host, power state | |
| consumed, machines | the energy (J) that these have consumed so far |
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol

from bridge.base.errors import BridgeError

SLEEP, PUT, GET, PENDING, SPAWN, KILL, JOIN = "sleep", "put", "get", "pending", "spawn", "kill", "join"
EXEC, RUN, CANCEL, REMAINING, COMPUTE = "exec", "run", "cancel", "remaining", "compute"
SET_PSTATE, CONSUMED = "set_pstate", "consumed"
DONE, TIMED_OUT, CANCELLED, BROKEN = "done", "timed out", "cancelled", "broken"

RuntimeRequest = tuple[Any, ...]
Actor = Generator[RuntimeRequest, Any, None]
SubActor = Generator[RuntimeRequest, Any, Any]


class ActorRuntime(Protocol):
    """Base class of runtimes: they run the actors."""

    def clock(self) -> float:
        """Return the simulated date, s."""

    def start(self, name: str, host: Any, actor: Actor) -> Any:
        """Create an actor before the simulation runs."""

    def run(self) -> None:
        """Run until no actor is left or none can go on."""

    def prepare(self) -> None:
        """Precompute what the next advance of time needs."""


def server_message(kind: str, *arguments: Any, where: str = "") -> RuntimeRequest:
    """Return the request that sends the server a message for its handler; ``where`` is for errors."""
    return PUT, "server", (kind, where, arguments)


def operations(machinery: Any) -> dict[str, Callable[..., Any]]:
    """Return a runtime's request handlers: its methods ``_do_NAME``, by name."""
    return {name[4:]: getattr(machinery, name) for name in dir(machinery) if name.startswith("_do_")}


def message_lost() -> BridgeError:
    """The error for an internal message that a failing host or link cuts off."""
    what = "an internal message was lost: a host or link on its way to the master failed"
    return BridgeError(what, remedy="Let links to the master, and the master itself, never fail.")


def killed_while_sending() -> BridgeError:
    """The error for a kill that hits a job while its message travels to the server."""
    what = "a job was killed while it was sending a message, which Batsim does not survive"
    return BridgeError(what, where="KILL_JOB", remedy="Kill jobs with 'send' profiles at another date.")
