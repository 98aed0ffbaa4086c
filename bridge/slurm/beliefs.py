"""What is believed of the run times of live jobs: learnt from the cluster's accounting, if there is any."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bridge.errors import BridgeError
from bridge.predict.online import Online
from bridge.predict.quantiles import LEVELS
from bridge.predict.submissions import MICRO, Submissions, of_workload
from bridge.workload.table import Workload


class Beliefs:
    """Distributions of run times from what had ended when the history was written.

    `history`: of `bridge workload import sacct` (else BridgeError): its clock is that of its header's
    UnixStartTime, users are told by name. Without, any part of a job's limit is as likely as another.
    """

    def __init__(self, history: Workload | None = None) -> None:
        self._origin, self._users, self._online = 0, dict[str, int](), Online()
        if history is None:
            return
        table = history.jobs
        origin = history.header.get("UnixStartTime", "")
        if not origin.isdigit() or "user_name" not in table:
            what = "does not say when it was, or whose its jobs were"
            remedy = "Give what `bridge workload import sacct … --out LOG.parquet` wrote."
            raise BridgeError(what, where=history.where, remedy=remedy)
        self._origin = int(origin)
        told = _anonymous(of_workload(history))
        codes, names = pd.factorize(table["user_name"])
        self._users = {str(name): code for code, name in enumerate(names)}
        told = replace(told, user=np.asarray(codes, np.int64))
        ended = np.flatnonzero(told.run > 0)
        self._online.update(told.take(ended[np.argsort(told.end[ended], kind="stable")]))

    def into(self, document: dict[str, Any]) -> None:
        """Write what is believed of the jobs of a state's document into it."""
        jobs = [*document["running"], *document["waiting"]]
        if not jobs:
            return
        document["levels"] = LEVELS.tolist()
        for job, quantiles in zip(jobs, self._online.believe(self._submissions(jobs)).tolist(), strict=True):
            job["quantiles"] = quantiles

    def _submissions(self, jobs: Sequence[dict[str, Any]]) -> Submissions:
        unknown = np.full(len(jobs), -1, np.int64)
        return Submissions(
            submit=np.array([round((job["submit"] - self._origin) * MICRO) for job in jobs], np.int64),
            run=unknown,
            request=np.array([round(job["request"] * MICRO) for job in jobs], np.int64),
            wait=unknown,
            procs=np.array([job["demand"]["nodes"] for job in jobs], np.int64),
            user=np.array([self._users.get(job["user"], -1) for job in jobs], np.int64),
            group=unknown,
            executable=unknown,
            queue=unknown,
        )


def _anonymous(told: Submissions) -> Submissions:
    """Leave out what squeue does not tell."""
    unknown = np.full(len(told), -1, np.int64)
    return replace(told, group=unknown, executable=unknown, queue=unknown)
