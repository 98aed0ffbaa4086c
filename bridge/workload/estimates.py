"""Gives a generated workload what its model lacks: users, requested times in round values, and queues.

That requests are few round values, mostly far above the run time, is the finding of D. Tsafrir, Y. Etsion,
D. G. Feitelson: "Modeling user runtime estimates", JSSPP 2005. The distribution here is a simple one of
our own in that spirit, not their model.
"""

from dataclasses import replace

import numpy as np

from bridge.errors import BridgeError
from bridge.workload.scale import noted
from bridge.workload.table import Workload

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
    hours. No request is below the run time.

    Args:
        workload: jobs with run times.
        seed: of the one random generator.
        users: how many.

    Raises:
        BridgeError: no user.
    """
    if users < 1:
        raise BridgeError(f"{users} users were asked for", where="--users", remedy="Ask for at least one.")
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
    header = noted(workload.header, f"requested times, {users} users and queues added, seed {seed}")
    header["MaxQueues"] = str(len(QUEUES))
    header["Queue"] = "\n".join(f"{number} up to {limit // 3600} h" for number, limit in QUEUES.items())
    return replace(workload, jobs=jobs, header=header)


def _round_up(
    seconds: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    place = np.searchsorted(ROUND_VALUES, seconds)
    hours = np.ceil(seconds / 3600).astype(np.int64) * 3600
    return np.where(place < len(ROUND_VALUES), ROUND_VALUES[np.minimum(place, len(ROUND_VALUES) - 1)], hours)
