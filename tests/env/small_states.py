"""A scheduler brought to a state by hand, and what an encoder writes of it."""

from collections.abc import Iterator, Sequence

import numpy as np

from bridge.base.arrays import Floats32
from bridge.env.encoder import Encoder
from bridge.env.rows import encode, list_rows, write_context
from bridge.scheduler.core import DECLINE, PICK
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import SECOND

#: submit (s), believed length (s), then the demand, nodes first.
Row = Sequence[float]


def at_pick(
    now: float,
    capacity: Sequence[int],
    running: Sequence[Row],
    waiting: Sequence[Row],
    rules: str = "standard",
) -> Session:
    """Return a scheduler that asks at `now` which job to pick.

    Args:
        now: seconds.
        capacity: per resource.
        running: jobs that start when they are submitted; ids count from 1 in this order.
        waiting: jobs nobody has picked so far; their ids go on; the latest stands first in the queue.
        rules: the protocol.
    """
    session = Session(capacity, Policy("lcfs", "easy", agent=frozenset({"pick"})), protocol(rules))
    jobs = [(row, k + 1, True) for k, row in enumerate(running)]
    jobs += [(row, len(running) + k + 1, False) for k, row in enumerate(waiting)]
    for (submit, length, *demand), ident, starts in sorted(jobs, key=lambda job: job[0][0]):
        session.now = round(submit * SECOND)
        j = session.submit(ident, [int(d) for d in demand], JobEstimates.same(round(length * SECOND)))
        if starts:
            session.begin()
            assert session.advance() == PICK
            candidates = session.state.candidates[0, : session.state.scalars.n_candidates[0]].tolist()
            session.answer(candidates.index(j))
            if session.advance() == PICK:
                session.answer(DECLINE)
                session.advance()
            assert session.starts() == [j]
    session.now = round(now * SECOND)
    session.begin()
    assert session.advance() == PICK
    return session


def observe(session: Session, encoder: Encoder) -> tuple[Floats32, Floats32]:
    """Return the rows [N, F] and the context [C] of the waiting decision."""
    programs = encoder.compile({}).programs
    rows = np.full((encoder.rows, encoder.width), np.nan, np.float32)
    context = np.full(encoder.context, np.nan, np.float32)
    n = list_rows(session.state, 0, PICK, encoder.stop)
    encode(session.state, 0, programs, n, rows)
    write_context(session.state, 0, programs, context)
    assert session.state.scalars.bad_score[0] < 0
    return rows[:n], context


def in_rows(context: Floats32, width: int) -> Iterator[list[float]]:
    """Yield the context's rows of running jobs as plain numbers."""
    yield from context.reshape(-1, width).tolist()
