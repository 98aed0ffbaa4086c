"""Jobs that sequences are drawn from: true lengths, and what is believed before and while they run."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Floats, Ints, as_numbers
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.pool.settings import PoolConfig
from bridge.scheduler.estimators import estimate
from bridge.scheduler.state import SECOND

Series = npt.NDArray[np.int16]

#: Length of a step in seconds, and cores in a unit of the pool (RLSchert, Section 4.1.1).
STEP_SECONDS, CORES_PER_UNIT = 300, 10
#: Largest demand of a job (units); longest belief before and while it runs, longest series (steps).
MOST_UNITS, LONGEST_BELIEVED, LONGEST_BELIEF, WIDTH = 10, 100, 105, 100


@dataclass(frozen=True)
class JobSet:
    """N jobs; lengths in steps.

    Attributes:
        units: [N] demand.
        length: [N] true length, at least 1 and at most W.
        believed: [N] length believed at submission.
        beliefs: [N, W] TOTAL length believed after having run 0, 1, … steps.
        synthetic: made by a model, not logged.
        oracle: beliefs were computed from true lengths.
    """

    name: str
    id: Ints
    units: Ints
    length: Ints
    believed: Ints
    beliefs: Series
    synthetic: bool = False
    oracle: bool = False

    def __len__(self) -> int:
        return len(self.id)

    def check(self, settings: PoolConfig) -> None:
        """Raise BridgeError, naming the first such job, unless every job can run in such a pool."""
        width = self.beliefs.shape[1]
        longest = min(settings.horizon - 1, width)
        for what, wrong in (
            (f"asks for more than the pool's {settings.units} units, or for none",
             (self.units < 1) | (self.units > settings.units)),
            (f"has a length outside 1 … {longest} steps", (self.length < 1) | (self.length > longest)),
            (f"has a believed length outside 1 … {settings.horizon - 1} steps",
             (self.believed < 1) | (self.believed >= settings.horizon)),
            (f"has a belief outside 1 … {settings.horizon - 1} steps",
             ((self.beliefs < 1) | (self.beliefs >= settings.horizon)).any(axis=1)),
        ):  # fmt: skip
            if wrong.any():
                raise BridgeError(
                    f"the job {what}",
                    where=f"{self.name}, job {self.id[int(np.argmax(wrong))]}",
                    remedy="Choose a larger pool or a longer horizon, or leave the job out.",
                )


def from_lengths(
    name: str,
    ids: Ints,
    cores: Ints,
    length: Floats,
    believed: Floats,
    series: list[Floats],
    *,
    synthetic: bool = False,
) -> JobSet:
    """Return the jobs in the pool's units: fractions of steps are cut off, limits applied, series padded.

    `cores`, `length`, `believed` are [N], lengths in steps; `series` are N arrays of total lengths believed
    while the job runs, each at least one long; the last value holds from then on.
    """
    beliefs = np.empty((len(ids), WIDTH), np.int16)
    for row, values in zip(beliefs, series, strict=True):
        predicted = np.clip(np.trunc(values[:WIDTH]), 0, LONGEST_BELIEF)
        row[: len(predicted)] = predicted
        row[len(predicted) :] = predicted[-1]
    return JobSet(
        name=name,
        id=ids,
        units=np.minimum(-(-cores // CORES_PER_UNIT), MOST_UNITS),
        length=length.astype(np.int64),
        believed=np.minimum(believed.astype(np.int64), LONGEST_BELIEVED),
        beliefs=beliefs,
        synthetic=synthetic,
    )


def with_estimates(jobs: JobSet, estimator: str) -> JobSet:
    """Return the same jobs with other beliefs.

    An estimator is ``running`` (the predictions as they are), ``submit`` (that at submission, for ever:
    DeepRM), or one of `bridge.scheduler.estimators` that needs no request, ``actual`` or ``noisy(P)``: one
    length for ever, rounded up to whole steps. Raises BridgeError: unknown estimator.
    """
    name = estimator.strip()
    if name == "running":
        return jobs
    if name == "submit":
        return replace(jobs, beliefs=_constant(jobs.believed, jobs))
    if name in ("requested", "cqsim"):
        remedy = "Use running, submit, actual or noisy(P)."
        raise BridgeError("these jobs have no requested time", where=f"estimator {name!r}", remedy=remedy)
    step = STEP_SECONDS * SECOND
    estimates = estimate(name, jobs.length * step, jobs.believed * step)
    believed = np.clip(-(-estimates.order // step), 1, LONGEST_BELIEVED)
    return replace(jobs, believed=believed, beliefs=_constant(believed, jobs), oracle=estimates.oracle)


def with_partial_predictions(jobs: JobSet, share: float, seed: int = 0) -> JobSet:
    """Return the jobs, of which only a random share is predicted while it runs (RLSchert, Table 9).

    The others keep the belief of their submission. Which jobs are predictable is drawn once from `seed`;
    those of a smaller share are among those of a larger one.
    """
    if not 0.0 <= share <= 1.0:
        raise BridgeError(f"the share of predictable jobs must lie in 0 … 1, not {share:g}")
    rank = np.random.default_rng(seed).permutation(len(jobs))
    is_predictable = rank < round(share * len(jobs))
    return replace(
        jobs, beliefs=np.where(is_predictable[:, None], jobs.beliefs, _constant(jobs.believed, jobs))
    )


def _constant(believed: Ints, jobs: JobSet) -> Series:
    return np.repeat(believed.astype(np.int16)[:, None], jobs.beliefs.shape[1], axis=1)


COLUMNS = ("job_id", "real", "para", "cores", "running")


def read_vasp(path: Path | str) -> JobSet:
    """Read a job file, plain or compressed; rows keep their order, which the generator's seeds refer to."""
    import pandas as pd

    path = Path(path)
    if not is_there(path, Path.is_file):
        remedy = "Name the jobs' file, or its folder in $BRIDGE_DATA; `synthetic` needs none."
        raise BridgeError("no such file", where=str(path), remedy=remedy)
    try:
        table = pd.read_csv(path, dtype={"running": str})
    except (
        OSError,
        EOFError,
        ValueError,
        OverflowError,
    ) as error:  # ValueError: pandas' parser errors, undecodable text
        raise BridgeError(f"cannot be read as CSV: {error}", where=str(path)) from error
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing or table.empty:
        what = f"column {missing[0]!r} is missing" if missing else "holds no jobs"
        raise BridgeError(what, where=str(path), remedy=f"The columns are {', '.join(COLUMNS)}.")

    def wrong(row: int, what: str) -> BridgeError:
        return BridgeError(what, where=f"{path}:{row + 2}")

    numbers: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    limits = {"job_id": (0, 2**53), "real": (1, WIDTH + 1), "para": (1, 1e9), "cores": (1, 1e9)}
    for name, (low, high) in limits.items():
        values = as_numbers(table[name]).to_numpy(np.float64)
        bad = ~((values >= low) & (values < high))
        if bad.any():
            row = int(np.argmax(bad))
            cell = str(table[name].iloc[row])[:40]
            raise wrong(row, f"{name} is {cell!r}, not a number from {low} to {high:g}")
        numbers[name] = values
    for name in ("job_id", "cores"):
        broken = numbers[name] % 1 != 0
        if broken.any():
            raise wrong(int(np.argmax(broken)), f"{name} is not a whole number")
    series = []
    for row, text in enumerate(table["running"]):
        try:
            values = np.array(str(text).split(), np.float64)
        except ValueError:
            values = np.empty(0)
        if len(values) == 0 or not (values >= 1).all() or not np.isfinite(values).all():
            raise wrong(row, f"running is {str(text)[:40]!r}, not lengths of at least 1 separated by spaces")
        series.append(values)
    return from_lengths(
        path.name.removesuffix(".gz").removesuffix(".csv"),
        numbers["job_id"].astype(np.int64),
        numbers["cores"].astype(np.int64),
        numbers["real"],
        numbers["para"],
        series,
    )


def write_vasp(path: Path, jobs: JobSet) -> None:
    """Write jobs as `read_vasp` reads them, plain or compressed by the name's ending."""
    import pandas as pd

    series = []
    for row in jobs.beliefs.tolist():
        length = len(row)
        while length > 1 and row[length - 1] == row[length - 2]:
            length -= 1
        series.append(" ".join(map(str, row[:length])))
    columns = (jobs.id, jobs.length, jobs.believed, jobs.units * CORES_PER_UNIT, series)
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
    pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))).to_csv(path, index=False, compression=packed)
