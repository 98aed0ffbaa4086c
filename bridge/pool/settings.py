"""What one time-stepped pool is like, and what is played on it. Plain data."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bridge.base import renamed
from bridge.config import Constraint, Count, Natural, Positive, Share, verify
from bridge.config.fields import record_of

#: Weight of packing against shortness in Tetris*.
KNOB = 1e-6

Objective = Literal["slowdown", "completion", "weighted"]
#: Fields of a pool that read true lengths.
ORACLES = ("oracle_clamp", "oracle_picture")


@dataclass(frozen=True)
class PoolConfig:
    """The pool of RLSchert (Wang et al., Appl. Sci. 2021, Table 2).

    Attributes:
        units: number of units of the pool (R in the paper).
        slots: visible waiting jobs, which a policy may select.
        backlog: waiting jobs that find room behind them; more are rejected.
        kill_slots: running jobs that a policy sees and may kill.
        horizon: H, steps that can be booked ahead.
        last_step: an episode is ended after this step whatever happens.
        oracle_clamp: at every booking, each belief is replaced by the submit-time belief if that one is
            nearer to the TRUE length, as in the paper's numbers. Behaviour of the authors' code: an oracle.
        oracle_picture: the picture shows the TRUE lengths of waiting jobs in place of what is believed of
            them. Behaviour of the authors' code: an oracle.
        objective: what the reward measures: slowdown, completion time in steps, or their weighted sum.
        completion_weight: of a step of completion time, where the objective is weighted; the slowdown has
            the rest.
    """

    units: Annotated[Count, Constraint(le=10_000, option="--pool-units")] = 20
    slots: Annotated[Count, Constraint(le=1000, option="--pool-slots")] = 5
    backlog: Natural = 600
    kill_slots: Natural = 8
    horizon: Annotated[Count, Constraint(le=10_000)] = 120
    last_step: Count = 3000
    oracle_clamp: Annotated[bool, Constraint(option="--oracle-clamp")] = False
    oracle_picture: bool = False
    objective: Objective = "slowdown"
    completion_weight: Share = 0.1

    def __post_init__(self) -> None:
        verify(self, "time-stepped pool")

    @property
    def weight(self) -> float:
        """Weight of completion times in the objective; the slowdown has the rest."""
        return {"slowdown": 0.0, "completion": 1.0, "weighted": self.completion_weight}[self.objective]

    @property
    def actions(self) -> int:
        return self.slots + 1 + self.kill_slots

    @property
    def oracles(self) -> tuple[str, ...]:
        """Names of those switches that are on and read true lengths."""
        return tuple(name for name in ORACLES if getattr(self, name))

    @property
    def oracle(self) -> bool:
        return bool(self.oracles)

    def honest(self) -> "PoolConfig":
        """Return the same pool where nobody knows true lengths."""
        return replace(self, oracle_clamp=False, oracle_picture=False)


@dataclass(frozen=True)
class EvaluationOptions:
    """What an evaluation is about; defaults are the paper's test set.

    Attributes:
        seed: of the sequences (and of the random policy): 314159 test, 42 training, 18 sweeps.
        rate: arrivals per step.
        steps: steps with arrivals.
        sequences: sequences to play.
        estimator: beliefs, as `bridge.pool.jobset.with_estimates` names them.
        predictable: share of the jobs that are predicted while they run.
        packing_weight: weight of packing in Tetris*.
        settings: of the pool.
    """

    seed: Natural = 314159
    rate: Positive = 0.7
    steps: Count = 200
    sequences: Count = 16
    estimator: str = "running"
    predictable: Share = 1.0
    packing_weight: Annotated[float, Constraint(key="knob")] = KNOB
    settings: PoolConfig = field(default_factory=PoolConfig)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON values; the settings are ``pool``."""
        record = record_of(self)
        record["pool"] = record.pop("settings")
        return record


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
