"""RLSchert's agent and SAF on synthetic jobs, driven by one predictor after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from bridge.judge.stats import verdict
from bridge.learn.checkpoint import load
from bridge.pool.evaluate import evaluate
from bridge.pool.jobset import JobSet
from bridge.pool.recipe import PoolRecipe
from bridge.pool.rollout import evaluate_agent, options_of
from bridge.pool.settings import EvaluationOptions
from bridge.pool.synthetic import SyntheticJobs
from papers import store, studies
from papers.output import Say
from papers.rlschert import measures
from papers.rlschert.beliefs import fit_predict_others, folds, with_beliefs
from papers.rlschert.contestants import HONEST, test
from papers.rlschert.results import RowResults, cell, estimate
from papers.rlschert.synthetic import FOLDS

FILE = "rlschert-driven"
TREES, RECURRENT, OWN = "trees, at submission", "trees, then recurrent", "the generator's own"
PREDICTORS = (TREES, RECURRENT, OWN)
#: The agent: its row in the table of the paper's recipe. It has learnt from the logged jobs.
AGENT = (
    "rlschert",
    "rlschert-recipe",
    "a critic that knows the arrivals to come, 150 epochs",
    "VASP jobs",
    1,
)
WHO = ("SAF", "RLSchert")


def beliefs(generated: SyntheticJobs) -> Iterator[tuple[str, JobSet]]:
    """Yield the jobs under each predictor; every job is predicted by what has learnt from other folds."""
    from bridge.prediction.series_network import predict_others

    length, parts = generated.jobs.length, folds(len(generated.jobs), FOLDS)
    believed = fit_predict_others(generated.parameters, length.astype(np.float64), parts)
    yield TREES, with_beliefs(generated.jobs, believed)
    totals = predict_others(generated.parameters, generated.series, length, parts)
    yield RECURRENT, with_beliefs(generated.jobs, believed, totals)
    yield OWN, generated.jobs


def run(generated: SyntheticJobs, say: Say) -> None:
    """Let SAF and the agent play the held-out sequences under each predictor, honestly, unless they have."""
    folder = studies.agent(*AGENT)
    if folder is None or len(store.read(FILE)) == len(WHO) * len(PREDICTORS):
        return
    held_out = test("200 held-out sequences")
    agent, options = load(folder, PoolRecipe), EvaluationOptions(held_out.seed, sequences=held_out.sequences)
    for predictor, jobs in beliefs(generated):
        say(f"SAF and RLSchert: {predictor}")
        for who, predictions in (
            ("SAF", evaluate(jobs, "saf", "none", options)),
            ("RLSchert", evaluate_agent(agent, jobs, options_of(agent, options))),
        ):
            key = {"row": who, "test": predictor, "label": HONEST, "seed": 0, "digest": generated.jobs.name}
            store.add(FILE, key | measures.sums(predictions, jobs))


def rows(data: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of the table: predictor, SAF, the agent, its difference to SAF and in words."""
    text = []
    for predictor in PREDICTORS if len(data) else ():
        saf, agent = (data[(data["row"] == who) & (data["test"] == predictor)] for who in WHO)
        values = [RowResults(one).cell("slowdown") for one in (saf, agent)]
        apart = estimate(agent, "slowdown", saf)
        text.append([predictor, *values, cell(apart, "+"), verdict(apart)])
    return text
