"""Episodes under Slurm's own passes: each is a replay in Python that stops at an agent's decisions."""

from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.env.batch import Batch, PackedObservations
from bridge.env.encoder import CompiledEncoder
from bridge.env.rows import choice_from_action, encode, key_rows, list_rows, write_context
from bridge.scheduler.core import PAUSE
from bridge.scheduler.slurm.agent_passes import Steps
from bridge.scheduler.slurm.quick import Quick
from bridge.worlds.fast import world
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.slurm.log_replay import EPOCH, LogReplay
from bridge.worlds.fast.slurm.pooled_view import PooledView
from bridge.worlds.fast.world import DONE

_list_rows, _encode, _key_rows = Quick(list_rows), Quick(encode), Quick(key_rows)
_write_context, _choice = Quick(write_context), Quick(choice_from_action)


class SlurmBatch(Batch):
    """`Batch` under a protocol whose passes are its own; the arguments are the same.

    Attributes:
        view: what `state` is part of.
        worlds: the replay of each episode, over or not.
    """

    def _allocate(self, size: int, length: int, *, whole: bool, threads: int) -> None:
        del whole, threads  # each schedule has its allocations; replays in Python play in turn
        self.view = PooledView(self.prepared, size, length, self.encoder.encoder.window, EPOCH)
        self.state = self.view.state
        self.memory = world.allocate(size, 1)
        self.worlds: list[LogReplay | None] = [None] * size
        self._steps: list[Steps | None] = [None] * size

    def _refuse_unfit(self, encoder: CompiledEncoder) -> None:
        """Refuse an encoder of resources that are not there, or of places."""
        self._refuse_resources(encoder)
        try:
            encoder.refuse_places(None, 0)
        except BridgeError as error:
            what = error.what.replace("only a cluster has", "agents under the protocol slurm do not see yet")
            raise BridgeError(what, where=error.where, remedy="Leave these features out.") from None

    def _load(self, b: int, first: int, length: int) -> None:
        self.view.load(b, first, first + length)
        whole = length == len(self.prepared.jobs)
        self.worlds[b] = playing = LogReplay(self.prepared, None if whole else (first, first + length))
        self._steps[b] = playing.decisions(self.prepared.seed)
        assert playing.agent is not None
        playing.agent = playing.agent.shown(self.encoder.encoder.window)

    def step(self, actions: Ints) -> PackedObservations:
        """See `Batch.step`."""
        total = 0
        for b, kind in enumerate(self.decision_kinds.tolist()):
            if kind >= 0:
                total += self._go_on(b, kind, int(actions[b]), total)
            self._offsets[b + 1] = total
        refused = np.flatnonzero(self.decision_kinds == PAUSE)
        if len(refused):
            self._refuse(int(refused[0]))
        return PackedObservations(self._rows[:total], self._offsets, self._keys[:total], self._context)

    def _go_on(self, b: int, kind: int, action: int, at: int) -> int:
        """Answer the decision that waits in an episode; return how many rows the next one has."""
        state, shape, steps, playing = self.state, self.encoder.encoder, self._steps[b], self.worlds[b]
        assert steps is not None and playing is not None
        choice = int(_choice(state, b, kind, action)) if kind > 0 else None
        while True:
            try:
                question = next(steps) if choice is None else steps.send(choice)
            except StopIteration:
                self.decision_kinds[b] = DONE
                self._steps[b] = None
                self.view.end(b, playing.columns["start"], playing.columns["eligible"])
                self.memory.clock.arrived[b] = playing.over + state.scalars.n_waiting[b]
                return 0
            self.view.show(b, playing.slurm, playing.instant, question)
            n = int(_list_rows(state, b, question.kind, shape.stop))
            if n > 1:
                break
            choice = 0  # nobody has another
        self.decision_kinds[b] = question.kind
        self.memory.clock.arrived[b] = playing.over + state.scalars.n_waiting[b]
        _encode(state, b, self.encoder.programs, n, self._rows[at:])
        _key_rows(state, b, n, self._keys[at:])
        if self._context.shape[1]:
            if shape.queued_rows:
                self.view.sort_queue(b, playing.slurm, playing.instant)
            _write_context(state, b, self.encoder.programs, self._context[b])
        if state.scalars.bad_score[b] >= 0:
            self.decision_kinds[b] = PAUSE
        return n

    def schedule(self, b: int, first: int) -> Schedule:
        """See `Batch.schedule`."""
        del first
        playing = self.worlds[b]
        assert playing is not None
        outcomes: dict[str, Any] = playing.outcomes()
        return Schedule(**outcomes)


def open_batch(
    prepared: Scenario,
    encoder: CompiledEncoder,
    size: int,
    length: int,
    *,
    whole: bool = False,
    threads: int = 1,
) -> Batch:
    """Return a batch of episodes under the scenario's protocol; see `Batch`."""
    kind = SlurmBatch if prepared.compiled.protocol.own_passes else Batch
    return kind(prepared, encoder, size, length, whole=whole, threads=threads)
