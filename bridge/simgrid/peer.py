"""The decision process: the events that wait for it, and the socket, one JSON frame each way in turns."""

import time
from collections.abc import Callable

import zmq

from bridge.errors import BridgeError
from bridge.simgrid.options import NO_PEER
from bridge.wire import hosts
from bridge.wire.hosts import Hosts
from bridge.wire.jsontext import dumps


class Outbox:
    """The events of the next message, as text already, each with its own timestamp (s)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._events: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, kind: str, data: str) -> None:
        """Queue an event whose data is JSON text."""
        self._events.append(f'{{"timestamp":{self._clock():f},"type":"{kind}","data":{data}}}')

    def take(self) -> str:
        """Return the message with all queued events, and start the next one."""
        message = f'{{"now":{self._clock():f},"events":[{",".join(self._events)}]}}'
        self._events.clear()
        return message

    def job_completed(self, job_id: str, state: str, return_code: int, allocation: tuple[int, ...]) -> None:
        data = {"job_id": job_id, "job_state": state, "return_code": return_code}
        self.add("JOB_COMPLETED", dumps(data | {"alloc": hosts.text_of(hosts.from_ids(allocation))}))

    def resources(self, kind: str, machines: Hosts, key: str, value: str) -> None:
        """Queue an event about machines: RESOURCE_STATE_CHANGED or a NOTIFY."""
        self.add(kind, dumps({key: value, "resources": hosts.text_of(machines)}))


class Peer:
    """The decision process at its socket. It binds; we connect, before or after it does.

    Args:
        endpoint: a ZeroMQ endpoint, tcp://localhost:28000.
        timeout_s: wall time after which a missing answer is an error; None waits for ever.
        log: whether to show every frame.
    """

    def __init__(self, endpoint: str, timeout_s: float | None, log: bool) -> None:
        self._endpoint, self._timeout_s, self._log = endpoint, timeout_s, log
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        #: Wall time spent waiting for answers, s.
        self.waited_s = 0.0
        self.answers = 0
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            what, remedy = f"'{endpoint}' cannot be connected to: {error}", "Write -s tcp://localhost:28000."
            raise BridgeError(what, where="-s", remedy=remedy) from None

    def ask(self, message: str) -> bytes:
        """Send a frame and return the answer."""
        if self._log:
            print(f"Sending '{message}'", flush=True)
        started = time.perf_counter()
        self._socket.send(message.encode())
        if self._timeout_s is not None and not self._socket.poll(int(self._timeout_s * 1000) or 1):
            came = f"answered message {self.answers}" if self.answers else "never came"
            raise BridgeError(
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
