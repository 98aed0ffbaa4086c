"""Who waits for an answer takes no core from the other side, and runs beside it where all cores are busy."""

import os
import socket

import pytest

from bridge.wire import lookout
from bridge.wire.lookout import Lookout
from bridge.wire.zmtp import Connection, connected, listener

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")


class Machine:
    """One of two cores, whose busy threads are set, and a peer, whose core is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.busy, self.peer_on, self.allowed = 1.0, 0, True
        self.moves: list[set[int]] = []
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        monkeypatch.setattr(os, "sched_setaffinity", self._move)
        monkeypatch.setattr(lookout, "_runnable", lambda: self.busy)
        for name, value in (("_CORES", 2), ("_COUNT", 0.0), ("_WEIGHT", 1.0)):
            monkeypatch.setattr(lookout, name, value)
        ours, self.theirs = socket.socketpair()
        self.connection = Connection(ours)
        monkeypatch.setattr(self.connection, "core", lambda: self.peer_on)
        monkeypatch.setattr(self.connection, "messages", lambda **_: [[b"", b"answer"]])

    def _move(self, who: int, cores: set[int]) -> None:
        assert who == 0
        if not self.allowed:
            raise PermissionError
        self.moves.append(set(cores))

    def wait(self, waits: Lookout) -> list[set[int]]:
        """Return where the process has gone while it waited for a message."""
        before = len(self.moves)
        assert waits.messages(self.connection) == [[b"", b"answer"]]
        return self.moves[before:]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_who_follows_runs_on_the_peer_s_core_while_all_are_busy(machine: Machine) -> None:
    waits = Lookout(0.75, follows=True)
    assert waits.awake() and machine.wait(waits) == []
    machine.busy = 4.0
    assert not waits.awake()
    assert machine.wait(waits) == [{0}]
    assert machine.wait(waits) == []
    machine.peer_on = 1
    assert machine.wait(waits) == [{1}]
    machine.busy = 2.0
    assert machine.wait(waits) == [{0, 1}]
    machine.busy = 4.0
    assert machine.wait(waits) == [{1}]
    waits.close()
    assert machine.moves[-1] == {0, 1}


@pytest.mark.parametrize("core", [-1, 7])
def test_a_core_that_is_unknown_or_not_ours_is_not_followed(machine: Machine, core: int) -> None:
    machine.busy, machine.peer_on = 4.0, core
    assert machine.wait(Lookout(0.75, follows=True)) == []


def test_who_may_not_move_stays(machine: Machine) -> None:
    machine.busy, machine.allowed = 4.0, False
    waits = Lookout(0.75, follows=True)
    assert machine.wait(waits) == []
    machine.allowed = True
    assert machine.wait(waits) == []


def test_nobody_moves_who_does_not_follow(machine: Machine) -> None:
    machine.busy = 4.0
    assert machine.wait(Lookout(0.75)) == []


def test_the_core_of_one_who_is_on_this_machine_is_known() -> None:
    listens, address = listener("tcp://127.0.0.1:*")
    with listens, connected(address) as asks:
        stream, _ = listens.accept()
        with stream:
            connection = Connection(stream)
            asks.sendall(b"\xff")
            connection.messages(wait=True)
            assert connection.core() >= 0
            connection.close()
            assert connection.core() == -1


def test_the_core_of_one_who_is_elsewhere_is_not_known() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert Connection(ours).core() == -1
