"""The socket: binds, serves one peer, one frame in, one frame out, and never waits without saying for what.

Batsim's socket is a ZeroMQ REQ, for which a REP would do. But a REP serves all who connect, in turn, and a
stranger's message would end the simulation. A ROUTER knows who speaks: the first who does is the peer.
"""

import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from bridge.errors import BridgeError

#: Seconds to look for the next frame awake: being woken takes longer than most peers take to answer.
_SPIN = 500e-6
#: Cores that we may use.
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: More threads than the cores that may want to run, on average, before we take no core from the peer by
#: looking out: the peer's, ours and those that move our messages.
_SLACK = 0.75
#: Where Linux tells how many want to run just now.
_LOAD = Path("/proc/loadavg")
#: Seconds between two counts of the threads that want to run, and how much a count weighs.
_COUNT, _WEIGHT = 0.02, 0.1
#: Seconds between two looks at the peer's connection while nothing comes.
_GLANCE = 0.1
#: Seconds that a peer may be disconnected before it counts as gone: what it sent last may still be under way.
_GRACE = 0.5
#: Milliseconds that the last reply may take to leave after the socket was closed.
_LINGER = 2000

_REMEDIES = {
    errno.EADDRINUSE: "Another process has this port: end it, or give another --socket, to Batsim too.",
    errno.EACCES: "Ports below 1024 are the administrator's: choose another.",
}


class NeverCameError(BridgeError):
    """No message within the start-up deadline."""


class WentSilentError(BridgeError):
    """The peer is connected, but no message came within the idle deadline."""


class PeerGoneError(BridgeError):
    """The peer disconnected before the simulation had ended."""


class _Lookout:
    """Tells for how long to look for a frame awake: not at all where more threads than cores want to run."""

    def __init__(self) -> None:
        self._wanting, self._counted = 0.0, 0.0

    def seconds(self, now: float) -> float:
        """Return it.

        Args:
            now: `time.monotonic`.
        """
        if now - self._counted >= _COUNT:
            weight = _WEIGHT if self._counted else 1.0
            self._counted = now
            self._wanting += weight * (_runnable() - self._wanting)
        return _SPIN if _CORES > 1 and self._wanting <= _CORES + _SLACK else 0.0


def _runnable() -> float:
    """Return how many threads of the machine run or want to run."""
    try:
        return float(_LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):  # no Linux
        return os.getloadavg()[0]


def _to_stderr(text: str) -> None:
    print(f"bridge: {text}", file=sys.stderr, flush=True)


class Endpoint:
    """A bound socket with deadlines, for one peer. Use it as a context manager.

    Args:
        address: where to bind, for example ``tcp://127.0.0.1:28000``, or ``tcp://*:28000`` for peers on other
            machines; port 0 or ``*`` takes a free one.
        startup_timeout: wall-clock seconds until the first message must have come; 0 = wait for ever.
        idle_timeout: wall-clock seconds between a reply and the next message; 0 = wait for ever.
        context: for ``inproc://``; otherwise leave it out.
        warn: called with a line of text when messages of somebody else come, which are ignored; only once.

    Attributes:
        address: where it is bound, with the port that was taken.

    Raises:
        BridgeError: it cannot be bound; the error says why.
    """

    def __init__(
        self,
        address: str,
        *,
        startup_timeout: float = 300.0,
        idle_timeout: float = 3600.0,
        context: "zmq.Context[zmq.Socket[bytes]] | None" = None,
        warn: Callable[[str], None] = _to_stderr,
    ) -> None:
        self._startup, self._idle = startup_timeout, idle_timeout
        self._own_context = context is None
        self._context = context or zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, round(_GLANCE * 1000))
        self._monitor: Any = self._socket.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._connections: set[int] = set()  # file descriptors
        self._peer: bytes | None = None  # its ZeroMQ identity, once it has spoken
        self._peer_connection = -1  # its file descriptor, once it is known
        self._peer_left = False
        self._warn: Callable[[str], None] | None = warn
        self._received = 0
        self._lookout = _Lookout()
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise BridgeError(
                f"cannot be bound ({error.strerror})",
                where=address,
                remedy=_REMEDIES.get(
                    error.errno or 0,
                    "The decision process binds, Batsim connects: write tcp://127.0.0.1:28000, "
                    "or tcp://*:28000 if it comes from another machine.",
                ),
            ) from None
        self.address = self._socket.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0")  # type: ignore[union-attr]

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close(flush=kind is None)

    def receive(self) -> bytes:
        """Return the peer's next frame; the first who sends one is the peer.

        Raises:
            NeverCameError, WentSilentError, PeerGoneError: nothing will come, or not in time.
            BridgeError: a frame of several parts.
        """
        frame = None
        now = time.monotonic()
        until = now + self._lookout.seconds(now)
        while frame is None and time.monotonic() < until:
            frame = self._next(zmq.NOBLOCK)
        if frame is None:
            frame = self._next()
        if frame is None:
            frame = self._wait()
        self._received += 1
        return frame

    def _next(self, flags: int = 0) -> bytes | None:
        """Return the peer's next frame; None if there is none soon, or if somebody else has spoken."""
        try:
            # a frame object knows its connection, and costs more than bytes
            first = self._socket.recv(flags, copy=False) if self._peer is None else None
            who = bytes(first.bytes) if first is not None else self._socket.recv(flags)
            parts = self._socket.recv_multipart() if self._socket.get(zmq.RCVMORE) else []
        except zmq.Again:
            return None
        asks = len(parts) > 1 and not parts[0]  # as a REQ does, with an empty frame in front
        if first is not None and asks:
            self._adopt(first)
        if who != self._peer or not asks:
            if self._warn is not None:
                self._warn(
                    f"ignored: messages of a second client on {self.address}; one process, one simulation"
                )
            self._warn = None
            return None
        if len(parts) > 2:
            raise BridgeError(
                "has several parts; Batsim sends one",
                where=f"message {self._received + 1}",
                remedy="Who is it?",
            )
        return parts[1]

    def _adopt(self, who: "zmq.Frame") -> None:
        """Serve this peer, and nobody else from now on."""
        self._peer = bytes(who.bytes)
        self._note_connections()
        try:
            self._peer_connection = int(who.get(zmq.SRCFD))
        except zmq.ZMQError:  # inproc
            return
        self._peer_left = self._peer_connection not in self._connections

    def _wait(self) -> bytes:
        """Wait on, looking at the connection and the deadlines now and then."""
        begun = time.monotonic() - _GLANCE
        gone = 0.0
        while True:
            self._look()
            now = time.monotonic()
            if self._peer_left:
                gone = gone or now
                if now - gone >= _GRACE:
                    raise PeerGoneError(
                        f"disconnected after message {self._received}, without SIMULATION_ENDS",
                        where=self.address,
                        remedy="Look at its output: a deadlocked Batsim ends like this, even with status 0.",
                    )
            else:
                gone = 0.0
            limit = self._idle if self._received else self._startup
            if limit and now - begun >= limit:
                raise self._too_late(limit)
            frame = self._next()
            if frame is not None:
                return frame

    def _too_late(self, limit: float) -> BridgeError:
        if self._received:
            return WentSilentError(
                f"no message within {limit:g} s after reply {self._received}; the peer is still connected",
                where=self.address,
                remedy="It is busy or stuck: look at it, or raise --idle-timeout.",
            )
        port = self.address.rpartition(":")[2]
        came = "something connected, but sent nothing" if self._connections else "nothing has connected"
        return NeverCameError(
            f"waited {limit:g} s for Batsim's first message; {came}",
            where=self.address,
            remedy=f"Start Batsim with -s tcp://localhost:{port}, or raise --startup-timeout.",
        )

    def _look(self) -> None:
        """Take note of what has happened beside the messages."""
        self._note_connections()

    def _note_connections(self) -> None:
        """Take note of who came and went, in that order: the numbers of closed connections are used again."""
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            connection = int(event["value"])
            if event["event"] == zmq.EVENT_ACCEPTED:
                self._connections.add(connection)
            else:
                self._connections.discard(connection)
                self._peer_left |= connection == self._peer_connection

    def send(self, frame: bytes) -> None:
        """Send the peer the reply to the frame received last."""
        assert self._peer is not None
        self._socket.send_multipart([self._peer, b"", frame])

    def close(self, *, flush: bool = False) -> None:
        """Unbind; with `flush`, a reply that is on its way may still leave."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(_LINGER if flush else 0)
        if self._own_context:
            self._context.term()
