"""Rules as plain data: which records become jobs and how they are repaired; which walltime detailed jobs get.

Of the loading rules `standard` is ours; `cqsim` is CQSim's SWF filter; the three others, the presets, are the
loaders of RLScheduler, SchedInspector and RLBackfilling, as their public code behaves.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from bridge.base.errors import BridgeError


@dataclass(frozen=True)
class LoadRule:
    """How records become jobs.

    Attributes:
        procs: demand = requested, else allocated (``requested``); requested only (``strict``); the larger
            of the two (``largest``).
        request: a missing requested time falls back to the run time (``run``), drops the job (``drop``),
            is raised to the run time (``max``), or is replaced by the run time always (``oracle``).
        true_estimates: estimator ``actual`` reads the run time before (``logged``) or after the repair of
            cancelled jobs (``repaired``).
        kill: run = min(run, requested time).
        zero_run: keep jobs that ran for 0 s.
        cancelled: keep jobs that never ran (run < 0) with a run time of 10 s.
        sort: ``submit`` (ties by id), ``file`` (submit, ties by file order) or ``id``.
        rebase: submit times count from the first kept job.
    """

    name: str
    procs: Literal["requested", "strict", "largest"] = "requested"
    request: Literal["run", "drop", "max", "oracle"] = "run"
    kill: bool = True
    zero_run: bool = False
    cancelled: bool = False
    sort: Literal["submit", "file", "id"] = "submit"
    rebase: bool = True
    true_estimates: Literal["logged", "repaired"] = "repaired"


_SCHEDGYM = LoadRule("", procs="largest", kill=False, cancelled=True, sort="id", rebase=False)
#: The loaders of the SchedGym family, each one code base.
PRESETS: Mapping[str, LoadRule] = {
    rule.name: rule
    for rule in (
        replace(_SCHEDGYM, name="rlbackfilling", request="max", true_estimates="logged"),
        replace(_SCHEDGYM, name="rlscheduler", request="run"),
        replace(_SCHEDGYM, name="schedinspector", request="oracle", zero_run=True),
    )
}
LOAD_RULES: Mapping[str, LoadRule] = {
    "standard": LoadRule("standard"),
    "cqsim": LoadRule("cqsim", procs="strict", request="drop", sort="file"),
    **PRESETS,
}
#: The loading rule of each protocol.
DEFAULT_RULE: Mapping[str, str] = {
    "standard": "standard",
    "cqsim": "cqsim",
    "alea": "standard",
    "schedgym": "rlbackfilling",
    "schedgym-code": "rlbackfilling",
    "slurm": "standard",
}


@dataclass(frozen=True)
class Walltime:
    """The walltime of detailed jobs: the log's request, `factor` times as long; infinite = none.

    A job that meets contention takes longer than its logged run time, so that its logged request may kill it.
    Its walltime is therefore a choice of the experiment, apart from what is believed.

    Attributes:
        name: as it was written: ``keep``, ``none`` or ``factor:F``.
    """

    name: str = "keep"
    factor: float = 1.0

    def of(self, request: float) -> float | None:
        """Return the walltime in seconds, None for none; a whole request times 1 stays whole."""
        if math.isinf(self.factor) or request <= 0:
            return None
        return request if self.factor == 1.0 else request * self.factor


KEEP = Walltime()
NONE = Walltime("none", math.inf)


def walltime(text: str) -> Walltime:
    """Return the walltime policy ``keep``, ``none`` or ``factor:F``, F above 0; else BridgeError."""
    if text in ("keep", "none"):
        return KEEP if text == "keep" else NONE
    kind, _, number = text.partition(":")
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if kind != "factor" or not 0 < factor < math.inf:
        remedy = "Write keep (the log's requests), none, or factor:F, for example factor:1.5."
        raise BridgeError("unknown walltime policy", where=f"walltime {text!r}", remedy=remedy)
    return Walltime(text, factor)
