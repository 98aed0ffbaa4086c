"""The agent whose picks an inspector inspects: found by the inspector's recipe."""

import torch

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import CompiledEncoder
from bridge.env.inspected_picks import InspectedPicks, Picks
from bridge.env.slurm_batch import open_batch
from bridge.learn.checkpoint import LogAgent, load
from bridge.learn.checkpoint_files import digest_of_agent
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import copy_for_inference, make_action_function
from bridge.worlds.fast.episode import Scenario


def picking_agent(recipe: Recipe, sha256: str = "") -> LogAgent | None:
    """Return the agent whose picks the recipe's agent inspects, if it inspects those of one.

    `sha256`: what its digest was. BridgeError: there is none, it does not pick, or it is another one now.
    """
    if not recipe.picks:
        return None
    with torch.random.fork_rng(devices=[]):  # whoever trains draws the weights that he would draw without it
        agent = load(recipe.picks)
    if agent.recipe.decision != "pick":
        remedy = "Name one that picks the next job, such as one of `bridge train rlscheduler`."
        raise BridgeError(f"decides {agent.recipe.decision}, not pick", where=recipe.picks, remedy=remedy)
    if sha256 and digest_of_agent(recipe.picks) != sha256:
        remedy = "Bring the former one back, or train the inspector anew."
        raise BridgeError("has changed since its picks were inspected", where=recipe.picks, remedy=remedy)
    return agent


def picks_of(agent: LogAgent | None) -> Picks | None:
    """Return how an agent that picks answers; None of none."""
    if agent is None:
        return None
    answer = make_action_function(copy_for_inference(agent.actor), agent.mode, agent.origin.seed)
    return Picks(agent.encoder(), answer)


def batch_of(
    prepared: Scenario,
    encoder: CompiledEncoder,
    size: int,
    length: int,
    picks: Picks | None,
    *,
    whole: bool = False,
) -> Batch:
    """Return a batch of whoever picks, in as many threads as networks have; see `bridge.env.batch.Batch`."""
    threads = torch.get_num_threads()
    if picks is None:
        return open_batch(prepared, encoder, size, length, whole=whole, threads=threads)
    return InspectedPicks(prepared, encoder, size, length, picks, whole=whole, threads=threads)
