"""What a record itself says of the site behind it: pools, their overlap, limits, delay and cycle.

Nothing is searched, and nothing is simulated: each estimate stands on evidence that is told with it, or is
"not identifiable". On sites of which all is known these hold: sizes of pools that are filled, limits on which
most of the unexplained waiting sits, the delay and the cycle of passes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.counted import counted
from bridge.judge.fidelity_reasons import UNEXPLAINED, RecordedRun
from bridge.judge.metrics import step_function

#: A pool's largest use is its size if so much of it is in use, on average, while its own jobs wait; or if it
#: is in use so often while they wait, each time anew, and half as often as one node less.
FILLED, VISITS = 0.85, 10
#: A limit is one if this share of the unexplained waiting sits on it, of as many users at least, and if no
#: more than so many starts go beyond it.
ON_LIMIT, USERS, BEYOND = 0.4, 2, 0.01
#: Random instants that are looked at for limits, and the seed they are drawn by.
INSTANTS, SEED = 3000, 1
#: The quantile of waits that is the delay; fewer starts than these tell nothing of delay and cycle.
DELAY, STARTS = 0.001, 100
#: Where more is in use than there is, this quantile of the use stands for its maximum.
QUANTILE = 0.999
_MICRO = 1_000_000


@dataclass(frozen=True)
class Estimate:
    """One thing that a record says, with its evidence in words; value None: it cannot be told."""

    what: str
    value: int | float | None
    evidence: str


@dataclass(frozen=True)
class PoolEstimates:
    """What is known of partitions, by their codes.

    Attributes:
        sizes: of those that are filled.
        overlaps: pair of codes -> nodes that both have.
        estimates: with evidence.
    """

    sizes: Mapping[int, int]
    overlaps: Mapping[tuple[int, int], int]
    estimates: Sequence[Estimate]


class RecordedUse:
    """How much is in use, and by how many jobs waited, of sets of partitions; `names`: by code."""

    def __init__(self, run: RecordedRun, names: Mapping[int, str]) -> None:
        self.run, self.names = run, names

    def of(self, codes: Sequence[int]) -> "UseOfPool":
        return UseOfPool(self.run, np.isin(self.run.partition, codes))


@dataclass(frozen=True)
class UseOfPool:
    """The use of some partitions over time; `mine` [n]: jobs in them."""

    run: RecordedRun
    mine: Flags

    @cached_property
    def steps(self) -> tuple[Floats, Floats, Floats]:
        """Instants [m], nodes in use from each, and jobs waiting from each."""
        run, mine = self.run, self.mine
        submit, start, end, nodes = (x[mine] for x in (run.submit, run.start, run.end, run.nodes))
        zero, one = np.zeros(len(nodes)), np.ones(len(nodes))
        times = np.concatenate((submit, start, end))
        used = step_function(times, np.concatenate((zero, nodes, -nodes)))
        waiting = step_function(times, np.concatenate((one, -one, zero)))
        return used[0], used[1], waiting[1]

    @cached_property
    def largest(self) -> int:
        return round(float(self.steps[1].max(initial=0.0)))

    @cached_property
    def fill(self) -> float | None:
        """The part of the largest use that is in use, on average, while its jobs wait; None: none waited."""
        times, used, waiting = self.steps
        lasts = np.diff(times)
        while_waiting = lasts * (waiting[:-1] > 0)
        total = float(while_waiting.sum())
        if total <= 0 or not self.largest:
            return None
        return float((while_waiting * used[:-1]).sum() / total / self.largest)

    def visits(self, level: int) -> int:
        """Return how often just this much comes to be in use while its jobs wait."""
        _, used, waiting = self.steps
        there = (np.rint(used) == level) & (waiting > 0)
        return int((there[1:] & ~there[:-1]).sum())

    def quantile(self, share: float) -> int:
        """Return what is in use for at most this share of the time in which its jobs wait."""
        times, used, waiting = self.steps
        weight = np.diff(times) * (waiting[:-1] > 0)
        order = np.argsort(used[:-1], kind="stable")
        sums = np.cumsum(weight[order])
        if not len(sums) or sums[-1] <= 0:
            return self.largest
        return round(float(used[:-1][order][np.searchsorted(sums, share * sums[-1])]))


def pool_sizes(use: RecordedUse, stated: int | None = None) -> PoolEstimates:
    """Return sizes of pools and where they overlap; `stated`: nodes of the machine, where the log says so."""
    run = use.run
    whole = use.of([*use.names])
    clean = stated is None or whole.largest <= stated
    sizes: dict[int, int] = {}
    estimates: list[Estimate] = []
    pools = {code: use.of([code]) for code in use.names}
    for code, pool in pools.items():
        what = f"size of partition {use.names[code]}"
        largest_job = int(run.nodes[pool.mine].max(initial=0))
        size = max(pool.largest if clean else pool.quantile(QUANTILE), largest_job)
        how = f"at most {size:,} in use"
        if not clean:
            how = f"{size:,} in use at {QUANTILE:.1%} of the time (the record has more in use than there is)"
        if pool.fill is None:
            estimates.append(Estimate(what, None, f"none of its jobs waited; {how}"))
            continue
        visits = pool.visits(size)
        how += f", {visits:,} times while its jobs waited; {pool.fill:.0%} of it on average then"
        if pool.fill >= FILLED or (visits >= VISITS and 2 * visits >= pool.visits(size - 1)):
            sizes[code] = size
            estimates.append(Estimate(what, size, how))
        else:
            estimates.append(Estimate(what, None, f"{how}: it was not filled"))
    overlaps: dict[tuple[int, int], int] = {}
    for a, b in combinations(sizes, 2):
        shared, estimate = _overlap(use, a, b, sizes)
        if shared:
            overlaps[a, b] = shared
        estimates.append(estimate)
    return PoolEstimates(sizes, overlaps, estimates)


def _overlap(use: RecordedUse, a: int, b: int, sizes: Mapping[int, int]) -> tuple[int, Estimate]:
    """Return how many nodes two partitions share, with evidence."""
    what = f"nodes that {use.names[a]} and {use.names[b]} share"
    both = use.of([a, b])
    apart = sizes[a] + sizes[b]
    if both.largest >= apart:
        return 0, Estimate(what, 0, f"{both.largest:,} in use of both at one time: they share none")
    # Both are full together: jobs of one of them wait that would fit in their own partition, not in both.
    own, blocked = _blocked_by_both(use, a, b, sizes, both.largest)
    evidence = f"at most {both.largest:,} in use of both, of {apart:,}"
    if own and blocked >= FILLED * own:
        evidence += f"; {blocked / own:.0%} of the waiting with room in the own partition had none in both"
        return apart - both.largest, Estimate(what, apart - both.largest, evidence)
    return 0, Estimate(what, None, f"{evidence}; that did not hold jobs back: taken as apart")


def _blocked_by_both(
    use: RecordedUse, a: int, b: int, sizes: Mapping[int, int], together: int
) -> tuple[int, int]:
    """Count waiting jobs with room in their own partition, and those of them without room in both."""
    run = use.run
    mine = np.flatnonzero(np.isin(run.partition, (a, b)))
    times = _instants(run)
    own = blocked = 0
    for time in times:
        running = mine[(run.start[mine] <= time) & (run.end[mine] > time)]
        used = {code: float(run.nodes[running[run.partition[running] == code]].sum()) for code in (a, b)}
        free_of_both = together - used[a] - used[b]
        for code in (a, b):
            waiting = mine[
                (run.submit[mine] <= time) & (run.start[mine] > time) & (run.partition[mine] == code)
            ]
            has_room = run.nodes[waiting] <= sizes[code] - used[code]
            own += int(has_room.sum())
            blocked += int((has_room & (run.nodes[waiting] > free_of_both)).sum())
    return own, blocked


def _instants(run: RecordedRun) -> list[float]:
    times = np.random.default_rng(SEED).uniform(run.submit.min(), run.submit.max(), INSTANTS)
    instants: list[float] = np.sort(times).tolist()
    return instants


def user_limit(run: RecordedRun, pools: PoolEstimates, settle: float = 0.0) -> Estimate:
    """Return how many jobs of one user run at one time, at most, by the plateau test.

    At random instants, of the jobs whose waiting nothing else explains: how many jobs their users run. A
    limit is the number on which most of them sit. `settle`: s after a submission
    that delay and cycle explain.
    """
    what = "running jobs of one user, at most"
    if not (run.user >= 0).any() or len(np.unique(run.user)) < USERS:
        return Estimate(what, None, "users are not recorded")
    counts: Counter[tuple[int, int]] = Counter()  # user, running jobs -> job-instants
    instants: Counter[tuple[int, int]] = Counter()  # the same -> instants
    for time in _instants(run):
        waiting = run.waiting(time)
        if not len(waiting):
            continue
        running = run.running(time)
        why, _ = run.reasons(time, running, waiting)
        unexplained = waiting[(why == UNEXPLAINED) & (run.submit[waiting] + settle < time)]
        unexplained = unexplained[~_held_by_both(run, pools, running, unexplained)]
        for user in np.unique(run.user[unexplained]).tolist():
            if user < 0:
                continue
            n = int((run.user[running] == user).sum())
            counts[user, n] += int((run.user[unexplained] == user).sum())
            instants[user, n] += 1
    total = counts.total()
    if not total:
        return Estimate(what, None, "nothing waits without a reason")
    modes: dict[int, int] = {}
    for user in {user for user, _ in counts}:
        own = {n: k for (of, n), k in instants.items() if of == user and n > 0}
        if own:
            modes[user] = max(own, key=lambda n: (own[n], -n))
    weights: dict[int, float] = {}
    for user, n in modes.items():
        weights[n] = weights.get(n, 0.0) + instants[user, n] ** 0.5
    if not weights:
        return Estimate(what, None, "users with unexplained waiting ran nothing")
    limit = max(weights, key=lambda n: (weights[n], -n))
    users = sum(n == limit for n in modes.values())
    share = sum(k for (_, n), k in counts.items() if n == limit) / total
    beyond = float((_running_of_user(run) >= limit).mean())
    evidence = f"{share:.0%} of the unexplained waiting sits on {limit:,}, of {users} users; "
    evidence += f"{beyond:.1%} of the starts go beyond it"
    if share >= ON_LIMIT and users >= USERS and beyond <= BEYOND:
        return Estimate(what, limit, evidence)
    need = f"{ON_LIMIT:.0%}, {USERS} users and {BEYOND:.0%} would tell"
    return Estimate(what, None, f"{evidence}; {need}")


def _running_of_user(run: RecordedRun) -> Ints:
    """Return how many jobs each job's user runs already when it starts [n]; ends come before starts."""
    running = np.zeros(len(run.start), np.int64)
    for user in np.unique(run.user[run.user >= 0]).tolist():
        own = np.flatnonzero(run.user == user)
        own = own[np.lexsort((run.submit[own], run.start[own]))]
        ended = np.searchsorted(np.sort(run.end[own]), run.start[own], side="right")
        running[own] = np.arange(len(own)) - ended
    return running


def _held_by_both(run: RecordedRun, pools: PoolEstimates, running: Ints, jobs: Ints) -> Flags:
    """Tell which jobs [m] do not fit into what is left of two partitions that overlap."""
    held = np.zeros(len(jobs), np.bool_)
    for (a, b), shared in pools.overlaps.items():
        together = pools.sizes[a] + pools.sizes[b] - shared
        free = together - float(run.nodes[running[np.isin(run.partition[running], (a, b))]].sum())
        held |= np.isin(run.partition[jobs], (a, b)) & (run.nodes[jobs] > free)
    return held


def pass_delay(run: RecordedRun) -> Estimate:
    """Return after which time a job starts at the earliest: the 0.1 % quantile of waits."""
    what = "delay of a start behind the submission, s"
    waits = run.start - run.submit
    if len(waits) < STARTS:
        return Estimate(what, None, f"{counted(len(waits), 'start is', 'starts are')} too few")
    quantile = float(np.quantile(waits, DELAY))
    if quantile < 1:
        return Estimate(what, None, f"{DELAY:.1%} of the jobs waited {quantile:.1f} s or less")
    return Estimate(what, round(quantile, 3), f"{DELAY:.1%} of the jobs waited no longer")


def pass_cycle(run: RecordedRun) -> Estimate:
    """Return the seconds between two passes: the largest number of which all starts are multiples apart."""
    what = "seconds between two passes"
    starts, submits = (np.unique(np.rint(x * _MICRO).astype(np.int64)) for x in (run.start, run.submit))
    if len(starts) < STARTS:
        return Estimate(what, None, f"{len(starts)} different starts are too few")
    cycle, clock = (int(np.gcd.reduce(np.diff(x))) / _MICRO for x in (starts, submits))
    if cycle < 2:
        return Estimate(what, None, "starts fall on any second")
    if clock >= cycle:
        return Estimate(what, None, f"the record's clock itself counts {clock:g} s")
    return Estimate(what, cycle, f"all {len(starts):,} different starts are multiples of it apart")
