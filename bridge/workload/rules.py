"""Loading rules, as records of switches: which records become jobs, and how they are repaired. Plain data.

`standard` is ours; `cqsim` is CQSim's SWF filter; the three others, the presets, are the loaders of
RLScheduler, SchedInspector and RLBackfilling, as their public code behaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal


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
DEFAULT_RULE: Mapping[str, str] = {"standard": "standard", "cqsim": "cqsim", "schedgym": "rlbackfilling"}
