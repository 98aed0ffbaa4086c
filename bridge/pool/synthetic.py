"""A model of iterative jobs like VASP's, for users without logged ones: parameters, series, predictions.

All of it is invented; only shares and typical sizes resemble the paper's jobs. A job iterates until a
residual (VASP's energy change or force) is small enough. Its logarithm falls on average at a rate that the
job's parameters explain only in part: nearly so for jobs of a single ionic step (70 %, short), badly for jobs
of several (30 %, long). Some jobs of several steps do not say so (a script restarts them): they look short
until they run. The predictions are what an honest predictor can know: before the job runs, the length that
its parameters suggest; while it runs, the same combined with the residuals seen so far. Neither reads the
true length.
"""

from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.pool.jobset import WIDTH, JobSet, from_lengths

#: Share of jobs with several ionic steps (RLSchert, Section 4.1.1).
MULTIPLE = 0.3
#: Share of those whose parameters look like a single step's.
UNDECLARED = 0.3
#: Parameters of a job, columns of `SyntheticJobs.parameters`.
PARAMETERS = (
    "electrons",
    "atoms",
    "k_points",
    "cutoff_ev",
    "log10_tolerance",
    "algorithm",  # 0 normal, 1 fast, 2 very fast
    "spin",
    "ionic_steps",  # limit, 0 for a single one
    "cores",
)
#: What is seen of a running job at each step, last axis of `SyntheticJobs.series`.
SERIES = ("log10_energy_change", "log10_force")

#: Usual core counts (whole nodes of 24 or 28 cores, some fractions) and their shares.
_CORES = ((24, 0.77), (28, 0.03), (48, 0.11), (56, 0.03), (72, 0.01), (96, 0.02), (12, 0.02), (4, 0.01))
#: Standard deviation of what parameters do not tell of the logarithm of the rate.
_HIDDEN = {False: 0.16, True: 0.75}
#: Length in steps that average parameters give.
_TYPICAL = {False: 6.5, True: 22.0}
#: Steps of the residual's logarithm, as a share of its fall per step: jitter that is not remembered.
_JITTER = 0.35
#: Decades that the residual has to fall.
_FALL = 4.0


@dataclass(frozen=True)
class SyntheticJobs:
    """N synthetic jobs.

    Attributes:
        parameters: [N, P] known at submission, columns `PARAMETERS`.
        series: [N, W, 2] seen after having run 1, 2, … steps, last axis `SERIES`; NaN after the end.
        multiple: [N] jobs of several ionic steps, declared or not.
    """

    jobs: JobSet
    parameters: Floats
    series: Floats
    multiple: Flags


def synthetic(jobs: int = 4870, seed: int = 0) -> SyntheticJobs:
    if jobs < 1:
        raise BridgeError(f"the number of synthetic jobs must be 1 or more, not {jobs}")
    rng = np.random.default_rng(seed)
    multiple = rng.random(jobs) < MULTIPLE
    declared = multiple & (rng.random(jobs) >= UNDECLARED)
    parameters = _parameters(rng, declared)
    expected = _expected_length(parameters, declared)
    hidden = rng.normal(size=jobs) * np.where(multiple, _HIDDEN[True], _HIDDEN[False])
    rate = _FALL / (_expected_length(parameters, multiple) * np.exp(hidden))  # decades per step
    residual = _residuals(rng, rate)
    length = _lengths(residual)
    series = np.stack((residual * 1.1 - 1.0 + rng.normal(0.0, 0.05, residual.shape), residual), axis=-1)
    series[np.arange(WIDTH) >= length[:, None]] = np.nan
    beliefs = [
        _predict(residual[j, : length[j] - 1], expected[j], _HIDDEN[bool(declared[j])]) for j in range(jobs)
    ]
    return SyntheticJobs(
        jobs=from_lengths(
            f"synthetic-{jobs}-{seed}",
            np.arange(1, jobs + 1),
            parameters[:, PARAMETERS.index("cores")].astype(np.int64),
            length.astype(np.float64),
            np.maximum(np.rint(expected), 1.0),
            beliefs,
            synthetic=True,
        ),
        parameters=parameters,
        series=series,
        multiple=multiple,
    )


def _parameters(rng: np.random.Generator, multiple: Flags) -> Floats:
    n = len(multiple)
    atoms = np.rint(np.clip(rng.lognormal(3.7, 0.6, n), 1, 400))
    cores, shares = np.array(_CORES).T
    columns = {
        "electrons": np.rint(atoms * rng.uniform(3.0, 9.0, n)),
        "atoms": atoms,
        "k_points": rng.choice([1.0, 2.0, 4.0, 8.0, 12.0], n, p=[0.3, 0.2, 0.25, 0.15, 0.1]),
        "cutoff_ev": rng.choice([300.0, 400.0, 450.0, 520.0], n, p=[0.2, 0.45, 0.2, 0.15]),
        "log10_tolerance": -rng.choice([4.0, 5.0, 6.0], n, p=[0.5, 0.35, 0.15]),
        "algorithm": rng.choice([0.0, 1.0, 2.0], n, p=[0.4, 0.45, 0.15]),
        "spin": (rng.random(n) < 0.4).astype(np.float64),
        "ionic_steps": np.where(multiple, rng.choice([50.0, 100.0, 200.0], n), 0.0),
        "cores": rng.choice(cores, n, p=shares / shares.sum()),
    }
    return np.column_stack([columns[name] for name in PARAMETERS])


def _expected_length(parameters: Floats, multiple: Flags) -> Floats:
    """Return the length in steps that the parameters suggest."""
    p = dict(zip(PARAMETERS, parameters.T, strict=True))
    cost = (
        0.45 * np.log(p["electrons"] / 240.0)
        + 0.18 * np.log(p["k_points"] / 3.0)
        + 0.6 * np.log(p["cutoff_ev"] / 400.0)
        + 0.12 * (-p["log10_tolerance"] - 4.6)
        + np.array([0.1, 0.0, -0.15])[p["algorithm"].astype(int)]
        + 0.2 * (p["spin"] - 0.4)
        - 0.3 * np.log(p["cores"] / 26.0)
    )
    typical = np.where(multiple, _TYPICAL[True], _TYPICAL[False])
    expected: Floats = np.clip(typical * np.exp(cost), 1.0, WIDTH - 1.0)
    return expected


def _residuals(rng: np.random.Generator, rate: Floats) -> Floats:
    """Return the logarithm of the residual after 1, 2, … W steps, [N, W]; the job starts at 0."""
    steps = np.arange(1, WIDTH + 1)
    jitter = rng.normal(size=(len(rate), WIDTH)) * _JITTER
    return -rate[:, None] * (steps + jitter)


def _lengths(residual: Floats) -> Ints:
    """Return the first step after which a residual has fallen far enough; W - 1 where none has (a limit)."""
    reached = residual <= -_FALL
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), WIDTH) + 1
    length: Ints = np.clip(first, 1, WIDTH - 1)
    return length


def _predict(observed: Floats, expected: float, hidden: float) -> Floats:
    """Return the total lengths believed after 0, 1, … steps, before anything is seen and after each residual.

    The rate is a weighted mean of what parameters suggest (relative variance hidden²) and what was seen
    (jitter² / steps²); the remaining length is what is left to fall, divided by it.
    """
    steps = np.arange(1, len(observed) + 1)
    prior, weight = _FALL / expected, steps**2 * (hidden / _JITTER) ** 2
    rate = (prior + weight * np.maximum(-observed / steps, prior / 20.0)) / (1.0 + weight)
    total = steps + np.maximum((_FALL + observed) / rate, 1.0)
    return np.concatenate(([max(round(expected), 1.0)], np.rint(total)))
