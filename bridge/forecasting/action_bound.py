"""What an action would win on a log: the rules of action against SAF with EASY, on the same sequences."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.judge.action_metrics import compute_action_metrics, mean_of
from bridge.judge.sequences import values_of
from bridge.judge.stats import ConfidenceInterval, window_bootstrap
from bridge.workload.select import Jobs
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: The rules, as they are written.
RULES = (
    *("speculative(600)", "trial(300)", "guest(300)", "las(300, 3600)", "hybrid(300)"),
    "hybrid(300, guard=86400)",
)
#: The reference is the better of these beliefs, in hindsight.
REFERENCES = ("requested", "predicted")
#: How many policies are played.
PLAYED = len(RULES) + len(REFERENCES)


@dataclass(frozen=True)
class ActionRow:
    """One policy on the sequences.

    Attributes:
        policy: its name; the reference is the first row.
        belief: the run times that it believes.
        metrics: means of `bridge.judge.action_metrics.ACTION_METRICS`.
        bsld, wait: differences to the reference, in % of its mean; None for itself.
    """

    policy: str
    belief: str
    metrics: dict[str, float | None]
    bsld: ConfidenceInterval | None
    wait: ConfidenceInterval | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "estimator": self.belief,
            "metrics": self.metrics,
            "bsld_percent": self.bsld and self.bsld.as_dict(),
            "wait_percent": self.wait and self.wait.as_dict(),
        }


@dataclass(frozen=True)
class _Played:
    policy: str
    belief: str
    bsld: Floats
    wait: Floats
    metrics: dict[str, float | None]
    warnings: tuple[str, ...]


def bound_actions(
    jobs: Jobs,
    setup: SchedulerConfig,
    starts: Ints,
    length: int,
    share: float = 1.0,
    progress: ProgressCallback = ignore_progress,
) -> tuple[list[ActionRow], list[str]]:
    """Return what each rule wins on sequences of a log, the reference first, and what is taken for granted.

    `starts`: [sequences] first jobs, of `length` jobs each; `share`: the part of the jobs that permit
    the rule; `progress` is called with the number of sequences played.
    """
    done = 0

    def play(action: str, belief: str) -> _Played:
        nonlocal done
        one = replace(
            setup, order="saf", backfill="easy", candidate_order="", action=action, estimator=belief
        )
        prepared = one.build_scenario(jobs)
        notes: list[dict[str, float]] = []

        def note(_prepared: Any, schedule: Schedule, first: int) -> None:
            notes.append(compute_action_metrics(prepared, schedule, first))

        bsld = values_of(prepared, starts, length, "bsld", lambda n: progress(done + n), note=note)
        done += len(starts)
        wait = np.array([note["wait"] for note in notes], np.float64)
        name = "saf+easy" + (f"+{action}" if action else "")
        return _Played(name, belief, bsld, wait, mean_of(notes), prepared.terms.notes)

    base = min((play("", belief) for belief in REFERENCES), key=lambda one: float(one.bsld.mean()))
    believed = setup.estimator or REFERENCES[0]
    others = [play(_shared(rule, share), believed) for rule in RULES]
    rows = [ActionRow(base.policy, base.belief, base.metrics, None, None)]
    for one in others:
        differences = (
            window_bootstrap(mine, starts, length, base=theirs).percent_of(float(theirs.mean()))
            for mine, theirs in ((one.bsld, base.bsld), (one.wait, base.wait))
        )
        rows.append(ActionRow(one.policy, one.belief, one.metrics, *differences))
    return rows, list(dict.fromkeys(text for one in others for text in one.warnings))


def _shared(rule: str, share: float) -> str:
    return rule if share == 1 else f"{rule[:-1]}, share={share:g})"
