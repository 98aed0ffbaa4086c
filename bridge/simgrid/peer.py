"""The socket: one JSON frame to the decision process, one back, strictly in turns."""

import time

import zmq

from bridge.simgrid.errors import NO_PEER, ModelError


class Peer:
    """The decision process as seen from here. It binds; we connect, before or after it does."""

    def __init__(self, endpoint: str, timeout_s: float | None, log: bool) -> None:
        """Connect.

        Args:
            endpoint: a ZeroMQ endpoint, tcp://localhost:28000.
            timeout_s: wall time after which a missing answer is an error; None waits for ever.
            log: whether to show every frame.
        """
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._log = log
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        #: Wall time spent waiting for answers, s.
        self.waited_s = 0.0
        self.answers = 0
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise ModelError(
                f"'{endpoint}' cannot be connected to: {error}",
                where="-s",
                remedy="Write -s tcp://localhost:28000.",
            ) from None

    def ask(self, message: str) -> bytes:
        """Send a frame and return the answer."""
        if self._log:
            print(f"Sending '{message}'", flush=True)
        started = time.perf_counter()
        self._socket.send(message.encode())
        if self._timeout_s is not None and not self._socket.poll(int(self._timeout_s * 1000) or 1):
            came = f"answered message {self.answers}" if self.answers else "never came"
            raise ModelError(
                f"no answer within {self._timeout_s:g} s; the decision process {came}",
                where=self._endpoint,
                remedy="Start it so that it binds this port, look at its output, or raise --peer-timeout.",
                status=NO_PEER,
            )
        answer = self._socket.recv()
        self.waited_s += time.perf_counter() - started
        self.answers += 1
        if self._log:
            print(f"Received '{answer.decode(errors='replace')}'", flush=True)
        return answer
