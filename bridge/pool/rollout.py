"""Playing time-stepped pools with a network: to learn from it, or as it is deployed and judged."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bridge.base.arrays import Flags, Floats, Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.base.interrupts import raise_if_interrupted
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.learn.learner import Mode
from bridge.learn.rollout import TIE, copy_for_inference, uniform_from_keys
from bridge.pool.batch import PoolBatch
from bridge.pool.evaluate import PoolEvaluation, build_evaluation, prepare
from bridge.pool.heuristics import PoolActionFunction, PoolBatchBase, choose_kill, mark_overrunning
from bridge.pool.jobset import JobSet
from bridge.pool.network import ActorCritic, PoolCheckpoint, log_probabilities
from bridge.pool.observation import PictureBatch
from bridge.pool.recipe import PoolRecipe
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.pool.world import Sequences


@dataclass(frozen=True)
class PoolRollout:
    """Decisions of E episodes, D in all, in the order in which they were taken, all episodes side by side.

    Attributes:
        view: the pictures.
        places: [D] whose decision it is.
        outlooks: float32 [D, N_CRITIC_FEATURES] what the critic knew; 0 columns without such a critic.
        masks: [D, A] the answers it had.
        actions, logp: [D] the one that was taken, and its log probability.
        teacher_actions: [D] the teacher's answers; empty if nobody teaches.
        values, rewards: [D] what the network expected, and what came at once.
        elapsed_steps: [D] steps that passed behind it, 0 or 1.
    """

    view: PictureBatch
    places: Ints
    outlooks: Floats32
    masks: Flags
    actions: Ints
    teacher_actions: Ints
    logp: Floats
    values: Floats
    rewards: Floats
    elapsed_steps: Ints

    def __len__(self) -> int:
        return len(self.actions)


def agent_action_masks(recipe: PoolRecipe, pools: PoolBatchBase, live: Ints) -> Flags:
    """Return the answers that an agent has at some places, [D, A]."""
    none = recipe.pool.slots
    legal = pools.masks[live]
    answers = legal.copy() if recipe.mask else np.ones_like(legal)
    if recipe.kill != "learned":
        answers[:, none + 1 :] = False
    elif recipe.most_kills or recipe.suspicion:
        running = pools.state.running[live]
        may = np.ones(running.shape, np.bool_)
        if recipe.suspicion:
            mark_overrunning(pools.state, live, recipe.suspicion, may)
        if recipe.most_kills:
            kills = pools.state.jobs.kills[live[:, None], np.maximum(running, 0)]
            may &= kills < recipe.most_kills
        answers[:, none + 1 :] &= may | (running < 0)
    if not recipe.idle:
        answers[:, none] = ~(pools.idle[live] & legal[:, :none].any(1))
    return answers


def collect(
    pools: PoolBatch,
    recipe: PoolRecipe,
    network: ActorCritic,
    sequences: Sequences,
    rng: np.random.Generator,
    teacher: PoolActionFunction | None = None,
    *,
    lesson: bool = False,
) -> PoolRollout:
    """Play every sequence once, in as many pools at least, drawing from the network's probabilities.

    `teacher`: whose answers are noted; in a `lesson` they are what is answered.
    """
    network.fix()
    view = pools.play(sequences)
    kept: list[tuple[npt.NDArray[np.generic], ...]] = []
    actions = np.zeros(len(pools), np.int64)
    while pools.waiting.any():
        raise_if_interrupted()
        live = np.flatnonzero(pools.waiting)
        masks = agent_action_masks(recipe, pools, live)
        outlooks = pools.outlooks(live) if network.critic else np.zeros((len(live), 0), np.float32)
        with torch.inference_mode():
            scores, values = network(view, live, outlooks)
            logp = log_probabilities(scores, masks).double().numpy()
        taught = teacher(pools, view, live) if teacher else np.zeros(0, np.int64)
        noisy = logp + rng.gumbel(size=logp.shape)  # the largest is distributed as softmax says
        chosen = taught if lesson else noisy.argmax(1)
        actions[live] = chosen
        pictures = view.cells.copy(), view.values.copy(), np.diff(view.offsets)[live]
        taken = logp[np.arange(len(live)), chosen]
        view = pools.step(actions)
        after = pools.rewards[live], pools.moved[live]
        numbers = outlooks, masks, chosen, taught, taken, values.double().numpy(), *after
        kept.append((*pictures, live, *numbers))
    network.fix(False)
    cells, corners, sizes, places, *rest = (np.concatenate(part) for part in zip(*kept, strict=True))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return PoolRollout(PictureBatch(cells, corners, offsets, pools.settings), places, *rest)


def play(pools: PoolBatch, answer: PoolActionFunction, sequences: Sequences) -> None:
    """Play every sequence once; read the outcome from the pools."""
    view = pools.play(sequences)
    actions = np.zeros(len(pools), np.int64)
    while pools.waiting.any():
        raise_if_interrupted()
        live = np.flatnonzero(pools.waiting)
        actions[live] = answer(pools, view, live)
        view = pools.step(actions)


def deciding(recipe: PoolRecipe, actor: nn.Module, how: Mode, seed: int) -> PoolActionFunction:
    """Return how a trained network answers, alike in every world, from now on.

    ``greedy`` takes the best answer, the first among equals. ``sample`` draws from its probabilities, with
    random numbers that depend on the seed and the number of the decision within its episode only. Ask for a
    new one for new episodes.
    """
    network = copy_for_inference(actor)
    assert isinstance(network, ActorCritic)
    network.fix()
    taken: dict[int, int] = {}

    def answer(pools: PoolBatchBase, view: PictureBatch, live: Ints) -> Ints:
        with torch.inference_mode():
            logp = log_probabilities(network(view, live)[0], agent_action_masks(recipe, pools, live)).numpy()
        if how == "sample":
            numbers = np.array([taken.get(b, 0) for b in live.tolist()], np.int64)
            taken.update(zip(live.tolist(), (numbers + 1).tolist(), strict=True))
            keys = numbers[:, None] * logp.shape[1] + np.arange(logp.shape[1])
            logp = logp - np.log(-np.log(uniform_from_keys(keys, seed)))
        return np.asarray((logp >= logp.max(1, keepdims=True) - TIE).argmax(1), np.int64)

    return answer


def make_teacher(teacher: PoolActionFunction, recipe: PoolRecipe) -> PoolActionFunction:
    """Return a function that gives the teacher's actions, limited to those that the agent has.

    If the agent is to kill, the paper's rule speaks first. An answer that the agent does not have is replaced
    by the first one that it has.
    """

    def answer(pools: PoolBatchBase, view: PictureBatch, live: Ints) -> Ints:
        actions, answers = teacher(pools, view, live), agent_action_masks(recipe, pools, live)
        if recipe.kill == "learned":
            for i, b in enumerate(live.tolist()):
                action = choose_kill(pools.state, b)
                if action >= 0 and answers[i, action]:
                    actions[i] = action
        return np.where(answers[np.arange(len(live)), actions], actions, answers.argmax(1))

    return answer


#: Sequences that are played side by side.
_TOGETHER = 16


def options_of(agent: PoolCheckpoint, base: EvaluationOptions | None = None) -> EvaluationOptions:
    """Return an agent's default evaluation: its own pool, rate, steps and estimates.

    Seed, number of sequences and share of predictable jobs are the `base`'s.
    """
    recipe, training = agent.recipe, agent.recipe.training
    options = replace(base or EvaluationOptions(), rate=training.rate, steps=training.steps)
    return replace(options, estimator=recipe.estimator, settings=recipe.pool)


def evaluate_agent(
    agent: PoolCheckpoint,
    jobs: JobSet,
    options: EvaluationOptions,
    *,
    progress: ProgressCallback = ignore_progress,
) -> PoolEvaluation:
    """Play every sequence, drawn from the jobs, under a trained agent.

    `options`: see `options_of`; the agent's objective may differ from the pool's. `progress` is called with
    the number of sequences that are done. BridgeError: it has learnt on another pool, an option is out of its
    range, or jobs did not end.
    """
    pool = options.settings
    require_pool(agent, pool)
    scenario = prepare(jobs, options)
    pools = PoolBatch(scenario, min(_TOGETHER, len(scenario)), pool, agent.recipe.kill, most=scenario.most)
    schedules = []
    for first in range(0, len(scenario), _TOGETHER):
        part = Sequences(scenario.jobs, scenario.arrivals[first : first + _TOGETHER])
        play(pools, deciding(agent.recipe, agent.actor, agent.mode, agent.origin.seed), part)
        schedules += [pools.schedule(b) for b in range(len(part))]
        progress(len(schedules))
    return build_evaluation(scenario, schedules, agent.name, agent.recipe.kill, options)


def require_pool(agent: PoolCheckpoint, pool: PoolConfig) -> None:
    """Refuse a pool that looks otherwise than the one an agent has learnt on."""
    own = agent.recipe.pool
    for name in ("units", "slots", "kill_slots", "horizon"):
        if getattr(pool, name) != getattr(own, name):
            what = f"has learnt on a pool of {getattr(own, name)} {name}, not {getattr(pool, name)}"
            remedy = "It sees a picture of another shape: train one for this pool."
            raise BridgeError(what, where=str(agent.folder), remedy=remedy)
