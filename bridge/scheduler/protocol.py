"""Protocols: the exact rules of a replay, as records of switches on the one scheduler.

| switch | standard | cqsim | schedgym |
|---|---|---|---|
| a pass sees | all events of an instant | one event | one event |
| first of one instant | – | completions | arrivals |
| queue | sorted afresh | one list sorted stably at each pass | sorted afresh |
| equal scores | by submission | as they stood | by submission (preset schedinspector: by nodes) |
| wait that orders see | exact | whole seconds | −1 − submit (a bug of the authors' code) |
| blocked head | re-picked at each pass | re-picked | locked until it starts |
| reservation | refreshed at each pass | refreshed | computed once |
| extra nodes | used | used | not used |
| candidate in time | end ≤ shadow | end ≤ shadow | end < shadow |
| candidates in | queue order | queue order | FCFS order |
| after a backfill | next candidate | next candidate | skips one (preset rlbackfilling) |
| completions of one instant | by start | by start | by believed end at the last reservation, then start |
| running past its estimate | believed to end in 1 s | as logged | as logged |
| estimates by default | requested | cqsim | requested |
| killed at the request | yes | yes | no |

`alea` is AleaNG's, on the nodes of a cluster only; elsewhere it is `standard`:

| switch | elsewhere | alea |
|---|---|---|
| backfilling | all that are named | filler: AleaNG's aggressive backfilling |
| a pass starts | all that may start | one job; the next pass is 800 microseconds later |
| a job starts | at once | 800 microseconds later: its way over the network |
| a job runs | as logged | the logged seconds, and one more |
| a job's nodes | any | of one machine (group of nodes) |

`schedgym-code` is `schedgym`, with what concerns an agent as the authors' environments have it:

| switch | elsewhere | schedgym-code |
|---|---|---|
| a lone candidate of an agent's backfilling | the agent's answer, if there is one | EASY's |
| reservation after each of its picks | kept | refreshed |
| rejections of one job | 72 at most | as many as it likes |
| a rejection once all have arrived | lasts 600 s at most | until the next completion; free if none runs |

`slurm` has no switches of these: its passes come by clocks of their own (`own_passes`), and what they do is
Slurm's own, on the nodes and by the rules of a cluster, see `bridge.scheduler.slurm`. A policy may bring an
order in place of the multifactor priority, and an agent may pick in main passes and choose in backfill
passes; backfilling, limits and the choice of nodes stay Slurm's.

Sources: `standard` is textbook EASY (Mu'alem & Feitelson 2001) and conservative backfilling, one pass
per instant; `cqsim` is CQSim (SPEAR group, IIT) as measured; `alea` is AleaNG (commit a759abe), `schedgym`
the simulator shared by RLScheduler (SC 2020), SchedInspector (HPDC 2022) and RLBackfilling (2023), as their
public code behaves; `slurm` is slurmctld 22.05.8 as measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bridge.base.errors import BridgeError
from bridge.scheduler.names import BACKFILLS, SLURM_BACKFILL

#: Rejections of one job where there is no cap: a policy that rejects for ever on an idle machine ends here.
UNCAPPED = 10_000
#: What becomes of a blocked pick, see `Policy`.
BLOCKED = ("", "held", "first", "again")


@dataclass(frozen=True)
class Protocol:
    """The switches of one protocol; see the module's table."""

    name: str
    per_event: bool = False
    arrivals_first: bool = False
    persistent_sort: bool = False
    truncate_wait: bool = False
    head_locked: bool = False
    reserve_once: bool = False
    extra_nodes: bool = True
    strict: bool = False
    candidate_order: str = ""
    skip_next: bool = False
    lone_by_easy: bool = False
    reserve_each_pick: bool = False
    uncapped: bool = False
    free_tail: bool = False
    clamp_overrun: bool = True
    resort_running: bool = False
    estimator: str = "requested"
    backfills: tuple[str, ...] = tuple(BACKFILLS)
    orders: Mapping[str, str] = field(default_factory=dict)
    tie: str = ""
    own_passes: bool = False
    needs_cluster: bool = False
    start_gap: int = 0
    extra_second: bool = False
    one_machine: bool = False

    @property
    def knows_clusters(self) -> bool:
        """Whether the switches are defined on the nodes of a cluster."""
        return self.needs_cluster or self.name == "standard"


_FROZEN_WAIT = {
    "wfp3": "((-1 - s)/t)**3*n",
    "unicep": "(-1 - s + 1e-15)/(log2(n + 1e-15)*t)",
    "f1": "-(log10(max(t, 0.1))*n + 870*log10(max(s, 0.1)))",
}

_SCHEDGYM = Protocol(
    "schedgym",
    per_event=True,
    arrivals_first=True,
    head_locked=True,
    reserve_once=True,
    extra_nodes=False,
    strict=True,
    candidate_order="fcfs",
    clamp_overrun=False,
    resort_running=True,
    backfills=("none", "easy"),
    orders=_FROZEN_WAIT,
)

PROTOCOLS: Mapping[str, Protocol] = {
    "standard": Protocol("standard"),
    "cqsim": Protocol(
        "cqsim",
        per_event=True,
        persistent_sort=True,
        truncate_wait=True,
        clamp_overrun=False,
        estimator="cqsim",
        backfills=("none", "easy", "conservative"),
        orders={"fcfs": "w"},
    ),
    "schedgym": _SCHEDGYM,
    "schedgym-code": replace(
        _SCHEDGYM,
        name="schedgym-code",
        lone_by_easy=True,
        reserve_each_pick=True,
        uncapped=True,
        free_tail=True,
    ),
    "alea": Protocol(
        "alea",
        needs_cluster=True,
        start_gap=800,
        extra_second=True,
        one_machine=True,
        backfills=("filler",),
    ),
    "slurm": Protocol("slurm", own_passes=True, backfills=(SLURM_BACKFILL,)),
}
#: Those of the compiled state machine, which differ by switches alone.
SWITCHED: Mapping[str, Protocol] = {name: one for name, one in PROTOCOLS.items() if not one.own_passes}


def protocol(name: str) -> Protocol:
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise BridgeError(
            "unknown protocol", where=repr(name), remedy=f"Choose {', '.join(PROTOCOLS)}."
        ) from None


@dataclass(frozen=True)
class Policy:
    """What decides: an order, a backfilling rule, and which decisions are an agent's.

    Attributes:
        order: name or expression of the queue's order.
        backfill: ``none``, ``easy``, ``conservative``, ``filler`` or ``conservative_keeps``; ``slurm`` under
            the protocol of this name, which has no other.
        candidate_order: order among EASY's candidates (static); empty = the protocol's.
        agent: decisions bound to an agent, any of ``pick``, ``inspect``, ``backfill``.
        guard: an agent's backfills must obey EASY's rule.
        max_rejects: most rejections of one job (SchedInspector §4.1: 72); `schedgym-code` has no cap.
        retry_after: seconds until a rejected job is considered again (SchedInspector §4.1: 600).
        blocked: what becomes of a pick that does not fit: ``held`` (it stays the head until it starts),
            ``first`` (the queue's first job takes its place: it starts, or is reserved), ``again`` (each pass
            picks afresh) or empty: as the protocol has it.
        action: a rule that does more than order, such as ``guest(300)``, see `bridge.scheduler.actions`.
    """

    order: str = "fcfs"
    backfill: str = "easy"
    candidate_order: str = ""
    agent: frozenset[str] = frozenset()
    guard: bool = True
    max_rejects: int = 72
    retry_after: float = 600.0
    blocked: str = ""
    action: str = ""
