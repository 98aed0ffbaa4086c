"""RLSchert's comparison: who is compared, on which sequences, and the numbers that the paper prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.pool.evaluate import Options
from bridge.pool.settings import Kill, Settings

#: Labels of results: the authors' code reads true lengths (`Settings.oracle_clamp`), an honest run does not.
CLAMP, HONEST = "oracle clamp", "honest"
LABELS = (CLAMP, HONEST)


@dataclass(frozen=True)
class Sample:
    """Sequences that everybody plays.

    Attributes:
        name: what results call it.
        seed: of the generator.
        rate: arrivals per step.
        units: size of the pool.
        sequences: how many.
        steps: with arrivals.
        predictable: share of the jobs that are predicted while they run.
    """

    name: str
    seed: int
    rate: float = 0.7
    units: int = 20
    sequences: int = 16
    steps: int = 200
    predictable: float = 1.0

    def options(self, label: str, estimator: str = "running") -> Options:
        """Return what is played, with the oracle clamp or honestly."""
        return Options(
            seed=self.seed,
            rate=self.rate,
            steps=self.steps,
            sequences=self.sequences,
            estimator=estimator,
            predictable=self.predictable,
            settings=Settings(units=self.units, oracle_clamp=label == CLAMP),
        )


TRAINING, TEST = Sample("training set", 42), Sample("test set", 314159)
#: Sequences that nobody has learnt from or been chosen by, enough of them to tell methods apart.
HELD_OUT = Sample("held-out sequences", 20211, sequences=200)
RATES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
UNITS = (12, 16, 20, 24)
LOADS = tuple(Sample(f"rate {rate:g}", 18, rate=rate) for rate in RATES)
SIZES = tuple(Sample(f"{units} units", 18, units=units) for units in UNITS)
#: Epochs of agents for pools of other sizes, which are many.
SIZE_EPOCHS = 100
#: Table 9: the test set, of whose jobs only a share is predicted while it runs.
SHARES = tuple(
    Sample("test set" if share == 1.0 else f"test set, {share:.0%} predictable", 314159, predictable=share)
    for share in (0.0, 0.5, 0.8, 1.0)
)


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables, or one like them.

    Attributes:
        number: the paper's, 0 = not in the paper.
        sample: which sequences.
        metric: ``slowdown`` or ``completion``: what is printed, and what agents are trained for.
        title: of its section.
    """

    number: int
    sample: Sample
    metric: str
    title: str


TABLES = (
    PaperTable(6, TRAINING, "slowdown", "mean slowdown, training set"),
    PaperTable(7, TEST, "slowdown", "mean slowdown, test set"),
    PaperTable(8, TEST, "completion", "mean completion time in steps, test set"),
)
HELD_OUT_TABLES = (
    PaperTable(0, HELD_OUT, "slowdown", "mean slowdown"),
    PaperTable(0, HELD_OUT, "completion", "mean completion time in steps"),
)


@dataclass(frozen=True)
class Method:
    """Someone who is compared.

    Attributes:
        name: as the paper calls it.
        kill: who kills.
        rule: a heuristic of `bridge.pool.rules`, or
        setting: one of `policies.rlschert`.
        paper: table -> its number, as printed.
    """

    name: str
    kill: Kill
    rule: str = ""
    setting: str = ""
    paper: Mapping[int, str] = field(default_factory=dict)

    @property
    def row(self) -> str:
        """What results call it."""
        return self.name + {"none": "", "rule": ", rule kill", "learned": ", learned kill"}[self.kill]


def _paper(*printed: str) -> dict[int, str]:
    return {table.number: number for table, number in zip(TABLES, printed, strict=True) if number}


METHODS = (
    Method("Tetris", "none", rule="tetris", paper=_paper("15.31", "13.77", "98.66")),
    Method("Random", "none", rule="random", paper=_paper("12.81", "12.21", "98.15")),
    Method("SJF", "none", rule="sjf", paper=_paper("11.63", "10.29", "80.36")),
    Method("Tetris*", "none", rule="tetris*", paper=_paper("11.62", "10.24", "80.37")),
    Method("SAF", "none", rule="saf", paper=_paper("11.44", "10.23", "80.3")),
    Method("DeepRM", "none", setting="deeprm", paper=_paper("10.6", "9.63", "77.18")),
    Method("RLSchert", "none", setting="recommended", paper=_paper("9.7", "8.93", "76.27")),
    Method("Tetris", "rule", rule="tetris", paper=_paper("14.82", "14.75", "105.66")),
    Method("Random", "rule", rule="random", paper=_paper("12.65", "11.2", "94.95")),
    Method("SJF", "rule", rule="sjf", paper=_paper("11.81", "10.25", "80.82")),
    Method("Tetris*", "rule", rule="tetris*", paper=_paper("12.64", "10.41", "80.93")),
    Method("SAF", "rule", rule="saf", paper=_paper("11.88", "10.33", "81.13")),
    Method("RLSchert", "rule", setting="rule-kill", paper=_paper("8.93", "8.69", "")),
    Method("RLSchert", "learned", setting="kill", paper=_paper("8.83", "8.32", "76.18")),
)
#: Whom everybody is compared with: the best that does not learn.
BASE = next(method for method in METHODS if method.row == "SAF")
#: Table 3: networks and algorithms, trained as the paper says.
NETWORKS = (
    Method("PPO, MLP", "none", setting="paper"),
    Method("PPO, CNN", "none", setting="paper-cnn"),
    Method("Policy gradient, MLP", "none", setting="paper-pg"),
)
