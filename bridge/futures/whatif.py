"""What if: the same futures under several rules, and how much one differs from another, future by future."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bridge.arrays import Floats, Ints
from bridge.errors import BridgeError
from bridge.futures.forecast import FUTURES
from bridge.futures.fork import Fork
from bridge.futures.sample import draw
from bridge.futures.state import State
from bridge.judge.metrics import bounded_slowdown
from bridge.judge.stats import Estimate, mean_ci, paired_difference
from bridge.policy_name import refuse_twice
from bridge.scheduler.state import NEVER, SECOND

#: What is compared: mean wait and bounded slowdown of the jobs that wait now, and how long until the last of
#: them has started.
METRICS = ("wait", "bsld", "drained")
_THREADS = 2


@dataclass(frozen=True)
class Outcome:
    """The futures under one rule. Times in seconds.

    Attributes:
        policy: its name.
        values: metric to its mean over the futures, with a 95 % interval.
        differences: metric to the mean of the differences to the first rule, future by future, with a 95 %
            interval; of the first rule itself empty.
        better: share of the futures in which jobs wait for less than under the first rule; 0 of itself.
        never: jobs that can never start.
    """

    policy: str
    values: dict[str, Estimate]
    differences: dict[str, Estimate]
    better: float
    never: int


def whatif(
    states: Sequence[State], policies: Sequence[str], *, futures: int = FUTURES, seed: int = 0
) -> list[Outcome]:
    """Play the same futures of a state under several rules, or of several states under as many rules.

    Args:
        states: the present; or one present for each rule, with the jobs of the first, in its order, and
            perhaps more behind them, the same in all. Judged are the waiting jobs of the first.
        policies: order and backfilling by name; the first is the base. An empty one is the state's own.
        futures: how many, two at least.
        seed: of the run times that are drawn.

    Returns:
        One outcome per rule.

    Raises:
        BridgeError: no job waits, a rule is not known or named twice, or there are too few futures.
    """
    presents = [*states] * len(policies) if len(states) == 1 else [*states]
    names = [policy or state.policy for policy, state in zip(policies, presents, strict=True)]
    if len(states) == 1:
        refuse_twice(names)
    if not len(presents[0].waiting):
        raise BridgeError("no job waits: nothing can differ", where="what if")
    if futures < 2:
        raise BridgeError("an interval needs two futures at least", where="what if")
    runs = draw(presents[-1], futures, seed)
    starts = _played(presents, names, runs)
    n = len(presents[0])
    can = np.all([(one[:, :n] != NEVER).all(axis=0) for one in starts], axis=0)
    judged = np.array([j for j in presents[0].waiting if can[j]], np.int64)
    if not len(judged):
        raise BridgeError("none of the waiting jobs can start", where="what if")
    found = [_values(presents[0], runs, one, judged) for one in starts]
    base = found[0]
    return [
        Outcome(
            name,
            {metric: mean_ci(values[metric]) for metric in METRICS},
            {metric: paired_difference(values[metric], base[metric]) for metric in METRICS} if k else {},
            float((values["wait"] < base["wait"]).mean()) if k else 0.0,
            int((starts[k][:, presents[0].waiting] == NEVER).any(axis=0).sum()),
        )
        for k, (name, values) in enumerate(zip(names, found, strict=True))
    ]


def _played(presents: Sequence[State], names: Sequence[str], runs: Ints) -> list[Ints]:
    """Return the starts [F, n] under each rule, whose futures are shared out: some rules take longer."""
    parts = np.array_split(runs, _THREADS)

    def play(task: tuple[State, str, Ints]) -> Ints:
        state, name, some = task
        return Fork(state, name).play(some[:, : len(state)])

    tasks = [(state, name, part) for state, name in zip(presents, names, strict=True) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:  # kernels do not hold the interpreter's lock
        played = list(pool.map(play, tasks))
    return [np.concatenate(played[k : k + len(parts)]) for k in range(0, len(tasks), len(parts))]


def _values(state: State, runs: Ints, starts: Ints, judged: Ints) -> dict[str, Floats]:
    """Return each metric's value in each future [F], of the jobs judged."""
    wait = (starts[:, judged] - state.submit[judged]) / SECOND
    slow = bounded_slowdown(wait, runs[:, judged] / SECOND)
    last = (starts[:, judged].max(axis=1) - state.now) / SECOND
    return {"wait": wait.mean(axis=1), "bsld": slow.mean(axis=1), "drained": last}
