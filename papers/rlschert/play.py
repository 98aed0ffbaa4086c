"""Who can play without learning anything more, heuristics and trained agents; and what is kept of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.errors import BridgeError
from bridge.learn.folder import PROGRESS
from bridge.learn.slotted_checkpoint import load
from bridge.learn.slotted_play import evaluate_agent, options_of
from bridge.pool.evaluate import Evaluation, Options, evaluate
from bridge.pool.jobset import JobSet
from papers import store
from papers.rlschert.rows import LABELS, METHODS, TEST, Method, Sample
from papers.rlschert.train import Data, Pupil, Say

#: Objectives that agents are trained for.
OBJECTIVES = ("slowdown", "completion")
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
        agent = load(self.pupil.folder(self.seed, data))
        options = options_of(agent, self.options(sample))
        return evaluate_agent(agent, data.jobs, replace(options, rate=sample.rate, steps=sample.steps))


def row_of(method: Method, objective: str) -> str:
    """Return what results call a method that was trained for an objective; heuristics have none."""
    return f"{method.row} ({objective})" if method.setting else method.row


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

    def players(self, data: Data, methods: Iterable[Method] = METHODS) -> Iterator[Player]:
        """Yield who can play without learning anything more: heuristics, and all agents that exist.

        Args:
            data: what agents have learnt from.
            methods: no others.
        """
        for method in methods:
            if method not in self.methods:
                continue
            if method.rule:
                yield from (Player(method, label) for label in LABELS)
                continue
            for label in self.labels:
                for objective in self.objectives:
                    pupil = self.pupil(method.setting, label, objective)
                    for seed in pupil.seeds(data):
                        yield Player(method, label, pupil, seed)


def sums(found: Evaluation, _: JobSet) -> dict[str, Any]:
    """Keep sums and counts of each sequence's jobs, from which every mean can be had."""
    return {
        "jobs": np.array([len(s.id) for s in found.schedules]),
        "slowdown": np.array([s.slowdown.sum() for s in found.schedules]),
        "completion": np.array([s.completion.sum() for s in found.schedules]),
        "kills": int(sum(s.kills.sum() for s in found.schedules)),
        "lost_steps": int(sum(s.lost.sum() for s in found.schedules)),
    }


def is_judged(file: str, player: Player, sample: Sample, data: Data) -> bool:
    """Tell whether the result is there, or a full training's, which a smoke row must not replace."""
    made_of = player.digest(sample, data)
    if store.has(file, player.row, sample.name, player.label, player.seed, made_of):
        return True
    return bool(player.smoke) and _has_full(file, player.row, sample, player.label)


def _has_full(file: str, row: str, sample: Sample, label: str) -> bool:
    found = store.read(file)
    if not len(found):
        return False
    mine = (found["row"] == row) & (found["test"] == sample.name) & (found["label"] == label)
    return bool((mine & (found["smoke"] == 0)).any())


def judge(file: str, player: Player, sample: Sample, data: Data, say: Say, measure: Measure = sums) -> None:
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
    seconds = float(pd.read_parquet(agent / PROGRESS)["seconds"].sum()) if agent else 0.0
    head = {
        "row": player.row,
        "test": sample.name,
        "label": player.label,
        "seed": player.seed,
        "digest": player.digest(sample, data),
        "kind": "agent" if agent else "heuristic",
        "smoke": player.smoke,
    }
    tail = {"oracle": found.oracle, "agent": agent.name if agent else "", "train_seconds": seconds}
    store.add(file, head | measure(found, data.jobs) | tail)
