"""Judging policies on the time-stepped pool: the same drawn sequences for everybody, played to their end."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.pool.heuristics import PAUSE, play
from bridge.pool.jobset import JobSet, read_vasp, with_estimates, with_partial_predictions
from bridge.pool.schedule import PoolSchedule, schedule_of
from bridge.pool.settings import EvaluationOptions
from bridge.pool.synthetic import synthetic
from bridge.pool.world import Sequences, allocate, draw_sequences, load
from bridge.scheduler.names import KILLS, NAMES, PREFIX, RANDOM, Kill

#: Answers of the random policy that are drawn at a time.
_DRAWS = 4096


@dataclass(frozen=True)
class PoolEvaluation:
    """One policy's outcome.

    Attributes:
        synthetic: these jobs were made by a model.
        oracle: a true length was read, by an estimator, by the oracle clamp or by the picture.
    """

    policy: str
    kill: Kill
    jobs: str
    synthetic: bool
    oracle: bool
    options: EvaluationOptions
    schedules: tuple[PoolSchedule, ...]

    @property
    def slowdown(self) -> float:
        """Mean slowdown over all jobs of all sequences, as the paper prints it."""
        return float(np.concatenate([s.slowdown for s in self.schedules]).mean())

    @property
    def completion(self) -> float:
        """Mean completion time over all jobs of all sequences, in steps."""
        return float(np.concatenate([s.completion for s in self.schedules]).mean())

    def of_sequences(self, objective: str = "slowdown") -> Floats:
        """Return each sequence's own mean (``slowdown`` or ``completion``), for intervals and pairs."""
        if objective not in ("slowdown", "completion"):
            raise BridgeError(f"unknown objective {objective!r}", remedy="Use slowdown or completion.")
        return np.array([getattr(s, objective).mean() for s in self.schedules])


def jobs_of(data: Path | str | None, *, synthetic_seed: int = 0) -> JobSet:
    """Return the jobs of a file: by its path or its name in ``$BRIDGE_DATA``, with or without `PREFIX`.

    With None or ``synthetic`` they are jobs that a model made, marked as such.
    """
    name = "synthetic" if data is None else str(data).removeprefix(PREFIX)
    if name == "synthetic":
        return synthetic(seed=synthetic_seed).jobs
    kept = Path(os.environ.get("BRIDGE_DATA", "."), name)
    return read_vasp(kept if is_there(kept, Path.is_file) and not is_there(name) else name)


def prepare(jobs: JobSet, options: EvaluationOptions) -> Sequences:
    """Draw the sequences of an evaluation, with the beliefs of the options; BridgeError: one has no job."""
    believed = with_partial_predictions(with_estimates(jobs, options.estimator), options.predictable)
    sequences = draw_sequences(
        believed, options.seed, rate=options.rate, steps=options.steps, sequences=options.sequences
    )
    empty = np.flatnonzero((sequences.arrivals[:, 1:] < 0).all(axis=1))
    if len(empty):
        raise BridgeError(
            f"sequence {empty[0]} has no jobs", remedy="Use a higher arrival rate or more steps."
        )
    return sequences


def evaluate(
    jobs: JobSet,
    policy: str,
    kill: Kill = "none",
    options: EvaluationOptions | None = None,
    *,
    progress: ProgressCallback = ignore_progress,
) -> PoolEvaluation:
    """Play every sequence under one heuristic; by default the paper's test set.

    `kill` ``rule``: the paper's kill rule before every decision. BridgeError: an unknown policy or rule, an
    option out of its range, or jobs that did not end in time.
    """
    options = options or EvaluationOptions()
    if policy not in NAMES:
        raise BridgeError(f"unknown policy {policy!r}", remedy=f"One of {', '.join(NAMES)}.")
    if kill not in KILLS:
        raise BridgeError(f"unknown kill rule {kill!r}", remedy=f"One of {', '.join(KILLS)}.")
    sequences = prepare(jobs, options)
    state, world = allocate(sequences, 1, options.settings)
    schedules = []
    for s in range(len(sequences)):
        load(state, world, 0, sequences, s)
        random = np.random.default_rng([options.seed, s])
        rule = NAMES.index(policy)
        while True:
            draws = random.integers(options.settings.slots + 1, size=_DRAWS if rule == RANDOM else 0)
            if play(state, world, 0, rule, options.packing_weight, kill == "rule", draws) != PAUSE:
                break
        schedules.append(schedule_of(state, 0))
        progress(s + 1)
    return build_evaluation(sequences, schedules, policy, kill, options)


def build_evaluation(
    sequences: Sequences,
    schedules: Sequence[PoolSchedule],
    policy: str,
    kill: Kill,
    options: EvaluationOptions,
) -> PoolEvaluation:
    """Return the evaluation of schedules of `prepare`'s sequences; BridgeError: a job did not end."""
    for s, schedule in enumerate(schedules):
        left = int(np.count_nonzero(~schedule.ended))
        if left:
            raise BridgeError(
                f"{left} of {len(schedule.id)} jobs did not end by step {options.settings.last_step}"
                f" ({schedule.n_rejected} were rejected by a full backlog)",
                where=f"sequence {s} under {policy}",
                remedy="Allow more steps or a larger backlog, lower the arrival rate, or use a larger pool.",
            )
    return PoolEvaluation(
        policy=policy,
        kill=kill,
        jobs=sequences.jobs.name,
        synthetic=sequences.jobs.synthetic,
        oracle=sequences.jobs.oracle or options.settings.oracle,
        options=options,
        schedules=tuple(schedules),
    )


def as_document(evaluations: Sequence[PoolEvaluation]) -> dict[str, Any]:
    """Return evaluations of the same sequences as JSON values.

    Times are steps; intervals are 95 % over the sequences' own means, which are independent; the mean over
    all jobs, which the paper prints, is not their centre.
    """
    from bridge.judge.stats import block_bootstrap

    first = evaluations[0]
    base, policies = first.of_sequences(), []
    for evaluation in evaluations:
        values = evaluation.of_sequences()
        difference = None if evaluation is first else block_bootstrap(values - base, 1).as_dict()
        policies.append(
            {
                "policy": evaluation.policy,
                "kill": evaluation.kill,
                "oracle": evaluation.oracle,
                "slowdown": evaluation.slowdown,
                "completion_time": evaluation.completion,
                "kills": int(sum(s.kills.sum() for s in evaluation.schedules)),
                "lost_steps": int(sum(s.lost.sum() for s in evaluation.schedules)),
                "sequences": {
                    "slowdown": values.tolist(),
                    "completion_time": evaluation.of_sequences("completion").tolist(),
                    "slowdown_ci95": block_bootstrap(values, 1).as_dict(),
                    "difference_ci95": difference,
                },
            }
        )
    return {
        "scheduler": "pool",
        "data": first.jobs,
        "synthetic": first.synthetic,
        "jobs": int(sum(len(s.id) for s in first.schedules)),
        **first.options.as_dict(),
        "policies": policies,
    }
