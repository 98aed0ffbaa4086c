"""Runs the actors on an ordered queue: no threads, and the same dates and order as if SimGrid ran them.

What is reproduced of SimGrid 3.32 (model ptask_L07), so that same-date events keep their order:

- Actors that can run do so in turn, each up to its next call of the scheduler; then the calls are served in
  that order; then those whose call was answered run, and so on, until nobody can; only then time moves on.
  An operation is one or several such calls (sending: find the mailbox, post, wait).
- Time moves to the next end among sleeps, messages and parallel tasks. What has less than 1e-9 s left is
  over. Those that end at one date end in the order in which they started.
- A message takes the latency of its route, then one byte's time at the route's bandwidth. One is under way at
  a time: the server receives one after the other.

Parallel tasks need SimGrid itself: see :mod:`bridge.worlds.simgrid.simgrid_tasks`. Without any, SimGrid only
knows the platform.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bridge.worlds.simgrid import kernel
from bridge.worlds.simgrid.kernel import CANCELLED, DONE, TIMED_OUT, Actor, killed_while_sending
from bridge.worlds.simgrid.sleeps import NEVER, PRECISION_S, End, Sleeps, SleepsByDate, SleepsByRemainder

if TYPE_CHECKING:  # which imports SimGrid
    from bridge.worlds.simgrid.simgrid_tasks import SimGridTasks

#: The share of a byte below which a message has arrived: precision of time times precision of work.
_PRECISION_WORK = 1e-14
#: Shorter steps (s), those of messages on fast links, are made up for at the next longer one: it is not worth
#: computing all parallel tasks anew for each.
_SHORT_S = 1e-8
#: SimGrid's network/TCP-gamma: bytes per round trip.
_TCP_GAMMA = 4194304.0


#: What a call returns whose answer comes later.
_LATER = object()
#: Instead of an answer: the operation is not over, its next call comes.
_NEXT = object()
#: A call of the scheduler: what it returns is the answer.
Call = Callable[[], Any]
#: The calls of an operation, the last one first; the answer of the last one is that of the operation.
Operation = list[Call]


@dataclass(slots=True, eq=False)
class _Thread:
    """An actor: its generator and host, the calls that are left of its operation, and what it waits for."""

    host: Any
    actor: Actor
    calls: Operation = field(default_factory=list)
    dead: bool = False
    waits: Any = None
    #: Tasks that outlived a time-out; SimGrid cancels them when their actor ends.
    left_running: list["_Task"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Message:
    """A message from its first end, sender or receiver, to its arrival."""

    sender: _Thread | None = None
    receiver: _Thread | None = None
    content: Any = None
    size: int = 1
    number: int = -1
    latency: float = 0.0
    rate: float = 0.0
    remains: float = 1.0
    waiters: list[_Thread] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Task:
    #: Hosts, flops of each, bytes between them.
    amounts: tuple[list[Any], ...]
    handle: Any = None
    number: int = -1
    thread: _Thread | None = None


class QueueRuntime:
    """The ordered queue; ``tasks`` is where parallel tasks run, None if there are none to run."""

    def __init__(self, tasks: "SimGridTasks | None") -> None:
        self._tasks = tasks
        self._now = 0.0
        #: How much time has passed since parallel tasks were last told, s.
        self._lag = 0.0
        self._started = 0
        #: Actors that can go on, each with the answer to its last call.
        self._runnable: list[tuple[_Thread, Any]] = []
        self._sleeps: Sleeps = SleepsByDate() if tasks else SleepsByRemainder()
        self._messages: list[_Message] = []
        self._running: dict[Any, _Task] = {}
        self._mailboxes: defaultdict[str, deque[_Message]] = defaultdict(deque)
        self._routes: dict[tuple[Any, Any], tuple[float, float]] = {}
        self._cancelled: list[_Thread] = []
        self._operations = kernel.operations(self)

    def clock(self) -> float:
        return self._now

    def start(self, name: str, host: Any, actor: Actor) -> None:  # noqa: ARG002
        self._runnable.append((_Thread(host, actor), None))

    def run(self) -> None:
        while True:
            while self._runnable:
                batch, self._runnable = self._runnable, []
                for thread, answer in batch:
                    if answer is not _NEXT and not thread.dead:
                        self._resume(thread, answer)
                for thread, _ in batch:
                    if not thread.dead:
                        answer = thread.calls.pop()()
                        if answer is not _LATER:
                            self._runnable.append((thread, _NEXT if thread.calls else answer))
                if self._cancelled:
                    for thread in self._cancelled:
                        self._answer(thread, CANCELLED)
                    self._cancelled.clear()
            if not self._advance():
                return

    def prepare(self) -> None:
        if self._tasks:
            self._tasks.share()

    def _resume(self, thread: _Thread, answer: Any) -> None:
        """Run an actor up to its next call of the scheduler."""
        operations, go_on = self._operations, thread.actor.send
        while True:
            try:
                request = go_on(answer)
            except StopIteration:
                self._end(thread)
                return
            thread.calls = operations[request[0]](thread, *request[1:])
            if thread.calls:
                return
            answer = None

    def _end(self, thread: _Thread) -> None:
        thread.dead = True
        for task in thread.left_running:
            self._stop(task)

    def _answer(self, thread: _Thread, value: Any) -> None:
        thread.waits = None
        self._runnable.append((thread, value))

    # Time.

    def _advance(self) -> bool:
        """Move to the next date at which something ends; False if there is none."""
        span = self._sleeps.next(self._now)
        for message in self._messages:
            left = message.latency if message.latency > 0 else message.remains / message.rate
            if left < span:
                span = left
        if span == NEVER and not self._running:
            return False
        done: list[Any] = []
        if not self._running:
            self._lag = 0.0
        elif span < _SHORT_S:
            self._lag += span
        else:
            assert self._tasks is not None
            passed, done = self._tasks.wait(None if span == NEVER else span + self._lag)
            if passed < 0:
                return False
            span = max(min(span, passed - self._lag), 0.0) if done else span
            self._lag = 0.0
        self._now, ends = self._sleeps.move(self._now, span)
        if self._messages:
            ends += self._pass_messages(span)
        for handle in done:
            task = self._running.pop(handle, None)
            if task is not None:
                ends.append((task.number, partial(self._task_done, task)))
        if len(ends) > 1:
            ends.sort(key=lambda end: end[0])
        for _, end in ends:
            end()
        return True

    def _pass_messages(self, span: float) -> list[End]:
        ends: list[End] = []
        for message in list(self._messages):
            if message.latency > 0:
                message.latency = message.latency - span if message.latency > span else 0.0
                if message.latency < PRECISION_S:
                    message.latency = 0.0
                if message.latency > 0 or message.remains > 0:
                    continue
            message.remains -= message.rate * span
            if message.remains < _PRECISION_WORK:
                self._messages.remove(message)
                ends.append((message.number, partial(self._arrive, message)))
        return ends

    def _add_sleep(self, seconds: float, end: Callable[[], None]) -> int:
        self._started += 1
        self._sleeps.add(self._now, seconds, self._started, end)
        return self._started

    def _do_sleep(self, thread: _Thread, seconds: float) -> Operation:
        def begin() -> Any:
            thread.waits = self._add_sleep(seconds, lambda: self._answer(thread, None))
            return _LATER

        return [begin] if seconds > 0 else []

    # Messages.

    def _do_put(self, thread: _Thread, mailbox: str, content: Any, size: int = 1) -> Operation:
        return [lambda: self._join(thread), lambda: self._post(thread, mailbox, (content, size)), _look_up]

    def _do_get(self, thread: _Thread, mailbox: str, timeout: float | None) -> Operation:
        assert timeout is None  # only usage traces wait for a limited time, on SimGrid's own kernel
        return [lambda: self._join(thread), lambda: self._post(thread, mailbox, None), _look_up]

    def _post(self, thread: _Thread, mailbox: str, sent: tuple[Any, int] | None) -> None:
        """Meet the other end of a message, or wait in the mailbox; the receiver has sent nothing."""
        waiting = self._mailboxes[mailbox]
        meets = bool(waiting) and (waiting[0].sender is None) == (sent is not None)
        message = waiting.popleft() if meets else _Message()
        if sent is None:
            message.receiver = thread
        else:
            message.sender, (message.content, message.size) = thread, sent
        if meets:
            self._send(message)
        else:
            waiting.append(message)
        thread.waits = message

    def _join(self, thread: _Thread) -> Any:
        thread.waits.waiters.append(thread)
        return _LATER

    def _send(self, message: _Message) -> None:
        assert message.sender is not None and message.receiver is not None
        latency, rate = self._route(message.sender.host, message.receiver.host)
        self._started += 1
        message.number = self._started
        message.latency, message.rate = latency, rate / message.size
        if rate == math.inf:  # a route without links: there is nothing to pass but its latency
            message.rate, message.remains = 1.0, 0.0
        self._messages.append(message)

    def _route(self, source: Any, target: Any) -> tuple[float, float]:
        """Return the latency (s) and the rate (bytes/s; infinite: no links) of messages between two hosts."""
        key = (source, target)
        if key not in self._routes:
            links, latency = source.route_to(target)
            limits = [link.bandwidth for link in links]
            limits += [_TCP_GAMMA / (2 * latency)] if links and latency > 0 else []
            self._routes[key] = (latency, min(limits, default=math.inf))
        return self._routes[key]

    def _arrive(self, message: _Message) -> None:
        for thread in message.waiters:
            self._answer(thread, message.content if thread is message.receiver else None)

    def _do_pending(self, _thread: _Thread, mailbox: str) -> Operation:
        return [lambda: self._mailboxes[mailbox]]  # true while somebody waits, also when the actor goes on

    # Actors.

    def _do_spawn(self, _thread: _Thread, _name: str, host: Any, actor: Actor) -> Operation:
        def create() -> _Thread:
            created = _Thread(host, actor)
            self._runnable.append((created, None))
            return created

        return [create]

    def _do_kill(self, _thread: _Thread, victim: _Thread) -> Operation:
        def kill() -> None:
            if victim.dead:
                return
            if isinstance(victim.waits, _Message):
                self._withdraw(victim.waits)
            elif victim.waits is not None:
                self._sleeps.drop(victim.waits)
            victim.actor.close()
            self._end(victim)

        return [kill]

    def _withdraw(self, message: _Message) -> None:
        if message in self._messages:
            raise killed_while_sending()
        for waiting in self._mailboxes.values():
            if message in waiting:
                waiting.remove(message)

    # Parallel tasks.

    def _do_exec(self, _thread: _Thread, *amounts: list[Any]) -> Operation:
        return [lambda: _Task(amounts), _look_up, _look_up]

    def _do_run(self, thread: _Thread, task: _Task, timeout: float | None) -> Operation:
        def start() -> None:
            assert self._tasks is not None
            self._started += 1
            task.number, task.thread = self._started, thread
            idle = self._time_without_work(*task.amounts)
            if idle is None:
                task.handle = self._tasks.start(*task.amounts)
                self._running[task.handle] = task
            else:  # over before any message arrives, but after other actors had their turn
                self._sleeps.add(self._now, idle, task.number, partial(self._task_done, task))

        def wait() -> Any:
            thread.waits = None
            if timeout is not None:
                thread.waits = self._add_sleep(timeout, lambda: self._time_out(thread, task))
            return _LATER

        return [wait, start]

    def _time_without_work(self, hosts: list[Any], flops: list[float], sizes: list[float]) -> float | None:
        """Return how long (s) a task takes that neither computes nor uses a link; None if it does."""
        if any(flops):
            return None
        longest = 0.0
        for i, size in enumerate(sizes):
            if size > 0:
                latency, rate = self._route(*(hosts[k] for k in divmod(i, len(hosts))))
                if rate != math.inf:
                    return None
                longest = max(longest, latency)
        return longest

    def _task_done(self, task: _Task) -> None:
        task.handle = None
        thread, task.thread = task.thread, None
        if thread is not None:
            self._release(thread)
            self._answer(thread, DONE)

    def _time_out(self, thread: _Thread, task: _Task) -> None:
        if task.thread is None:
            return
        task.thread = None
        thread.left_running.append(task)
        self._answer(thread, TIMED_OUT)

    def _do_cancel(self, _thread: _Thread, task: _Task) -> Operation:
        def cancel() -> None:
            victim, task.thread = task.thread, None
            self._stop(task)
            self._sleeps.drop(task.number)
            if victim is not None:
                self._release(victim)
                self._cancelled.append(victim)

        return [cancel]

    def _release(self, thread: _Thread) -> None:
        """Forget the time-out of an actor that waits for a task."""
        if thread.waits is not None:
            self._sleeps.drop(thread.waits)

    def _stop(self, task: _Task) -> None:
        if task.handle is not None and self._tasks:
            self._running.pop(task.handle)
            self._tasks.cancel(task.handle)
            task.handle = None

    def _do_remaining(self, _thread: _Thread, task: _Task) -> Operation:
        def look() -> float:
            if task.handle is not None:
                return float(task.handle.remaining_ratio)
            return 1.0 if task.number < 0 else 0.0

        return [look]


def _look_up() -> None:
    """A call that changes nothing but lets other actors have their turn, such as finding a mailbox."""
