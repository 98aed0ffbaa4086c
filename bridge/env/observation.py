"""What fixed shapes show of decisions, as environments have it, and what an action there means."""

from types import EllipsisType
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

from bridge.base.arrays import Flags, Floats32, Ints
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder

#: The rows alone, or with the context: ``{"rows": …, "context": …}``.
Observation = Floats32 | dict[str, Floats32]


def build_spaces(encoder: Encoder, bounds: tuple[Floats32, Floats32]) -> tuple[Space[Any], Discrete]:
    """Return the observation space and the action space of a place.

    An observation is float32 [rows, features]; with a context a dictionary of these ``rows`` and the
    ``context``, float32 [C]. `bounds`: of a row, [2, F], and of the context, [2, C], see `bridge.env.bounds`.
    """
    shape = (encoder.rows, encoder.width)
    low, high = (np.broadcast_to(bound, shape) for bound in bounds[0])
    rows, actions = Box(low, high, shape, np.float32), Discrete(encoder.actions)
    if not encoder.context:
        return rows, actions
    context = Box(bounds[1][0], bounds[1][1], (encoder.context,), np.float32)
    return Dict({"rows": rows, "context": context}), actions


class ObservationBuffer:
    """The decisions of B places.

    Attributes:
        rows: float32 [B, rows, features]; an absent row is the encoder's padding. BACKFILL with a stop
            action: its row is the last. `clear` makes a new array, so that a caller may keep it.
        context: float32 [B, C], see `bridge.env.encoder.Encoder`; zeros where no decision waits. A new
            array as well.
        masks: bool [B, actions] which actions are legal; none where no decision waits.
    """

    rows: Floats32
    context: Floats32
    masks: Flags

    def __init__(self, encoder: Encoder, size: int) -> None:
        self._encoder = encoder
        self._padding = np.array(encoder.padding or np.zeros(encoder.width), np.float32)
        self._sizes = np.zeros(size, np.int64)  # rows of each waiting decision
        self.clear()

    def observation(self, b: int | EllipsisType = ...) -> Observation:
        """Return what is seen at a place, or at all: the rows, and the context if the encoder has one."""
        return {"rows": self.rows[b], "context": self.context[b]} if self._encoder.context else self.rows[b]

    def clear(self) -> None:
        """Show nothing at any place."""
        encoder, size = self._encoder, len(self._sizes)
        self.rows = np.empty((size, encoder.rows, encoder.width), np.float32)
        self.rows[:] = self._padding
        self.context = np.zeros((size, encoder.context), np.float32)
        self.masks = np.zeros((size, encoder.actions), np.bool_)

    def write(self, view: PackedObservations) -> None:
        """Put packed rows where their actions are, and keep contexts; places without stay as they are."""
        sizes = np.diff(view.offsets)
        live = sizes > 0
        self._sizes[live] = sizes[live]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(owner)) - np.repeat(view.offsets[:-1], sizes)
        if self._encoder.stop:
            place[view.offsets[1:][live] - 1] = self._encoder.window
        self.rows[owner, place] = view.rows
        self.context[live] = view.context[live]  # the view's is the batch's own
        if self._encoder.decision == "inspect":
            self.masks[live] = True
        else:
            self.masks[owner, place] = True

    def map_actions(self, actions: Ints) -> tuple[Ints, Flags]:
        """Return the answers, as a batch wants them, and whether the actions [B] were illegal.

        An illegal one counts as DECLINE where there is such an action (BACKFILL with a stop action,
        INSPECT), else as the first legal one.
        """
        encoder = self._encoder
        inside = (actions >= 0) & (actions < encoder.actions)
        legal = inside & self.masks[np.arange(len(actions)), np.where(inside, actions, 0)]
        if encoder.decision == "inspect":
            return np.where(legal, actions, 1), ~legal
        if encoder.stop:
            return np.where(legal & (actions < encoder.window), actions, self._sizes - 1), ~legal
        return np.where(legal, actions, 0), ~legal
