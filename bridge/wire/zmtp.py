"""ZeroMQ's wire protocol (ZMTP 3.0, no encryption) on plain sockets.

libzmq hands each message from a thread of its own to the caller's and back, which takes as long as deciding.
Reading the connection where it is decided needs no thread; but then heartbeats, which Batsim never asks for,
are answered no sooner than the message before. Source: rfc.zeromq.org/spec/23.

That is why this stands here in place of pyzmq. Wall time behind a trivial decider (pyzmq) over that behind
`bridge decide fcfs+easy`, 10,000 jobs on 512 hosts, 21 pairs in turns on an idle machine (`python
benchmarks/bridge.py --pairs 21`); pyzmq: REP and REQ, awake by NOBLOCK as here:

==============  ======  ======================
program         way     median, least to most
==============  ======  ======================
embedded model  here    1.31, 1.13 to 1.42
embedded model  pyzmq   0.93, 0.80 to 1.01
Batsim 4.2.1    here    1.08, 0.98 to 1.16
Batsim 4.2.1    pyzmq   0.93, 0.87 to 1.09
==============  ======  ======================
"""

import errno
import os
import socket
import struct
from pathlib import Path

from bridge.base.jsontext import MOST_BYTES

_MORE, _LONG, _COMMAND = 1, 2, 4
#: Signature, version 3.0, mechanism, not a server, filler.
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_READY = b"\x05READY\x0bSocket-Type"
#: Bytes of a PING before its context, with its time to live, and of that at most.
_PING, _MOST_CONTEXT = 7, 16
#: Parts of a message, at most: Batsim's have an empty part and one more.
_MOST_PARTS = 8
#: Bytes that are read at once.
_READ = 1 << 16
_NOWHERE = "it is not tcp://HOST:PORT"
#: Bytes of a Unix socket's path.
_MOST_PATH = 107
#: Seconds until somebody who does not say no is out of reach.
_CONNECT_S = 5.0
#: Seconds that one who waits for bytes waits at once.
GLANCE = 0.1


def _place(address: str) -> tuple[str, str]:
    """Return host and port of ``tcp://HOST:PORT``; of ``ipc://PATH`` the path, no port (else ValueError)."""
    scheme, _, where = address.partition("://")
    if scheme == "ipc" and where:
        return where, ""
    host, _, port = where.rpartition(":")
    if scheme != "tcp" or not host or not (port == "*" or port.isdigit()):
        raise ValueError(_NOWHERE)
    return host, port


def listener(address: str) -> tuple[socket.socket, str]:
    """Return a socket that listens at ``tcp://HOST:PORT`` or ``ipc://PATH``, and its address with its port.

    Host ``*`` is every interface, port 0 or ``*`` any that is free. Raises OSError, ValueError: it cannot be
    bound, or is no such address.
    """
    host, port = _place(address)
    if not port:
        if _is_left_over(host):
            Path(host).unlink()
        listens = socket.socket(socket.AF_UNIX)
        try:
            listens.bind(host)
        except OSError:
            listens.close()
            raise
        listens.listen()
        return listens, address
    inside = host.strip("[]")
    family = socket.AF_INET if inside == host else socket.AF_INET6
    listens = socket.create_server(
        ("" if host == "*" else inside, 0 if port == "*" else int(port)), family=family, backlog=100
    )
    bound = listens.getsockname()
    host_text = f"[{bound[0]}]" if family == socket.AF_INET6 else bound[0]
    return listens, f"tcp://{host_text}:{bound[1]}"


def connected(address: str) -> socket.socket:
    """Return a socket that is connected to ``tcp://HOST:PORT`` or ``ipc://PATH``.

    Raises OSError: nobody listens there, or it is out of reach; ValueError: it is no such address.
    """
    host, port = _place(address)
    if not port:
        if len(os.fsencode(host)) > _MOST_PATH:
            raise ValueError(f"its path is longer than {_MOST_PATH} bytes")
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(host)
        except OSError:
            stream.close()
            raise
        return stream
    if "*" in (host, port) or not 0 < int(port) < 1 << 16:
        raise ValueError(_NOWHERE)
    stream = socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S)
    stream.settimeout(None)
    if stream.getsockname() == stream.getpeername():  # TCP connects a free port to itself, now and then
        stream.close()
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens there")
    return stream


def _is_left_over(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asks:
        return Path(path).is_socket() and asks.connect_ex(path) == errno.ECONNREFUSED


class Connection:
    """A connected peer, and the messages that it sends.

    `kind`: the type of socket that we are: one that answers, or ``REQ``, which asks. `patience`: s that
    sending may take where nobody reads, 0 = for ever. `open`: not at its end, and as far as it is known
    somebody who speaks ZeroMQ. `ready`: the other side has said who it is; it may drop who asks before.
    `limit`: bytes of a message, all of its parts together; who sends more is left.
    """

    def __init__(self, stream: socket.socket, kind: bytes = b"ROUTER", patience: float = 0.0) -> None:
        self.open, self.ready, self.limit = True, False, MOST_BYTES
        self.fileno = stream.fileno()
        self._stream = stream
        self._unread = bytearray()
        self._parts: list[bytes] = []
        self._size = 0  # of these parts
        self._greeted = False
        if stream.family != socket.AF_UNIX:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, round(GLANCE * 1e6)))
        whole, part = divmod(round(patience * 1e6), 1_000_000)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", whole, part))
        ready = _READY + len(kind).to_bytes(4) + kind
        self._write(_GREETING + bytes((_COMMAND, len(ready))) + ready)

    @property
    def held(self) -> int:
        """Bytes of the message that has not come completely."""
        return len(self._unread) + self._size

    def messages(self, *, wait: bool = False) -> list[list[bytes]]:
        """Return the messages that have come completely, each as its parts; waits for none, or `GLANCE`."""
        try:
            came = self._stream.recv(_READ, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            came = b""
        if not came:
            self.open = False
            return []
        # a question or an answer, an empty part and one more, mostly comes at once
        if self._greeted and not self._unread and not self._parts and came[:2] == b"\x01\x00":
            if len(came) > 3 and came[2] == 0 and len(came) == 4 + came[3]:
                return [[b"", came[4:]]]
            if len(came) > 10 and came[2] == _LONG and len(came) == 11 + int.from_bytes(came[3:11]):
                return [[b"", came[11:]]]
        self._unread += came
        if not self._greeted and not self._greet():
            return []
        return self._frames()

    def _greet(self) -> bool:
        """Read the greeting; tells whether it is complete."""
        came = self._unread
        if came[0] != 0xFF or (len(came) > 9 and not came[9] & 1) or (len(came) > 10 and came[10] < 3):
            self.open = False  # no ZeroMQ, or one of before 2013
            return False
        self._greeted = len(came) >= len(_GREETING)
        if self._greeted:
            del came[: len(_GREETING)]
        return self._greeted

    def _frames(self) -> list[list[bytes]]:
        frames, unread, at = [], self._unread, 0
        while len(unread) >= at + 2:
            flags, begin = unread[at], at + (9 if unread[at] & _LONG else 2)
            end = begin + int.from_bytes(unread[at + 1 : begin])
            if self._size + end - begin > self.limit or len(self._parts) == _MOST_PARTS:
                self.open = False
                break
            if len(unread) < max(begin, end):
                break
            body, at = bytes(unread[begin:end]), end
            if flags & _COMMAND:
                self.ready |= body.startswith(b"\x05READY")
                if body.startswith(b"\x04PING"):
                    if not 0 <= len(body) - _PING <= _MOST_CONTEXT:
                        self.open = False
                        break
                    self._write(bytes((_COMMAND, len(body) - 2)) + b"\x04PONG" + body[_PING:])
                continue
            self._parts.append(body)
            self._size += len(body)
            if not flags & _MORE:
                frames.append(self._parts)
                self._parts, self._size = [], 0
        del unread[:at]
        return frames

    def send(self, frame: bytes) -> None:
        """Send a question, or the answer that a REQ waits for."""
        size = len(frame)
        head = bytes((_MORE, 0, 0, size)) if size < 256 else b"\x01\0\x02" + size.to_bytes(8)
        try:
            self._stream.sendall(head + frame)
        except OSError:
            self.open = False

    def _write(self, content: bytes) -> None:
        """Send a little, without waiting for anybody who does not read."""
        try:
            self.open &= self._stream.send(content, socket.MSG_DONTWAIT) == len(content)
        except OSError:
            self.open = False

    def close(self) -> None:
        """Disconnect; sent messages still arrive."""
        self.open = False
        self._stream.close()
