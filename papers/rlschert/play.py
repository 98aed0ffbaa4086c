"""Who can play, heuristics and trained agents, on which sequences; what is kept of it; and its parts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.errors import BridgeError
from bridge.learn.checkpoint import load
from bridge.learn.folder import PROGRESS
from bridge.learn.pool_rollout import evaluate_agent, options_of
from bridge.learn.recipe import PoolRecipe
from bridge.pool.evaluate import Evaluation, evaluate
from bridge.pool.jobset import JobSet
from bridge.pool.settings import Options
from papers import store
from papers.rlschert import measures
from papers.rlschert.agents import Data, Pupil, trained
from papers.rlschert.study import (
    LABELS,
    LOADS,
    METHODS,
    OBJECTIVES,
    SHARES,
    SIZES,
    TABLES,
    TEST,
    Method,
    Sample,
    method,
    row_of,
)
from papers.say import Say

#: Files of results.
MAIN, SWEEPS = "rlschert-tables", "rlschert-sweeps"
TABLE_9, CURVES = "rlschert-table-9", "rlschert-convergence"
HOLES, KILLED = "rlschert-figure-12", "rlschert-figure-13"
#: What is kept of an evaluation, beside who played what: (evaluation, jobs) -> columns.
Measure = Callable[[Evaluation, JobSet], dict[str, Any]]


@dataclass(frozen=True)
class Player:
    """A heuristic, or an agent that has learnt.

    Attributes:
        method: who.
        label: plays with the oracle clamp, or honestly.
        pupil: the agent, and
        seed: its seed; 0 for heuristics.
    """

    method: Method
    label: str
    pupil: Pupil | None = None
    seed: int = 0

    @property
    def row(self) -> str:
        """What results call it."""
        return row_of(self.method, self.pupil.objective if self.pupil else "")

    @property
    def smoke(self) -> int:
        """Epochs of a smoke row, else 0."""
        return self.pupil.smoke if self.pupil else 0

    def options(self, sample: Sample) -> Options:
        """Return what it plays: agents believe what they have learnt with."""
        estimator = self.pupil.recipe.estimator if self.pupil else "running"
        return sample.options(self.label, estimator)

    def digest(self, sample: Sample, data: Data) -> str:
        """Return what makes its result: rule or recipe, sequences, jobs."""
        if self.pupil is None:
            options = store.unusual(self.options(sample))
            return store.digest(self.method.rule, self.method.kill, options, data.sha256)
        return store.digest(store.unusual(self.pupil.recipe), store.unusual(sample), data.sha256)

    def key(self, sample: Sample, data: Data) -> dict[str, Any]:
        """Return the columns that every result of it has."""
        return {
            "row": self.row,
            "test": sample.name,
            "label": self.label,
            "seed": self.seed,
            "digest": self.digest(sample, data),
            "smoke": self.smoke,
        }

    def folder(self, data: Data) -> Path | None:
        """Return where the agent is kept."""
        return self.pupil.folder(self.seed, data) if self.pupil else None

    def play(self, sample: Sample, data: Data) -> Evaluation:
        """Play some sequences to their end.

        Raises:
            BridgeError: jobs did not end, so that no mean can be had.
        """
        if self.pupil is None:
            return evaluate(data.jobs, self.method.rule, self.method.kill, self.options(sample))
        agent = load(self.pupil.folder(self.seed, data), PoolRecipe)
        options = options_of(agent, self.options(sample))
        return evaluate_agent(agent, data.jobs, replace(options, rate=sample.rate, steps=sample.steps))


@dataclass(frozen=True)
class Wanted:
    """What is to be run.

    Attributes:
        methods: who.
        seeds: 1 … seeds are trained; with 0 nobody learns.
        smoke: train for so few epochs only; in parts that train nobody, agents of so few epochs.
        labels, objectives: of agents; heuristics play with and without the clamp anyhow.
        sizes: agents also learn on pools of other sizes (Figure 11).
        say: told what is being done.
    """

    methods: tuple[Method, ...] = METHODS
    seeds: int = 0
    smoke: int | None = None
    labels: tuple[str, ...] = LABELS
    objectives: tuple[str, ...] = OBJECTIVES
    sizes: bool = False
    say: Say = lambda _: None

    def pupil(self, setting: str, label: str, objective: str = "slowdown", units: int = TEST.units) -> Pupil:
        """Return an agent."""
        return Pupil(setting, label, objective, units, self.smoke or 0)

    def players(
        self, data: Data, methods: Iterable[Method] = METHODS, objective: str = ""
    ) -> Iterator[Player]:
        """Yield who can play without learning anything more: heuristics, and all agents that exist.

        Args:
            data: what agents have learnt from.
            methods: no others.
            objective: only agents that have learnt for it.
        """
        for one in methods:
            if one not in self.methods:
                continue
            if one.rule:
                yield from (Player(one, label) for label in LABELS)
                continue
            for label in self.labels:
                for learnt_for in self.objectives:
                    pupil = self.pupil(one.setting, label, learnt_for)
                    if objective in ("", learnt_for):
                        yield from (Player(one, label, pupil, seed) for seed in pupil.seeds(data))


def is_judged(file: str, player: Player, sample: Sample, data: Data) -> bool:
    """Tell whether the result is there, or a full training's, which a smoke row must not replace."""
    made_of = player.digest(sample, data)
    if store.has(file, player.row, sample.name, player.label, player.seed, made_of):
        return True
    found = store.read(file)
    if not player.smoke or not len(found):
        return False
    mine = (found["row"] == player.row) & (found["test"] == sample.name) & (found["label"] == player.label)
    return bool((mine & (found["smoke"] == 0)).any())


def judge(
    file: str, player: Player, sample: Sample, data: Data, say: Say, measure: Measure = measures.sums
) -> None:
    """Let someone play some sequences, unless that has been done, and keep what is measured."""
    if is_judged(file, player, sample, data):
        return
    of_seed = f", seed {player.seed}" if player.seed else ""
    say(f"{player.row}: {sample.name}, {player.label}{of_seed}")
    try:
        found = player.play(sample, data)
    except BridgeError as error:  # jobs did not end: no mean can be had, others go on
        say(f"  error: {error}")
        return
    agent = player.folder(data)
    tail = {
        "kind": "agent" if agent else "heuristic",
        "oracle": found.oracle,
        "agent": agent.name if agent else "",
        "train_seconds": float(pd.read_parquet(agent / PROGRESS)["seconds"].sum()) if agent else 0.0,
    }
    store.add(file, player.key(sample, data) | measure(found, data.jobs) | tail)


# Parts that train.


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
    methods = [m for m in METHODS if m in wanted.methods]
    for one in methods:
        for label in LABELS if one.rule else ():
            for file, sample, _ in samples(one, sizes=True):
                judge(file, Player(one, label), sample, data, wanted.say)
    for seed in range(1, wanted.seeds + 1):
        for one in methods:
            for label in wanted.labels if one.setting else ():
                for file, sample, objective in samples(one, wanted.sizes and seed == 1):
                    if objective in wanted.objectives and (file == MAIN or seed == 1):
                        pupil = wanted.pupil(one.setting, label, objective, sample.units)
                        train_and_judge(file, Player(one, label, pupil, seed), sample, data, wanted)


def train_and_judge(file: str, player: Player, sample: Sample, data: Data, wanted: Wanted) -> None:
    """Train an agent, unless it is, and let it play."""
    if player.pupil is not None and not is_judged(file, player, sample, data):
        trained(player.pupil, player.seed, data, wanted.say)
        judge(file, player, sample, data, wanted.say)


# Parts that train nobody: the agents that exist play.

#: Table 9: DeepRM never knows more than nothing.
SJF, DEEPRM, KILLER = (method(row) for row in ("SJF", "DeepRM", "RLSchert, learned kill"))
_HOLES = ("Tetris", "SJF", "SAF", "DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill")
#: Figures 12 and 13.
WITH_HOLES = tuple(method(row) for row in _HOLES)
WITH_KILLS = tuple(method(row) for row in ("SAF, rule kill", "RLSchert, rule kill", "RLSchert, learned kill"))


def shares(wanted: Wanted, data: Data) -> None:
    """Table 9: let SJF and the agents play where only some jobs are predicted."""
    for player in wanted.players(data, (SJF, DEEPRM, KILLER), "slowdown"):
        for sample in SHARES[:1] if player.method is DEEPRM else SHARES:
            judge(TABLE_9, player, sample, data, wanted.say)


def holes(wanted: Wanted, data: Data) -> None:
    """Figure 12: play the test set again."""
    for player in wanted.players(data, WITH_HOLES, "slowdown"):
        judge(HOLES, player, TEST, data, wanted.say, measures.holes)


def killed(wanted: Wanted, data: Data) -> None:
    """Figure 13: play the test set again."""
    for player in wanted.players(data, WITH_KILLS, "slowdown"):
        judge(KILLED, player, TEST, data, wanted.say, measures.killed)


def convergence(wanted: Wanted, data: Data) -> None:
    """Figures 7–9: keep the training curves."""
    for player in wanted.players(data, [m for m in METHODS if m.setting]):
        folder = player.folder(data)
        if folder is None or is_judged(CURVES, player, measures.LEARNING, data):
            continue
        curve = measures.curve(pd.read_parquet(folder / PROGRESS))
        store.add(CURVES, player.key(measures.LEARNING, data) | {"agent": folder.name} | curve)
