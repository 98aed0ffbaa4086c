"""The Lublin–Feitelson model of rigid jobs: sizes, run times that depend on them, and a daily cycle.

U. Lublin, D. G. Feitelson: "The workload on parallel supercomputers: modeling the characteristics of
rigid jobs", Journal of Parallel and Distributed Computing 63(11), 2003.

Logarithms of times are natural, logarithms of sizes to base 2. A gamma distribution has shape a and
scale b, so its mean is a·b. The day has 48 half-hour slots.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import log2
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.workload.derive import add_note, at_least_one
from bridge.workload.lublin_day import SHARES
from bridge.workload.table import SWF_COLUMNS, Workload

SLOTS = 48
SLOT_SECONDS = 1800
#: The slot at which the model's day begins (5:30): hours before it count as late last evening.
DAY_BEGIN = 11
#: Logs of the longest run time and time between arrivals (s); longer values are drawn again.
_LONGEST_RUN, _LONGEST_GAP = 12.0, 13.0


@dataclass(frozen=True)
class JobClass:
    """The parameters of one class of jobs.

    Attributes:
        serial: share of jobs on one processor.
        pow2: share of jobs on 2, 4, 8, … processors.
        size_low, size_mid, size_high, size_first: log2 of the parallel size is uniform on (low, mid) with
            probability `size_first`, else on (mid, high).
        short, long: (a, b); log of the run time is gamma(a, b) of `short` with probability p, else of `long`.
        run_slope, run_base: p = slope·size + base, kept in [0, 1]: large jobs run long more often.
        gap: (a, b); log of the time between arrivals at rush hour is gamma(a, b).
        gap_ratio: factor on the gap's a that carries it from rush hour to the whole day.
        day: (a, b); the arrival rate follows the density of gamma(a, b) over the day's slots.
        queue: the queue number jobs of this class carry.
    """

    serial: float
    pow2: float
    size_low: float
    size_mid: float
    size_high: float
    size_first: float
    short: tuple[float, float]
    long: tuple[float, float]
    run_slope: float
    run_base: float
    gap: tuple[float, float]
    gap_ratio: float
    day: tuple[float, float]
    queue: int = 0


@dataclass(frozen=True)
class LublinModel:
    """A machine of so many processors and the classes of jobs on it, which arrive independently."""

    nodes: int
    classes: tuple[JobClass, ...]


#: The paper's parameters on 128 processors: of all jobs together, of batch and of interactive jobs.
_PAPER: tuple[tuple[str, Any, Any, Any], ...] = (
    ("serial", 0.244, 0.2927, 0.1541),
    ("pow2", 0.576, 0.6686, 0.625),
    ("size_low", 0.8, 1.2, 1.0),
    ("size_mid", 4.5, 5.0, 3.0),
    ("size_high", 7.0, 7.0, 5.5),
    ("size_first", 0.86, 0.875, 0.705),
    ("short", (4.2, 0.94), (6.57, 0.823), (3.8351, 0.6605)),
    ("long", (312.0, 0.03), (639.1, 0.0156), (7.073, 0.6856)),
    ("run_slope", -0.0054, -0.003, -0.0118),
    ("run_base", 0.78, 0.6986, 0.9156),
    ("gap", (10.2303, 0.4871), (6.0415, 0.8531), (6.5510, 0.6621)),
    ("gap_ratio", 1.0225, 1.0519, 0.9797),
    ("day", (8.1737, 3.9631), (6.1271, 5.2740), (8.9186, 3.6680)),
    ("queue", 0, 1, 0),
)
ALL_JOBS, BATCH, INTERACTIVE = (JobClass(**{name: values[k] for name, *values in _PAPER}) for k in range(3))


def scale_job_class(job_class: JobClass, nodes: int, below: float = 2.5) -> JobClass:
    """Return the class for `nodes`; its middle is `below` powers of two under them (paper: 1.5 to 3.5)."""
    high = log2(nodes)
    return replace(job_class, size_mid=max(job_class.size_low, high - below), size_high=high)


def lublin_1(nodes: int = 256) -> LublinModel:
    """Return the model behind the log `lublin_256`: the paper's parameters for all jobs together."""
    return LublinModel(nodes, (scale_job_class(ALL_JOBS, nodes),))


def lublin_2(nodes: int = 256) -> LublinModel:
    """Return the model behind the log `lublin_256_new2`: the paper's batch and interactive jobs.

    Both classes reach its machine's size; its sizes are likeliest with the middle 2.4 powers of two below.
    """
    return LublinModel(nodes, tuple(scale_job_class(one, nodes, below=2.4) for one in (INTERACTIVE, BATCH)))


PRESETS: Mapping[str, Callable[[int], LublinModel]] = {"lublin-1": lublin_1, "lublin-2": lublin_2}


def generate(model: LublinModel, jobs: int, seed: int, name: str = "lublin") -> Workload:
    """Draw a workload from the model; the same arguments give the same bits.

    The model knows no requested times, users or waits: these are -1. Requested processors are the processors.
    The log begins at midnight. `seed` is that of the one random generator. Raises BridgeError: fewer than one
    job, or a machine on which the model makes no sense.
    """
    at_least_one(jobs, "jobs")
    if model.nodes < 4:
        what = f"a machine of {model.nodes} processors is too small for this model"
        raise BridgeError(what, where="--nodes", remedy="Take at least 4.")
    rng = np.random.default_rng(seed)
    parts = []
    for job_class in model.classes:
        # Each class could come to hold all jobs, so each draws that many; the earliest are kept.
        arrival = _arrivals(rng, job_class, jobs)
        size = _sizes(rng, job_class, model, jobs)
        run = _runs(rng, job_class, size)
        parts.append((arrival, size, run, np.full(jobs, job_class.queue)))
    submit, size, run, queue = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    first = np.argsort(submit, kind="stable")[:jobs]
    table_columns = {
        "job_id": np.arange(1, jobs + 1),
        "submit": np.floor(submit[first]),
        "run": run[first],
        "procs": size[first],
        "req_procs": size[first],
        "status": np.ones(jobs),
        "queue": queue[first],
    }
    table = pd.DataFrame(table_columns, columns=SWF_COLUMNS).fillna(-1).astype(np.int64)
    header = {
        "Version": "2.2",
        "Information": "generated, Lublin-Feitelson model (JPDC 2003)",
        **dict.fromkeys(("MaxJobs", "MaxRecords"), str(jobs)),
        **dict.fromkeys(("MaxNodes", "MaxProcs"), str(model.nodes)),
        "Note": f"model {name}, {jobs} jobs, {model.nodes} processors, seed {seed}",
    }
    return Workload(name, table, {"nodes": model.nodes}, header, source=f"{name}, seed {seed}")


def _gamma_below(rng: np.random.Generator, shape: float, scale: float, limit: float, count: int) -> Floats:
    values = rng.gamma(shape, scale, count)
    while (over := np.flatnonzero(values > limit)).size:
        values[over] = rng.gamma(shape, scale, over.size)
    return values


def day_weights(job_class: JobClass) -> Floats:
    """Return [48] how much faster than on average jobs arrive in each half hour from midnight; mean 1."""
    shares = np.array(SHARES[job_class.day])
    weights = np.empty(SLOTS)
    weights[(np.arange(DAY_BEGIN, DAY_BEGIN + SLOTS) - 1) % SLOTS] = shares
    return np.asarray(weights * SLOTS / weights.sum(), np.float64)


def _arrivals(rng: np.random.Generator, job_class: JobClass, count: int) -> Floats:
    """Return [count] arrival times (s after midnight), rising.

    Gaps are drawn without regard to the hour and laid end to end on a clock that runs by the day's
    weights; mapping that clock back to seconds makes rush hours dense and nights sparse.
    """
    shape, scale = job_class.gap
    gaps = np.exp(_gamma_below(rng, shape * job_class.gap_ratio, scale, _LONGEST_GAP, count))
    weighted = np.cumsum(gaps) / SLOT_SECONDS
    day, within = np.divmod(weighted, SLOTS)
    clock = np.concatenate(([0.0], np.cumsum(day_weights(job_class))))
    clock[-1] = SLOTS
    return np.asarray((day * SLOTS + np.interp(within, clock, np.arange(SLOTS + 1))) * SLOT_SECONDS)


def _sizes(rng: np.random.Generator, job_class: JobClass, model: LublinModel, count: int) -> Ints:
    kind = rng.random(count)
    first = rng.random(count) <= job_class.size_first
    low = np.where(first, job_class.size_low, job_class.size_mid)
    high = np.where(first, job_class.size_mid, job_class.size_high)
    power = low + rng.random(count) * (high - low)
    power = np.where(kind <= job_class.serial + job_class.pow2, np.floor(power + 0.5), power)
    size = np.floor(np.exp2(power) + 0.5)
    return np.clip(np.where(kind <= job_class.serial, 1, size), 1, model.nodes).astype(np.int64)


def _runs(rng: np.random.Generator, job_class: JobClass, size: Ints) -> Ints:
    """Return [n] run times, whole seconds from 1 up."""
    short = np.clip(job_class.run_slope * size + job_class.run_base, 0, 1)
    power = np.empty(len(size))
    left = np.arange(len(size))
    while left.size:
        mine = rng.random(left.size) <= short[left]
        lengths = (rng.gamma(*job_class.short, left.size), rng.gamma(*job_class.long, left.size))
        power[left] = np.where(mine, *lengths)
        left = left[power[left] > _LONGEST_RUN]
    return np.asarray(np.floor(np.exp(power)), np.int64)


# What the model lacks: users, requested times in round values, and queues. That requests are few round
# values, mostly far above the run time, is the finding of D. Tsafrir, Y. Etsion, D. G. Feitelson: "Modeling
# user runtime estimates", JSSPP 2005. The distribution here is a simple one of our own in that spirit.

#: The round values that are requested (s): 5 minutes to 2 days.
ROUND_VALUES = np.array(
    [300, 600, 900, 1200, 1800, 2700, 3600]
    + [hours * 3600 for hours in (2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 30, 36, 48)],
    dtype=np.int64,
)
#: Queue number -> longest requested time (s): short, medium, long.
QUEUES: dict[int, int] = {1: 3600, 2: 8 * 3600, 3: 48 * 3600}


def add_estimates(workload: Workload, seed: int, users: int = 40) -> Workload:
    """Return the workload with users, requested times and queues; the same arguments give the same bits.

    User k submits in proportion to 1/k, and each has a habit: the factor by which requests exceed run
    times, log-uniform between 1.2 and 12, blurred by another factor up to 2 for each job; one job in
    ten simply asks for its queue's limit. Requests are the next round value; longer runs ask for whole
    hours. No request is below the run time. Raises BridgeError: no user.
    """
    at_least_one(users, "users")
    rng = np.random.default_rng(seed)
    jobs = workload.jobs.copy()
    count = len(jobs)
    share = 1 / np.arange(1, users + 1)
    user = rng.choice(users, count, p=share / share.sum())
    habit = np.exp(rng.uniform(np.log(1.2), np.log(12), users))
    run = np.maximum(jobs["run"].to_numpy(dtype=np.float64), 1)
    wanted = _round_up(run * habit[user] * np.exp(rng.uniform(0, np.log(2), count)))
    # A user who multiplies by ten still asks for no more than the longest queue, if the job fits there.
    wanted = np.where(run <= ROUND_VALUES[-1], np.minimum(wanted, ROUND_VALUES[-1]), wanted)
    limits = np.array(list(QUEUES.values()))
    queue = np.minimum(np.searchsorted(limits, wanted), len(limits) - 1)
    lazy = (rng.random(count) < 0.1) & (wanted <= limits[-1])
    jobs["req_time"] = np.where(lazy, limits[queue], wanted).astype(np.int64)
    jobs["user"] = (user + 1).astype(np.int64)
    jobs["queue"] = np.array(list(QUEUES), dtype=np.int64)[queue]
    header = add_note(workload.header, f"requested times, {users} users and queues added, seed {seed}")
    header["MaxQueues"] = str(len(QUEUES))
    header["Queue"] = "\n".join(f"{number} up to {limit // 3600} h" for number, limit in QUEUES.items())
    return replace(workload, jobs=jobs, header=header)


def _round_up(seconds: Floats) -> Ints:
    place = np.searchsorted(ROUND_VALUES, seconds)
    hours = np.ceil(seconds / 3600).astype(np.int64) * 3600
    return np.where(place < len(ROUND_VALUES), ROUND_VALUES[np.minimum(place, len(ROUND_VALUES) - 1)], hours)
