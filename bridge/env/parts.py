"""The step of a batch, kernel by kernel: what `bridge.env.batch` does in one kernel where jobs have no nodes.

On a cluster the kernels in one would take ten minutes to compile. Called one by one they need not: their
machine code is called without Numba's look at the types of its arguments, which costs more than most answers.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from bridge.base.arrays import Array
from bridge.env.encoder import EncoderPrograms
from bridge.env.rows import apply_action, delays_head, encode, key_rows, list_rows, write_context
from bridge.scheduler.core import BACKFILL, INSPECT, PAUSE
from bridge.scheduler.state import State
from bridge.worlds.fast.world import DONE, WorldState, run_until_decision

#: Passes that one call may make for an episode; never reached, `play` pauses for a bad score.
WHOLE_EPISODE = 1 << 60
_KERNELS: tuple[Callable[..., Any], ...] = (
    *(delays_head, apply_action, run_until_decision),
    *(list_rows, encode, key_rows, write_context),
)


def _machine_code(function: Any, kind: Any) -> Any:
    """Return the machine code of a kernel for states of this type; the kernel if it is not compiled yet."""
    overloads = getattr(function, "overloads", {})
    codes = [code.entry_point for types, code in overloads.items() if types[0] == kind]
    return codes[0] if len(codes) == 1 else function


class StepInParts:
    """Answers every waiting decision of a batch, plays on, and writes the rows of the next ones.

    The arguments are always of the same types: those of one batch.
    """

    def __init__(self, state: State) -> None:
        type_of: Any = numba.typeof
        self._kind = type_of(state)
        self._calls: tuple[Any, ...] = _KERNELS
        self._is_resolved = not hasattr(encode, "overloads")  # NUMBA_DISABLE_JIT=1

    def __call__(
        self,
        state: State,
        memory: WorldState,
        programs: EncoderPrograms,
        stop: bool,
        actions: Array,
        kinds: Array,
        late: Array,
        rows: Array,
        keys: Array,
        offsets: Array,
        context: Array,
    ) -> int:
        """Return the first episode that cannot go on, or -1."""
        shows_context = context.shape[1] > 0
        if not self._is_resolved:
            self._calls = tuple(_machine_code(function, self._kind) for function in _KERNELS)
            needed = _KERNELS if shows_context else _KERNELS[:-1]
            self._is_resolved = all(
                call is not function for call, function in zip(self._calls, needed, strict=False)
            )
        delays, apply, run, list_, encode_, key, write = self._calls
        before = kinds.copy()
        total = 0
        for b, (waiting, action) in enumerate(zip(before.tolist(), actions.tolist(), strict=True)):
            kind = waiting
            if kind >= 0:
                choice = action
                if kind > 0:
                    late[b] = kind == BACKFILL and delays(state, b, kind, choice)
                while True:
                    if kind > 0:
                        apply(state, b, kind, choice)
                    kind = run(state, memory, b, WHOLE_EPISODE)
                    if kind <= 0:
                        break
                    n = list_(state, b, kind, stop)
                    if n > 1 or kind == INSPECT:
                        encode_(state, b, programs, n, rows[total:])
                        key(state, b, n, keys[total:])
                        if shows_context:
                            write(state, b, programs, context[b])
                        total += n
                        break
                    choice = 0  # nobody has another
                kinds[b] = kind
            offsets[b + 1] = total
        # a plain view: attributes of records cost more than an answer
        bad = state.scalars.view(np.ndarray)["bad_score"] >= 0
        kinds[bad & (before >= 0)] = PAUSE
        refused = np.flatnonzero(kinds < DONE)
        return int(refused[0]) if len(refused) else -1
