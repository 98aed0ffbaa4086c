"""How fast agents train and decide: decisions a second in the compiled core, one epoch, one inference.

    python benchmarks/training.py --traces FOLDER      # logs of the Parallel Workloads Archive
    python benchmarks/training.py                      # $BRIDGE_TRACES, or else the bundled workload

The ratios are against figures that were measured of the papers' public code on one core: 950 to 3,200
environment steps a second (RLScheduler's family), 4,000 to 12,700 (SchedInspector), 170 to 300 s an epoch of
RLBackfilling as shipped. The Gymnasium environment of this project, one decision at a time, stands beside.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402
import torch  # noqa: E402

from bridge.cluster.clusterfile import read_cluster_toml  # noqa: E402
from bridge.env.batch import Batch, PackedObservations  # noqa: E402
from bridge.env.encoder import Encoder  # noqa: E402
from bridge.env.environment import SchedulingEnv  # noqa: E402
from bridge.env.episode_starts import constants_of  # noqa: E402
from bridge.learn.checkpoint import Provenance  # noqa: E402
from bridge.learn.learner import TrainingContext  # noqa: E402
from bridge.learn.network import actor_of  # noqa: E402
from bridge.learn.recipe import AnyRecipe, Recipe, with_training  # noqa: E402
from bridge.learn.registry import recipe_of  # noqa: E402
from bridge.learn.rollout import argmax_actions, copy_for_inference, scores_of  # noqa: E402
from bridge.learn.trainer import Trainer  # noqa: E402
from bridge.report.table import Table  # noqa: E402
from bridge.scheduler.protocol import Policy  # noqa: E402
from bridge.workload.catalogue import bundled  # noqa: E402
from bridge.workload.formats import read  # noqa: E402
from bridge.workload.select import Jobs  # noqa: E402
from bridge.workload.site_jobs import generate_site  # noqa: E402
from bridge.worlds.fast.scheduler_config import SchedulerConfig  # noqa: E402

EPISODES, LENGTH, ROUNDS = 100, 256, 5
#: Eight features, as RLScheduler's.
EIGHT = {
    "wait": "min(w/43200, 1)",
    "request": "t/max_run",
    "nodes": "n/n_max",
    "gap": "t/(gap + 1)",
    "free": "n/max(free, 1)",
    "safe": "safe",
    "blocked": "blocked",
    "constant": "1",
}


def log(traces: str) -> Path:
    """Return SDSC-SP2 if it is there, else the bundled workload."""
    path = Path(traces) / "SDSC-SP2-1998-4.2-cln.swf.gz"
    return path if traces and path.exists() else next(iter(bundled().values()))


def core(
    jobs: Jobs, setup: SchedulerConfig, decision: Any, *, crowded: bool, threads: int = 1
) -> tuple[float, float]:
    """Return decisions a second in the compiled core (best of rounds), and rows of one.

    With one thread seconds are of processor time, with several they are of the clock on the wall.

    Args:
        jobs: the log.
        setup: order and backfilling.
        decision: what random answers decide.
        crowded: all jobs of an episode arrive at once, so that the queue fills the window.
        threads: play the episodes in so many threads.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    if crowded:
        jobs = replace(jobs, submit=np.zeros_like(jobs.submit))
    features = {
        k: v for k, v in EIGHT.items() if decision == "backfill" or k not in ("gap", "safe", "blocked")
    }
    if decision != "backfill":
        features |= {"can run": "fits", "rejects": "rejects/72", "waiting": "waiting/128"}
    encoder = Encoder(decision, features, window=128).compile(constants_of(jobs))
    prepared = setup.build_scenario(
        jobs, Policy(setup.order, setup.backfill, agent=frozenset({decision}), guard=False)
    )
    batch = Batch(prepared, encoder, EPISODES, LENGTH, threads=threads)
    rng = np.random.default_rng(1)
    starts = np.linspace(0, len(jobs) - LENGTH, EPISODES).astype(np.int64)
    fastest, rows = 0.0, 0.0
    for _ in range(ROUNDS + 1):  # the first one warms up
        view = batch.reset(starts)
        spent, decisions, seen = 0.0, 0, 0
        while len(view.rows):
            sizes = np.diff(view.offsets)
            choices = np.full(EPISODES, 2) if decision == "inspect" else np.maximum(sizes, 1)
            actions = rng.integers(0, choices)
            decisions += int((sizes > 0).sum())
            seen += len(view.rows)
            begun = clock()
            view = batch.step(actions)
            spent += clock() - begun
        fastest, rows = max(fastest, decisions / spent), seen / decisions
    return fastest, rows


def on_teaching_site(threads: int) -> tuple[float, float]:
    """Return what `core` does for jobs that are placed on the nodes of the teaching site."""
    path = ROOT / "clusters" / "teaching-site.toml"
    setup = SchedulerConfig(cluster=str(path))
    jobs = setup.select(generate_site(read_cluster_toml(path), 10_000, 1))
    return core(jobs, setup, "backfill", crowded=False, threads=threads)


def environment(env: Any, seconds: float) -> float:
    """Return steps a second of a Gymnasium environment, one episode at a time, from Python."""
    rng = np.random.default_rng(1)
    env.reset(seed=1)
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        *_, over, cut, _ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        steps += 1
        if over or cut:
            env.reset()
    return steps / (time.perf_counter() - begun)


def epoch(jobs: Any, recipe: AnyRecipe) -> tuple[float, int]:
    """Return the seconds of one epoch (the best of three behind the first), and its decisions."""
    constants = constants_of(jobs) if isinstance(jobs, Jobs) else {}
    origin = Provenance("benchmark", jobs.name, len(jobs), "", 1, constants)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(TrainingContext(recipe, jobs, origin, Path(folder)))
        done = [trainer.step() for _ in range(4)][1:]
    return min(p.seconds for p in done), max(p.decisions for p in done)


def inference(recipe: Recipe, rows: int) -> float:
    """Return the milliseconds of one decision with so many rows, features given, the median of many."""
    torch.manual_seed(1)
    actor = copy_for_inference(actor_of(recipe))
    seen = np.random.default_rng(1).random((rows, recipe.encoder.width), np.float32)
    context = np.zeros((1, recipe.encoder.context), np.float32)
    view = PackedObservations(seen, np.array([0, rows], np.int64), np.zeros(rows, np.int64), context)
    times = []
    for _ in range(2_000):
        begun = time.perf_counter()
        argmax_actions(*scores_of(actor, view))
        times.append(time.perf_counter() - begun)
    return float(np.median(times)) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--traces", default=os.environ.get("BRIDGE_TRACES", ""))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    workload = read(log(options.traces))
    jobs = SchedulerConfig().select(workload)
    table = Table(
        ("what", "measured", "target", "against"),
        title=f"{jobs.name}, {EPISODES} episodes of {LENGTH} jobs, {options.threads} threads",
    )
    slow = environment(SchedulingEnv("backfill", workload=jobs, length=LENGTH), 3.0)

    def rate(what: str, decisions: float, rows: float, target: int, public: str, peer: float) -> None:
        ratio = f"{decisions / peer:,.0f} × {public}" if peer else ""
        table.add(f"{what} ({rows:.1f} rows each)", f"{decisions:,.0f}/s", f"≥ {target:,}/s", ratio)

    for what, setup, decision, crowded, target, public, peer in (
        ("backfill decisions", SchedulerConfig(), "backfill", False, 200_000, "public code at best", 3_200.0),
        (
            "the same, full queue",
            SchedulerConfig(),
            "backfill",
            True,
            200_000,
            "public code at best",
            3_200.0,
        ),
        (
            "pick decisions",
            SchedulerConfig(backfill="none"),
            "pick",
            False,
            200_000,
            "public code at best",
            3_200.0,
        ),
        (
            "pick, full queue",
            SchedulerConfig(backfill="none"),
            "pick",
            True,
            200_000,
            "public code at best",
            3_200.0,
        ),
        (
            "inspect decisions",
            SchedulerConfig("sjf", "none"),
            "inspect",
            False,
            500_000,
            "public code at best",
            12_700.0,
        ),
    ):
        rate(
            what, *core(jobs, setup, decision, crowded=crowded, threads=options.threads), target, public, peer
        )
    rate(
        "backfill, teaching site", *on_teaching_site(options.threads), 300_000, "public code at best", 3_200.0
    )
    table.add("Gymnasium environment, one at a time", f"{slow:,.0f}/s")
    for setting in ("paper", "recommended"):
        recipe = recipe_of("rlbackfilling", setting)
        chosen = recipe.setup.select(workload)
        quiet = with_training(recipe, {"validation": (0.0, 0.0), "epochs": 4})
        seconds, decisions = epoch(chosen, quiet)
        table.add(
            f"RLBackfilling epoch, {setting} ({decisions:,} decisions)",
            f"{seconds:.2f} s",
            "≤ 4 s",
            f"{170 / seconds:,.0f} × public code at best",
        )
    for name in ("rlbackfilling", "schedinspector"):
        recipe = recipe_of(name, "paper")
        rows = recipe.encoder.rows
        table.add(f"{name}: one decision, {rows} rows", f"{inference(recipe, rows):.3f} ms", "≤ 0.3 ms")
    table.print()


if __name__ == "__main__":
    main()
