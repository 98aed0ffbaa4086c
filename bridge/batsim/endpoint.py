"""The socket: ZeroMQ REP that binds, one frame in, one frame out, and never waits without saying for what."""

import errno
import os
import time
from types import TracebackType
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from bridge.errors import BridgeError

#: Seconds to look for the next frame awake: being woken takes longer than most peers take to answer.
_SPIN = 500e-6 if (os.cpu_count() or 1) > 1 else 0.0
#: Seconds between two looks at the peer's connection while nothing comes.
_GLANCE = 0.1
#: Seconds that a peer may be disconnected before it counts as gone (ZeroMQ reconnects by itself).
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


class Endpoint:
    """A bound REP socket with deadlines. Use it as a context manager.

    Args:
        address: where to bind, for example ``tcp://*:28000``; port 0 or ``*`` takes a free one.
        startup_timeout: wall-clock seconds until the first message must have come; 0 = wait for ever.
        idle_timeout: wall-clock seconds between a reply and the next message; 0 = wait for ever.
        context: for ``inproc://``; otherwise leave it out.

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
    ) -> None:
        self._startup, self._idle = startup_timeout, idle_timeout
        self._own_context = context is None
        self._context = context or zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, round(_GLANCE * 1000))
        self._monitor: Any = self._socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        )
        self._peers = 0
        self._connected_once = False
        self._received = 0
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise BridgeError(
                f"cannot be bound ({error.strerror})",
                where=address,
                remedy=_REMEDIES.get(
                    error.errno or 0, "Write tcp://*:28000: the decision process binds, Batsim connects."
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
        """Return the next frame.

        Raises:
            NeverCameError, WentSilentError, PeerGoneError: nothing will come, or not in time.
            BridgeError: a frame of several parts.
        """
        frame = self._soon()
        if frame is None:
            try:
                frame = self._socket.recv()
            except zmq.Again:
                frame = self._wait()
        if self._socket.getsockopt(zmq.RCVMORE):
            raise BridgeError(
                "has several parts; Batsim sends one",
                where=f"message {self._received + 1}",
                remedy="Who is it?",
            )
        self._received += 1
        return frame

    def _soon(self) -> bytes | None:
        """Return the next frame if it comes within `_SPIN`, without going to sleep for it."""
        until = time.monotonic() + _SPIN
        while time.monotonic() < until:
            try:
                return self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                pass
        return None

    def _wait(self) -> bytes:
        """Wait on, looking at the connection and the deadlines now and then."""
        begun = time.monotonic() - _GLANCE
        gone = 0.0
        while True:
            self._look()
            now = time.monotonic()
            if self._received and self._connected_once and not self._peers:
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
            try:
                return self._socket.recv()
            except zmq.Again:
                pass

    def _too_late(self, limit: float) -> BridgeError:
        if self._received:
            return WentSilentError(
                f"no message within {limit:g} s after reply {self._received}; the peer is still connected",
                where=self.address,
                remedy="It is busy or stuck: look at it, or raise --idle-timeout.",
            )
        port = self.address.rpartition(":")[2]
        came = "something connected, but sent nothing" if self._peers else "nothing has connected"
        return NeverCameError(
            f"waited {limit:g} s for Batsim's first message; {came}",
            where=self.address,
            remedy=f"Start Batsim with -s tcp://localhost:{port}, or raise --startup-timeout.",
        )

    def _look(self) -> None:
        """Take note of who came and went."""
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._peers += 1
                self._connected_once = True
            elif event == zmq.EVENT_DISCONNECTED:
                self._peers = max(0, self._peers - 1)

    def send(self, frame: bytes) -> None:
        """Send the reply to the frame received last."""
        self._socket.send(frame)

    def close(self, *, flush: bool = False) -> None:
        """Unbind; with `flush`, a reply that is on its way may still leave."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close(_LINGER if flush else 0)
        if self._own_context:
            self._context.term()
