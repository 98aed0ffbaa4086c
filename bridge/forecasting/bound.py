"""Bounds: how much is left to win on a log, and which unknown holds it: run times, or arrivals.

All on the same sequences, by the mean bounded slowdown. Nobody can know what these policies know, and the
best of several rules is chosen in hindsight, so that a result is read against them: "-3 %" of "-60 %". They
are no lower bounds in the strict sense; a better clairvoyant may exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bridge.base.arrays import Floats, Ints
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.judge.sequences import PairedResult, compare_to_base, values_of
from bridge.scheduler.lookahead import Lookahead
from bridge.scheduler.order import order
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Rules of which the best is the base, behind EASY.
RULES = ("fcfs", "sjf", "saf", "srf", "wfp3", "unicep", "f1", "f2", "f3", "f4")
#: How many policies `bound` plays.
PLAYED = 2 * len(RULES) + 3
#: What is known.
BELIEVED, RUN_TIMES, ARRIVALS = "what is believed", "run times", "run times and arrivals"
#: Seconds ahead for which the clairvoyant sees arrivals.
_HORIZON = 43_200.0


@dataclass(frozen=True)
class BoundRow:
    """One policy with what it knows.

    Attributes:
        estimates: what it knows of run times and arrivals.
        policy: its name.
        values: [sequences] mean bounded slowdown.
        judged: the mean, and the difference to the best rule on what is believed; each with an interval.
    """

    estimates: str
    policy: str
    values: Floats
    judged: PairedResult


@dataclass(frozen=True)
class Bound:
    """What there is to win on a log: rows, the base first; what is known -> rule -> its mean."""

    rows: tuple[BoundRow, ...]
    rules: dict[str, dict[str, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values; differences also in percent of the base's mean."""
        base = self.rows[0].judged.mean.mean
        return {
            "rows": [
                {
                    "known": row.estimates,
                    "policy": row.policy,
                    "oracle": row.estimates != BELIEVED,
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


def bound(
    jobs: Jobs,
    setup: SchedulerConfig,
    starts: Ints,
    length: int,
    progress: ProgressCallback = ignore_progress,
) -> Bound:
    """Return what is left to win on sequences of a log: `starts` [sequences] first jobs, `length` jobs each.

    Of the setup the estimator (what is believed) and the log's rules count, order and backfilling do not;
    `progress` is called with the number of sequences played.
    """
    played = 0

    def values(prepared: Scenario) -> Floats:
        nonlocal played
        values_by_sequence = values_of(prepared, starts, length, "bsld", lambda n: progress(played + n))
        played += len(starts)
        return values_by_sequence

    true = replace(setup, estimator="actual")
    values_by_estimates = {
        estimates: {rule: values(_prepared(jobs, one, rule)) for rule in RULES}
        for estimates, one in ((BELIEVED, setup), (RUN_TIMES, true))
    }
    believing, knowing = (_best(values_by_estimates[estimates], RULES) for estimates in (BELIEVED, RUN_TIMES))
    static = tuple(rule for rule in RULES if not order(rule).dynamic)
    ahead = f"lookahead({_best(values_by_estimates[BELIEVED], static)})"
    blind = _prepared(jobs, true, f"lookahead({_best(values_by_estimates[RUN_TIMES], static)}, margin=0)")
    base = values_by_estimates[BELIEVED][believing]
    compiled = blind.compiled  # and the same, told of true arrivals
    lookahead = replace(compiled.order.lookahead or Lookahead(), arrivals=_HORIZON)
    one = replace(compiled.order, lookahead=lookahead)
    seeing = replace(blind, compiled=replace(compiled, order=one))

    def rows() -> Iterator[tuple[str, str, Floats]]:
        yield BELIEVED, f"{believing}+easy", base
        yield BELIEVED, ahead, values(_prepared(jobs, setup, ahead))
        yield RUN_TIMES, f"{knowing}+easy", values_by_estimates[RUN_TIMES][knowing]
        yield RUN_TIMES, blind.compiled.order.name, values(blind)
        yield ARRIVALS, blind.compiled.order.name, values(seeing)

    bound_rows = (
        BoundRow(estimates, policy, one, compare_to_base(one, base if k else None, starts, length))
        for k, (estimates, policy, one) in enumerate(rows())
    )
    means = {
        estimates: {rule: float(v.mean()) for rule, v in of.items()}
        for estimates, of in values_by_estimates.items()
    }
    return Bound(tuple(bound_rows), means)


def _prepared(jobs: Jobs, setup: SchedulerConfig, rule: str) -> Scenario:
    return replace(setup, order=rule, backfill="easy", candidate_order="").build_scenario(jobs)


def _best(values: dict[str, Floats], rules: tuple[str, ...]) -> str:
    return min(rules, key=lambda rule: float(values[rule].mean()))
