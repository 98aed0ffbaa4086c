"""What SEM saves: time to train and to decide, against DRAS on the same jobs in the same run, as ratios.

Times are processor time, and each round measures one agent right behind the other: a busy machine, whose
caches others use, slows both. A figure is the median of the rounds. SEM plays its episodes to their end. Of
DRAS some updates and some decisions are timed and multiplied by how many of them SEM's episode had: on the
largest machines a whole one would take too long. Training decides in single precision; a trained agent in
double precision, as it does for every user.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.episode_starts import constants_of
from bridge.learn.algorithms.gradient import PolicyGradient
from bridge.learn.checkpoint import Provenance
from bridge.learn.learner import TrainingContext
from bridge.learn.network import parameters
from bridge.learn.recipe import Recipe, with_training
from bridge.learn.registry import recipe_of
from bridge.learn.rollout import argmax_actions, copy_for_inference, scores_of, select_waiting
from bridge.workload.select import Jobs
from papers.logs import log

#: Seconds of the processor, all threads together: what others do on the machine is not counted.
CLOCK = time.process_time
#: Jobs of an episode (SEM, §IV-A), and of the scaling and window experiments.
EPISODE, THOUSAND = 600, 1000
#: Rounds of a full measurement.
ROUNDS = 5
#: Theta's smallest job: SEM shows as many running jobs as fit (§III-C).
SMALLEST = 128
#: Updates and decisions of DRAS that are timed.
UPDATES, DECISIONS = 8, 60
WINDOWS = (10, 25, 50, 75, 100)
#: Theta is made so many times larger, up to 34,880 nodes (Figure 11).
LARGER = (1, 2, 4, 8)
#: The same with hidden layers of DRAS that grow as well, while they fit the memory; and their rounds.
GROWING, GROWING_ROUNDS = (1, 2, 4, 5), 3
#: Arrivals come so much denser for the window experiment, that the queue fills the largest window.
DENSER = 2


@dataclass(frozen=True)
class Case:
    """What both agents are measured on; the first recipe plays to the end, of others `updates` are timed."""

    part: str
    name: str
    recipes: dict[str, Recipe]
    jobs: Jobs
    length: int
    updates: int = UPDATES
    decisions: int = DECISIONS


@dataclass(frozen=True)
class Cost:
    """What one agent cost in one round. Times in seconds of the processor.

    Attributes:
        part, case, agent, round: what was measured.
        nodes, window, length: machine, waiting jobs that are shown, jobs of the episode.
        inputs, parameters: numbers that the network sees, and learns.
        updates, decisions: how many were timed while it learnt.
        update_s: one update of the network.
        decide_s: one decision while learning: simulation, encoding and network.
        inferences: decisions that were timed once it had learnt.
        infer_s: one of them: simulation, encoding and network.
        of_updates, of_decisions, of_inferences: in the whole episode.
    """

    part: str
    case: str
    agent: str
    round: int
    nodes: int
    window: int
    length: int
    inputs: int
    parameters: int
    updates: int
    decisions: int
    update_s: float
    decide_s: float
    inferences: int
    infer_s: float
    of_updates: int
    of_decisions: int
    of_inferences: int


def training_of(costs: Any) -> Any:
    """Return the seconds of an episode of training: a `Cost`'s, or a table's of them."""
    return costs.of_updates * costs.update_s + costs.of_decisions * costs.decide_s


def inference_of(costs: Any) -> Any:
    """Return the seconds of an episode's decisions by a trained agent: a `Cost`'s, or a table's of them."""
    return costs.of_inferences * costs.infer_s


class _EnoughError(Exception):
    """As many updates as were wanted are done."""


class _Timed(PolicyGradient):
    """Notes when updates begin and end; the first one, which allocates, is where the clock starts."""

    def prepare(self, most: int | None) -> "_Timed":
        """Stop behind so many updates, if any number is given; returns the learner."""
        self.most, self.marks = most, list[tuple[float, float, int]]()
        return self

    def _update(self, steps: Any) -> tuple[float, float]:
        started_at = CLOCK()
        losses = super()._update(steps)
        self.marks.append((started_at, CLOCK(), sum(len(step[3]) for step in steps.steps)))
        if self.most is not None and len(self.marks) > self.most:
            raise _EnoughError
        return losses


def timed(marks: list[tuple[float, float, int]]) -> tuple[int, int, float, float]:
    """Return updates and decisions behind the first mark, seconds per update and per decision.

    `marks`: when each update began and ended, and the decisions since the one before; BridgeError: fewer
    than two.
    """
    if len(marks) < 2:
        raise BridgeError("an episode with fewer than two updates", remedy="Take a longer one.")
    updates = len(marks) - 1
    decisions = sum(n for *_, n in marks[1:])
    updating = sum(end - begin for begin, end, _ in marks[1:])
    return updates, decisions, updating / updates, (marks[-1][1] - marks[0][1] - updating) / decisions


def larger(jobs: Jobs, times: int) -> Jobs:
    """Return the jobs on a machine so many times larger, arriving so many times as fast: the same load."""
    return replace(jobs, capacity=jobs.capacity * times, submit=jobs.submit // times)


def agents(setting: str, nodes: int, places: int, window: int, wider: int = 1) -> dict[str, Recipe]:
    """Return both agents for a machine: the hidden layers are those of the setting, whatever its size.

    DRAS sees its `nodes`, SEM `places` running jobs, both `window` waiting jobs; `wider`: the hidden layers
    of DRAS are so many times as wide.
    """
    recipes = {"SEM": recipe_of("sem", setting), "DRAS": recipe_of("dras", setting)}
    actor = recipes["DRAS"].actor
    hidden = tuple(wider * width for width in actor.hidden)
    recipes["DRAS"] = replace(recipes["DRAS"], actor=replace(actor, hidden=hidden))
    for label, rows in (("SEM", places), ("DRAS", nodes)):
        recipe = recipes[label]
        recipes[label] = replace(recipe, encoder=replace(recipe.encoder, running_rows=(rows,), window=window))
    return recipes


def infer(learner: PolicyGradient, start: int, most: int | None) -> tuple[int, float]:
    """Time a trained agent, one decision at a time, in double precision: decisions, and seconds of one.

    `start`: the episode's first job; `most`: stop behind so many decisions, if any number is given.
    """
    recipe, source = learner.recipe, learner.source
    encoder = recipe.encoder.compile(constants_of(source.prepared.jobs))
    batch = Batch(source.prepared, encoder, 1, recipe.training.length)
    actor = copy_for_inference(learner.actor)
    view, decisions, started_at = batch.reset(np.array([start])), 0, 0.0
    while len(view.rows) and (most is None or decisions <= most):
        if decisions == 1:  # the first one warms up
            started_at = CLOCK()
        view = batch.step(argmax_actions(*scores_of(actor, select_waiting(view)[1])))
        decisions += 1
    if decisions < 2:
        raise BridgeError("an episode with fewer than two decisions", remedy="Take a longer one.")
    return decisions - 1, (CLOCK() - started_at) / (decisions - 1)


def measure(case: Case, of_round: int) -> Iterator[Cost]:
    """Measure the agents of a case one behind the other; round decides which jobs, for all the same."""
    whole: Cost | None = None
    for label, recipe in case.recipes.items():
        limits = (None, None) if whole is None else (case.updates, case.decisions)
        torch.manual_seed(of_round)
        short = with_training(recipe, {"length": case.length, "validation": (0.0, 0.0), "trajectories": 1})
        constants = constants_of(case.jobs)
        origin = Provenance("benchmark", case.jobs.name, len(case.jobs), "", of_round, constants)
        learner = _Timed(TrainingContext(short, case.jobs, origin, Path())).prepare(limits[0])
        start = int(learner.source.draw(0, np.random.default_rng(of_round)).starts[0])
        with contextlib.suppress(_EnoughError):
            learner.learn(0, np.random.default_rng(of_round))
        updates, decisions, update_s, decide_s = timed(learner.marks)
        inferences, infer_s = infer(learner, start, limits[1])
        cost = Cost(
            part=case.part,
            case=case.name,
            agent=label,
            round=of_round,
            nodes=int(case.jobs.capacity[0]),
            window=recipe.encoder.window,
            length=case.length,
            inputs=recipe.encoder.size,
            parameters=parameters(learner.actor),
            updates=updates,
            decisions=decisions,
            update_s=update_s,
            decide_s=decide_s,
            inferences=inferences,
            infer_s=infer_s,
            of_updates=whole.of_updates if whole else updates + 1,
            of_decisions=whole.of_decisions if whole else decisions + learner.marks[0][2],
            of_inferences=whole.of_inferences if whole else inferences + 1,
        )
        whole = whole or cost
        yield cost


def cases() -> list[Case]:
    """Return all that is measured; BridgeError: a log is not there."""
    theta, datastar = (recipe_of("sem").setup.select(log(name)) for name in ("Theta", "DataStar"))
    nodes, processors = int(theta.capacity[0]), int(datastar.capacity[0])
    fit = nodes // SMALLEST
    test_cases = [
        Case("pair", "Theta", agents("theta", nodes, fit, 50), theta, EPISODE),
        Case("pair", "DataStar", agents("datastar", processors, 40, 50), datastar, EPISODE),
    ]
    dense = replace(theta, submit=theta.submit // DENSER)
    for window in WINDOWS:
        test_cases.append(
            Case("window", f"W = {window}", agents("theta", nodes, fit, window), dense, THOUSAND)
        )
    for times in LARGER:
        machine = larger(theta, times)
        n = int(machine.capacity[0])
        both, fewer = (
            agents("theta", n, n // SMALLEST, 50),
            (max(2, UPDATES // times), max(10, DECISIONS // times)),
        )
        test_cases.append(Case("scaling", f"{n:,} nodes", both, machine, THOUSAND, *fewer))
    return test_cases


def growing() -> list[Case]:
    """Return larger machines on which the hidden layers of DRAS are as much wider; those of SEM are not."""
    theta = recipe_of("sem").setup.select(log("Theta"))
    costs = []
    for times in GROWING:
        machine = larger(theta, times)
        n = int(machine.capacity[0])
        both = agents("theta", n, n // SMALLEST, 50, times)
        costs.append(Case("growing", f"{n:,} nodes", both, machine, THOUSAND, updates=2, decisions=10))
    return costs


def speed(say: Callable[[str], None], todo: list[Case], rounds: int = ROUNDS) -> pd.DataFrame:
    """Measure cases round by round, every case once before the next: a row per case, agent and round."""
    from benchmarks.replay import machine_line

    torch.set_num_threads(1)
    costs = []
    for of_round in range(1, rounds + 1):
        for case in todo:
            say(f"round {of_round} of {rounds}: {case.part}, {case.name}")
            costs += [asdict(cost) for cost in measure(case, of_round)]
    line = f"{machine_line()}, PyTorch {torch.__version__}, threads: {torch.get_num_threads()}"
    return pd.DataFrame(costs).assign(machine=line)


def compared(costs: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return a row per case of a part, in their order: medians of the rounds, and DRAS over SEM.

    Columns: nodes, window, length; for each agent (``SEM``, ``DRAS``) and quantity a pair (quantity, agent);
    ratios (quantity, "ratio") and their range (``least``, ``most``) over the rounds. Quantities in seconds:
    update, decide, infer; training and inference of one episode.
    """
    mine = costs[costs["part"] == part]
    mine = mine.assign(training=training_of(mine), inference=inference_of(mine)).rename(
        columns={"update_s": "update", "decide_s": "decide", "infer_s": "infer"}
    )
    wanted = ["update", "decide", "infer", "training", "inference"]
    columns = [*wanted, "inputs", "parameters", "of_updates", "of_decisions", "of_inferences", "updates"]
    wide = mine.pivot_table(index="case", columns="agent", values=columns, aggfunc="median", sort=False)
    paired = mine.pivot_table(index=["case", "round"], columns="agent", values=wanted, sort=False)
    for quantity in wanted:
        ratio = (paired[quantity, "DRAS"] / paired[quantity, "SEM"]).groupby("case", sort=False)
        wide[quantity, "ratio"] = ratio.median()
        wide[quantity, "least"], wide[quantity, "most"] = ratio.min(), ratio.max()
    for name in ("nodes", "window", "length"):
        wide[name, ""] = mine.groupby("case", sort=False)[name].first()
    return wide
