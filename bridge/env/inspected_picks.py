"""Episodes in which an agent's picks are inspected: one agent picks the next job, another may reject it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bridge.base.arrays import Array, Flags, Floats32, Ints
from bridge.base.jit import entry, hot
from bridge.env.batch import Batch, PackedObservations
from bridge.env.encoder import CompiledEncoder, EncoderPrograms
from bridge.env.parts import encode, write_context
from bridge.env.rows import key_rows, list_rows
from bridge.scheduler.decisions import INSPECT, PICK
from bridge.scheduler.state import State
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.world import DONE


class Picks(NamedTuple):
    """Who picks: what it sees, and its answers of decisions none of which is empty, [D]."""

    encoder: CompiledEncoder
    answer: Callable[[PackedObservations], Ints]


@hot
def _encode_inspections(
    state: State,
    programs: EncoderPrograms,
    kinds: Array,
    rows: Array,
    keys: Array,
    offsets: Array,
    context: Array,
) -> int:
    """Write the rows of all inspections that wait.

    Returns the first episode with a feature that is no number, or -1.
    """
    total = 0
    refused = -1
    for b in range(kinds.shape[0]):
        if kinds[b] == INSPECT:
            n = list_rows(state, b, INSPECT, False)
            encode(state, b, programs, n, rows[total:])
            key_rows(state, b, n, keys[total:])
            if context.shape[1] > 0:
                write_context(state, b, programs, context[b])
            total += n
            if state.scalars[b].bad_score >= 0 and refused < 0:
                refused = b
        offsets[b + 1] = total
    return refused


class InspectedPicks(Batch):
    """A batch whose policy has an agent that picks, too: it answers at once, and only inspections wait.

    `encoder`: of the inspector; the others are those of `Batch`.
    """

    def __init__(
        self,
        prepared: Scenario,
        encoder: CompiledEncoder,
        size: int,
        length: int,
        picks: Picks,
        *,
        whole: bool = False,
        threads: int = 1,
    ) -> None:
        super().__init__(prepared, picks.encoder, size, length, whole=whole, threads=threads)
        self._refuse_unfit(encoder)
        self.encoder, self._picks = encoder, picks
        shape = encoder.encoder
        self._own_rows: Floats32 = np.zeros((size, shape.width), np.float32)
        self._own_keys = np.zeros(size, np.int64)
        self._own_offsets = np.zeros(size + 1, np.int64)
        self._own_context: Floats32 = np.zeros((size, shape.context), np.float32)

    def step(self, actions: Ints) -> PackedObservations:
        """See `Batch.step`."""
        view = super().step(actions)
        held: Flags = self.decision_kinds == INSPECT
        while (picking := self.decision_kinds == PICK).any():
            answers = np.zeros(len(picking), np.int64)
            answers[picking] = self._picks.answer(_of_some(view, picking))
            self.decision_kinds[held] = DONE  # they wait until all have one
            view = super().step(answers)
            held |= self.decision_kinds == INSPECT
        self.decision_kinds[held] = INSPECT
        return self._inspections()

    def _inspections(self) -> PackedObservations:
        kernel: Any = entry(_encode_inspections, self.state)
        rows, keys, offsets = self._own_rows, self._own_keys, self._own_offsets
        refused = kernel(
            self.state,
            self.encoder.programs,
            self.decision_kinds,
            rows,
            keys,
            offsets,
            self._own_context,
        )
        if refused >= 0:
            self._refuse(refused)
        total = offsets[-1]
        return PackedObservations(rows[:total], offsets, keys[:total], self._own_context)


def _of_some(view: PackedObservations, which: Flags) -> PackedObservations:
    """Return the decisions of some episodes."""
    sizes = np.diff(view.offsets)
    rows = np.repeat(which, sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes[which])))
    return PackedObservations(view.rows[rows], offsets, view.keys[rows], view.context[which])
