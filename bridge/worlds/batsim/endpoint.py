"""The socket: binds, serves one peer, one frame in, one frame out, and never waits without saying for what.

Batsim's socket is a ZeroMQ REQ. A REP would serve all who connect, in turn, and a stranger's message would
end the simulation. Here the first who speaks is the peer.
"""

import errno
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from bridge.base.errors import BridgeError
from bridge.base.jsontext import MOST_BYTES
from bridge.wire.busy_wait import BusyWaiter
from bridge.wire.zmtp import GLANCE, Connection, listener

#: Batsim's threads that may want to run besides the one that we wait for, on average.
_SLACK = 0.75
#: Seconds that a peer may be disconnected before it counts as gone: what it sent last may still be under way.
_GRACE = 0.5
#: Seconds that one may be gone who has connected and asked nothing yet: libzmq comes again by itself.
_RETURN = 5.0
#: Seconds that one who connects may take to say that it speaks ZeroMQ.
_HANDSHAKE = 10.0
#: Connections besides the peer's, at most, and bytes of a message of theirs once there is a peer.
_MOST_OTHERS, _MOST_OF_OTHERS = 32, 1 << 16
#: Why no further connection can be taken: descriptors or memory are used up.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_REMEDIES = {
    errno.EADDRINUSE: "Another process has this port: end it, or give another --socket, to Batsim too.",
    errno.EACCES: "Ports below 1024 are the administrator's: choose another.",
}


class NeverCameError(BridgeError):
    """No message within the start-up deadline."""


class WentSilentError(BridgeError):
    """The peer is connected, but no message came within the idle deadline."""


class PeerGoneError(BridgeError):
    """The peer disconnected before the simulation ended, or before it began."""


def _to_stderr(text: str) -> None:
    print(f"bridge: {text}", file=sys.stderr, flush=True)


class Endpoint:
    """A bound socket with deadlines, for one peer. Use it as a context manager.

    It binds ``tcp://127.0.0.1:28000``, say, or ``tcp://*:28000`` for peers on other machines; port 0 or ``*``
    takes a free one, which `address` has. Deadlines are wall-clock seconds, until the first message must have
    come and between a reply and the next; 0 = wait for ever. `warn` is called, once, with a line of text when
    messages of somebody else come, which are ignored. Raises BridgeError: it cannot be bound.
    """

    def __init__(
        self,
        address: str,
        *,
        startup_timeout: float = 300.0,
        idle_timeout: float = 3600.0,
        warn: Callable[[str], None] = _to_stderr,
    ) -> None:
        self._startup, self._idle = startup_timeout, idle_timeout
        self._warn: Callable[[str], None] | None = warn
        self._received = 0
        self._lookout = BusyWaiter(_SLACK)
        self._connections: dict[int, Connection] = {}  # by file descriptor, the oldest first
        self._handshakes: dict[Connection, float] = {}  # those that are not ready, since when
        self._left_at = 0.0  # when the last one left that could have been the peer
        self._peer: Connection | None = None  # once it has spoken
        self._frames: deque[bytes] = deque()  # of the peer, which nobody has received
        try:
            self._listener, self.address = listener(address)
        except (OSError, ValueError, OverflowError) as error:
            what = f"cannot be bound ({getattr(error, 'strerror', None) or error})"
            remedy = "The decision process binds, Batsim connects: write tcp://127.0.0.1:28000, "
            remedy += "or tcp://*:28000 if it comes from another machine."
            remedy = _REMEDIES.get(getattr(error, "errno", None) or 0, remedy)
            raise BridgeError(what, where=address, remedy=remedy) from None
        self._poll = select.poll()
        self._poll.register(self._listener, select.POLLIN)

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def receive(self) -> bytes:
        """Return the peer's next frame; the first client that sends one is the peer.

        Raises NeverCameError, WentSilentError, PeerGoneError: no frame comes, or not in time.
        """
        started_at = time.monotonic()
        peer = self._peer
        if peer is not None and not self._frames:
            self._take(peer, self._lookout.messages)
        if not self._frames:
            self._wait(started_at)
        self._received += 1
        return self._frames.popleft()

    def _listen(self) -> bool:
        """Wait briefly for messages; return whether one of the peer has come."""
        for descriptor, _ in self._poll.poll(GLANCE * 1000):
            if descriptor == self._listener.fileno():
                self._accept()
            elif connection := self._connections.get(descriptor):
                self._take(connection)
        return bool(self._frames)

    def _accept(self) -> None:
        try:
            connection = Connection(self._listener.accept()[0], patience=self._idle)
        except OSError as error:  # gone already, or there is no room
            if error.errno in _EXHAUSTED and not self._drop_oldest():
                time.sleep(GLANCE)
            return
        if len(self._connections) - (self._peer is not None) >= _MOST_OTHERS:
            self._drop_oldest()
        if self._peer is not None:
            connection.limit = _MOST_OF_OTHERS
        self._connections[connection.fileno] = connection
        self._handshakes[connection] = time.monotonic()
        self._poll.register(connection.fileno, select.POLLIN)

    def _drop_oldest(self) -> bool:
        """Drop the oldest connection but the peer's; libzmq connects again by itself."""
        oldest = next((other for other in self._connections.values() if other is not self._peer), None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _drop(self, connection: Connection) -> None:
        del self._connections[connection.fileno]
        self._handshakes.pop(connection, None)
        self._poll.unregister(connection.fileno)
        connection.close()

    def _take(
        self, connection: Connection, read: Callable[[Connection], list[list[bytes]]] = Connection.messages
    ) -> None:
        """Read a connection's messages; report messages of other clients once, and ignore them."""
        for parts in read(connection):
            asks = len(parts) > 1 and not parts[0]  # as a REQ does, with an empty frame in front
            if self._peer is None and asks:
                self._adopt(connection)
            if connection is not self._peer or not asks:
                if self._warn is not None:
                    other = self._peer is not None and connection is not self._peer
                    who = "a second client" if other else "a client that does not ask as ZeroMQ's REQ does"
                    self._warn(f"ignored: messages of {who} on {self.address}; one process, one simulation")
                self._warn = None
                continue
            if len(parts) > 2:
                what, where = "has several parts; Batsim sends one", f"message {self._received + 1}"
                raise BridgeError(what, where=where, remedy="Who is it?")
            self._frames.append(parts[1])
        if connection.ready:
            self._handshakes.pop(connection, None)
        if not connection.open and connection.fileno in self._connections:
            self._left_at = time.monotonic() if connection.ready else self._left_at
            self._drop(connection)
        elif connection is not self._peer and connection.held > _MOST_OF_OTHERS:
            self._bound()

    def _adopt(self, connection: Connection) -> None:
        """Make this connection the peer; bound the messages of all others."""
        self._peer = connection
        for other in self._connections.values():
            if other is not connection:
                other.limit = _MOST_OF_OTHERS

    def _bound(self) -> None:
        """Drop the connection that holds most, where all together hold more than one message may have."""
        others = self._connections.values()
        if sum(other.held for other in others) > MOST_BYTES:
            self._drop(max(others, key=lambda other: other.held))

    def _wait(self, started_at: float) -> None:
        """Wait on since `started_at`, looking at the connections and the deadlines now and then."""
        gone = 0.0
        while True:
            self._look()
            now = time.monotonic()
            if self._peer is not None and not self._peer.open:
                gone = gone or now
                if now - gone >= _GRACE:
                    what = f"disconnected after message {self._received}, without SIMULATION_ENDS"
                    remedy = "Look at its output: a deadlocked Batsim ends like this, even with status 0."
                    raise PeerGoneError(what, where=self.address, remedy=remedy)
            if self._peer is None:
                self._check_left(now)
            for connection in [one for one, since in self._handshakes.items() if now - since >= _HANDSHAKE]:
                self._drop(connection)
            limit = self._idle if self._received else self._startup
            if limit and now - started_at >= limit:
                raise self._too_late(limit)
            if self._listen():
                return

    def _check_left(self, now: float) -> None:
        """Raise PeerGoneError if every client that could have been the peer has left."""
        if not self._left_at or any(other.ready for other in self._connections.values()):
            return
        if now - self._left_at >= _RETURN:
            what = "Batsim had connected, and left before its first message"
            remedy = "Look at its output: it has ended while it read its files. Start this process again too."
            raise PeerGoneError(what, where=self.address, remedy=remedy)

    def _too_late(self, limit: float) -> BridgeError:
        if self._received:
            what = f"no message within {limit:g} s after reply {self._received}; the peer is still connected"
            remedy = "It is busy or stuck: look at it, or raise --idle-timeout."
            return WentSilentError(what, where=self.address, remedy=remedy)
        port = self.address.rpartition(":")[2]
        came = "something connected, but asked nothing" if self._connections else "nothing has connected"
        what = f"waited {limit:g} s for Batsim's first message; {came}"
        remedy = f"Start Batsim with -s tcp://localhost:{port}, or raise --startup-timeout."
        return NeverCameError(what, where=self.address, remedy=remedy)

    def _look(self) -> None:
        """Called now and then while no message comes."""

    def send(self, frame: bytes) -> None:
        """Send the peer the reply to the frame received last."""
        assert self._peer is not None
        self._peer.send(frame)

    def close(self) -> None:
        """Unbind and disconnect; a reply that is on its way still arrives."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._listener.close()
        if self.address.startswith("ipc://"):
            Path(self.address.removeprefix("ipc://")).unlink(missing_ok=True)
