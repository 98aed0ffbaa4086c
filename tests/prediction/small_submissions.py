"""Small tables of submitted jobs for the tests of predictors."""

from collections.abc import Sequence

import numpy as np

from bridge.prediction.submissions import MICRO, Submissions


def submissions(
    rows: Sequence[tuple[float, float, float, int]], *, wait: float = -1, procs: Sequence[int] | None = None
) -> Submissions:
    """Return jobs from rows of (submit, run, request, user), times in seconds, -1 = unknown."""
    table = np.array(rows, np.float64)
    unknown = np.full(len(rows), -1, np.int64)
    times = {
        name: np.rint(table[:, k] * MICRO).astype(np.int64)
        for k, name in enumerate(("submit", "run", "request"))
    }
    return Submissions(
        **times,
        wait=np.full(len(rows), round(wait * MICRO), np.int64),
        procs=np.array(procs if procs is not None else [1] * len(rows), np.int64),
        user=table[:, 3].astype(np.int64),
        group=unknown,
        executable=unknown,
        queue=unknown,
    )
