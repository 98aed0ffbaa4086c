"""The socket and the loop around it: deadlines, a peer that dies, a port in use, Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from fake_batsim import MICRO, DelayJob, FakeBatsim

from bridge.batsim.dispatcher import Setup
from bridge.batsim.endpoint import Endpoint, NeverCameError, PeerGoneError, WentSilentError
from bridge.batsim.process import DecisionProcess
from bridge.batsim.result import Outcome
from bridge.errors import BridgeError

ANY = "tcp://127.0.0.1:*"
JOBS = [DelayJob("1", 0, 5 * MICRO, 1, 9 * MICRO), DelayJob("2", 2 * MICRO, 5 * MICRO, 1, 9 * MICRO)]


def peer(address: str, play: Callable[["zmq.Socket[bytes]"], object]) -> threading.Thread:
    """Start a thread that connects, plays, and disconnects."""

    def run() -> None:
        with zmq.Context() as context, context.socket(zmq.REQ) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(address)
            play(socket)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_whole_simulation_over_tcp() -> None:
    fake = FakeBatsim(JOBS, 1)
    with Endpoint(ANY) as endpoint:
        assert endpoint.address.startswith("tcp://127.0.0.1:") and not endpoint.address.endswith("*")
        thread = peer(endpoint.address, fake.run_on)
        result = DecisionProcess(Setup(), strict=True).run(endpoint)
        thread.join()
    assert result.outcome is Outcome.ENDED and result.error is None and result.outcome.status == 0
    assert fake.starts == {"1": 0, "2": 5 * MICRO}
    assert result.starts == {"w0!1": 0, "w0!2": 5 * MICRO}


def test_inproc_with_a_context_of_the_caller() -> None:
    with zmq.Context() as context, Endpoint("inproc://decisions", context=context) as endpoint:

        def play() -> None:
            with context.socket(zmq.REQ) as socket:
                socket.connect("inproc://decisions")
                FakeBatsim(JOBS, 1).run_on(socket)

        thread = threading.Thread(target=play)
        thread.start()
        result = DecisionProcess(Setup()).run(endpoint)
        thread.join()
    assert result.outcome is Outcome.ENDED


def test_nobody_comes() -> None:
    with Endpoint(ANY, startup_timeout=0.3) as endpoint:
        port = endpoint.address.rpartition(":")[2]
        with pytest.raises(NeverCameError) as error:
            endpoint.receive()
        assert error.value.what == "waited 0.3 s for Batsim's first message; nothing has connected"
        assert f"-s tcp://localhost:{port}" in error.value.remedy
        result = DecisionProcess(Setup()).run(endpoint)
    assert result.outcome is Outcome.NEVER_CAME and result.outcome.status == 3


def test_somebody_connects_and_says_nothing() -> None:
    leave = threading.Event()
    with Endpoint(ANY, startup_timeout=0.6) as endpoint:
        thread = peer(endpoint.address, lambda _: leave.wait())
        with pytest.raises(NeverCameError, match="something connected, but sent nothing"):
            endpoint.receive()
        leave.set()
        thread.join()


def half(stay: threading.Event | None) -> Callable[["zmq.Socket[bytes]"], None]:
    """Play the first two messages, then wait or go."""

    def play(socket: "zmq.Socket[bytes]") -> None:
        talk = FakeBatsim(JOBS, 1).talk()
        message = next(talk)
        for _ in range(2):
            socket.send(message)
            message = talk.send(socket.recv())  # type: ignore[attr-defined]
        if stay:
            stay.wait()

    return play


def test_a_peer_that_dies_is_noticed_and_the_partial_result_kept() -> None:
    with Endpoint(ANY) as endpoint:
        thread = peer(endpoint.address, half(None))
        result = DecisionProcess(Setup()).run(endpoint)
        thread.join()
    assert result.outcome is Outcome.GONE and result.outcome.status == 4
    assert isinstance(result.error, PeerGoneError)
    assert "after message 2, without SIMULATION_ENDS" in result.error.what
    assert result.starts == {"w0!1": 0} and len(result.missing) == 1
    assert result.as_dict()["outcome"] == "gone"


def test_a_peer_that_falls_silent() -> None:
    leave = threading.Event()
    with Endpoint(ANY, idle_timeout=0.3) as endpoint:
        thread = peer(endpoint.address, half(leave))
        result = DecisionProcess(Setup()).run(endpoint)
        leave.set()
        thread.join()
    assert result.outcome is Outcome.SILENT and isinstance(result.error, WentSilentError)
    assert "no message within 0.3 s after reply 2; the peer is still connected" in result.error.what


def test_malformed_frames_end_the_run_with_what_was_decided() -> None:
    def play(socket: "zmq.Socket[bytes]") -> None:
        socket.send(next(FakeBatsim(JOBS, 1).talk()))
        socket.recv()
        socket.send(b'{"now": 0.0}')
        socket.poll(200)

    with Endpoint(ANY) as endpoint:
        thread = peer(endpoint.address, play)
        result = DecisionProcess(Setup()).run(endpoint)
        thread.join()
    assert result.outcome is Outcome.FAILED and result.error is not None
    assert result.error.where == "message 2" and result.messages == 1


def test_frames_of_several_parts_are_refused() -> None:
    def play(socket: "zmq.Socket[bytes]") -> None:
        socket.send_multipart([b"a", b"b"])
        socket.poll(200)

    with Endpoint(ANY) as endpoint:
        thread = peer(endpoint.address, play)
        with pytest.raises(BridgeError, match="several parts"):
            endpoint.receive()
        thread.join()


def test_a_port_in_use_and_addresses_that_cannot_be_bound() -> None:
    with Endpoint(ANY) as endpoint:
        with pytest.raises(BridgeError) as error:
            Endpoint(endpoint.address)
        assert error.value.where == endpoint.address and "another --socket" in error.value.remedy
    for address in ("28000", "tcp://no.such.host.invalid:28000", "ftp://*:1"):
        with pytest.raises(BridgeError, match="cannot be bound") as error:
            Endpoint(address)
        assert "tcp://*:28000" in error.value.remedy


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_termination_keep_what_was_decided(tmp_path: Path, number: int, status: int) -> None:
    out = tmp_path / "decisions.json"
    code = f"""
import sys
from bridge.cli.decide import decide
decide(["sjf", "--socket", "{ANY}", "--out", {str(out)!r}], standalone_mode=False)
"""
    code = code.replace("decide([", "sys.exit(decide([").replace("False)", "False))")
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    line = child.stderr.readline()
    assert "waiting for Batsim on tcp://" in line
    leave = threading.Event()
    done = threading.Event()

    def play(socket: "zmq.Socket[bytes]") -> None:
        half(None)(socket)
        done.set()
        leave.wait()

    thread = peer(line.split()[-1], play)
    assert done.wait(60)
    os.kill(child.pid, number)
    _, errors = child.communicate(timeout=30)
    leave.set()
    thread.join()
    assert child.returncode == status, errors
    assert '"outcome": "interrupted"' in out.read_text() and '"w0!1"' in out.read_text()
    assert "Traceback" not in errors
