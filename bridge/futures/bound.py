"""Bounds: how much is left to win on a log, and which unknown holds it: run times, or arrivals.

All on the same sequences, by the mean bounded slowdown. Nobody can know what these policies know, and the
best of several rules is chosen in hindsight, so that a result is read against them: "-3 %" of "-60 %". They
are no lower bounds in the strict sense; a better clairvoyant may exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bridge.arrays import Floats, Ints
from bridge.fast.episode import Prepared
from bridge.fast.setup import Setup
from bridge.judge.sequences import Judged, judge, values_of
from bridge.scheduler.lookahead import Lookahead
from bridge.scheduler.order import order
from bridge.watch import Told, unseen
from bridge.workload.select import Jobs

#: Rules of which the best is the base, behind EASY.
RULES = ("fcfs", "sjf", "saf", "srf", "wfp3", "unicep", "f1", "f2", "f3", "f4")
#: How many policies `bound` plays.
PLAYED = 2 * len(RULES) + 3
#: What is known.
BELIEVED, RUN_TIMES, ARRIVALS = "what is believed", "run times", "run times and arrivals"
#: Seconds ahead for which the clairvoyant sees arrivals.
_SEEN = 43_200.0


@dataclass(frozen=True)
class Row:
    """One policy with what it knows.

    Attributes:
        known: what it knows of run times and arrivals.
        policy: its name.
        values: [sequences] mean bounded slowdown.
        judged: the mean, and the difference to the best rule on what is believed; each with an interval.
    """

    known: str
    policy: str
    values: Floats
    judged: Judged


@dataclass(frozen=True)
class Bound:
    """What there is to win on a log: rows, the base first; what is known -> rule -> its mean."""

    rows: tuple[Row, ...]
    rules: dict[str, dict[str, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values; differences also in percent of the base's mean."""
        base = self.rows[0].judged.mean.mean
        return {
            "rows": [
                {
                    "known": row.known,
                    "policy": row.policy,
                    "oracle": row.known != BELIEVED,
                    "mean": row.judged.mean.mean,
                    "ci95": row.judged.mean.as_dict(),
                    "difference": (d := row.judged.difference) and d.as_dict(),
                    "difference_percent": d and d.percent_of(base).as_dict(),
                    "values": row.values.tolist(),
                }
                for row in self.rows
            ],
            "rules": self.rules,
        }


def bound(jobs: Jobs, setup: Setup, starts: Ints, length: int, progress: Told = unseen) -> Bound:
    """Return what is left to win on sequences of a log: `starts` [sequences] first jobs, `length` jobs each.

    Of the setup the estimator (what is believed) and the log's rules count, order and backfilling do not;
    `progress` is called with the number of sequences played.
    """
    played = 0

    def values(prepared: Prepared) -> Floats:
        nonlocal played
        found = values_of(prepared, starts, length, "bsld", lambda n: progress(played + n))
        played += len(starts)
        return found

    true = replace(setup, estimator="actual")
    found = {
        known: {rule: values(_prepared(jobs, one, rule)) for rule in RULES}
        for known, one in ((BELIEVED, setup), (RUN_TIMES, true))
    }
    believing, knowing = (_best(found[known], RULES) for known in (BELIEVED, RUN_TIMES))
    static = tuple(rule for rule in RULES if not order(rule).dynamic)
    ahead = f"lookahead({_best(found[BELIEVED], static)})"
    blind = _prepared(jobs, true, f"lookahead({_best(found[RUN_TIMES], static)}, margin=0)")
    base = found[BELIEVED][believing]
    compiled = blind.compiled  # and the same, told of true arrivals
    lookahead = replace(compiled.order.lookahead or Lookahead(), arrivals=_SEEN)
    one = replace(compiled.order, lookahead=lookahead)
    seeing = replace(blind, compiled=replace(compiled, order=one))

    def rows() -> Iterator[tuple[str, str, Floats]]:
        yield BELIEVED, f"{believing}+easy", base
        yield BELIEVED, ahead, values(_prepared(jobs, setup, ahead))
        yield RUN_TIMES, f"{knowing}+easy", found[RUN_TIMES][knowing]
        yield RUN_TIMES, blind.compiled.order.name, values(blind)
        yield ARRIVALS, blind.compiled.order.name, values(seeing)

    made = (
        Row(known, policy, one, judge(one, base if k else None, starts, length))
        for k, (known, policy, one) in enumerate(rows())
    )
    means = {known: {rule: float(v.mean()) for rule, v in of.items()} for known, of in found.items()}
    return Bound(tuple(made), means)


def _prepared(jobs: Jobs, setup: Setup, rule: str) -> Prepared:
    return replace(setup, order=rule, backfill="easy", candidate_order="").prepare(jobs)


def _best(values: dict[str, Floats], rules: tuple[str, ...]) -> str:
    return min(rules, key=lambda rule: float(values[rule].mean()))
