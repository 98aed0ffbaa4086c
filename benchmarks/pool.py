"""How fast the time-stepped pool is: steps a second alone, with the agent's picture, one epoch of training.

    python benchmarks/pool.py --data vasp_jobs.csv.gz
    python benchmarks/pool.py                           # synthetic jobs

A step is one answer in one pool. `listed` pictures are the encoder's own, the list of their corners; `whole`
ones are 120 x 72 numbers. The ratio is against an encoder that writes whole pictures with NumPy, as
public code does, on the same states; both give the same numbers, which is checked first.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402
import torch  # noqa: E402

from benchmarks.training import environment, epoch  # noqa: E402
from bridge.base.arrays import Array, Floats32, Ints  # noqa: E402
from bridge.base.jit import kernel  # noqa: E402
from bridge.policies.rlschert import SETTINGS  # noqa: E402
from bridge.pool.batch import PoolBatch  # noqa: E402
from bridge.pool.environment import PickOrKillEnv  # noqa: E402
from bridge.pool.evaluate import jobs_of  # noqa: E402
from bridge.pool.heuristics import choose_all  # noqa: E402
from bridge.pool.jobset import JobSet  # noqa: E402
from bridge.pool.machine import ASKING, apply_action  # noqa: E402
from bridge.pool.observation import encode_corners, most_corners, paint, scratch  # noqa: E402
from bridge.pool.settings import PoolConfig  # noqa: E402
from bridge.pool.state import PoolState  # noqa: E402
from bridge.pool.world import PoolWorldState, advance, draw_sequences  # noqa: E402
from bridge.report.table import Table  # noqa: E402
from bridge.scheduler.names import SAF  # noqa: E402

ROUNDS = 3
#: Answers: (pools, actions to be written).
Player = Callable[[PoolBatch, Ints], None]


def plain_picture(state: PoolState, b: int, settings: PoolConfig) -> Floats32:
    """Return the picture of a pool with NumPy, job by job, row by row."""
    env, jobs = state.env[b], state.jobs[b]
    height, units = settings.horizon, settings.units
    picture = np.zeros((height, units + 10 * settings.slots + 2))
    for k in range(env.n_booked):
        job = jobs[state.booked[b, k]]
        for h in range(max(job.start - env.now, 0), min(job.until - env.now, height)):
            free = np.flatnonzero(picture[h, :units] == 0)
            picture[h, free[: job.units]] = job.colour / 500
    picture[:, :units].sort(axis=1)
    for k in range(min(settings.slots, env.n_waiting)):
        job = jobs[state.waiting[b, k]]
        picture[: job.believed, units + 10 * k : units + 10 * k + job.units] = 1.0
    for k, j in enumerate(state.running[b]):
        if j >= 0:
            job, used = jobs[j], env.now - jobs[j].start
            run = state.beliefs[b, j, min(used, state.beliefs.shape[2] - 1)]
            error = abs(int(run) - job.believed) / job.believed
            numbers = job.believed / 100, used / 100, error, run / 100, job.submit / 200, job.units / 10
            picture[k * (height // settings.kill_slots) :, -2][:6] = numbers
    picture[:, -1] = env.silence / 10
    return picture.astype(np.float32)


def by_saf(pools: PoolBatch, actions: Ints) -> None:
    """Answer as SAF does: the pool is busy, and nothing is booked ahead."""
    choose_all(pools.state, SAF, 0.0, False, actions, actions)


def booking_ahead(pools: PoolBatch, actions: Ints) -> None:
    """Select whatever waits, and kill now and then: the picture is as full as it gets."""
    rng = np.random.default_rng(int(pools.state.env.now.sum()))
    wish = rng.random(pools.masks.shape)
    wish[:, pools.settings.slots + 1 :] *= 0.02
    actions[:] = (wish * pools.masks).argmax(1)


def steps_a_second(jobs: JobSet, batch: int, player: Player, *, whole: bool) -> tuple[float, float]:
    """Return steps a second with the picture, the best of some rounds, and corners each."""
    drawn = draw_sequences(jobs, 314159, sequences=batch)
    pools = PoolBatch(drawn, batch, PoolConfig(), "learned")
    actions, places = np.zeros(batch, np.int64), np.arange(batch)
    best, corners = 0.0, 0.0
    for _ in range(ROUNDS + 1):  # the first one warms up
        pools.play(drawn)
        spent, steps, listed = 0.0, 0, 0
        while pools.waiting.any():
            player(pools, actions)
            steps += int(pools.waiting.sum())
            begun = time.perf_counter()
            view = pools.step(actions)
            if whole:
                view.pictures(places)
            spent += time.perf_counter() - begun
            listed += len(view.cells)
        best, corners = max(best, steps / spent), listed / steps
    return best, corners


@kernel
def answer_all(state: PoolState, world: PoolWorldState, actions: Array) -> None:
    """Answer in every pool that asks, and play on until the next answers are wanted."""
    for b in range(actions.shape[0]):
        if state.env[b].phase == ASKING:
            apply_action(state, b, actions[b])
        advance(state, world, b)


def steps_without_pictures(jobs: JobSet, batch: int, player: Player) -> float:
    """Return steps a second of the pool alone, the best of some rounds, on the same answers."""
    drawn = draw_sequences(jobs, 314159, sequences=batch)
    pools = PoolBatch(drawn, batch, PoolConfig(), "learned")
    played: list[tuple[Ints, int]] = []
    pools.play(drawn)
    while pools.waiting.any():
        actions = np.zeros(batch, np.int64)
        player(pools, actions)
        played.append((actions, int(pools.waiting.sum())))
        pools.step(actions)
    best = 0.0
    for _ in range(ROUNDS + 1):
        pools.play(drawn)
        begun = time.perf_counter()
        for actions, _ in played:
            answer_all(pools.state, pools.world, actions)
        best = max(best, sum(steps for _, steps in played) / (time.perf_counter() - begun))
    return best


def ratio(jobs: JobSet, player: Player) -> tuple[float, float]:
    """Return microseconds a whole picture of the plain encoder and of ours on the same states, medians."""
    settings = PoolConfig()
    drawn = draw_sequences(jobs, 314159, sequences=1)
    pools = PoolBatch(drawn, 1, settings, "learned")
    cells, own = np.zeros(most_corners(settings), np.int32), scratch(pools.state)
    values, actions = np.zeros(len(cells), np.float32), np.zeros(1, np.int64)
    offsets, places = np.zeros(2, np.int64), np.zeros(1, np.int64)
    whole = np.zeros((1, *pools.shape), np.float32)
    pools.play(drawn)
    times: list[tuple[float, float]] = []
    while pools.waiting[0]:
        begun = time.perf_counter()
        offsets[1] = encode_corners(pools.state, 0, own, cells, values)
        paint(cells, values, offsets, places, settings.units, whole)
        middle = time.perf_counter()
        expected = plain_picture(pools.state, 0, settings)
        times.append((time.perf_counter() - middle, middle - begun))
        assert np.array_equal(whole[0], expected)
        player(pools, actions)
        pools.step(actions)
    plain, ours = np.median(times, axis=0) * 1e6
    return float(plain), float(ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", default=None, metavar="FILE")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    jobs, batch = jobs_of(options.data), options.batch
    table = Table(
        ("what", "measured", "target", "against"),
        title=f"{jobs.name}, {batch} pools, {options.threads} threads",
    )
    for name, player in (("SAF's answers", by_saf), ("booking ahead", booking_ahead)):
        alone = steps_without_pictures(jobs, batch, player)
        table.add(f"{name}: the pool alone", f"{alone:,.0f}/s")
        listed, corners = steps_a_second(jobs, batch, player, whole=False)
        table.add(f"… with listed pictures ({corners:,.0f} corners)", f"{listed:,.0f}/s", "≥ 100,000/s")
        whole, _ = steps_a_second(jobs, batch, player, whole=True)
        table.add("… with whole pictures", f"{whole:,.0f}/s", "≥ 100,000/s")
        plain, ours = ratio(jobs, player)
        table.add("… a whole picture", f"{ours:.1f} µs", "", f"{plain / ours:,.0f} × NumPy ({plain:,.0f} µs)")
    table.add(
        "Gymnasium environment, one at a time", f"{environment(PickOrKillEnv(data=jobs, seed=1), 3.0):,.0f}/s"
    )
    for setting in ("paper", "recommended"):
        recipe = SETTINGS[setting]
        changes = {"validate_every": 1000, "lessons": 0, "target_kl": 1e9, "imitation": 0.0}
        quiet = replace(recipe.training, **changes)  # type: ignore[arg-type]
        seconds, decisions = epoch(jobs, replace(recipe, training=quiet))
        what = f"one epoch of {setting}, all passes ({decisions:,} decisions)"
        table.add(what, f"{seconds:.2f} s", "≤ 3 s")
    table.print()


if __name__ == "__main__":
    main()
