"""RLSchert's comparison (`methods.toml`): who is compared, on which sequences, and the printed numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bridge.config import build, read_toml
from bridge.pool.settings import Kill, Options, Settings

#: Labels of results: the authors' code reads true lengths (`Settings.oracle_clamp`), an honest run does not.
CLAMP, HONEST = "oracle clamp", "honest"
LABELS = (CLAMP, HONEST)
#: Objectives that agents are trained for.
OBJECTIVES = ("slowdown", "completion")


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


@dataclass(frozen=True)
class Method:
    """Someone who is compared.

    Attributes:
        name: as the paper calls it.
        kill: who kills.
        rule: a heuristic of `bridge.pool.rules`, or
        setting: one of `bridge.policies.rlschert`.
        printed: numbers of Tables 6, 7 and 8; empty where there is none.
    """

    name: str
    kill: Kill
    rule: str = ""
    setting: str = ""
    printed: tuple[str, ...] = ()

    @property
    def row(self) -> str:
        """What results call it."""
        return self.name + {"none": "", "rule": ", rule kill", "learned": ", learned kill"}[self.kill]

    @property
    def paper(self) -> dict[int, str]:
        """Table → its number, as printed."""
        numbers = zip((table.number for table in TABLES), self.printed, strict=False)
        return {table: number for table, number in numbers if number}


def row_of(method: Method, objective: str) -> str:
    """Return what results call a method that was trained for an objective; heuristics have none."""
    return f"{method.row} ({objective})" if method.setting else method.row


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


_FILE = Path(__file__).with_name("methods.toml")
_STUDY = read_toml(_FILE)
_SWEEPS, _SHARES = _STUDY["sweeps"], _STUDY["predictable"]
METHODS = tuple(build(Method, one, str(_FILE)) for one in _STUDY["methods"])
_SAMPLES = {name: build(Sample, one, str(_FILE)) for name, one in _STUDY["samples"].items()}
TRAINING, TEST, HELD_OUT = (_SAMPLES[name] for name in ("training", "test", "held-out"))
_ALL = tuple(
    build(PaperTable, {"number": 0, **one, "sample": _SAMPLES[one["sample"]]}, str(_FILE))
    for one in _STUDY["tables"]
)
TABLES = tuple(t for t in _ALL if t.number)
LOADS = tuple(Sample(f"rate {rate:g}", _SWEEPS["seed"], rate=rate) for rate in _SWEEPS["rates"])
SIZES = tuple(Sample(f"{units} units", _SWEEPS["seed"], units=units) for units in _SWEEPS["units"])
#: Epochs of agents for pools of other sizes.
SIZE_EPOCHS: int = _SWEEPS["epochs"]
SHARES = tuple(
    replace(TEST, predictable=s, name=TEST.name if s == 1.0 else f"{TEST.name}, {s:.0%} predictable")
    for s in _SHARES["shares"]
)
SHARES_PRINTED: Mapping[str, list[str]] = _SHARES["printed"]


def method(row: str) -> Method:
    """Return who has this name in results."""
    return next(m for m in METHODS if m.row == row)


#: Whom everybody is compared with: the best that does not learn.
BASE = method("SAF")
