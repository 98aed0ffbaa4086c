"""The socket and the loop around it: deadlines, a peer that dies, a port in use, Ctrl-C."""

import os
import signal
import socket as socket_module
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zmq
from fake_batsim import MICRO, DelayJob, FakeBatsim
from peers import Play, beside, peer

from bridge.base.errors import BridgeError
from bridge.worlds.batsim import endpoint as endpoint_module
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.endpoint import Endpoint, NeverCameError, PeerGoneError, WentSilentError
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.batsim.result import ExitReason, ProcessResult

ANY = "tcp://127.0.0.1:*"
#: A libzmq's greeting and READY, as a REQ of 4.3 sends them.
HELLO = bytes.fromhex("ff00000000000000017f03014e554c4c") + bytes(48)
READY = bytes.fromhex("0426055245414459") + b"\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0"
JOBS = [DelayJob("1", 0, 5 * MICRO, 1, 9 * MICRO), DelayJob("2", 2 * MICRO, 5 * MICRO, 1, 9 * MICRO)]


def decided(play: Play, *, strict: bool = False, stays: bool = False, **options: Any) -> ProcessResult:
    with Endpoint(ANY, **options) as endpoint, peer(endpoint.address, play, stays=stays):
        return DecisionProcess(DispatcherConfig(), strict=strict).run(endpoint)


def test_a_whole_simulation_over_tcp() -> None:
    fake = FakeBatsim(JOBS, 1)
    with Endpoint(ANY) as endpoint:
        assert endpoint.address.startswith("tcp://127.0.0.1:") and not endpoint.address.endswith("*")
    result = decided(fake.run_on, strict=True)
    assert result.outcome is ExitReason.ENDED and result.error is None and result.outcome.status == 0
    assert fake.starts == {"1": 0, "2": 5 * MICRO}
    assert result.starts == {"w0!1": 0, "w0!2": 5 * MICRO}


def interrupted(stranger: Callable[[str], object]) -> tuple[FakeBatsim, list[str]]:
    """Play a whole simulation, in the middle of which a stranger does something; returns the warnings too."""
    fake, warnings = FakeBatsim(JOBS, 1), list[str]()

    def play(socket: "zmq.Socket[bytes]") -> None:
        talk = fake.talk()
        message = next(talk)
        for k in range(99):
            if k == 2:
                stranger(endpoint.address)
            socket.send(message)
            try:
                message = talk.send(socket.recv())  # type: ignore[attr-defined]
            except StopIteration:
                return

    with (
        Endpoint(ANY, idle_timeout=20, warn=warnings.append) as endpoint,
        peer(endpoint.address, play),
    ):
        result = DecisionProcess(DispatcherConfig(), strict=True).run(endpoint)
    assert result.outcome is ExitReason.ENDED and result.error is None
    assert result.starts == {"w0!1": 0, "w0!2": 5 * MICRO} and fake.starts == {"1": 0, "2": 5 * MICRO}
    return fake, warnings


@pytest.mark.parametrize("kind", [zmq.REQ, zmq.DEALER], ids=["REQ", "DEALER"])
@pytest.mark.parametrize(
    "said", [b"", b"hello", b'{"now":99.0,"events":[]}', next(FakeBatsim(JOBS, 1).talk())]
)
def test_a_second_client_is_ignored_and_gets_no_answer(kind: int, said: bytes) -> None:
    answers = []

    def stranger(address: str) -> None:
        with zmq.Context() as context, context.socket(kind) as socket:
            socket.setsockopt(zmq.LINGER, 1000)
            socket.connect(address)
            for _ in range(1 if kind == zmq.REQ else 50):
                socket.send(said)
            answers.append(socket.poll(500))

    _, warnings = interrupted(stranger)
    assert answers == [0] and len(warnings) == 1 and "second client" in warnings[0]


def test_a_first_client_that_asks_as_no_req_is_told_so() -> None:
    warnings: list[str] = []
    with (
        Endpoint(ANY, startup_timeout=0.5, warn=warnings.append) as endpoint,
        zmq.Context() as context,
        context.socket(zmq.DEALER) as dealer,
    ):
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(endpoint.address)
        dealer.send(b"hello")
        with pytest.raises(NeverCameError, match="something connected, but asked nothing"):
            endpoint.receive()
    assert len(warnings) == 1 and "a client that does not ask as ZeroMQ's REQ does" in warnings[0]


def test_a_stranger_that_speaks_no_zeromq_does_no_harm() -> None:
    def stranger(address: str) -> None:
        host, port = address.removeprefix("tcp://").split(":")
        with socket_module.create_connection((host, int(port))) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 99)

    assert interrupted(stranger)[1] == []


def test_idle_connections_do_not_keep_the_peer_out() -> None:
    with Endpoint(ANY, startup_timeout=20) as endpoint, ExitStack() as idle:
        host, port = endpoint.address.removeprefix("tcp://").split(":")
        for k in range(100):
            raw = idle.enter_context(socket_module.create_connection((host, int(port))))
            raw.sendall(HELLO if k % 2 else b"")
            endpoint._listen()
        with peer(endpoint.address, FakeBatsim(JOBS, 1).run_on):
            result = DecisionProcess(DispatcherConfig()).run(endpoint)
            assert len(endpoint._connections) <= 33
    assert result.outcome is ExitReason.ENDED


def test_the_peer_gets_in_where_descriptors_are_used_up() -> None:
    code = f"""
import resource, socket, sys
sys.path[:0] = {sys.path!r}
from bridge.worlds.batsim.endpoint import Endpoint
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
with Endpoint("{ANY}", startup_timeout=20) as endpoint:
    print(endpoint.address, flush=True)
    print(endpoint.receive().decode(), flush=True)
    endpoint.send(b"answer")
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    address = child.stdout.readline().strip()
    host, port = address.removeprefix("tcp://").split(":")
    with ExitStack() as idle:
        for _ in range(40):
            idle.enter_context(socket_module.create_connection((host, int(port)))).sendall(HELLO)
        answers: list[bytes] = []
        with peer(address, lambda socket: (socket.send(b"question"), answers.append(socket.recv()))):
            assert child.stdout.readline() == "question\n"
        assert answers == [b"answer"] and child.wait(20) == 0


def test_who_does_not_say_that_it_speaks_zeromq_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_HANDSHAKE", 0.2)
    with Endpoint(ANY, startup_timeout=1) as endpoint:
        host, port = endpoint.address.removeprefix("tcp://").split(":")
        with socket_module.create_connection((host, int(port))) as raw, pytest.raises(NeverCameError):
            raw.sendall(HELLO)
            endpoint.receive()
        assert endpoint._connections == {}


def test_a_stranger_may_say_little_once_there_is_a_peer() -> None:
    def stranger(address: str) -> None:
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(address)
            socket.send(bytes(1 << 17))
            assert monitor.poll(10_000)
            socket.disable_monitor()

    assert interrupted(stranger)[1] == []


def test_of_all_who_may_be_the_peer_the_one_who_says_most_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "MOST_BYTES", 300_000)
    head = b"\x01\0\x02" + (250_000).to_bytes(8)
    with Endpoint(ANY, startup_timeout=20) as endpoint, ExitStack() as others:
        host, port = endpoint.address.removeprefix("tcp://").split(":")
        for size in (100_000, 220_000):
            raw = others.enter_context(socket_module.create_connection((host, int(port))))
            raw.sendall(HELLO + READY + head + bytes(size))
            for _ in range(9):
                endpoint._listen()
        assert [connection.held for connection in endpoint._connections.values()] == [100_009]


def test_a_batsim_that_dies_while_it_loads_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_RETURN", 0.3)
    result = decided(lambda socket: socket.poll(300))
    assert result.outcome is ExitReason.GONE and result.messages == 0 and result.error is not None
    assert "left before its first message" in result.error.what


def test_who_comes_again_in_time_is_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_RETURN", 1.0)
    with Endpoint(ANY, startup_timeout=20) as endpoint:

        def play() -> None:
            for attempt in (lambda socket: socket.poll(300), FakeBatsim(JOBS, 1).run_on):
                with peer(endpoint.address, attempt):
                    pass

        with beside(play):
            assert DecisionProcess(DispatcherConfig()).run(endpoint).outcome is ExitReason.ENDED


def test_a_peer_that_dies_is_noticed_while_a_stranger_stays() -> None:
    with Endpoint(ANY, idle_timeout=30, warn=lambda _: None) as endpoint, ExitStack() as strangers:

        def play(socket: "zmq.Socket[bytes]") -> None:
            half(socket)
            strangers.enter_context(peer(endpoint.address, lambda other: other.send(b"hello"), stays=True))

        with peer(endpoint.address, play):
            result = DecisionProcess(DispatcherConfig()).run(endpoint)
    assert result.outcome is ExitReason.GONE and result.starts == {"w0!1": 0}


def test_warnings_go_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        Endpoint(ANY, startup_timeout=1) as endpoint,
        peer(endpoint.address, lambda socket: (socket.send(b"first"), socket.poll(300))),
    ):
        assert endpoint.receive() == b"first"
        with (
            peer(endpoint.address, lambda socket: (socket.send(b"second"), socket.poll(300))),
            pytest.raises(PeerGoneError),
        ):
            endpoint.receive()
    assert capfd.readouterr().err.count("bridge: ignored: messages of a second client") == 1


def test_nobody_comes() -> None:
    with Endpoint(ANY, startup_timeout=0.3) as endpoint:
        port = endpoint.address.rpartition(":")[2]
        with pytest.raises(NeverCameError) as error:
            endpoint.receive()
        assert error.value.what == "waited 0.3 s for Batsim's first message; nothing has connected"
        assert f"-s tcp://localhost:{port}" in error.value.remedy
        result = DecisionProcess(DispatcherConfig()).run(endpoint)
    assert result.outcome is ExitReason.NEVER_CAME and result.outcome.status == 3


def test_somebody_connects_and_says_nothing() -> None:
    with (
        Endpoint(ANY, startup_timeout=0.6) as endpoint,
        peer(endpoint.address, lambda _: None, stays=True),
        pytest.raises(NeverCameError, match="something connected, but asked nothing"),
    ):
        endpoint.receive()


def half(socket: "zmq.Socket[bytes]") -> None:
    """Play the first two messages."""
    talk = FakeBatsim(JOBS, 1).talk()
    message = next(talk)
    for _ in range(2):
        socket.send(message)
        message = talk.send(socket.recv())  # type: ignore[attr-defined]


def test_a_peer_that_dies_is_noticed_and_the_partial_result_kept() -> None:
    result = decided(half)
    assert result.outcome is ExitReason.GONE and result.outcome.status == 4
    assert isinstance(result.error, PeerGoneError)
    assert "after message 2, without SIMULATION_ENDS" in result.error.what
    assert result.starts == {"w0!1": 0} and len(result.missing) == 1
    assert result.as_dict()["outcome"] == "gone"


def test_a_peer_that_falls_silent() -> None:
    result = decided(half, stays=True, idle_timeout=0.3)
    assert result.outcome is ExitReason.SILENT and isinstance(result.error, WentSilentError)
    assert "no message within 0.3 s after reply 2; the peer is still connected" in result.error.what


def test_malformed_frames_end_the_run_with_what_was_decided() -> None:
    def play(socket: "zmq.Socket[bytes]") -> None:
        socket.send(next(FakeBatsim(JOBS, 1).talk()))
        socket.recv()
        socket.send(b'{"now": 0.0}')
        socket.poll(200)

    result = decided(play)
    assert result.outcome is ExitReason.FAILED and result.error is not None
    assert result.error.where == "message 2" and result.messages == 1


def test_frames_of_several_parts_are_refused() -> None:
    def play(socket: "zmq.Socket[bytes]") -> None:
        socket.send_multipart([b"a", b"b"])
        socket.poll(200)

    with (
        Endpoint(ANY) as endpoint,
        peer(endpoint.address, play),
        pytest.raises(BridgeError, match="several parts"),
    ):
        endpoint.receive()


def test_a_port_in_use_and_addresses_that_cannot_be_bound() -> None:
    with Endpoint(ANY) as endpoint:
        with pytest.raises(BridgeError) as error:
            Endpoint(endpoint.address)
        assert error.value.where == endpoint.address and "another --socket" in error.value.remedy
    for address in ("28000", "tcp://no.such.host.invalid:28000", "ftp://*:1"):
        with pytest.raises(BridgeError, match="cannot be bound") as error:
            Endpoint(address)
        assert "tcp://*:28000" in error.value.remedy


#: Signals that come while the results are being written.
AGAIN = """
import os, signal
from bridge.worlds.batsim.result import ProcessResult as Result
write = Result.write
def impatient(self, path):
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    write(self, path)
Result.write = impatient
"""


@pytest.mark.parametrize("first", ["", AGAIN], ids=["once", "again"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_termination_keep_what_was_decided(
    tmp_path: Path, number: int, status: int, first: str
) -> None:
    out = tmp_path / "decisions.json"
    code = f"""{first}
import sys
from bridge.cli.decide import decide
sys.exit(decide(["sjf", "--socket", "{ANY}", "--out", {str(out)!r}], standalone_mode=False))
"""
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    line = child.stderr.readline()
    assert "waiting for Batsim on tcp://" in line
    done = threading.Event()
    with peer(line.split()[-1], lambda socket: (half(socket), done.set()), stays=True):
        assert done.wait(60)
        os.kill(child.pid, number)
        _, errors = child.communicate(timeout=30)
    assert child.returncode == status, errors
    assert '"outcome": "interrupted"' in out.read_text() and '"w0!1"' in out.read_text()
    assert "Traceback" not in errors
