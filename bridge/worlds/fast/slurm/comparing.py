"""A played case beside the recorded one: starts within a tolerance, on the same nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bridge.worlds.fast.slurm.case import SlurmCase
from bridge.worlds.fast.slurm.playing import Start

#: Starts may differ by so much, s.
TOLERANCE = 3.0


@dataclass
class SlurmAgreement:
    """How a played case agrees.

    Attributes:
        starts: in the recorded case.
        hits: of them within the tolerance.
        same_nodes: of the hits.
        misses: (job, episode, recorded start, played start), None: it did not start.
        extra: (job, episode, played start) of those that never start in the recorded case.
    """

    case: str
    starts: int = 0
    hits: int = 0
    same_nodes: int = 0
    misses: list[tuple[str, int, float, float | None]] = field(default_factory=list)
    extra: list[tuple[str, int, float]] = field(default_factory=list)
    elsewhere: list[tuple[str, int, str, str]] = field(default_factory=list)


def compare(case: SlurmCase, played: Iterable[Start], tolerance: float = TOLERANCE) -> SlurmAgreement:
    """Return how the starts of a played case agree with the recorded ones."""
    mine = {(one.job, one.episode): one for one in played}
    result = SlurmAgreement(case.name, starts=len(case.starts))
    for key, real in case.starts.items():
        own = mine.get(key)
        if own is None or abs(own.start - real.start) > tolerance:
            result.misses.append((*key, real.start, None if own is None else own.start))
            continue
        result.hits += 1
        if own.nodes == real.nodes:
            result.same_nodes += 1
        else:
            result.elsewhere.append((*key, real.nodes, own.nodes))
    result.extra = [(*key, one.start) for key, one in mine.items() if key not in case.starts]
    return result
