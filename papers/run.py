"""Runs a row: trains its agent (or goes on with it), then judges everybody on the same sequences."""

import functools
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from bridge.fast.replay import replay_sequences
from bridge.fast.setup import Setup
from bridge.judge.sampling import SAMPLERS, sample
from bridge.judge.sequences import value_of
from bridge.learn import checkpoint, play
from bridge.learn.checkpoint import Checkpoint, Origin
from bridge.learn.folder import RESUME
from bridge.learn.recipe import Recipe, from_dict
from bridge.learn.registry import recipe_of as installed
from bridge.learn.train import Trainer, constants_of, versions, with_training
from bridge.scheduler.protocol import Policy
from papers import store
from papers.logs import log, sha256
from papers.progress import Say, reporting
from papers.rows import TRACES, Baseline, Row, Table, Test
from papers.schedinspector.rules import RULES

#: What a gain may cost: mean wait in seconds, and the share of node-time used.
PRICES = ("wait", "utilisation")


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
    folder.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(recipe, jobs, origin, folder)
    if (folder / RESUME).exists():
        trainer.resume()
    else:
        checkpoint.write_agent(folder, recipe, origin)
    trainer.run(reporting(recipe.training.epochs, "base", say))
    return checkpoint.load(folder)


@dataclass(frozen=True)
class Contestant:
    """Someone who is judged."""

    label: str
    kind: str
    setup: Setup
    policy: Policy | None = None
    plays: Any = None
    rule: Any = ()


def starts_of(test: Test, jobs: int, behind: float) -> tuple[npt.NDArray[np.int64], int]:
    """Return the first jobs of a test's sequences, and their length."""
    first = round(jobs * behind) if test.held_out else 0
    if test.sampler == "whole":
        return np.array([first], np.int64), jobs - first
    drawn = sample(SAMPLERS[test.sampler], jobs - first, test.sequences, test.length, test.seed)
    return first + drawn, test.length


def _baseline(setup: Setup, baseline: Baseline, resources: int) -> Contestant:
    changed = replace(setup, **cast(dict[str, Any], dict(baseline.setup)))
    if not baseline.rule:
        return Contestant(baseline.label, "baseline", changed)
    if baseline.rule == "optimise":
        from papers.mrsch.optimise import Optimise

        chooses = Optimise(resources)
        encoder = chooses.encoder()
        plays = functools.partial(play.schedules_by, encoder.compile({}), chooses)
        return Contestant(
            baseline.label, "baseline", changed, changed.policy("pick"), plays, store.unusual(encoder)
        )
    rule = RULES[baseline.rule]
    policy = Policy(changed.order, changed.backfill, changed.candidate_order, agent=frozenset({"inspect"}))
    plays = functools.partial(play.schedules_by, rule.encoder().compile({}), rule)
    return Contestant(baseline.label, "baseline", changed, policy, plays, rule.reject)


def run(table: Table, row: Row, seed: int, *, smoke: int | None, say: Say) -> None:
    """Train and judge one seed of a row; whatever is there already is not done again."""
    if smoke and store.is_complete(table.name, row.name, seed):
        return
    say(f"{table.name}: {row.name}, seed {seed}" + (f" (smoke: {smoke} epochs)" if smoke else ""))
    agent = trained(table, row, seed, smoke, say) if row.policy else None
    if agent is not None:
        setup, behind = agent.recipe.setup, agent.recipe.test_from
        made_of = [store.unusual(agent.recipe), sha256(row.learnt_on or row.trace)]
    else:
        setup, behind, made_of = Setup(**row.changes["setup"]), 0.0, [dict(row.changes["setup"])]
    jobs = setup.select(log(row.trace))
    who = [
        Contestant("base", "base", setup),
        *(_baseline(setup, b, len(jobs.resources)) for b in row.baselines),
    ]
    if agent is not None:
        plays = functools.partial(play.schedules, agent)
        who.append(Contestant("agent", "agent", setup, agent.recipe.policy(), plays))
    for test in row.tests:
        starts, length = starts_of(test, len(jobs), behind)
        metrics = tuple(dict.fromkeys((table.metric, *PRICES, *table.more)))
        for one in who:
            of = seed if one.kind == "agent" else 0
            made_of_it: Any = made_of if one.kind == "agent" else one.rule or 0
            digest = store.digest(
                asdict(test),
                sha256(row.trace),
                metrics if table.more else (table.metric, *PRICES),
                store.unusual(one.setup),
                made_of_it,
            )
            if store.has(table.name, row.name, test.name, one.label, of, digest):
                continue
            ready = one.setup.prepare(jobs, one.policy)
            begun = time.perf_counter()
            schedules = (one.plays or replay_sequences)(ready, starts, length)
            seconds = time.perf_counter() - begun
            found = {
                metric: np.array(
                    [value_of(ready, s, f, metric) for s, f in zip(schedules, starts.tolist(), strict=True)]
                )
                for metric in metrics
            }
            values = found[table.metric]
            say(f"  {test.name}: {one.label} {values.mean():.2f} ({seconds:.0f} s)")
            store.add(
                table.name,
                {
                    "row": row.name,
                    "test": test.name,
                    "label": one.label,
                    "seed": of,
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
                    "epochs": len_of(agent) if one.kind == "agent" else 0,
                    "train_seconds": seconds_of(agent) if one.kind == "agent" else 0.0,
                    "agent": agent.name if agent is not None and one.kind == "agent" else "",
                },
            )


def curve_of(agent: Checkpoint) -> Mapping[str, list[float]]:
    """Return an agent's training curve, column by column."""
    import pyarrow.parquet as pq

    from bridge.learn.folder import PROGRESS

    found: Mapping[str, list[float]] = pq.read_table(agent.folder / PROGRESS).to_pydict()
    return found


def len_of(agent: Checkpoint | None) -> int:
    """Return how many epochs an agent has trained."""
    return len(curve_of(agent)["epoch"]) if agent else 0


def seconds_of(agent: Checkpoint | None) -> float:
    """Return how long an agent has trained, s."""
    return float(sum(curve_of(agent)["seconds"])) if agent else 0.0


def use_threads(threads: int) -> None:
    """Fix how many threads the networks use: it decides the last bits."""
    torch.set_num_threads(threads)
