"""Passes some of whose decisions are an agent's: generators that yield each one and are sent the answer.

PICK: which job a main pass looks at next, and so, which one has the higher priority. BACKFILL: which of the
jobs that a backfill pass could start now it tries next. Whatever is decided, limits, partitions, tiers,
reservations and the choice of nodes are Slurm's own.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from bridge.scheduler.decisions import BACKFILL, DECLINE, PICK
from bridge.scheduler.protocol import Policy
from bridge.scheduler.slurm.arrays import FAR, PLAN_UNTIL
from bridge.scheduler.slurm.backfill_pass import (
    BackfillWalk,
    begin_backfill,
    end_backfill,
)
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.main_pass import MainWalk, begin_main, end_main
from bridge.scheduler.slurm.order import before_priority
from bridge.scheduler.slurm.site import SlurmPart


@dataclass(frozen=True)
class AgentDecisions:
    """What of Slurm's passes an agent decides.

    Attributes:
        held: a pick that did not start stays the pick of its partition until it starts.
        window: so many candidates are listed at most.
    """

    picks: bool
    backfills: bool
    held: bool = False
    window: int = 128

    def within(self, window: int) -> "AgentDecisions":
        """Return the same with so many candidates at most."""
        return replace(self, window=window)


@dataclass(frozen=True, slots=True)
class SlurmQuestion:
    """A decision that waits: a place among the candidates is its answer, or DECLINE.

    Attributes:
        kind: PICK or BACKFILL.
        candidates: in the order of the queue.
        head: BACKFILL: the first job of the pass that waits for nodes, before which the candidates would
            start.
    """

    kind: int
    candidates: list[SlurmJob]
    head: SlurmJob | None = None


#: Something that goes on to the next decision, and is sent the answer.
Steps = Generator[SlurmQuestion, int, None]


def decisions_of(policy: Policy) -> AgentDecisions | None:
    """Return what a policy leaves to an agent; None: nothing."""
    if not policy.agent:
        return None
    return AgentDecisions("pick" in policy.agent, "backfill" in policy.agent, policy.blocked == "held")


# --- PICK


def agent_main_pass(slurm: Controller, now: int, agent: AgentDecisions, *, full: bool) -> Steps:
    """Walk the queue once, and let an agent pick who is looked at next.

    The order that results is that of the next backfill passes, too. As `main_pass`, it is left out where the
    last one changed nothing, and nothing has changed since: then nobody is asked again.
    """
    n = begin_main(slurm, now, full=full)
    if n is None:
        return
    starts, left, walk = slurm.n_starts, slurm.entries(n), MainWalk(slurm, now, n, full=full)
    at, is_moved, whole = 0, False, None
    while at < len(left) and whole is None:
        places = _pickable(walk, left, at, agent.window)
        if places:
            choice = _held(slurm, left, places) if agent.held else DECLINE
            if choice == DECLINE:
                choice = yield SlurmQuestion(PICK, [left[place][0] for place in places])
            if choice == DECLINE:
                whole = True
                break
            if places[choice] > at:
                left.insert(at, left.pop(places[choice]))
                is_moved = True
        job, part = left[at]
        whole = walk.step(job, part)
        if agent.held and places and job.state == PENDING:
            slurm.held_picks.add((job.key, part.index))
        at += 1
    ranks = {(job.key, part.index): rank for rank, (job, part) in enumerate(left)} if is_moved else {}
    if ranks != slurm.ranks:
        slurm.ranks = ranks
        slurm.line.changes += 1
    end_main(slurm, now, starts, whole=full or whole is not False)


def _pickable(walk: MainWalk, left: list[Entry], at: int, window: int) -> list[int]:
    """Return the places of the jobs that may be picked if the one at `at` is one of them, else none.

    They are of one tier, in a reservation or not, as these come before priorities. The others are looked at
    where they stand.
    """
    if not _may_be_picked(walk, *left[at]):
        return []
    places, keys, first = [], set(), before_priority(left[at])
    for place in range(at, len(left)):
        entry = left[place]
        if before_priority(entry) != first:
            break
        key = entry[0].key
        if key not in keys and _may_be_picked(walk, *entry):
            keys.add(key)
            places.append(place)
            if len(places) == window:
                break
    return places


def _may_be_picked(walk: MainWalk, job: SlurmJob, part: SlurmPart) -> bool:
    """Tell whether it matters when a job is looked at: not if it is over a limit, and passed over."""
    if job.state != PENDING or job.het or walk.is_closed(job, part):
        return False
    slurm = walk.slurm
    return slurm.site.parameters.limit_stop or not walk.is_over_limit(job, part)


def _held(slurm: Controller, left: list[Entry], places: list[int]) -> int:
    """Return the first candidate that an earlier pick has left blocked, or DECLINE."""
    for k, place in enumerate(places):
        job, part = left[place]
        if (job.key, part.index) in slurm.held_picks:
            return k
    return DECLINE


# --- BACKFILL


def agent_backfill_pass(slurm: Controller, now: int, agent: AgentDecisions) -> Steps:
    """Plan the queue once; once a job waits for nodes, let an agent choose who behind it starts.

    The jobs before the first that could start now have their plans reserved. It, and those behind it that
    could start now as well, are the candidates. After DECLINE nothing else starts in the pass.
    """
    length = begin_backfill(slurm, now)
    if length is None:
        return
    left, declined = slurm.entries(length), False
    walk, at, starts, head = BackfillWalk(slurm, now, length), 0, 0, None
    n = walk.last_that_counts(left, 0, length) + 1
    while at < n and not walk.is_over:
        if head is not None and walk.could_start(*left[at]):
            places = list(_startable(walk, left, at, n, agent.window))
            choice = yield SlurmQuestion(BACKFILL, [left[place][0] for place in places], head)
            if choice == DECLINE:
                declined = True
                break
            if choice:
                left.insert(at, left.pop(places[choice]))
        job = left[at][0]
        walk.look_at_all(*left[at])
        if head is None and job.state == PENDING and walk.planned_at >= 0:
            head = job
        at += 1
        if walk.starts > starts:
            starts, n = walk.starts, walk.last_that_counts(left, at, n) + 1
    if end_backfill(slurm, now) and declined:  # nobody is asked again until something changes
        slurm.store.now[PLAN_UNTIL] = FAR


def _startable(walk: BackfillWalk, left: list[Entry], at: int, n: int, window: int) -> Iterator[int]:
    """Yield the places of up to `window` jobs that could start now, the first at `at`."""
    yield at
    keys, count = {left[at][0].key}, 1
    for place in range(at + 1, n):
        if count == window:
            return
        key = left[place][0].key
        if key not in keys and walk.could_start(*left[place]):
            keys.add(key)
            count += 1
            yield place
