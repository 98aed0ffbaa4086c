"""The decision process: the events that wait for it, and the socket, one JSON frame each way in turns."""

import math
import socket
import time
from collections.abc import Callable

from bridge.base.errors import BridgeError
from bridge.wire import hosts
from bridge.wire.busy_wait import BusyWaiter
from bridge.wire.hosts import Hosts
from bridge.wire.json_numbers import dumps
from bridge.wire.zmtp import Connection, connected
from bridge.worlds.simgrid.options import NO_PEER, log_line

#: Threads of the decision process that may want to run besides the one that we wait for, on average.
_SLACK = 0.1
#: Seconds between two attempts to connect.
_RETRY_S = 0.02


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


class DecisionProcessClient:
    """The decision process at its socket, a ZeroMQ endpoint. It binds; we connect, before or after it does.

    `timeout_s`: wall time after which a missing answer is an error; None waits for ever.
    """

    def __init__(self, endpoint: str, timeout_s: float | None, log: bool) -> None:
        self._endpoint, self._timeout_s, self._log = endpoint, timeout_s, log
        self._why = ""  # nobody answers
        self._connection = self._connect()
        self._lookout = BusyWaiter(_SLACK)
        #: Wall time spent waiting for answers, s.
        self.waited_s = 0.0
        self.answers = 0

    def ask(self, message: str, meanwhile: Callable[[], None]) -> bytes:
        """Send a frame and return the answer; ``meanwhile`` is called after sending if a core is free."""
        if self._log:
            print(f"Sending '{message}'", flush=True)
        started = time.perf_counter()
        until = math.inf if self._timeout_s is None else started + self._timeout_s
        answer = self._exchange(message.encode(), until, meanwhile)
        self.waited_s += time.perf_counter() - started
        self.answers += 1
        if self._log:
            print(f"Received '{answer.decode(errors='replace')}'", flush=True)
        return answer

    def _exchange(self, question: bytes, until: float, meanwhile: Callable[[], None]) -> bytes:
        """Return the answer, or the error that none comes before a moment of `time.perf_counter`."""
        has_answer = False
        while time.perf_counter() < until:
            connection = self._connection
            if connection is None or not connection.open:
                if self.answers:
                    raise self._lost(f"the decision process disconnected after message {self.answers}")
                # it may not have bound yet, or who forwards the port may have accepted in its place
                time.sleep(_RETRY_S)
                self._connection, has_answer = self._connect(), False
            elif connection.ready and not has_answer:
                connection.messages()  # what nobody has asked for is no answer
                connection.send(question)
                has_answer = True
                if self._lookout.should_spin():
                    meanwhile()
            else:
                messages = self._lookout.messages(connection)
                if messages and has_answer:
                    return messages[0][-1]
        came = f"the decision process answered message {self.answers}"
        raise self._lost(f"no answer within {self._timeout_s:g} s; {came if self.answers else self._why}")

    def _connect(self) -> Connection | None:
        try:
            connection = Connection(connected(self._endpoint), b"REQ", self._timeout_s or 0.0)
            self._why = "something listens there, but takes no question as a decision process does"
            return connection
        except socket.gaierror as error:
            self._tell(f"its name is not known here ({error.strerror})")
            return None
        except OSError:
            self._why = "the decision process never came"
            return None
        except ValueError as error:
            what = f"'{self._endpoint}' cannot be connected to: {error}"
            raise BridgeError(what, where="-s", remedy="Write -s tcp://localhost:28000.") from None

    def _tell(self, why: str) -> None:
        """Say once why nobody can be connected to; it may come yet, as names of containers do."""
        if why != self._why:
            log_line(f"bridge simgrid: {self._endpoint}: {why}; trying on")
        self._why = why

    def _lost(self, what: str) -> BridgeError:
        remedy = "Start it so that it binds this port, look at its output, or raise --peer-timeout."
        return BridgeError(what, where=self._endpoint, remedy=remedy, status=NO_PEER)
