"""What schedulers know by name: orders, backfilling rules, estimators; of the pool: heuristics, who kills.

Plain data, instant to import.

A new order is one line here. A new backfilling rule is one line here and its pass in
`bridge.scheduler.core`; commands, messages and protocols read these tables.
"""

from collections.abc import Mapping
from typing import Literal

from bridge.base.errors import BridgeError

#: Named orders as expressions (see `bridge.scheduler.order`); the highest score stands first. Sources:
#: SchedInspector (2022) Table 3 for lcfs, sjf, saf, srf; Tang et al. 2009 for wfp3, unicep;
#: Carastan-Santos & de Camargo 2017 for f1…f4; SchedInspector §4.5 (Slurm's multifactor plug-in, all
#: weights 1000, age over 7 days) for slurm.
ORDERS: Mapping[str, str] = {
    "fcfs": "-s",
    "lcfs": "s",
    "sjf": "-t",
    "ljf": "t",
    "saf": "-t*n",
    "srf": "-t/n",
    "wfp3": "(w/t)**3*n",
    "unicep": "w/(log2(max(n, 2))*t)",
    "f1": "-(log10(t)*n + 870*log10(max(s, 0.1)))",
    "f2": "-(sqrt(t)*n + 25600*log10(max(s, 0.1)))",
    "f3": "-(t*n + 6860000*log10(max(s, 0.1)))",
    "f4": "-(t*sqrt(n) + 530000*log10(max(s, 0.1)))",
    "slurm": "1000*min(w/604800, 1) + 1000*fairshare + 1000*t/t_max + 1000*partition",
}

#: The order by the weights of a cluster's [priority], as Slurm's multifactor plug-in has them.
MULTIFACTOR = "multifactor"

#: The order by what users have used, in proportion to their shares, computed afresh at each pass.
USER_SHARES = "user_shares"

#: Orders that need a cluster.
CLUSTER_ORDERS = (MULTIFACTOR, USER_SHARES)

#: In place of an order: the log's own starts, which no rule decides.
RECORDED = "recorded"


def refuse_recorded() -> BridgeError:
    """Return the error of whoever needs a rule where the record was named."""
    what = "is what happened, and decides nothing here"
    remedy = "Name a rule, such as sjf+easy; replay, evaluate and fidelity know the record."
    return BridgeError(what, where=f"policy {RECORDED!r}", remedy=remedy)


#: Codes of the backfilling rules, as the kernels read them.
NO_BACKFILL, EASY, CONSERVATIVE, FILLER, CONSERVATIVE_KEEPS = range(5)
#: Backfilling rules: name -> code. `filler` starts whatever fits, in queue order, and reserves nothing;
#: `conservative_keeps` moves no planned start later, see `bridge.scheduler.promises`.
BACKFILLS: Mapping[str, int] = {
    "none": NO_BACKFILL,
    "easy": EASY,
    "conservative": CONSERVATIVE,
    "filler": FILLER,
    "conservative_keeps": CONSERVATIVE_KEEPS,
}

#: The backfilling of the protocol `slurm`, which has no other, and which no other protocol has.
SLURM_BACKFILL = "slurm"

#: How estimators are written, see `bridge.scheduler.estimators`.
ESTIMATORS: tuple[str, ...] = (
    *("requested", "actual", "soft", "cqsim", "noisy(P)", "noisy(P, SEED)"),
    *("predicted", "predicted(COLUMN)", "predicted(requested)", "predicted(COLUMN, requested)"),
    "progress(FILE)",
    *("blended", "blended(COLUMN)"),
)

#: What the time-stepped pool is called, on a command line and in files, besides its name.
ALIASES = {"slotted": "pool"}
#: Where logs are named, too, jobs of the pool begin so: a path, a name in $BRIDGE_DATA, or ``synthetic``.
PREFIX = "pool:"
#: The pool's heuristics by number; `RANDOM` chooses among all slots and none, whether the job fits or not.
NAMES = ("sjf", "saf", "tetris", "tetris*", "random")
SJF, SAF, TETRIS, TETRIS_STAR, RANDOM = range(len(NAMES))
#: Those that answer anywhere; the random one draws, and only `bridge.pool.evaluate` does that.
HEURISTICS = tuple(name for k, name in enumerate(NAMES) if k != RANDOM)
#: Who kills jobs beside a heuristic: nobody, or the paper's rule, before every decision.
KILLS = ("none", "rule")
#: Who kills: nobody; the paper's rule, before every decision; a learnt policy itself.
Kill = Literal["none", "rule", "learned"]
