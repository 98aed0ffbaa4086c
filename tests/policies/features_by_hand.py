"""Features of a policy's setting at a machine state that was worked out by hand (see tests/encode)."""

import numpy as np
import numpy.typing as npt
from handmade import make_jobs, prepared

from bridge.env.batch import Batch
from bridge.learn.recipe import Recipe
from bridge.scheduler.protocol import Policy

#: (submit, run, request, nodes) on 4 nodes. At 20 job 1 holds three nodes until 100; the head, job 2, needs
#: four and has waited for 10 s; one node is free; jobs 3 and 4 have just come.
ROWS = [(0, 100, 100, 3), (10, 50, 60, 4), (20, 70, 80, 1), (20, 200, 200, 1)]
MAX_RUN = 400.0


def first_rows(recipe: Recipe) -> npt.NDArray[np.float32]:
    """Return the rows of the first decision, under the standard protocol."""
    policy = Policy(
        recipe.setup.order, recipe.setup.backfill, agent=frozenset({recipe.decision}), guard=False
    )
    batch = Batch(
        prepared(make_jobs(ROWS, [4]), policy), recipe.encoder.compile({"max_run": MAX_RUN}), 1, len(ROWS)
    )
    return batch.reset(np.zeros(1, np.int64)).rows
