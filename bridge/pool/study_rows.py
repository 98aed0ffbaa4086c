"""Rows of the time-stepped pool: their jobs, who plays, and a value for every drawn sequence.

All that studies know of the pool is here; what it needs to know of a study, it says itself.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bridge.base.errors import BridgeError
from bridge.config import Constraint
from bridge.config.fields import fields_of
from bridge.learn.recipe import AnyRecipe
from bridge.pool.recipe import PoolRecipe
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.scheduler.names import KILLS, NAMES, Kill

if TYPE_CHECKING:
    from bridge.pool.evaluate import PoolEvaluation
    from bridge.pool.jobset import JobSet
    from bridge.pool.network import PoolCheckpoint

#: What sequences of the pool are judged by.
METRICS = ("slowdown", "completion")
#: What an agent's recipe is made of.
PARTS = tuple(fields_of(PoolRecipe))


@dataclass(frozen=True)
class Heuristic:
    """A rule of the pool.

    Attributes:
        rule: one of `bridge.scheduler.names.NAMES`.
        kill: who kills beside it.
        estimator: beliefs.
        settings: of the pool.
    """

    rule: Annotated[str, Constraint(choices=lambda: NAMES)]
    kill: Annotated[Kill, Constraint(choices=lambda: KILLS)] = "none"
    estimator: str = "running"
    settings: PoolConfig = field(default_factory=PoolConfig)


class Drawing(Protocol):
    """How sequences are drawn, see `bridge.study.windows.PoolDraw`."""

    @property
    def rate(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def predictable(self) -> float: ...


class PoolTest(Protocol):
    """A study's test, as far as it counts here, see `bridge.study.windows.TestSet`."""

    @property
    def name(self) -> str: ...
    @property
    def sequences(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def pool_draw(self) -> Drawing: ...


class Player(Protocol):
    """A contestant of a study's cell, see `bridge.study.cells.Cell`."""

    @property
    def heuristic(self) -> Heuristic | None: ...
    @property
    def recipe(self) -> AnyRecipe | None: ...
    @property
    def deploy(self) -> Literal["", "greedy", "sample"]: ...
    @property
    def tests(self) -> Sequence[PoolTest]: ...
    @property
    def metrics(self) -> Sequence[str]: ...


def learnt_by(recipe: AnyRecipe | None) -> AnyRecipe | None:
    """Return the recipe that such agents learn by: without the clamp where it has nothing to replace.

    It puts the belief of the submission in place of later ones, and ``submit`` has no later ones: the two
    trainings are the same bit for bit. A recipe that is none of the pool's stays as it is.
    """
    if not isinstance(recipe, PoolRecipe):
        return recipe
    clamped = recipe.estimator == "submit" and recipe.pool.oracle_clamp
    return replace(recipe, pool=replace(recipe.pool, oracle_clamp=False)) if clamped else recipe


def read_jobs(name: str) -> "JobSet":
    from bridge.pool.evaluate import jobs_of

    return jobs_of(name)


def digest_of(jobs: "JobSet") -> str:
    digest = hashlib.sha256(jobs.name.encode())
    for values in (jobs.id, jobs.units, jobs.length, jobs.believed, jobs.beliefs):
        digest.update(values.tobytes())
    return digest.hexdigest()


def judged(cell: Player, agent: "PoolCheckpoint | None", jobs: "JobSet") -> Iterable[dict[str, Any]]:
    """Yield each test's results: a value of each metric for every sequence."""
    for test in cell.tests:
        evaluation = played(cell, agent, jobs, test)
        counts = np.array([len(schedule.id) for schedule in evaluation.schedules], np.float64)
        yield {
            "test": test.name,
            "length": test.pool_draw.steps,
            "starts": [k * test.pool_draw.steps for k in range(test.sequences)],
            "jobs": int(counts.sum()),
            "oracle": evaluation.oracle,
            "values": {m: linear(_sums(evaluation, m), counts).tolist() for m in cell.metrics},
        }


def played(cell: Player, agent: "PoolCheckpoint | None", jobs: "JobSet", test: PoolTest) -> "PoolEvaluation":
    """Play a test's sequences to their end; raises BridgeError where jobs did not end."""
    pool_draw = test.pool_draw
    options = EvaluationOptions(
        test.seed, pool_draw.rate, pool_draw.steps, test.sequences, predictable=pool_draw.predictable
    )
    if agent is None:
        from bridge.pool.evaluate import evaluate

        who = cell.heuristic
        assert who is not None
        own = replace(options, estimator=who.estimator, settings=who.settings)
        return evaluate(jobs, who.rule, who.kill, own)
    from bridge.pool.rollout import evaluate_agent, options_of

    assert isinstance(cell.recipe, PoolRecipe)
    own = replace(
        options_of(agent, options), rate=pool_draw.rate, steps=pool_draw.steps, settings=cell.recipe.pool
    )
    agent = replace(agent, mode=cell.deploy) if cell.deploy else agent
    return evaluate_agent(agent, jobs, own)


def _sums(evaluation: "PoolEvaluation", metric: str) -> npt.NDArray[np.float64]:
    if metric not in METRICS:
        remedy = f"Use {' or '.join(METRICS)}."
        raise BridgeError("the pool has no such metric", where=metric, remedy=remedy)
    return np.array([getattr(schedule, metric).sum() for schedule in evaluation.schedules], np.float64)


def linear(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values, one per sequence, whose mean is Σ sums / Σ counts, the mean over all jobs.

    Their spread is that of the ratio, linearised (Cochran, Sampling Techniques, 1977, §6.4).
    """
    ratio = sums.sum() / counts.sum()
    return np.asarray(ratio + (sums - ratio * counts) / counts.mean(), np.float64)
