"""RLSchert's comparison, carried out: heuristics in seconds, agents trained, seed by seed."""

from papers.rlschert.play import Player, Wanted, is_judged, judge
from papers.rlschert.rows import (
    HELD_OUT_TABLES,
    LABELS,
    LOADS,
    METHODS,
    SIZES,
    TABLES,
    TEST,
    Method,
    Sample,
)
from papers.rlschert.train import Data, trained

#: Files of results.
MAIN, SWEEPS, HELD = "rlschert-tables", "rlschert-sweeps", "rlschert-held-out"


def samples(method: Method, sizes: bool) -> list[tuple[str, Sample, str]]:
    """Return (file, sequences, objective) of all that a method plays.

    Args:
        method: a heuristic plays everything once; an agent is trained for the objective that is judged, and
            on the size of the pool: other sizes need trainings of their own.
        sizes: train for these, too.
    """
    main = [(MAIN, t.sample, t.metric if method.setting else "") for t in TABLES]
    sweeps = [s for s in (*LOADS, *SIZES) if method.rule or sizes or s.units == TEST.units]
    objective = "slowdown" if method.setting else ""
    return list(dict.fromkeys([*main, *((SWEEPS, s, objective) for s in sweeps)]))


def tables(wanted: Wanted, data: Data) -> None:
    """Play and train whatever has not been; a training that broke off goes on. Sweeps have the first seed."""
    methods = [method for method in METHODS if method in wanted.methods]
    for method in methods:
        for label in LABELS if method.rule else ():
            for file, sample, _ in samples(method, sizes=True):
                judge(file, Player(method, label), sample, data, wanted.say)
    for seed in range(1, wanted.seeds + 1):
        for method in methods:
            for label in wanted.labels if method.setting else ():
                for file, sample, objective in samples(method, wanted.sizes and seed == 1):
                    if objective in wanted.objectives and (file == MAIN or seed == 1):
                        pupil = wanted.pupil(method.setting, label, objective, sample.units)
                        train_and_judge(file, Player(method, label, pupil, seed), sample, data, wanted)


def train_and_judge(file: str, player: Player, sample: Sample, data: Data, wanted: Wanted) -> None:
    """Train an agent, unless it is, and let it play."""
    if player.pupil is not None and not is_judged(file, player, sample, data):
        trained(player.pupil, player.seed, data, wanted.say)
        judge(file, player, sample, data, wanted.say)


def held_out(wanted: Wanted, data: Data) -> None:
    """Let everybody who can play the held-out sequences: agents judged by what they have learnt for."""
    for player in wanted.players(data):
        for sample in dict.fromkeys(table.sample for table in HELD_OUT_TABLES):
            judge(HELD, player, sample, data, wanted.say)
