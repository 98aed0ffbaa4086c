"""Rules of one's own, in Python: an order, a backfilling rule, an estimator and a feature variable.

    cd examples
    bridge replay bundled-128 --order own_rules:smallest_first --backfill own_rules:longest_that_fits
    bridge replay bundled-128 --estimator own_rules:half_the_request

A package makes them known by name to all commands with entry points of the groups `bridge.orders`,
`bridge.backfills`, `bridge.estimators` and `bridge.features`; a program calls `bridge.base.plugins.register`.
"""

import numpy as np
import numpy.typing as npt

from bridge.scheduler.python_rules import JobsView


def smallest_first(queue: JobsView) -> npt.NDArray[np.float64]:
    """Order the queue by area, nodes times requested time; who has waited a day goes before all others."""
    return np.where(queue.waited > 86_400, 1e18, -queue.nodes * queue.requested)


def longest_that_fits(candidates: JobsView) -> int | None:
    """Backfill the longest of the jobs that EASY would let pass the blocked head."""
    return int(np.argmax(candidates.requested))


def half_the_request(jobs: JobsView) -> npt.NDArray[np.float64]:
    """Believe that every job takes half of what it asks for, but a minute at least."""
    return np.maximum(jobs.requested / 2, 60.0)


#: A variable that features can read: node-hours, an expression in those that there are.
NODE_HOURS = "t * n / 3600"
