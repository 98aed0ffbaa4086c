"""RLSchert's comparison, carried out: heuristics in seconds, agents trained, seed by seed."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from benchmarks.papers import store
from benchmarks.papers.rlschert_rows import CLAMP, LABELS, LOADS, SIZES, TABLES, TEST, Method, Sample
from bridge.errors import BridgeError
from bridge.learn.checkpoint import Origin
from bridge.learn.folder import PROGRESS, RESUME, is_checkpoint
from bridge.learn.slotted_checkpoint import SlottedCheckpoint, load, write_agent
from bridge.learn.slotted_play import evaluate_agent, options_of
from bridge.learn.slotted_recipe import AGENT_TEACHER, SlottedRecipe
from bridge.learn.slotted_train import TEACHER, SlottedProgress, SlottedTrainer
from bridge.learn.train import sha256_of, versions
from bridge.slotted.evaluate import Evaluation, evaluate
from bridge.slotted.jobset import JobSet
from bridge.slotted.settings import Objective
from bridge.slotted.vasp import read_vasp
from policies.rlschert import SETTINGS

Say = Callable[[str], None]
#: Files of results.
MAIN, SWEEPS = "rlschert-tables", "rlschert-sweeps"
FILE = "vasp_jobs.csv.gz"
#: What agents are trained for.
OBJECTIVES = ("slowdown", "completion")


@dataclass(frozen=True)
class Data:
    """The logged jobs, their file and its digest."""

    path: Path
    sha256: str
    jobs: JobSet


def data_of(path: Path | None) -> Data:
    """Read the logged jobs: a file, or that in ``$BRIDGE_DATA``, or in ``../data`` beside ``$BRIDGE_TRACES``.

    Raises:
        BridgeError: there is none.
    """
    if path is None:
        data, traces = os.environ.get("BRIDGE_DATA"), os.environ.get("BRIDGE_TRACES")
        if not (data or traces):
            raise BridgeError("the logged VASP jobs are needed", remedy=f"Name the file: --data {FILE}")
        path = (Path(data) if data else Path(str(traces)).parent / "data") / FILE
    jobs = read_vasp(path)
    return Data(path, sha256_of(path), jobs)


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


def row_of(method: Method, objective: str) -> str:
    """Return what results call a method that was trained for an objective; heuristics have none."""
    return f"{method.row} ({objective})" if method.setting else method.row


def run(
    methods: Iterable[Method],
    data: Data,
    *,
    seeds: int,
    smoke: int | None = None,
    labels: Iterable[str] = LABELS,
    objectives: Iterable[str] = OBJECTIVES,
    sizes: bool = False,
    say: Say = lambda _: None,
) -> None:
    """Play and train whatever has not been; a training that broke off goes on.

    Args:
        methods: who.
        data: the logged jobs.
        seeds: 1 … seeds; sweeps have the first one only; with 0 nobody learns.
        smoke: train for so few epochs only.
        labels, objectives: of agents; heuristics play with and without the clamp anyhow.
        sizes: agents also learn on pools of other sizes (Figure 11).
        say: told what is being done.
    """
    methods, labels, objectives = list(methods), list(labels), list(objectives)
    for method in methods:
        if method.rule:
            _heuristic(method, data, say)
    for seed in range(1, seeds + 1):
        for method in methods:
            for label in labels if method.setting else ():
                for file, sample, objective in samples(method, sizes and seed == 1):
                    if objective in objectives and (file == MAIN or seed == 1):
                        _agent(method, file, sample, objective, label, seed, data, smoke, say)


def _heuristic(method: Method, data: Data, say: Say) -> None:
    for label in LABELS:
        for file, sample, _ in samples(method, sizes=True):
            options = sample.options(label)
            made_of = store.digest(method.rule, method.kill, store.unusual(options), data.sha256)
            if not store.has(file, method.row, sample.name, label, 0, made_of):
                say(f"{method.row}: {sample.name}, {label}")
                found = evaluate(data.jobs, method.rule, method.kill, options)
                _add(file, method.row, sample, label, 0, made_of, found)


def _agent(
    method: Method,
    file: str,
    sample: Sample,
    objective: str,
    label: str,
    seed: int,
    data: Data,
    smoke: int | None,
    say: Say,
) -> None:
    row = row_of(method, objective)
    recipe = recipe_of(method.setting, label, objective, sample.units, smoke)
    made_of = store.digest(store.unusual(recipe), store.unusual(sample), data.sha256)
    done = store.has(file, row, sample.name, label, seed, made_of)
    if done or (smoke and _trained(file, row, sample, label)):
        return
    agent = trained(method.setting, label, objective, sample.units, seed, smoke, data, say)
    options = replace(options_of(agent, sample.options(label)), rate=sample.rate, steps=sample.steps)
    say(f"{row}: {sample.name}, {label}, seed {seed}")
    try:
        found = evaluate_agent(agent, data.jobs, options)
    except BridgeError as error:  # jobs did not end: no mean can be had, others go on
        say(f"  error: {error}")
        return
    _add(file, row, sample, label, seed, made_of, found, agent.folder, smoke or 0)


def _trained(file: str, row: str, sample: Sample, label: str) -> bool:
    """Tell whether there is a full training already, which a smoke row must not replace."""
    found = store.read(file)
    if not len(found):
        return False
    mine = (found["row"] == row) & (found["test"] == sample.name) & (found["label"] == label)
    return bool((mine & (found["smoke"] == 0)).any())


def recipe_of(setting: str, label: str, objective: str, units: int, smoke: int | None) -> SlottedRecipe:
    """Return the recipe of an agent; fewer epochs for a smoke row."""
    recipe = SETTINGS[setting]
    pool = replace(
        recipe.pool, objective=cast(Objective, objective), units=units, oracle_clamp=label == CLAMP
    )
    training = replace(recipe.training, epochs=smoke or recipe.training.epochs)
    if smoke:
        training = replace(training, lessons=min(training.lessons, smoke // 2))
    return replace(recipe, pool=pool, training=training)


def trained(
    setting: str, label: str, objective: str, units: int, seed: int, smoke: int | None, data: Data, say: Say
) -> SlottedCheckpoint:
    """Return an agent, trained as far as its recipe says; a training that broke off goes on.

    An agent that learns to kill is taught by the one that does not, of the same seed, pool and objective.
    """
    recipe = recipe_of(setting, label, objective, units, smoke)
    words = ("clamp" if label == CLAMP else "honest", objective, str(units))
    name = f"rlschert-{setting}-{'-'.join(words)}-{store.digest(store.unusual(recipe), data.sha256)}-s{seed}"
    folder = store.WORK / "agents" / name
    if (folder / RESUME).exists() and len(pd.read_parquet(folder / PROGRESS)) == recipe.training.epochs:
        return load(folder)
    teacher = None
    if recipe.training.teacher == AGENT_TEACHER and not is_checkpoint(folder / TEACHER):
        teacher = trained("recommended", label, objective, units, seed, smoke, data, say)
    command = f'python -m benchmarks.papers rlschert --row "{setting}" --seeds {seed}'
    jobs = data.jobs
    origin = Origin(str(data.path), jobs.name, len(jobs), data.sha256, seed, {}, versions(), command)
    folder.mkdir(parents=True, exist_ok=True)
    trainer = SlottedTrainer(recipe, jobs, origin, folder, teacher)
    if (folder / RESUME).exists():
        trainer.resume()
    else:
        write_agent(folder, recipe, origin)
    every = max(1, recipe.training.epochs // 10)

    def report(p: SlottedProgress) -> None:
        if p.epoch % every == 0:
            say(
                f"  epoch {p.epoch}/{recipe.training.epochs}: {p.train_mean:.2f} (SAF {p.base_mean:.2f}), "
                f"validated {p.valid_mean:.2f} (SAF {p.valid_base:.2f}), {p.seconds:.1f} s"
            )

    say(f"training {name}")
    trainer.run(report)
    return load(folder)


def _add(
    file: str,
    row: str,
    sample: Sample,
    label: str,
    seed: int,
    made_of: str,
    found: Evaluation,
    agent: Path | None = None,
    smoke: int = 0,
) -> None:
    """Keep a result: sums and counts of each sequence's jobs, from which every mean can be had."""
    seconds = float(pd.read_parquet(agent / PROGRESS)["seconds"].sum()) if agent is not None else 0.0
    result = {
        "row": row,
        "test": sample.name,
        "label": label,
        "seed": seed,
        "digest": made_of,
        "kind": "heuristic" if agent is None else "agent",
        "smoke": smoke,
        "jobs": np.array([len(s.id) for s in found.schedules]),
        "slowdown": np.array([s.slowdown.sum() for s in found.schedules]),
        "completion": np.array([s.completion.sum() for s in found.schedules]),
        "kills": int(sum(s.kills.sum() for s in found.schedules)),
        "lost_steps": int(sum(s.lost.sum() for s in found.schedules)),
        "oracle": found.oracle,
        "agent": "" if agent is None else agent.name,
        "train_seconds": seconds,
    }
    store.add(file, result)
