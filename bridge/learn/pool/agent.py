"""A trained agent of the time-stepped pool at work: judged on drawn sequences, beside heuristics."""

from collections.abc import Callable
from dataclasses import replace

from bridge.errors import BridgeError
from bridge.learn.checkpoint import PoolCheckpoint
from bridge.learn.pool.rollout import deciding, play
from bridge.pool.evaluate import Evaluation, judged, prepare
from bridge.pool.jobset import JobSet
from bridge.pool.pools import Pools
from bridge.pool.settings import Options, Settings
from bridge.pool.world import Sequences

#: Sequences that are played side by side.
_TOGETHER = 16


def options_of(agent: PoolCheckpoint, base: Options | None = None) -> Options:
    """Return what an agent is judged on if nothing else is said: its own pool, rate, steps and beliefs.

    Args:
        agent: who decides.
        base: seed, number of sequences and share of predictable jobs.
    """
    training = agent.recipe.training
    return replace(
        base or Options(),
        rate=training.rate,
        steps=training.steps,
        estimator=agent.recipe.estimator,
        settings=agent.recipe.pool,
    )


def evaluate_agent(
    agent: PoolCheckpoint,
    jobs: JobSet,
    options: Options | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play every sequence under a trained agent.

    Args:
        agent: who decides.
        jobs: what the sequences are drawn from.
        options: see `options_of`; the agent's objective may differ from the pool's.
        progress: called with the number of sequences that are done.

    Raises:
        BridgeError: it has learnt on another pool, an option is out of its range, or jobs did not end.
    """
    options = options or options_of(agent)
    pool = options.settings
    require_pool(agent, pool)
    drawn = prepare(jobs, options)
    pools = Pools(drawn, min(_TOGETHER, len(drawn)), pool, agent.recipe.kill, most=drawn.most)
    schedules = []
    for first in range(0, len(drawn), _TOGETHER):
        part = Sequences(drawn.jobs, drawn.arrivals[first : first + _TOGETHER])
        play(pools, deciding(agent.recipe, agent.actor, agent.mode, agent.origin.seed), part)
        schedules += [pools.schedule(b) for b in range(len(part))]
        if progress is not None:
            progress(len(schedules))
    return judged(drawn, schedules, agent.name, agent.recipe.kill, options)


def require_pool(agent: PoolCheckpoint, pool: Settings) -> None:
    """Refuse a pool that looks otherwise than the one an agent has learnt on.

    Raises:
        BridgeError: it does.
    """
    own = agent.recipe.pool
    for name in ("units", "slots", "kill_slots", "horizon"):
        if getattr(pool, name) != getattr(own, name):
            raise BridgeError(
                f"has learnt on a pool of {getattr(own, name)} {name}, not {getattr(pool, name)}",
                where=str(agent.folder),
                remedy="It sees a picture of another shape: train one for this pool.",
            )
