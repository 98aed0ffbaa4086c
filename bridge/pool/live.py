"""One pool in a world that is not ours: it learns of jobs and ends as they come, and knows no true length.

The world tells it step by step what has happened (`step`), lets a policy answer (`decide`), and starts what
is due (`due`). Agents and heuristics see the same here as in a fast pool: see `bridge.pool.rules`.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from bridge.errors import BridgeError
from bridge.pool import machine
from bridge.pool.picture import View, most_corners, pack, scratch
from bridge.pool.rules import Answer, kill
from bridge.pool.settings import Kill, Settings
from bridge.pool.state import Flags, State, allocate

#: Jobs that a fresh pool has room for; then it doubles.
_ROOM = 64
#: The only pool, as a policy is told of it.
_HERE = np.zeros(1, np.int64)


class Arrival(NamedTuple):
    """A job that has arrived: its number for tables, its units, and how many steps it is believed to run."""

    id: int
    units: int
    believed: int


class Live:
    """A time-stepped pool whose world is elsewhere.

    Jobs are numbered 0, 1, … in the order in which they are told of.

    Args:
        settings: of the pool; without the oracle clamp, for nobody here knows true lengths.
        kill: who kills.

    Attributes:
        settings: of the pool.
        state: the scheduler's, one pool; not to be changed.
        masks: bool [1, actions] which answers are legal, while a decision waits.

    Raises:
        BridgeError: the settings ask for the oracle clamp.
    """

    def __init__(self, settings: Settings, kill: Kill) -> None:
        if settings.oracle_clamp:
            raise BridgeError(
                "reads true lengths, which nobody knows of jobs that really run",
                where="oracle_clamp",
                remedy="Leave it out.",
            )
        self.settings = settings
        self.masks: Flags = np.zeros((1, settings.actions), np.bool_)
        self._kill = kill
        self._cells = np.zeros(most_corners(settings), np.int32)
        self._values = np.zeros(len(self._cells), np.float32)
        self._n = 0
        self._make_room(_ROOM)

    def _make_room(self, length: int) -> None:
        """Move to memory for so many jobs."""
        # a job may outlive any series of beliefs; what is believed of it then stands at the end
        fresh = allocate(1, length, self.settings.horizon, self.settings)
        fresh.jobs.length[:] = -1
        if self._n:
            for old, new in zip(self.state, fresh, strict=True):
                new[tuple(slice(size) for size in old.shape)] = old
        self.state: State = fresh
        self._scratch = scratch(fresh)

    def __len__(self) -> int:
        return 1

    @property
    def now(self) -> int:
        """The step that it is at."""
        return int(self.state.env.now[0])

    @property
    def asks(self) -> bool:
        """Whether a decision waits; otherwise time has to move."""
        return int(self.state.env.phase[0]) == machine.ASKING

    @property
    def idle(self) -> Flags:
        """[1] whether no job runs or has a booking, or waits to get it back."""
        env = self.state.env
        return np.asarray((env.n_booked == 0) & (env.n_ready == 0), np.bool_)

    def step(
        self, ended: Collection[int], arrived: Sequence[Arrival], believed: Callable[[int, int], int]
    ) -> list[int]:
        """Let a step begin; an answer is wanted then.

        Args:
            ended: jobs that have ended by now.
            arrived: jobs that have come, in order.
            believed: tells of a running job, by its number and the steps that it has run (at least 1), how
                many steps it is believed to run in total; what the pool cannot book counts as the longest.

        Returns:
            The numbers of those arrived that the full backlog rejects.
        """
        assert not self.asks, "the policy has to answer first"
        while self._n + len(arrived) > self.state.jobs.shape[1]:
            self._make_room(2 * self.state.jobs.shape[1])
        state = self.state
        machine.begin(state, 0)
        for j in self._running():
            if j in ended:
                machine.finish(state, 0, j)
        for j in self._running():
            run = self.now - int(state.jobs.start[0, j])
            length = min(max(believed(j, run), 1), self.settings.horizon - 1)
            state.beliefs[0, j, min(run, state.beliefs.shape[2] - 1) :] = length
        machine.settle(state, 0)
        rejected = []
        for arrival in arrived:
            j, self._n = self._n, self._n + 1
            job = state.jobs[0, j]
            job.id, job.units, job.believed, job.submit = *arrival, self.now
            state.beliefs[0, j] = arrival.believed
            if not machine.submit(state, 0, j):
                rejected.append(j)
        machine.close(state, 0)
        return rejected

    def _running(self) -> list[int]:
        """Return the jobs that have begun, in order of booking: as the fast world comes by them."""
        booked = self.state.booked[0, : self.state.env.n_booked[0]]
        return [int(j) for j in booked[self.state.jobs.start[0, booked] < self.now]]

    def decide(self, answer: Answer) -> list[int]:
        """Let a policy answer until time has to move, and return the jobs killed, in order.

        Raises:
            BridgeError: there is no such action.
        """
        killed: list[int] = []
        while self.asks:
            action = kill(self.state, 0) if self._kill == "rule" else -1
            if action < 0:
                action = int(answer(self, self._look(), _HERE)[0])
            chosen = action - self.settings.slots - 1
            j = int(self.state.running[0, chosen]) if 0 <= chosen < self.settings.kill_slots else -1
            done = machine.answer(self.state, 0, action)
            if done == machine.REFUSED:
                raise BridgeError(
                    f"there is no action {action}", remedy=f"Actions are 0 … {self.settings.actions - 1}."
                )
            if done == machine.KILLED:
                killed.append(j)
                job = self.state.jobs[0, j]  # one that has outlived the horizon could not be booked again
                job.believed = min(job.believed, self.settings.horizon - 1)
        return killed

    def _look(self) -> View:
        """Note which answers are legal, and return what is seen."""
        machine.legal(self.state, 0, self.masks[0])
        if self._kill != "learned":
            self.masks[0, self.settings.slots + 1 :] = False
        n = pack(self.state, 0, self._scratch, self._cells, self._values)
        return View(self._cells[:n], self._values[:n], np.array([0, n]), self.settings)

    def due(self) -> list[int]:
        """Return the jobs whose booking begins now, in order of booking; ask when all is decided."""
        out = np.zeros(self.state.booked.shape[1], np.int64)
        return [int(j) for j in out[: machine.due(self.state, 0, out)]]
