"""Rules that do more than order: speculate, try, lend nodes, serve by attained service.

| rule | a policy says |
|---|---|
| `speculative(600)` | after the pass a waiting job that fits in idle nodes runs there once, 600 s at most |
| `trial(300)` | each job's first start lasts 300 s at most and goes ahead of all others |
| `guest(300)` | a job never tried runs 300 s at most on nodes of jobs that are suspended for it |
| `las(300, 3600)` | levels by attained service; a blocked head preempts jobs of higher levels |
| `hybrid(300)` | jobs with less than 300 s of service go first; the others preempt by remaining area |

Behind the seconds further words: ``restart=30`` (s that a killed job's next life begins with), ``host=10``
(s until a suspended host works again), ``resume=60`` (s that a preempted job's next life begins with),
``guard=N`` (hybrid: who has waited N s goes first in its group, and gives way to the first group only),
``latest=1`` (las: of one level the job that started last is preempted first, in place of the smallest one),
``share=0.5`` and ``seed=1`` (users are drawn, whose jobs permit it, until these are half of all jobs).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened

if TYPE_CHECKING:
    from bridge.base.arrays import Floats, Ints

#: Codes of the rules, as the kernels read them.
NO_ACTION, SPECULATIVE, TRIAL, GUEST, LAS, HYBRID = range(6)
#: What may be done to a job, as bits: kill and begin anew; lend its nodes; stop and keep its progress.
RESTARTABLE, SUSPENDABLE, CHECKPOINTABLE = 1, 2, 4
#: Their columns in a log: 1 permits, 0 forbids.
PERMITS = {"restartable": RESTARTABLE, "suspendable": SUSPENDABLE, "checkpointable": CHECKPOINTABLE}
#: Costs that jobs may have of their own, as ``restart_cost``, in place of the rule's.
COSTS = ("restart", "host", "resume")


class ActionKind(NamedTuple):
    """One rule: its code, its seconds by default, what a job must permit, and the words that it knows."""

    code: int
    seconds: tuple[float, ...]
    permits: str
    words: tuple[str, ...]


#: Rules by name.
ACTIONS = {
    "speculative": ActionKind(SPECULATIVE, (600.0,), "restartable", ("restart",)),
    "trial": ActionKind(TRIAL, (300.0,), "restartable", ("restart",)),
    "guest": ActionKind(GUEST, (300.0,), "suspendable", ("restart", "host")),
    "las": ActionKind(LAS, (300.0, 3600.0), "checkpointable", ("resume", "latest")),
    "hybrid": ActionKind(HYBRID, (300.0,), "checkpointable", ("resume", "guard")),
}
_TEXT = re.compile(r"([a-z]+)\s*(?:\(([^()]*)\))?")


@dataclass(frozen=True)
class Action:
    """A rule with its seconds.

    Attributes:
        kind: its name in `ACTIONS`.
        seconds: its limit, or levels.
        restart: s that the next life of a job begins with that was killed.
        host: s after its guest until a suspended job works again.
        resume: s that the next life of a preempted job begins with.
        guard: s that a job waits until it goes ahead of all others; 0: never.
        share: part of the jobs that permit the rule: all jobs of so many users.
        seed: of the draw of these users.
        latest: not 0: of one level the last start is preempted first; else the smallest job.
    """

    kind: str
    seconds: tuple[float, ...]
    restart: float = 30.0
    host: float = 10.0
    resume: float = 60.0
    guard: float = 0.0
    share: float = 1.0
    seed: int = 1
    latest: float = 0.0

    @property
    def code(self) -> int:
        return ACTIONS[self.kind].code

    @property
    def needs(self) -> str:
        """What it needs of the jobs that it acts on."""
        return ACTIONS[self.kind].permits

    @property
    def note(self) -> str:
        """Who permits it, where neither the log nor a share of the users says so."""
        return f"action {self.kind}: every job counts as {self.needs}, as the log has no column {self.needs}"

    @property
    def cluster_note(self) -> str:
        """The same on a cluster which does not say so either."""
        return f"{self.note}, and no partition and no QOS says so"


def parse_action(text: str) -> Action:
    """Return a rule by its text, such as ``guest(300, share=0.5)``. BridgeError: there is none of it."""
    where = f"action {shortened(text, 200)!r}"
    match = _TEXT.fullmatch(text.strip())
    if match is None or match[1] not in ACTIONS:
        names = ", ".join(f"{name}({_plain(kind.seconds)})" for name, kind in ACTIONS.items())
        raise BridgeError("is no rule of action", where=where, remedy=f"Choose {names}.")
    kind = ACTIONS[match[1]]
    seconds: list[float] = []
    words: dict[str, float] = {}
    for part in (part.strip() for part in (match[2] or "").split(",") if part.strip()):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            seconds.append(_number(name, where, above=0.0))
        elif name not in (*kind.words, "share", "seed"):
            remedy = f"It knows {', '.join((*kind.words, 'share', 'seed'))}."
            raise BridgeError(f"does not know {shortened(name)!r}", where=where, remedy=remedy)
        else:
            words[name] = _number(value, where, above=-1.0 if name in ("guard", "latest") else 0.0)
    if len(seconds) not in (0, len(kind.seconds)) or sorted(seconds) != seconds:
        remedy = f"Write {match[1]}({_plain(kind.seconds)})."
        raise BridgeError(f"needs {len(kind.seconds)} times, ascending", where=where, remedy=remedy)
    if not 0 < words.get("share", 1.0) <= 1:
        raise BridgeError("the share of the users is above 0 and at most 1", where=where)
    if words.get("host", 1.0) < 1:
        raise BridgeError("a host needs at least 1 s until it works again", where=where)
    seed = int(words.pop("seed", 1))
    return Action(match[1], tuple(seconds) or kind.seconds, seed=seed, **words)


def format_action(action: Action) -> str:
    default = Action(action.kind, action.seconds)
    words = [
        f"{field.name}={getattr(action, field.name):g}"
        for field in fields(action)[2:]
        if getattr(action, field.name) != getattr(default, field.name)
    ]
    return f"{action.kind}({', '.join([_plain(action.seconds), *words])})"


def _plain(seconds: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in seconds)


def _number(text: str, where: str, above: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not above < value <= 1e9 and not (value == 0 and above <= 0):
        raise BridgeError(f"{shortened(text)!r} is no number from 0 to 1e9", where=where)
    return value


def permits_of(stated: Mapping[str, Any]) -> int:
    """Return what may be done to a job, as bits, by its fields; what it does not state is permitted."""
    return sum(bit for name, bit in PERMITS.items() if stated.get(name, 1) == 1)


def draw_permits(action: Action, user: "Ints", columns: "Mapping[str, Floats]") -> "Ints":
    """Return what may be done to each job [n], as bits: by the log's columns, and a share of the users.

    A share counts for what the rule needs: users are drawn one after the other until their jobs are that
    share of all; a job whose user the log does not know (below 0) has one of its own.
    """
    import numpy as np  # not above: names of policies are read where nothing is computed

    permits = np.zeros(len(user), np.int64)
    for name, bit in PERMITS.items():
        permits |= np.where(columns[name] > 0, bit, 0) if name in columns else bit
    if action.share < 1:
        own = np.where(user < 0, -1 - np.arange(len(user)), user)
        users, dense, jobs = np.unique(own, return_inverse=True, return_counts=True)
        order = np.random.default_rng(action.seed).permutation(len(users))
        enough = np.searchsorted(np.cumsum(jobs[order]), action.share * len(user)) + 1
        chosen = np.isin(np.arange(len(users)), order[:enough])
        permits &= np.where(chosen[dense], permits, ~PERMITS[action.needs])
    return permits
