"""Evolution strategies: the actor's weights move towards neighbours that do better as deployed, greedily.

Source: T. Salimans, J. Ho, X. Chen, S. Sidor, I. Sutskever, "Evolution Strategies as a Scalable Alternative
to Reinforcement Learning", 2017: antithetic pairs, centred ranks, Adam. All neighbours of an epoch play the
same episodes. For actors of few weights: nothing is known of single decisions, and none is drawn.
"""

import copy
from dataclasses import astuple

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from bridge.base.arrays import Floats, Ints
from bridge.env.batch import PackedObservations
from bridge.learn.algorithms.log_learner import EpisodeBatch, LogLearner
from bridge.learn.learner import EpochResult, Losses, TrainingContext
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import copy_for_inference, make_action_function, play


def centred_ranks(values: Floats) -> Floats:
    """Return ½ for the lowest value to −½ for the highest; equal ones share the mean of their ranks."""
    ordered = np.sort(values)
    ranks = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2
    return np.asarray(((len(values) + 1) / 2 - ranks) / max(len(values) - 1, 1), np.float64)


class EvolutionStrategy(LogLearner):
    """Antithetic pairs of neighbours play an epoch's episodes; the weights take a step by their ranks."""

    def __init__(self, context: TrainingContext[Recipe]) -> None:
        super().__init__(context)
        self.optimizers = {
            "actor": torch.optim.Adam(self.actor.parameters(), self.recipe.training.learning_rate)
        }
        self._decisions = 0

    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        training, pairs, sigma = self.recipe.training, *astuple(self.recipe.evolution)
        self.optimizers["actor"].param_groups[0]["lr"] = training.learning_rate * training.rate_fraction(
            epoch
        )
        batches = [source.draw(epoch, rng) for source in self.sources]
        centre = parameters_to_vector(self.actor.parameters()).detach().cpu().double().numpy()
        noise = rng.normal(size=(pairs, len(centre)))
        self._decisions = 0
        moved = [centre + sign * sigma * one for one in noise for sign in (1.0, -1.0)]
        means = np.array([self._means(one, batches) for one in moved])  # [2 pairs, logs]
        if not self._decisions:
            raise self.nothing_to_decide()
        base = np.array([some.base.mean() for some in batches])
        cost = np.log(np.maximum(means, 1e-9) / np.maximum(base, 1e-9)).mean(1)
        ranks = centred_ranks(cost).reshape(pairs, 2)
        ascent = (ranks[:, :1] - ranks[:, 1:]).T @ noise / (2.0 * pairs * sigma)
        self._descend(-ascent[0])
        losses, mean = Losses(float(cost.mean()), iterations=1), float(means.mean())
        return EpochResult(mean, float(base.mean()), float(-cost.mean()), self._decisions, losses)

    def _means(self, weights: Floats, batches: list[EpisodeBatch]) -> list[float]:
        actor = copy.deepcopy(self.actor).double()
        vector_to_parameters(torch.from_numpy(weights), actor.parameters())
        answer = make_action_function(copy_for_inference(actor), "greedy", self.origin.seed)

        def counted(view: PackedObservations) -> Ints:
            self._decisions += len(view.offsets) - 1
            return answer(view)

        means = []
        for some in batches:
            play(some.batch, counted, some.starts)
            means.append(self.mean_cost(some.batch, len(some.starts)))
        return means

    def _descend(self, gradient: Floats) -> None:
        """Take a step of Adam down a gradient in the weights, which is none of a loss."""
        places = np.cumsum([one.numel() for one in self.actor.parameters()])[:-1]
        for one, part in zip(self.actor.parameters(), np.split(gradient, places), strict=True):
            one.grad = torch.from_numpy(part).view_as(one).to(one)
        self.optimizers["actor"].step()
