"""Peers that play Batsim in a thread beside the test."""

import socket as socket_module
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import zmq
from detailed import PATIENCE_S

Play = Callable[["zmq.Socket[bytes]"], object]


@contextmanager
def beside(run: Callable[[], object]) -> Iterator[None]:
    """Run something in a thread; wait for its end on leaving."""
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def peer(address: str, play: Play, *, stays: bool = False) -> Iterator[None]:
    """Connect and play in a thread, then disconnect: at once, or on leaving."""
    leave = threading.Event()

    def run() -> None:
        with zmq.Context() as context, context.socket(zmq.REQ) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(address)
            play(socket)
            leave.wait(PATIENCE_S if stays else 0)

    with beside(run):
        try:
            yield
        finally:
            leave.set()


def free_port() -> int:
    """Return a port of this machine that nobody uses now."""
    with socket_module.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
