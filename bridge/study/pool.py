"""Rows of the time-stepped pool: their jobs, who plays, and a value for every drawn sequence.

All that studies know of the pool is here; what it needs to know of a study, it says itself.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bridge.config import Of
from bridge.config.fields import fields_of
from bridge.errors import BridgeError
from bridge.learn.recipe import AnyRecipe
from bridge.pool.recipe import PoolRecipe
from bridge.pool.settings import Options, Settings
from bridge.scheduler.names import KILLS, NAMES, Kill

if TYPE_CHECKING:
    from bridge.learn.pool_network import PoolCheckpoint
    from bridge.pool.evaluate import Evaluation
    from bridge.pool.jobset import JobSet

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

    rule: Annotated[str, Of(choices=lambda: NAMES)]
    kill: Annotated[Kill, Of(choices=lambda: KILLS)] = "none"
    estimator: str = "running"
    settings: Settings = field(default_factory=Settings)


class Drawing(Protocol):
    """How sequences are drawn, see `bridge.study.windows.Drawn`."""

    @property
    def rate(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def predictable(self) -> float: ...


class Asked(Protocol):
    """A study's test, as far as it counts here, see `bridge.study.windows.Test`."""

    @property
    def name(self) -> str: ...
    @property
    def sequences(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def drawn(self) -> Drawing: ...


class Player(Protocol):
    """Who plays, and what is asked of it: a study's cell, see `bridge.study.cells.Cell`."""

    @property
    def heuristic(self) -> Heuristic | None: ...
    @property
    def recipe(self) -> AnyRecipe | None: ...
    @property
    def deploy(self) -> Literal["", "greedy", "sample"]: ...
    @property
    def tests(self) -> Sequence[Asked]: ...
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
    """Return the jobs of a name, see `bridge.pool.evaluate.jobs_of`."""
    from bridge.pool.evaluate import jobs_of

    return jobs_of(name)


def digest_of(jobs: "JobSet") -> str:
    """Return the SHA-256 of jobs: lengths, sizes and beliefs."""
    made = hashlib.sha256(jobs.name.encode())
    for values in (jobs.id, jobs.units, jobs.length, jobs.believed, jobs.beliefs):
        made.update(values.tobytes())
    return made.hexdigest()


def judged(cell: Player, agent: "PoolCheckpoint | None", jobs: "JobSet") -> Iterable[dict[str, Any]]:
    """Yield what each test has found: a value of each metric for every sequence."""
    for test in cell.tests:
        found = played(cell, agent, jobs, test)
        counts = np.array([len(schedule.id) for schedule in found.schedules], np.float64)
        yield {
            "test": test.name,
            "length": test.drawn.steps,
            "starts": [k * test.drawn.steps for k in range(test.sequences)],
            "jobs": int(counts.sum()),
            "oracle": found.oracle,
            "values": {m: linear(_sums(found, m), counts).tolist() for m in cell.metrics},
        }


def played(cell: Player, agent: "PoolCheckpoint | None", jobs: "JobSet", test: Asked) -> "Evaluation":
    """Play a test's sequences to their end; raises BridgeError where jobs did not end."""
    drawn = test.drawn
    options = Options(test.seed, drawn.rate, drawn.steps, test.sequences, predictable=drawn.predictable)
    if agent is None:
        from bridge.pool.evaluate import evaluate

        who = cell.heuristic
        assert who is not None
        own = replace(options, estimator=who.estimator, settings=who.settings)
        return evaluate(jobs, who.rule, who.kill, own)
    from bridge.learn.pool_rollout import evaluate_agent, options_of

    assert isinstance(cell.recipe, PoolRecipe)
    own = replace(options_of(agent, options), rate=drawn.rate, steps=drawn.steps, settings=cell.recipe.pool)
    agent = replace(agent, mode=cell.deploy) if cell.deploy else agent
    return evaluate_agent(agent, jobs, own)


def _sums(found: "Evaluation", metric: str) -> npt.NDArray[np.float64]:
    if metric not in METRICS:
        remedy = f"Use {' or '.join(METRICS)}."
        raise BridgeError("the pool has no such metric", where=metric, remedy=remedy)
    return np.array([getattr(schedule, metric).sum() for schedule in found.schedules], np.float64)


def linear(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values, one per sequence, whose mean is Σ sums / Σ counts, the mean over all jobs.

    Their spread is that of the ratio, linearised (Cochran, Sampling Techniques, 1977, §6.4).
    """
    ratio = sums.sum() / counts.sum()
    return np.asarray(ratio + (sums - ratio * counts) / counts.mean(), np.float64)
