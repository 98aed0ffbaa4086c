"""How long a decision of MRSch takes, with its default and its full-size network.

A decision is what a detailed platform waits for: listing the candidates, encoding them and their context,
and the network in double precision, as every trained agent decides. The paper: below 2 s with two resources,
below 3 s with three.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402
import torch  # noqa: E402

from bridge.learn.agent import AgentDecider  # noqa: E402
from bridge.learn.checkpoint import LogAgent, Provenance  # noqa: E402
from bridge.learn.network import actor_of, parameters  # noqa: E402
from bridge.learn.recipe import Recipe  # noqa: E402
from bridge.learn.registry import recipe_of  # noqa: E402
from bridge.scheduler.core import NOTHING, PICK  # noqa: E402
from bridge.scheduler.session import JobEstimates, Session  # noqa: E402
from bridge.scheduler.state import SECOND  # noqa: E402
from bridge.worlds.fast.scheduler_config import SchedulerConfig  # noqa: E402

#: Theta: nodes, burst buffer (units), power (W above idle).
CAPACITY = (4360, 1325, 238_400)
RUNNING, WAITING = 20, 40


def session(recipe: Recipe, resources: int) -> Session:
    """Return a busy Theta that waits for a decision."""
    setup: SchedulerConfig = recipe.setup
    rng = np.random.default_rng(1)
    made = Session(
        CAPACITY[:resources],
        recipe.policy(),
        setup.rules()[0],
        window=recipe.encoder.window,
        longest=86_400.0,
    )
    for k in range(RUNNING + WAITING):
        nodes = int(rng.integers(128, 200)) if k < RUNNING else 1_500
        demand = (nodes, int(rng.integers(0, 40)), nodes * 40)[:resources]
        made.submit(k, demand, JobEstimates.same(int(rng.integers(3_600, 86_400)) * SECOND))
        if k < RUNNING:
            made.begin()
            while made.advance() != NOTHING:
                made.answer(0)
            made.starts()
    made.begin()
    if made.advance() != PICK:
        raise SystemExit("the machine asks for nothing")
    return made


def decision(recipe: Recipe, resources: int, times: int) -> tuple[float, float]:
    """Return the median and the 95th percentile of so many decisions, ms."""
    torch.manual_seed(1)
    origin = Provenance("benchmark", "benchmark", 1, "", 1, {"max_run": 86_400.0})
    agent = LogAgent(Path("benchmark"), recipe, origin, 0, actor_of(recipe))
    decides, machine = AgentDecider(agent), session(recipe, resources)
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        decides(machine, PICK)
        taken.append(1e3 * (time.perf_counter() - begun))
    return float(np.median(taken)), float(np.quantile(taken, 0.95))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--threads", type=int, default=2, help="of the network's arithmetic")
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    print(f"{'network':<10} {'resources':>9} {'parameters':>12} {'ms, median':>11} {'ms, 95 %':>9}")
    for setting, resources, times in (("default", 2, 2_000), ("default", 3, 2_000), ("full", 2, 50)):
        recipe = recipe_of("mrsch", setting).for_resources(resources)
        with torch.device("meta"):
            size = parameters(actor_of(recipe))
        median, most = decision(recipe, resources, times)
        print(f"{setting:<10} {resources:>9} {size:>12,} {median:>11.2f} {most:>9.2f}")
    print(f"{threads} threads, PyTorch {torch.__version__}; the targets are 2 ms (default) and 40 ms (full)")


if __name__ == "__main__":
    main()
