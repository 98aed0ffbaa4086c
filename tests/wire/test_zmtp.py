"""ZeroMQ's wire protocol: however the bytes come, beside libzmq, and from those who speak something else."""

import socket
from pathlib import Path

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.zmtp import Connection, connected, listener
from bridge.worlds.batsim.endpoint import Endpoint

#: A libzmq's greeting and READY, as a REQ of 4.3 sends them.
HELLO = bytes.fromhex("ff00000000000000017f03014e554c4c") + bytes(48)
READY = bytes.fromhex("0426055245414459") + b"\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0"


def framed(parts: list[bytes]) -> bytes:
    heads = [
        bytes((k < len(parts) - 1, len(part)))
        if len(part) < 256
        else bytes([2 | (k < len(parts) - 1)]) + len(part).to_bytes(8, "big")
        for k, part in enumerate(parts)
    ]
    return b"".join(head + part for head, part in zip(heads, parts, strict=True))


MESSAGES = st.lists(st.lists(st.sampled_from([b"", b"a", b"b" * 255, b"c" * 256]), min_size=1, max_size=3))


@given(MESSAGES, st.lists(st.integers(1, 400), min_size=1))
def test_messages_are_the_same_however_their_bytes_come(messages: list[list[bytes]], cuts: list[int]) -> None:
    sent = HELLO + READY + b"".join(map(framed, messages))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection, found = Connection(ours), []
        while sent:
            cut = cuts.pop(0) if cuts else len(sent)
            theirs.sendall(sent[:cut])
            sent = sent[cut:]
            found += connection.messages()
        assert found == messages and connection.open and connection.messages() == []
        theirs.close()
        assert connection.messages() == [] and not connection.open


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, 5_000_000])
@pytest.mark.parametrize("scheme", ["tcp://127.0.0.1:*", "ipc://"])
def test_frames_of_any_size_travel_to_and_from_libzmq(size: int, scheme: str, tmp_path: Path) -> None:
    where = scheme + str(tmp_path / "socket") if scheme == "ipc://" else scheme
    with Endpoint(where) as endpoint, zmq.Context() as context, context.socket(zmq.REQ) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.connect(endpoint.address)
        for letter in (b"x", b"y"):
            peer.send(letter * size)
            assert endpoint.receive() == letter * size
            endpoint.send(letter.upper() * size)
            assert peer.recv() == letter.upper() * size
    assert not (tmp_path / "socket").exists()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, 5_000_000])
@pytest.mark.parametrize("scheme", ["tcp://127.0.0.1:*", "ipc://"])
def test_we_ask_a_rep_of_libzmq(size: int, scheme: str, tmp_path: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.bind(scheme + str(tmp_path / "socket") if scheme == "ipc://" else scheme)
        stream = connected(peer.getsockopt_string(zmq.LAST_ENDPOINT))
        with stream:
            connection = Connection(stream, b"REQ")
            while not connection.ready:
                assert connection.messages(wait=True) == [] and connection.open
            for letter in (b"x", b"y"):
                connection.send(letter * size)
                assert peer.recv() == letter * size
                peer.send(letter.upper() * size)
                found: list[list[bytes]] = []
                while not found:
                    found = connection.messages(wait=True)
                assert found == [[b"", letter.upper() * size]] and connection.open


@pytest.mark.parametrize(
    "address",
    [
        *(
            "tcp://127.0.0.1",
            "tcp://127.0.0.1:*",
            "tcp://127.0.0.1:0",
            "tcp://127.0.0.1:65536",
            "ipc://",
            "9",
        ),
        *("tcp://*:28000", "ipc:///tmp/" + "x" * 110),
    ],
)
def test_what_cannot_be_connected_to(address: str) -> None:
    with pytest.raises(ValueError, match=r"not tcp|longer than 107 bytes"):
        connected(address)


def test_a_ping_is_answered_with_its_context() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours)
        said = theirs.recv(1000)
        assert said[:12] == HELLO[:8] + b"\0\x7f\x03\0" and said[64:72] == b"\x04\x1c\x05READY"
        theirs.sendall(HELLO + READY + b"\x04\x09\x04PING\0\x0aab")
        assert connection.messages() == []
        assert theirs.recv(1000) == b"\x04\x07\x04PONGab"


#: What ends a connection: pings that are none, a part of more than a gibibyte, parts without end, another
#: language.
WRONG = {
    "bare ping": HELLO + READY + b"\x04\x05\x04PING",
    "half a time to live": HELLO + READY + b"\x04\x06\x04PING\0",
    "long context": HELLO + READY + b"\x04\x18\x04PING\0\x0a" + bytes(17),
    "long frame": HELLO + READY + b"\x06" + (300).to_bytes(8) + b"\x04PING" + bytes(295),
    "large part": HELLO + READY + b"\x02" + (1 << 40).to_bytes(8, "big") + b"abc",
    "large parts together": HELLO + READY + b"\x01\x01a\x03" + (1 << 30).to_bytes(8),
    "empty parts without end": HELLO + READY + b"\x01\0" * 9,
    "HTTP": b"GET / HTTP/1.1",
    "old version": HELLO[:10] + b"\x01",
    "no version": b"\xff" + bytes(9),
}


@pytest.mark.parametrize("said", WRONG)
def test_who_says_something_else_is_left(said: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours)
        theirs.sendall(WRONG[said])
        assert connection.messages() == [] and not connection.open


@given(st.binary(max_size=300), st.lists(st.integers(1, 100), min_size=1), st.booleans())
def test_whatever_comes_is_a_message_or_nothing(said: bytes, cuts: list[int], greets: bool) -> None:
    sent = (HELLO + READY) * greets + said
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours)
        while sent and connection.open:
            cut = cuts.pop(0) if cuts else len(sent)
            theirs.sendall(sent[:cut])
            sent = sent[cut:]
            connection.messages()


def test_the_parts_of_a_message_are_bounded_together() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours)
        connection.limit = 1000
        theirs.sendall(HELLO + READY + framed([b"", bytes(700), bytes(300)]) * 2)
        assert connection.messages() == [[b"", bytes(700), bytes(300)]] * 2 and connection.open
        large = framed([b"", bytes(700), bytes(250), bytes(51)])
        theirs.sendall(large[:-53])
        assert connection.messages() == [] and connection.open and connection.held == 950
        theirs.sendall(large[-53:])
        assert connection.messages() == [] and not connection.open


def test_who_never_reads_holds_nobody_for_longer_than_that() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, patience=0.05)
        connection.send(bytes(10_000_000))
        assert not connection.open


def test_nobody_waits_for_one_who_does_not_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours)
        theirs.sendall(HELLO + READY)
        for _ in range(10_000):
            theirs.sendall(b"\x04\x09\x04PING\0\x0aab" * 100)
            connection.messages()
            if not connection.open:
                return
    pytest.fail("it took all that was sent")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("tcp://*:0", "tcp://0.0.0.0:"),
        ("tcp://localhost:*", "tcp://127.0.0.1:"),
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:"),
    ],
)
def test_addresses(address: str, shown: str) -> None:
    listens, found = listener(address)
    with listens:
        assert found == f"{shown}{listens.getsockname()[1]}"


@pytest.mark.parametrize(
    "address", ["tcp://*", "tcp://:28000", "tcp://127.0.0.1:many", "ipc://", "28000", ""]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="not tcp"):
        listener(address)


def test_only_a_socket_that_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("not a socket")
    with pytest.raises(OSError, match="in use"):
        listener(f"ipc://{path}")
    assert path.read_text() == "not a socket"
    path.unlink()
    listens, _ = listener(f"ipc://{path}")
    with listens, pytest.raises(OSError, match="in use"):
        listener(f"ipc://{path}")
    assert path.is_socket()
    again, address = listener(f"ipc://{path}")
    with again:
        assert address == f"ipc://{path}"
