"""A policy of the user's own in an agent's place, such as a model of stable-baselines3: judged, deciding."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import nn

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.base.plugins import describe, load_reference
from bridge.env.batch import PackedObservations
from bridge.env.env_config import EnvConfig
from bridge.env.episode_starts import constants_of, jobs_of
from bridge.env.observation import Observation, ObservationBuffer
from bridge.learn.checkpoint import Agent, Provenance
from bridge.learn.recipe import NetworkConfig, Recipe


@dataclass(frozen=True)
class UserPolicy:
    """A policy of your own: a function that answers the decisions of an environment.

    Attributes:
        task: what the policy decides and sees: see `bridge.env.env_config.build_env_config`. Constants in
            features come from the task's workload.
        predict: called with an observation and the mask of legal actions, as the environment shows them;
            returns an action. An illegal action counts as it does in the environment.
    """

    task: EnvConfig
    predict: Callable[[Observation, Flags], int]
    name: str = "own"


@dataclass(frozen=True, eq=False)
class OwnAgent(Agent[Recipe]):
    """A `UserPolicy` in the place of a trained agent; its folder is its reference."""

    own: UserPolicy = field(kw_only=True)

    @property
    def name(self) -> str:
        return self.own.name

    def answer(self, view: PackedObservations) -> Ints:
        observation = ObservationBuffer(self.recipe.encoder, len(view.offsets) - 1)
        observation.write(view)
        predicted = (
            self.own.predict(observation.observation(b), mask) for b, mask in enumerate(observation.masks)
        )
        return observation.map_actions(np.array([int(action) for action in predicted], np.int64))[0]


def load_user_policy(reference: str) -> OwnAgent:
    """Load the `UserPolicy` (or its factory) that ``module:ATTR`` names; else BridgeError."""
    policy = load_reference(reference)
    remedy = "Name a UserPolicy, or a function that returns one, see examples/own_policy.py."
    if callable(policy) and not isinstance(policy, UserPolicy):
        try:
            policy = policy()
        except Exception as error:
            what = f"makes no policy: {describe(error)}"
            if isinstance(error, TypeError):  # it wants arguments, as an order does
                remedy += f" An order of your own is written with a backfilling rule: {reference}+easy."
            else:
                remedy = "The function fails: mend it."
            raise BridgeError(what, where=reference, remedy=remedy) from error
    if not isinstance(policy, UserPolicy):
        raise BridgeError(f"is a {type(policy).__name__}, not a policy", where=reference, remedy=remedy)
    task = policy.task
    jobs = jobs_of(task.workload, task.setup)
    recipe = Recipe(
        name=policy.name,
        setting="",
        source="your own module",
        summary="",
        setup=task.setup,
        encoder=task.encoder.for_resources(len(jobs.resources)),
        actor=NetworkConfig("none"),
        guard=task.guard,
        max_rejects=task.max_rejects,
        retry_after=task.retry_after,
    )
    constants = constants_of(jobs) if task.constants is None else dict(task.constants)
    resources = jobs.resources if len(jobs.resources) > 1 else ()
    origin = Provenance(jobs.name, jobs.name, len(jobs), "", 0, constants, resources=resources)
    return OwnAgent(Path(reference), recipe, origin, 0, nn.Identity(), own=policy)
