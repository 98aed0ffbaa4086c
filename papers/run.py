"""Runs a row: trains its agent (or goes on with it), then judges everybody on the same sequences."""

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from bridge.env.source import constants_of
from bridge.fast.replay import replay_sequences
from bridge.fast.setup import Setup
from bridge.judge.sequences import value_of
from bridge.learn import agent as agents
from bridge.learn.checkpoint import Checkpoint, Origin
from bridge.learn.folder import PROGRESS, versions
from bridge.learn.learner import Assignment
from bridge.learn.recipe import AnyRecipe, Recipe, from_dict, with_training
from bridge.learn.registry import recipe_of as installed
from bridge.learn.trainer import Progress
from bridge.learn.training import train_or_resume
from bridge.scheduler.protocol import Policy
from bridge.study.windows import starts_of
from papers import curves, store
from papers.logs import TRACES, log, sha256
from papers.mrsch.optimise import Optimise
from papers.schedinspector.rules import RULES
from papers.study import Baseline, Row, Table

#: What a gain may cost: mean wait in seconds, and the share of node-time used.
PRICES = ("wait", "utilisation")


#: Told what is being done.
Say = Callable[[str], None]


def recipe_of(row: Row, epochs: int | None) -> Recipe:
    """Return the row's recipe; fewer epochs for a smoke row."""
    recipe = from_dict(row.changes, row.name, installed(row.policy, row.setting))
    return recipe if epochs is None else with_training(recipe, {"epochs": epochs})


def trained(table: Table, row: Row, seed: int, epochs: int | None, say: Say) -> Checkpoint:
    """Return the row's agent, trained as far as its recipe says; a training that broke off goes on."""
    recipe, trace = recipe_of(row, epochs), row.learnt_on or row.trace
    folder = (
        store.WORK
        / "agents"
        / f"{row.policy}-{trace}-{store.digest(store.unusual(recipe), sha256(trace))}-s{seed}"
    )
    jobs = recipe.setup.select(log(trace))
    recipe = recipe.for_resources(len(jobs.resources))
    origin = Origin(
        workload=TRACES[trace],
        workload_name=jobs.name,
        jobs=len(jobs),
        sha256=sha256(trace),
        seed=seed,
        constants=constants_of(jobs),
        versions=versions(),
        resources=jobs.resources if len(jobs.resources) > 1 else (),
        command=f'python -m papers run {table.name} --row "{row.name}" --seeds {seed}',
    )
    return train_or_resume(Assignment(recipe, jobs, origin, folder), reporting(recipe, "base", say))


def reporting(recipe: AnyRecipe, base: str, say: Say) -> Callable[[Progress], None]:
    """Return what is called with every epoch: it says a line every tenth of them.

    Args:
        recipe: of the training.
        base: what the base policy is called.
        say: gets the lines.
    """
    epochs = recipe.training.epochs

    def report(p: Progress) -> None:
        if p.epoch % max(1, epochs // 10) == 0:
            say(
                f"  epoch {p.epoch}/{epochs}: {p.train_mean:.2f} ({base} {p.base_mean:.2f}), "
                f"validated {p.valid_mean:.2f} ({base} {p.valid_base:.2f}), {p.seconds:.1f} s"
            )

    return report


@dataclass(frozen=True)
class Contestant:
    """Someone who is judged.

    Attributes:
        label, kind: who: ``base``, ``baseline`` or ``agent``.
        setup: rules of scheduling.
        policy: what an agent or a fixed rule decides; else nobody is asked.
        plays: plays sequences; none = the rules alone.
        made_of: plain data of which a result's digest is made, beside the setup.
        seed: of the agent's training.
    """

    label: str
    kind: str
    setup: Setup
    policy: Policy | None = None
    plays: Any = replay_sequences
    made_of: Any = 0
    seed: int = 0


def _baseline(setup: Setup, baseline: Baseline, resources: int) -> Contestant:
    changed = replace(setup, **cast(dict[str, Any], dict(baseline.setup)))
    if not baseline.rule:
        return Contestant(baseline.label, "baseline", changed)
    if baseline.rule == "optimise":
        answers: Any = Optimise(resources)
        encoder, policy = answers.encoder(), changed.policy("pick")
        made_of = store.unusual(encoder)
    else:
        answers = RULES[baseline.rule]
        encoder, made_of = answers.encoder(), answers.reject
        policy = Policy(
            changed.order, changed.backfill, changed.candidate_order, agent=frozenset({"inspect"})
        )
    plays = functools.partial(agents.schedules_by, encoder.compile({}), answers)
    return Contestant(baseline.label, "baseline", changed, policy, plays, made_of)


def run(table: Table, row: Row, seed: int, *, smoke: int | None, say: Say) -> None:
    """Train and judge one seed of a row; whatever is there already is not done again."""
    if smoke and store.is_complete(table.name, row.name, seed):
        return
    say(f"{table.name}: {row.name}, seed {seed}" + (f" (smoke: {smoke} epochs)" if smoke else ""))
    agent = trained(table, row, seed, smoke, say) if row.policy else None
    setup = agent.recipe.setup if agent else Setup(**row.changes["setup"])
    jobs = setup.select(log(row.trace))
    who = [Contestant("base", "base", setup)]
    who += [_baseline(setup, b, len(jobs.resources)) for b in row.baselines]
    if agent is not None:
        if not smoke:
            curves.keep(table.name, row.name, agent.folder)
        made_of = [store.unusual(agent.recipe), sha256(row.learnt_on or row.trace)]
        plays = functools.partial(agents.schedules, agent)
        who.append(Contestant("agent", "agent", setup, agent.recipe.policy(), plays, made_of, seed))
    metrics = tuple(dict.fromkeys((table.metric, *PRICES, *table.more)))
    for test in row.tests:
        starts, length = starts_of(test, len(jobs), agent.recipe.test_from if agent else 0.0)
        for one in who:
            known = metrics if table.more else (table.metric, *PRICES)
            digest = store.digest(
                asdict(test), sha256(row.trace), known, store.unusual(one.setup), one.made_of
            )
            if store.has(table.name, row.name, test.name, one.label, one.seed, digest):
                continue
            ready = one.setup.prepare(jobs, one.policy)
            begun = time.perf_counter()
            schedules = one.plays(ready, starts, length)
            seconds = time.perf_counter() - begun
            played = list(zip(schedules, starts.tolist(), strict=True))
            found = {m: np.array([value_of(ready, s, first, m) for s, first in played]) for m in metrics}
            values = found[table.metric]
            say(f"  {test.name}: {one.label} {values.mean():.2f} ({seconds:.0f} s)")
            progress = pd.read_parquet(agent.folder / PROGRESS) if agent and one.kind == "agent" else None
            result = {
                "row": row.name,
                "test": test.name,
                "label": one.label,
                "seed": one.seed,
                "kind": one.kind,
                "digest": digest,
                "smoke": smoke or 0,
                "oracle": ready.oracle,
                "metric": table.metric,
                "protocol": one.setup.protocol,
                "length": length,
                "starts": starts.tolist(),
                "values": values.tolist(),
                "mean": float(values.mean()),
                **{name: float(found[name].mean()) for name in PRICES},
                **{f"values.{name}": found[name].tolist() for name in table.more},
                "epochs": 0 if progress is None else len(progress),
                "train_seconds": 0.0 if progress is None else float(progress["seconds"].sum()),
                "agent": agent.name if agent and progress is not None else "",
            }
            store.add(table.name, result)
